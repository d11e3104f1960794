"""Lower phrases about two movers: `Ship as a meets Ship as b within 50 m for 1 min`."""

from __future__ import annotations

from dataclasses import dataclass, field

from whimbrel.errors import QueryError
from whimbrel.graph.operators.encounter import Encounter, Meeting
from whimbrel.graph.operators.motion import MOTION
from whimbrel.graph.policies import WHOLE, Key
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.details import Details, Takes
from whimbrel.lang.wbl.movers import MotionPhrase
from whimbrel.lang.wbl.pattern import Occurring, PartName, Scope
from whimbrel.lang.wbl.resolve import VisibleNames
from whimbrel.model.time import MINUTE

DEFAULT_FRESH = MINUTE
"""Where a mover was seen longer ago than that, nobody knows where it is, unless the query says otherwise."""
SAME_PLACE_M = 1.0
"""Two movers that are at most so far apart are at the same place."""

_SIDES = ("settling", "accuracy", "between samples", "fresh")

_VERBS: dict[Meeting, Takes] = {
    Meeting.COMES_WITHIN: Takes((), ("margin", *_SIDES)),
    Meeting.REACHES: Takes(("from",), ("within", *_SIDES)),
    Meeting.LEAVES: Takes(("beyond",), ("margin", *_SIDES)),
    Meeting.CROSSES: Takes(("beyond",), ("within", *_SIDES)),
    Meeting.APPROACHES: Takes(("by",), ("margin", "fresh")),
    Meeting.MEETS: Takes(("within", "for"), ("margin", "accuracy", "fresh")),
    Meeting.TRAVELS_WITH: Takes(("within", "for"), ("margin", "accuracy", "fresh")),
    Meeting.STAYS_IN: Takes(("for",), ("margin", "accuracy", "fresh")),
    Meeting.STAYS_OUTSIDE: Takes(("for",), ("margin", "accuracy", "fresh")),
    Meeting.STAYS_BEYOND: Takes(("for",), ("margin", "accuracy", "fresh")),
}


@dataclass(slots=True)
class EncounterLowering:
    """Make the operators of one phrase about two movers."""

    mover: MotionPhrase
    verb: Meeting = field(init=False)
    details: Details = field(init=False)
    leaves: tuple[Occurring, Occurring] = field(init=False)
    parts: dict[str, PartName] = field(init=False)

    def __post_init__(self) -> None:
        motion = self.mover.motion
        self.mover.refuse_clauses()
        if motion.verb not in tuple(Meeting):
            raise QueryError(
                f"`{motion.verb}` is said of a region, not of another mover",
                motion.at,
                f"name a region; of two movers it is said that one {', '.join(Meeting)} the other",
            )
        self.verb = Meeting(motion.verb)
        self.details = Details.read(motion, _VERBS[self.verb], self.mover.scope.params)
        self.leaves = self._bind(motion)
        self.parts = {
            leaf.name: PartName(leaf.name, leaf.info, Scope(), [leaf], motion.at) for leaf in self.leaves
        }
        self.parts[MOTION] = self.mover.about(self.verb.attributes)

    def _bind(self, motion: t.MotionNode) -> tuple[Occurring, Occurring]:
        target = motion.target
        if target is None or target.name is None:
            raise QueryError(
                f"`{motion.verb}` needs another mover",
                motion.at,
                f"write for example 'Ship as a {motion.verb} Ship as b'",
            )
        one = self.mover.leaf(motion.mover, motion.alias, motion.at)
        other = self.mover.leaf(
            t.Occurrence(target.name, target.arguments or (), at=target.at), target.alias, target.at
        )
        if one.name == other.name:
            raise QueryError(
                f"both movers are named {one.name!r}",
                target.at,
                f"write '{target.name} as b' for one of them",
            )
        return one, other

    def known(self) -> list[t.Assignment]:
        """Assign what is known of the encounter."""
        return self.mover.known(self.parts[MOTION])

    def lower(self, keys: dict[str, Key]) -> str:
        """Add the operator and all that it reads; give the stream of what is found."""
        one, other = self.leaves
        near, margin = self._near()
        encounter = Encounter(
            self.mover.free_name("encounter"),
            self.mover.samples(one, keys),
            one.name,
            self.mover.samples(other, keys),
            other.name,
            self.verb,
            near,
            self.details.duration("fresh") or DEFAULT_FRESH,
            tuple(keys.values()),
            margin,
            self.details.duration("for"),
            self.details.length("by"),
            self.details.settling(),
            self.details.accuracy(one.info, other.info),
            self.details.between(by_default=self.verb is Meeting.CROSSES),
        )
        return self.mover.chosen(encounter, WHOLE, self.names(keys))

    def names(self, keys: dict[str, Key]) -> VisibleNames:
        """List the names that conditions and assignments may use."""
        return VisibleNames(self.mover.scope, self.parts, keys)

    def _near(self) -> tuple[float, float]:
        """Tell how near they have to be, and by how much more they are apart."""
        details, motion = self.details, self.mover.motion
        margin = details.length("margin")
        match self.verb:
            case Meeting.REACHES:
                return self._from_afar("from")
            case Meeting.CROSSES:
                return self._from_afar("beyond")
            case Meeting.LEAVES:
                return details.length("beyond"), margin
        if motion.near is not None:
            return self.mover.scope.params.length(motion.near), margin
        return details.length("within"), margin

    def _from_afar(self, word: str) -> tuple[float, float]:
        near = self.details.length("within") if "within" in self.details else SAME_PLACE_M
        far = self.details.get(word)
        assert far is not None
        if self.details.length(word) < near:
            raise QueryError(
                f"`{word}` is nearer than what counts as the same place",
                far.at,
                f"it is {near:g} m; write a larger length here, or a smaller one behind 'within'",
            )
        return near, self.details.length(word) - near
