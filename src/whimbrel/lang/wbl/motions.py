"""Lower phrases of motion: `Truck enters Depot margin 20 m`, and what goes with each verb."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from whimbrel.errors import QueryError, Span, UnknownNameError
from whimbrel.graph.expressions import GROUP, Attribute, Expr, conjuncts, parts_of, walk
from whimbrel.graph.motion import AT_ONCE, MOTION, Motion, NamedRegion, Settling, Verb
from whimbrel.graph.operators import Match, PatternPart
from whimbrel.graph.policies import Key, Partitioning
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.emit import Operators
from whimbrel.lang.wbl.pattern import Leaf, PartName, Scope, TypeInfo
from whimbrel.lang.wbl.resolve import Names, Surroundings
from whimbrel.lang.wbl.sequences import about_event
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME, HOUR

DEFAULT_GAP = HOUR
"""Samples that lie further apart say nothing about the time between them, unless the query says otherwise."""

_EXAMPLES = {
    "for": "for 10 min",
    "within": "within 20 m",
    "from": "from 500 m",
    "by": "by 100 m",
}
_SIDES = ("margin", "settling", "accuracy", "gap")


@dataclass(frozen=True, slots=True)
class _Takes:
    """Which details a verb needs, and which it may have."""

    needed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


_VERBS: dict[Verb, _Takes] = {
    Verb.ENTERS: _Takes((), (*_SIDES, "between samples")),
    Verb.LEAVES: _Takes((), (*_SIDES, "between samples")),
    Verb.CROSSES: _Takes((), (*_SIDES, "between samples")),
    Verb.REACHES: _Takes(("from",), ("settling", "accuracy", "gap")),
    Verb.COMES_WITHIN: _Takes((), _SIDES),
    Verb.STAYS_IN: _Takes(("for",), ("margin", "accuracy", "gap")),
    Verb.STAYS_OUTSIDE: _Takes(("for",), ("margin", "accuracy", "gap")),
    Verb.APPROACHES: _Takes(("by",), ("margin", "gap")),
    Verb.STOPS: _Takes(("for", "within"), ("gap",)),
    Verb.IS_SILENT: _Takes(("for",), ()),
}


@dataclass(slots=True)
class MotionLowering:
    """Make the operators of one phrase of motion."""

    name: str
    case: t.Case
    motion: t.Motion
    around: Surroundings
    operators: Operators
    use: Callable[[str, Span | None], TypeInfo]
    stream_of: Callable[[str], str]
    verb: Verb = field(init=False)
    details: dict[str, t.Detail] = field(default_factory=dict)
    parts: dict[str, PartName] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._refuse_clauses()
        if self.motion.verb not in tuple(Verb):
            raise QueryError(
                f"`{self.motion.verb}` is said of two movers, which is not supported yet",
                self.motion.at,
                "say where each of them goes: 'Ship enters Harbour'",
            )
        self.verb = Verb(self.motion.verb)
        self._collect_details()
        self._bind()

    @property
    def leaf(self) -> Leaf:
        """What moves."""
        return next(iter(self.parts.values())).leaves[0]

    def lower(self, keys: dict[str, Key]) -> str:
        """Add the operator and all that it reads; give the stream of what is found."""
        made = Motion(
            self.operators.free_name(f"{self.name}.motion"),
            self._samples(keys),
            self.leaf.name,
            self.verb,
            self._gap(),
            self._regions(),
            near_m=self._near(),
            margin_m=self._length("from" if self.verb is Verb.REACHES else "margin"),
            duration=self._duration("for"),
            by_m=self._length("by"),
            settling=self._settling(),
            accuracy=self._accuracy(),
            between=self._between(),
            partitioning=Partitioning(tuple(keys.values())),
        )
        self.operators.add(made)
        return self._chosen(made, keys)

    def check_reads(self, expr: Expr) -> None:
        """Refuse what a motion does not know of itself."""
        known = self.verb.attributes
        for node in walk(expr):
            if isinstance(node, Attribute) and node.part == MOTION and node.name not in known:
                raise UnknownNameError(f"value of `{self.verb}`", node.name, known, node.at)

    # -- names ---------------------------------------------------------------------------------------------

    def _refuse_clauses(self) -> None:
        case = self.case
        for word, value in (("consuming", case.consuming), ("context", case.context)):
            if value:
                at = value[0].at if isinstance(value, tuple) else value.at
                raise QueryError(
                    f"`{word}` does not go with `{self.motion.verb}`",
                    at,
                    "leave it out, or use it in a definition made of this one",
                )

    def _bind(self) -> None:
        mover = self.motion.mover
        name = self.motion.alias or mover.type
        if name in (GROUP, "this", MOTION, "*"):
            raise QueryError(
                f"{name!r} has a meaning of its own", self.motion.at, "choose another name behind 'as'"
            )
        leaf = Leaf(mover, name, self.use(mover.type, mover.at), Scope())
        self.parts[name] = PartName(name, leaf.info, Scope(), [leaf], self.motion.at)
        about = TypeInfo(f"`{self.verb}`", dict(self.verb.attributes), is_open=False)
        self.parts[MOTION] = PartName(MOTION, about, Scope(), [], self.motion.at)

    def _samples(self, keys: dict[str, Key]) -> str:
        """Give the stream of the mover's samples: its events that fit the conditions in parentheses."""
        leaf = self.leaf
        names = Names(self.around, {leaf.name: self.parts[leaf.name]}, keys, own=leaf)
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

    def _chosen(self, made: Motion, keys: dict[str, Key]) -> str:
        """Let only those motions pass for which `where` is true."""
        if self.case.where is None:
            return made.name
        condition = Names(self.around, self.parts, keys).condition(self.case.where)
        self.check_reads(condition)
        name = self.operators.free_name(f"{self.name}.match")
        parts = (PatternPart(made.name, None),)
        return self.operators.add(
            Match(name, parts, END_OF_TIME, conditions=conjuncts(condition), partitioning=made.partitioning)
        )

    # -- details -------------------------------------------------------------------------------------------

    def _collect_details(self) -> None:
        takes = _VERBS[self.verb]
        for detail in self.motion.details:
            if detail.word in self.details:
                raise QueryError(f"`{detail.word}` is given twice", detail.at, "leave out one of them")
            if detail.word not in (*takes.needed, *takes.allowed):
                listed = ", ".join((*takes.needed, *takes.allowed))
                raise QueryError(
                    f"`{detail.word}` does not go with `{self.verb}`",
                    detail.at,
                    f"it takes {listed}" if listed else "leave it out",
                )
            self.details[detail.word] = detail
        for word in takes.needed:
            if word not in self.details:
                raise QueryError(
                    f"`{self.verb}` needs `{word}`", self.motion.at, f"add for example '{_EXAMPLES[word]}'"
                )

    def _regions(self) -> tuple[NamedRegion, ...]:
        target = self.motion.target
        if target is None:
            return ()
        regions = self.around.regions
        if target.alias is not None:
            raise QueryError(
                f"`{self.verb}` between two movers is not supported yet",
                target.at,
                "name a region behind the verb",
            )
        return regions.named_regions(
            t.Shape(
                target.name if target.arguments is None else None,
                target.text,
                None if target.arguments is None or target.name is None else target.name.lower(),
                target.arguments or (),
                at=target.at,
            )
        )

    def _near(self) -> float:
        if self.motion.near is not None:
            return self.around.params.length(self.motion.near)
        return self._length("within")

    def _length(self, word: str) -> float:
        detail = self.details.get(word)
        if detail is None or detail.value is None or isinstance(detail.value, t.Name):
            return 0.0
        return self.around.params.length(detail.value)

    def _duration(self, word: str) -> int:
        detail = self.details.get(word)
        if detail is None or detail.value is None or isinstance(detail.value, t.Name):
            return 0
        return self.around.params.duration(detail.value)

    def _gap(self) -> int:
        """Give how far samples may lie apart; by default, at least as far as the phrase itself waits."""
        return self._duration("gap") or max(DEFAULT_GAP, self._duration("for"))

    def _settling(self) -> Settling:
        detail = self.details.get("settling")
        if detail is None or detail.value is None or isinstance(detail.value, t.Name):
            return AT_ONCE
        kind, amount = self.around.params.window(detail.value)
        return Settling(events=amount) if kind == "counting" else Settling(duration=amount)

    def _accuracy(self) -> str | None:
        detail = self.details.get("accuracy")
        if detail is None or not isinstance(detail.value, t.Name):
            return None
        info, name = self.leaf.info, detail.value.name
        if not info.is_open and name not in info.attributes:
            raise UnknownNameError(f"attribute of {info.name}", name, info.attributes, detail.value.at)
        if info.attributes.get(name) not in (None, Type.FLOAT, Type.INT):
            raise QueryError(
                f"the accuracy {name!r} must be a number of metres", detail.at, "name another attribute"
            )
        return name

    def _between(self) -> bool:
        given = self.details.get("between samples")
        clash = next((word for word in ("settling", "accuracy") if word in self.details), None)
        if given is not None and clash is not None:
            raise QueryError(
                f"`between samples` does not go with `{clash}`",
                given.at,
                "a line between two samples neither settles nor has an accuracy; leave out one of them",
            )
        return given is not None or (self.verb is Verb.CROSSES and clash is None)
