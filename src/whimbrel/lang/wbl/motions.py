"""Lower phrases of motion: `Truck enters Depot margin 20 m`, and what goes with each verb."""

from __future__ import annotations

from dataclasses import dataclass, field

from whimbrel.errors import QueryError
from whimbrel.graph.operators.encounter import Meeting
from whimbrel.graph.operators.motion import MOTION, Motion, NamedRegion, Verb
from whimbrel.graph.policies import Key, Partitioning
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.details import Details, Takes
from whimbrel.lang.wbl.movers import MotionPhrase
from whimbrel.lang.wbl.pattern import Occurring, PartName, Scope
from whimbrel.lang.wbl.resolve import VisibleNames
from whimbrel.model.time import HOUR

DEFAULT_GAP = HOUR
"""Samples that lie further apart say nothing about the time between them, unless the query says otherwise."""

_SIDES = ("margin", "settling", "accuracy", "gap")

_VERBS: dict[Verb, Takes] = {
    Verb.ENTERS: Takes((), (*_SIDES, "between samples")),
    Verb.LEAVES: Takes((), (*_SIDES, "between samples")),
    Verb.CROSSES: Takes((), (*_SIDES, "between samples")),
    Verb.REACHES: Takes(("from",), ("settling", "accuracy", "gap")),
    Verb.COMES_WITHIN: Takes((), _SIDES),
    Verb.STAYS_IN: Takes(("for",), ("margin", "accuracy", "gap")),
    Verb.STAYS_OUTSIDE: Takes(("for",), ("margin", "accuracy", "gap")),
    Verb.STAYS_BEYOND: Takes(("for",), ("margin", "accuracy", "gap")),
    Verb.APPROACHES: Takes(("by",), ("margin", "gap")),
    Verb.STOPS: Takes(("for", "within"), ("gap",)),
    Verb.IS_SILENT: Takes(("for",), ()),
}


@dataclass(slots=True)
class MotionLowering:
    """Make the operators of one phrase of motion."""

    mover: MotionPhrase
    verb: Verb = field(init=False)
    details: Details = field(init=False)
    parts: dict[str, PartName] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mover.refuse_clauses()
        self.verb = Verb(self.motion.verb)
        self.details = Details.read(self.motion, _VERBS[self.verb], self.mover.scope.params)
        self._bind()

    @property
    def motion(self) -> t.MotionNode:
        """The phrase."""
        return self.mover.motion

    @property
    def leaf(self) -> Occurring:
        """What moves."""
        return next(iter(self.parts.values())).leaves[0]

    def lower(self, keys: dict[str, Key]) -> str:
        """Add the operator and all that it reads; give the stream of what is found."""
        motion = Motion(
            self.mover.free_name("motion"),
            self.mover.samples(self.leaf, keys),
            self.leaf.name,
            self.verb,
            self._gap(),
            self._regions(),
            near_m=self._near(),
            margin_m=self.details.length("from" if self.verb is Verb.REACHES else "margin"),
            duration=self.details.duration("for"),
            by_m=self.details.length("by"),
            settling=self.details.settling(),
            accuracy=self.details.accuracy(self.leaf.info),
            between=self.details.between(by_default=self.verb is Verb.CROSSES),
            partitioning=Partitioning(tuple(keys.values())),
        )
        return self.mover.chosen(
            motion, motion.partitioning, VisibleNames(self.mover.scope, self.parts, keys)
        )

    def known(self) -> list[t.Assignment]:
        """Assign what is known of the motion."""
        return self.mover.known(self.parts[MOTION])

    # -- names ---------------------------------------------------------------------------------------------

    def _bind(self) -> None:
        leaf = self.mover.leaf(self.motion.mover, self.motion.alias, self.motion.at)
        self.parts[leaf.name] = PartName(leaf.name, leaf.info, Scope(), [leaf], self.motion.at)
        self.parts[MOTION] = self.mover.about(self.verb.attributes)

    # -- details -------------------------------------------------------------------------------------------

    def _regions(self) -> tuple[NamedRegion, ...]:
        target = self.motion.target
        if target is None:
            return ()
        if target.name is not None and target.arguments is None and not self.mover.scope.regions.named:
            said = (
                f", or name another mover: '{target.name} as b'" if self.motion.verb in tuple(Meeting) else ""
            )
            raise QueryError(
                f"no region is named {target.name!r}",
                target.at,
                f"declare it: 'region {target.name} = ...'{said}",
            )
        return self.mover.scope.regions.named_regions(
            t.ShapeNode(
                target.name if target.arguments is None else None,
                target.text,
                None if target.arguments is None or target.name is None else target.name.lower(),
                target.arguments or (),
                at=target.at,
            )
        )

    def _near(self) -> float:
        if self.motion.near is not None:
            return self.mover.scope.params.length(self.motion.near)
        return self.details.length("within")

    def _gap(self) -> int:
        """Tell how far samples may lie apart; by default, at least as far as the phrase itself waits."""
        return self.details.duration("gap") or max(DEFAULT_GAP, self.details.duration("for"))
