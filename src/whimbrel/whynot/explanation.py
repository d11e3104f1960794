"""What an explanation says: what every definition found, and the nearest misses with their reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from whimbrel.graph.expressions import Expr
from whimbrel.model.schema import Value
from whimbrel.model.time import format_instant
from whimbrel.model.words import many
from whimbrel.whynot.delivered import Delivered
from whimbrel.whynot.events import Seen
from whimbrel.whynot.words import clock, listed, shortened, value_text

KINDS: Mapping[str, str] = {
    "condition": "a condition was not true",
    "null": "a value was missing",
    "order": "events came in another order",
    "time": "time ran out",
    "same": "one event cannot fill two parts",
    "group": "the events belong to different groups",
    "present": "an event came that must not come",
    "selected": "another event was selected",
    "consumed": "an event was used up by another detection",
    "context": "the context chose another combination",
    "waiting": "it is not decided yet",
    "nothing": "no event came",
    "few": "too few events came",
    "ended": "an event ended the repetition",
    "having": "the results of a window did not fulfil `having`",
    "empty": "a window lacks events of an input",
    "custom": "the operator is written in Python",
}
"""The kinds of reasons, and what each means."""


SHOWN_PARTS = 8
"""How many parts of a miss a text shows; a repetition may have any number."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that stopped a partial match.

    `kind` is one of `KINDS`, `part` the part of the pattern that it concerns, `condition` the condition that
    was not true, and `events` are the other events that it speaks of: what prevented, what took its place.
    """

    kind: str
    text: str
    part: str | None = None
    condition: Expr | None = field(default=None, repr=False)
    events: tuple[Seen, ...] = ()

    def __str__(self) -> str:
        return f"{self.part}: {self.text}" if self.part else self.text

    def to_dict(self) -> dict[str, object]:
        """Convert it to plain data."""
        return {
            "kind": self.kind,
            "part": self.part,
            "text": self.text,
            "condition": None if self.condition is None else shortened(self.condition),
            "events": [event.to_dict() for event in self.events],
        }


@dataclass(frozen=True, slots=True)
class Miss:
    """A partial match that became no detection: how far it came, and what stopped it.

    `parts` has every part of the pattern with the event that filled it, or would have; None where the match
    did not get that far. `cost` grows with what is missing: the nearest miss has the least.
    """

    definition: str
    operator: str
    key: Mapping[str, Value]
    parts: tuple[tuple[str, Seen | None], ...]
    reasons: tuple[Reason, ...]
    cost: float

    @property
    def filled(self) -> int:
        """How many parts have an event that fits."""
        stopped = {reason.part for reason in self.reasons if reason.kind in STOPPING}
        return sum(event is not None and name not in stopped for name, event in self.parts)

    def __str__(self) -> str:
        where = f" ({key_text(self.key)})" if self.key else ""
        head = [f"{name}: {event or 'not filled'}" for name, event in self.parts[:SHOWN_PARTS]]
        if len(self.parts) > SHOWN_PARTS:
            head.append(f"and {len(self.parts) - SHOWN_PARTS} parts more")
        why = [f"-> {reason}" for reason in self.reasons]
        return "\n".join([f"{self.filled} of {len(self.parts)} parts{where}", *head, *why])

    def to_dict(self) -> dict[str, object]:
        """Convert it to plain data."""
        return {
            "definition": self.definition,
            "operator": self.operator,
            "key": dict(self.key),
            "filled": self.filled,
            "parts": [
                {"part": name, "event": None if event is None else event.to_dict()}
                for name, event in self.parts
            ],
            "reasons": [reason.to_dict() for reason in self.reasons],
            "cost": round(self.cost, 6),
        }


STOPPING = frozenset({"condition", "null", "order", "time", "same", "group", "nothing", "few", "ended"})
"""Reasons because of which a part is not filled; the others are about complete matches and windows."""


@dataclass(frozen=True)
class Finding:
    """What became of one case of one definition."""

    definition: str
    operator: str
    case: str = ""
    detections: int = 0
    """How many it has, of the key and around the time that was asked for."""
    examples: tuple[Seen, ...] = ()
    """The last of them."""
    misses: tuple[Miss, ...] = ()
    """The nearest ones, nearest first."""
    more: Mapping[str, int] = field(default_factory=Counter)
    """How many others there are, by the kind of their first reason."""
    notes: tuple[str, ...] = ()
    is_output: bool = True

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        name = f"{self.definition} (case {self.case})" if self.case else self.definition
        head = many(self.detections, "detection") if self.detections else "no detection"
        lines = [f"{name}: {head}"]
        lines += [f"  found: {example}" for example in self.examples]
        if self.misses:
            total = len(self.misses) + sum(self.more.values())
            shown = f"{len(self.misses)} of {total}" if total > len(self.misses) else str(total)
            lines.append(f"  nearest misses ({shown}):")
        for number, miss in enumerate(self.misses, start=1):
            first, *rest = str(miss).splitlines()
            lines += [f"  {number}. {first}", *(f"     {line}" for line in rest)]
        if self.more:
            counted = [f"{count:,} x {KINDS[kind]}" for kind, count in Counter(self.more).most_common()]
            lines.append(f"  others: {'; '.join(counted)}")
        return lines + [f"  note: {note}" for note in self.notes]

    def to_dict(self) -> dict[str, object]:
        """Convert it to plain data."""
        return {
            "definition": self.definition,
            "case": self.case,
            "operator": self.operator,
            "is_output": self.is_output,
            "detections": self.detections,
            "examples": [example.to_dict() for example in self.examples],
            "misses": [miss.to_dict() for miss in self.misses],
            "more": dict(self.more),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Unprocessed:
    """Events that took no part because they were late, delivered again or rejected."""

    kind: str
    """`late`, `duplicate`, `rejected` or `waiting`."""
    count: int
    shown: tuple[str, ...] = ()
    """The last ones of the key that was asked for, in words."""

    def __str__(self) -> str:
        head = f"{self.kind}: {many(self.count, 'event')}"
        return "\n".join([head, *(f"  {line}" for line in self.shown)])

    def to_dict(self) -> dict[str, object]:
        """Convert it to plain data."""
        return {"kind": self.kind, "count": self.count, "shown": list(self.shown)}


@dataclass(frozen=True)
class Explanation:
    """Why a query detected what it did, and nothing else.

    `str()` gives it as text, `to_dict()` as plain data for JSON; a notebook shows it as HTML.
    """

    findings: tuple[Finding, ...]
    """One for each case of each definition; those that are reported come first."""
    key: Mapping[str, Value] = field(default_factory=dict)
    at: int | None = None
    """The instant that was asked for, in microseconds UTC."""
    events: int = 0
    """How many events the engine processed."""
    types: Mapping[str, int] = field(default_factory=dict)
    """How many events of each type came."""
    unprocessed: tuple[Unprocessed, ...] = ()
    notes: tuple[str, ...] = ()
    is_live: bool = False
    """Whether it is of a running session, which has only the events that it still remembers."""
    deliveries: tuple[Delivered, ...] = ()
    """Of a query that follows something: whether objects were told of what was detected, and why."""
    follows: bool = False
    """Whether the query follows something; it has matched if anybody was told."""

    @property
    def matched(self) -> bool:
        """Whether anything that the query reports was detected, for the key and time that were asked for.

        Of a query that follows something, whether anybody who was asked for was told.
        """
        if self.follows:
            return any(each.is_told for each in self.deliveries)
        return any(finding.detections for finding in self.findings if finding.is_output)

    @property
    def misses(self) -> tuple[Miss, ...]:
        """All misses, the nearest first; those of definitions that are reported come before the others."""
        ranked = [
            (not finding.is_output, miss.cost, miss) for finding in self.findings for miss in finding.misses
        ]
        return tuple(miss for _, _, miss in sorted(ranked, key=lambda item: item[:2]))

    def __str__(self) -> str:
        blocks = [self._head(), *(str(each) for each in self.deliveries)]
        blocks += [str(finding) for finding in self.findings]
        blocks += [str(each) for each in self.unprocessed]
        blocks += [f"note: {note}" for note in self.notes]
        return "\n\n".join(blocks)

    def _head(self) -> str:
        asked = [f"for {key_text(self.key)}"] if self.key else []
        asked += [f"around {clock(self.at)}"] if self.at is not None else []
        word = "told" if self.follows else "matched"
        verdict = word if self.matched else f"not {word}"
        kinds = listed([f"{name} ({count:,})" for name, count in self.types.items()]) or "none"
        done = "remembered" if self.is_live else "processed"
        return f"{verdict} {' '.join(asked)}".rstrip() + f"\n{many(self.events, 'event')} {done}: {kinds}"

    def to_dict(self) -> dict[str, object]:
        """Convert everything to plain data."""
        return {
            "matched": self.matched,
            "key": dict(self.key),
            "at": None if self.at is None else format_instant(self.at),
            "events": self.events,
            "types": dict(self.types),
            "findings": [finding.to_dict() for finding in self.findings],
            **({"deliveries": [each.to_dict() for each in self.deliveries]} if self.follows else {}),
            "unprocessed": [each.to_dict() for each in self.unprocessed],
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """Render the explanation as HTML, for notebooks."""
        rows = "".join(_row(miss) for miss in self.misses)
        findings = "".join(
            f"<li>{escape(finding.definition)}: {many(finding.detections, 'detection')}</li>"
            for finding in self.findings
        )
        told = "".join(f"<li>{escape(str(each)).replace(chr(10), '<br>')}</li>" for each in self.deliveries)
        aside = "".join(f"<li>{escape(str(each)).replace(chr(10), '<br>')}</li>" for each in self.unprocessed)
        head = "<tr><th>definition</th><th>key</th><th>events</th><th>what stopped it</th></tr>"
        table = f"<table>{head}{rows}</table>" if rows else ""
        return (
            f"<p>{escape(self._head()).replace(chr(10), '<br>')}</p><ul>{told}{findings}{aside}</ul>{table}"
        )


def _row(miss: Miss) -> str:
    parts = "<br>".join(escape(f"{name}: {event or 'not filled'}") for name, event in miss.parts)
    reasons = "<br>".join(escape(str(reason)) for reason in miss.reasons)
    cells = (escape(miss.definition), escape(key_text(miss.key)), parts, reasons)
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def key_text(key: Mapping[str, Value]) -> str:
    """Write a group.

    >>> key_text({"vehicle": "A", "lane": None})
    'vehicle = A, lane is missing'
    """
    return ", ".join(_key_value(name, value) for name, value in key.items())


def _key_value(name: str, value: Any) -> str:
    if value is None:
        return f"{name} is missing"
    return f"{name} = {value if isinstance(value, str) else value_text(value, None)}"
