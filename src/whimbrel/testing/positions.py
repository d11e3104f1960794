"""Where definitions, cases and parts stand in the text of a query."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from whimbrel.errors import Span, WhimbrelError
from whimbrel.lang.reading import read_text
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.lower import subscription_name
from whimbrel.lang.wbl.mobile import mobile_name
from whimbrel.lang.wbl.parse import parse


@dataclass(frozen=True)
class QueryPositions:
    """Spans by name; empty for a query that is not in the Whimbrel language."""

    definitions: dict[str, Span | None] = field(default_factory=dict)
    cases: dict[tuple[str, int], Span | None] = field(default_factory=dict)
    parts: dict[tuple[str, str], Span | None] = field(default_factory=dict)
    types: dict[str, Span | None] = field(default_factory=dict)
    mobile: dict[str, Span | None] = field(default_factory=dict)

    @classmethod
    def of(cls, file: Path) -> QueryPositions:
        """Read them from a query file; one that has no such text has no positions."""
        if file.suffix != ".wbl":
            return cls()
        try:
            parsed = parse(read_text(file))
        except WhimbrelError:
            return cls()
        positions = cls()
        for statement in parsed.statements:
            if isinstance(statement, t.Definition):
                positions._read(statement.name, statement)
            elif isinstance(statement, t.SubscriptionNode):
                positions._read(subscription_name(statement), statement)
            elif isinstance(statement, t.MobileNode):
                positions.mobile[mobile_name(statement)] = statement.at
        return positions

    def _read(self, name: str, statement: t.Definition | t.SubscriptionNode) -> None:
        self.definitions[name] = statement.at
        for number, case in enumerate(statement.cases):
            self.cases[name, number] = case.at
            for part in _parts(case.detect):
                self._read_part(name, part)

    def _read_part(self, name: str, part: t.PatternPartNode) -> None:
        if part.alias is not None:
            self.parts.setdefault((name, part.alias), part.at)
        if isinstance(part.what, t.Occurrence):
            self.parts.setdefault((name, part.what.type), part.at)
            self.types.setdefault(part.what.type, part.what.at or part.at)


def _parts(pattern: t.PatternNode | t.MotionNode) -> Iterator[t.PatternPartNode]:
    if isinstance(pattern, t.MotionNode):
        yield t.PatternPartNode(pattern.mover, alias=pattern.alias, at=pattern.at)
        return
    for part in pattern.parts:
        yield part
        if isinstance(part.what, t.PatternNode):
            yield from _parts(part.what)
