"""How two movers move with regard to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from whimbrel.graph.expressions import SHAPE
from whimbrel.graph.links import stream
from whimbrel.graph.operators.base import Operator, event_by_event
from whimbrel.graph.operators.motion import AT_ONCE, MOTION, Settling, against_jitter, request_samples
from whimbrel.graph.policies import Key, Partitioning, SelectionPolicy
from whimbrel.model.schema import Type
from whimbrel.model.time import format_duration

if TYPE_CHECKING:
    from whimbrel.graph.required_columns import RequiredColumns


class Meeting(StrEnum):
    """What a mover does with regard to another one."""

    COMES_WITHIN = "comes within"
    REACHES = "reaches"
    LEAVES = "leaves"
    CROSSES = "crosses"
    APPROACHES = "approaches"
    MEETS = "meets"
    TRAVELS_WITH = "travels with"
    STAYS_IN = "stays in"
    STAYS_OUTSIDE = "stays outside"
    STAYS_BEYOND = "stays beyond"

    @property
    def waits(self) -> bool:
        """Whether it is known when a time has passed, rather than when an event comes."""
        return self in (Meeting.MEETS, Meeting.TRAVELS_WITH, Meeting.STAYS_IN) or self.is_outside

    @property
    def is_outside(self) -> bool:
        """Whether it is said of those that are not near each other."""
        return self in (Meeting.STAYS_OUTSIDE, Meeting.STAYS_BEYOND)

    @property
    def reads_shapes(self) -> bool:
        """Whether the first mover is compared with the whole location of the second, not with its centre."""
        return self in (Meeting.STAYS_IN, Meeting.STAYS_OUTSIDE)

    @property
    def attributes(self) -> dict[str, Type]:
        """What is known of such an encounter, and the types."""
        if self in (Meeting.COMES_WITHIN, Meeting.REACHES):
            return {"distance": Type.FLOAT}
        return {"distance": Type.FLOAT, "since": Type.TIMESTAMP}


@dataclass(frozen=True, slots=True)
class Encounter(Operator):
    """How near the movers of two streams, or of one, come to each other.

    Movers are told apart by `keys`. Whenever one of them is seen, it is compared with where each other one
    was seen last, if that is at most `fresh` ago: the two are *in* if they are at most `near_m` apart, and
    *out* if they are more than `near_m + margin_m` apart. What each verb then means is in docs/meaning.md.
    """

    word: ClassVar[str] = "encounter"
    is_composite: ClassVar[bool] = True

    input: str = field(metadata=stream())
    alias: str
    other: str = field(metadata=stream(alias="other_alias"))
    other_alias: str
    verb: Meeting
    near_m: float
    fresh: int
    keys: tuple[Key, ...]
    margin_m: float = 0.0
    duration: int = 0
    by_m: float = 0.0
    """How much nearer they have to come (`approaches`)."""
    settling: Settling = AT_ONCE
    accuracy: str | None = None
    """The attribute of both that says by how many metres a location may be wrong."""
    between: bool = False
    """Whether the straight ways between samples count, too."""

    def request(self, columns: RequiredColumns) -> None:
        for samples, alias in ((self.input, self.alias), (self.other, self.other_alias)):
            request_samples(columns, self, samples, alias, Partitioning(self.keys))
        if self.verb.reads_shapes:
            columns.want(self.other, SHAPE)

    @property
    def own_parts(self) -> Mapping[str, Mapping[str, Type]]:
        return {MOTION: self.verb.attributes}

    @property
    def is_among_one(self) -> bool:
        """Whether each two movers of one stream count once; one may lie in the other, but not both."""
        return self.input == self.other and not self.verb.reads_shapes

    @property
    def retention(self) -> int:
        return self.duration + self.fresh

    @property
    def anchor(self) -> str | None:
        return "knows where movers were"

    @property
    def together(self) -> tuple[Key, ...] | None:
        return ()

    def why_together(self, shown: str) -> str:
        return f"{shown} compares movers with each other, wherever they go"

    @property
    def exercise(self) -> str | None:
        return "meeting"

    @property
    def selection_policy(self) -> SelectionPolicy:
        members = dict.fromkeys([(self.alias, self.input), (self.other_alias, self.other)])
        return event_by_event(members, self.retention, process_all=True)

    def words(self) -> list[str]:
        return [encounter_words(self)]


def encounter_words(op: Encounter) -> str:
    """Say what an encounter looks for, as the language does."""
    words = [op.alias, op.verb.value]
    if op.verb in (Meeting.COMES_WITHIN, Meeting.STAYS_BEYOND):
        words.append(f"{op.near_m:g} m of")
    words.append(op.other_alias)
    match op.verb:
        case Meeting.REACHES:
            words.append(f"from {op.near_m + op.margin_m:g} m within {op.near_m:g} m")
        case Meeting.CROSSES:
            words.append(f"beyond {op.near_m + op.margin_m:g} m within {op.near_m:g} m")
        case Meeting.LEAVES:
            words.append(f"beyond {op.near_m:g} m")
        case Meeting.APPROACHES:
            words.append(f"by {op.by_m:g} m")
        case Meeting.MEETS | Meeting.TRAVELS_WITH:
            words.append(f"within {op.near_m:g} m")
    words += [f"for {format_duration(op.duration)}"] if op.verb.waits else []
    if op.margin_m and op.verb not in (Meeting.REACHES, Meeting.CROSSES):
        words.append(f"margin {op.margin_m:g} m")
    return " ".join(
        [*words, *against_jitter(op.settling, op.accuracy, op.between), f"fresh {format_duration(op.fresh)}"]
    )
