"""What all phrases of motion have in common: movers, their samples, and which motions count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from whimbrel.errors import QueryError, Span, UnknownNameError
from whimbrel.graph.expressions import GROUP, Attribute, Expr, conjuncts, parts_of, walk
from whimbrel.graph.operators import JoinPattern, Operator, PatternPart
from whimbrel.graph.operators.encounter import Meeting
from whimbrel.graph.operators.motion import MOTION
from whimbrel.graph.policies import Key, Partitioning
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.emit import Operators
from whimbrel.lang.wbl.pattern import Occurring, PartName, Scope, TypeInfo
from whimbrel.lang.wbl.resolve import QueryScope, VisibleNames
from whimbrel.lang.wbl.sequences import about_event
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME


@dataclass(frozen=True, slots=True)
class MotionPhrase:
    """One phrase of motion, and what it takes to make its operators."""

    name: str
    case: t.CaseNode
    motion: t.MotionNode
    scope: QueryScope
    operators: Operators
    use: Callable[[str, Span | None], TypeInfo]
    stream_of: Callable[[str], str]

    @property
    def is_encounter(self) -> bool:
        """Whether it is about two movers: the other one has a name, or the verb leaves no choice."""
        target = self.motion.target
        named = target is not None and target.alias is not None
        return named or self.motion.verb in (Meeting.MEETS, Meeting.TRAVELS_WITH)

    def refuse_clauses(self) -> None:
        """Refuse clauses that have no meaning for a motion."""
        case = self.case
        for word, value in (("consuming", case.consuming), ("context", case.context)):
            if value:
                at = value[0].at if isinstance(value, tuple) else value.at
                raise QueryError(
                    f"`{word}` does not go with `{self.motion.verb}`",
                    at,
                    "leave it out, or use it in a definition made of this one",
                )

    def free_name(self, what: str) -> str:
        """Name an operator."""
        return self.operators.free_name(f"{self.name}.{what}")

    def leaf(self, mover: t.Occurrence, alias: str | None, at: Span | None) -> Occurring:
        """Bind the name of a mover."""
        if isinstance(mover, t.TimePoint):
            raise QueryError("a time point does not move", mover.at, "write the type of what moves")
        name = alias or mover.type
        if name in (GROUP, "this", MOTION, "*"):
            raise QueryError(f"{name!r} has a meaning of its own", at, "choose another name behind 'as'")
        return Occurring(mover, name, self.use(mover.type, mover.at), Scope())

    def about(self, attributes: dict[str, Type]) -> PartName:
        """Bind the name under which the motion itself is read."""
        info = TypeInfo(f"`{self.motion.verb}`", dict(attributes), is_open=False)
        return PartName(MOTION, info, Scope(), [], self.motion.at)

    def known(self, about: PartName) -> list[t.Assignment]:
        """Assign all that is known of the motion itself."""
        return [t.Assignment(name, t.Dotted(MOTION, name)) for name in about.info.attributes]

    def samples(self, leaf: Occurring, keys: dict[str, Key]) -> str:
        """Find the stream of a mover's samples: its events that fit the conditions in parentheses."""
        part = PartName(leaf.name, leaf.info, Scope(), [leaf], self.motion.at)
        names = VisibleNames(self.scope, {leaf.name: part}, keys, own=leaf)
        conditions: list[Expr] = []
        for written in leaf.occurrence.conditions:
            for condition in conjuncts(names.condition(written)):
                if GROUP in parts_of(condition):
                    raise QueryError(
                        "a condition on the mover reads its own attributes",
                        condition.at,
                        "write the attribute without 'group.'",
                    )
                conditions.append(about_event(condition, leaf.name))
        return self.operators.filtered(self.stream_of(leaf.occurrence.type), tuple(conditions))

    def chosen(self, made: Operator, partitioning: Partitioning, names: VisibleNames) -> str:
        """Add the operator; let only those motions pass for which `where` is true."""
        self.operators.add(made)
        if self.case.where is None:
            return made.name
        condition = names.condition(self.case.where)
        self.check_reads(condition, names)
        parts = (PatternPart(made.name, None),)
        match = JoinPattern(
            self.free_name("match"),
            parts,
            END_OF_TIME,
            conditions=conjuncts(condition),
            partitioning=partitioning,
        )
        return self.operators.add(match)

    def check_reads(self, expr: Expr, names: VisibleNames) -> None:
        """Refuse what a motion does not know of itself."""
        known = names.parts[MOTION].info.attributes if MOTION in names.parts else {}
        for node in walk(expr):
            if isinstance(node, Attribute) and node.part == MOTION and node.name not in known:
                raise UnknownNameError(f"value of `{self.motion.verb}`", node.name, known, node.at)
            if isinstance(node, Attribute) and node.part == GROUP and self.is_encounter:
                raise QueryError(
                    f"each of the two movers has a {node.name!r} of its own",
                    node.at,
                    f"write {' or '.join(f'{part}.{node.name}' for part in names.parts if part != MOTION)}",
                )
