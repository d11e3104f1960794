"""How something moves: by itself, against regions (`Truck enters Depot`), or against another mover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from whimbrel.graph.expressions import Attribute
from whimbrel.graph.links import stream
from whimbrel.graph.operators.base import Operator
from whimbrel.graph.policies import WHOLE, Partitioning
from whimbrel.model.schema import Type
from whimbrel.model.time import format_duration

if TYPE_CHECKING:
    from whimbrel.graph.operators.encounter import Encounter
    from whimbrel.graph.required_columns import RequiredColumns

MOTION = "motion"
"""The part name under which what is known of a motion is read, as in `motion.region`."""


class Verb(StrEnum):
    """What a mover does."""

    ENTERS = "enters"
    LEAVES = "leaves"
    CROSSES = "crosses"
    REACHES = "reaches"
    COMES_WITHIN = "comes within"
    STAYS_IN = "stays in"
    STAYS_OUTSIDE = "stays outside"
    STAYS_BEYOND = "stays beyond"
    APPROACHES = "approaches"
    STOPS = "stops"
    IS_SILENT = "is silent"

    @property
    def waits(self) -> bool:
        """Whether it is known when a time has passed, rather than when an event comes."""
        return self.is_outside or self in (Verb.STAYS_IN, Verb.STOPS, Verb.IS_SILENT)

    @property
    def is_outside(self) -> bool:
        """Whether it is said of all regions at once that the mover is in none of them, nor near one."""
        return self in (Verb.STAYS_OUTSIDE, Verb.STAYS_BEYOND)

    @property
    def attributes(self) -> dict[str, Type]:
        """What is known of such a motion, and the types."""
        match self:
            case Verb.ENTERS | Verb.REACHES:
                return {"region": Type.STRING, **_CROSSING}
            case Verb.LEAVES | Verb.CROSSES:
                return {"region": Type.STRING, **_CROSSING, "since": Type.TIMESTAMP}
            case Verb.COMES_WITHIN:
                return {"region": Type.STRING}
            case Verb.STAYS_IN:
                return {"region": Type.STRING, "since": Type.TIMESTAMP}
            case Verb.APPROACHES:
                return {"region": Type.STRING, "since": Type.TIMESTAMP, "distance": Type.FLOAT}
        return {"since": Type.TIMESTAMP}


_CROSSING = {"at": Type.TIMESTAMP, "x": Type.FLOAT, "y": Type.FLOAT}


@dataclass(frozen=True, slots=True)
class NamedRegion:
    """A region and what it is called; without a name where the query gives it none."""

    name: str | None
    wkt: str


@dataclass(frozen=True, slots=True)
class Settling:
    """How long the other side must hold before a change counts: both of these, from its first sample on."""

    events: int = 1
    duration: int = 0


AT_ONCE = Settling()


@dataclass(frozen=True, slots=True)
class Motion(Operator):
    """What the events of `input`, the samples of one mover a partition, say about its movement.

    A sample is *in* a region if it is at most `near_m` from it, and *out* if it is more than
    `near_m + margin_m` away; in between it leaves things as they were. Samples more than `gap` apart say
    nothing about what happened between them. What each verb then means is in docs/meaning.md.
    """

    word: ClassVar[str] = "motion"
    is_composite: ClassVar[bool] = True

    input: str = field(metadata=stream())
    alias: str
    verb: Verb
    gap: int
    regions: tuple[NamedRegion, ...] = ()
    near_m: float = 0.0
    margin_m: float = 0.0
    duration: int = 0
    by_m: float = 0.0
    """How much nearer it has to come (`approaches`)."""
    settling: Settling = AT_ONCE
    accuracy: str | None = None
    """The attribute that says by how many metres a location may be wrong."""
    between: bool = False
    """Whether the straight line between two samples counts, too."""
    partitioning: Partitioning = WHOLE

    def request(self, columns: RequiredColumns) -> None:
        request_samples(columns, self, self.input, self.alias, self.partitioning)

    @property
    def own_parts(self) -> Mapping[str, Mapping[str, Type]]:
        return {MOTION: self.verb.attributes}

    @property
    def retention(self) -> int:
        if self.verb is Verb.IS_SILENT:
            return self.duration
        if self.verb.waits:
            return max(self.duration, self.gap)  # a second sample may come only then
        settling = self.settling
        waiting = settling.duration + self.gap if settling.duration else 0
        return self.gap * settling.events + waiting

    @property
    def anchor(self) -> str | None:
        return None if self.verb is Verb.IS_SILENT else "knows where movers were"

    @property
    def exercise(self) -> str | None:
        return "motion"

    def words(self) -> list[str]:
        return [motion_words(self)]


def request_samples(
    columns: RequiredColumns,
    op: Motion | Encounter,
    samples: str,
    alias: str,
    partitioning: Partitioning,
) -> None:
    """Ask a stream of samples for the places of a mover, and for what is read of it."""
    columns.want_keys(samples, partitioning)
    for name in ("@x", "@y", *([op.accuracy] if op.accuracy else [])):
        columns.want(samples, Attribute(None, name))
    for need in columns.asked_of(op.name):
        if isinstance(need, Attribute) and need.part == alias:
            columns.want(samples, Attribute(None, need.name))


def motion_words(op: Motion) -> str:
    """Say what a motion looks for, as the language does.

    >>> motion_words(Motion("m", "Truck", "t", Verb.STOPS, 3_600_000_000, near_m=20.0, duration=300_000_000))
    't stops for 5 min within 20 m gap 1 h'
    """
    words = [op.alias, op.verb.value]
    if op.verb in (Verb.COMES_WITHIN, Verb.STAYS_BEYOND):
        words.append(f"{op.near_m:g} m of")
    words += [_regions_words(op)] if op.regions else []
    words += [f"from {op.margin_m:g} m"] if op.verb is Verb.REACHES else []
    words += [f"by {op.by_m:g} m"] if op.verb is Verb.APPROACHES else []
    words += [f"for {format_duration(op.duration)}"] if op.verb.waits else []
    words += [f"within {op.near_m:g} m"] if op.verb is Verb.STOPS else []
    return " ".join([*words, *_details(op)])


def _details(op: Motion) -> list[str]:
    words = [f"margin {op.margin_m:g} m"] if op.margin_m and op.verb is not Verb.REACHES else []
    words += against_jitter(op.settling, op.accuracy, op.between)
    return words if op.verb is Verb.IS_SILENT else [*words, f"gap {format_duration(op.gap)}"]


def against_jitter(settling: Settling, accuracy: str | None, between: bool) -> list[str]:
    """Say what keeps wrong locations from counting, and what counts between them."""
    words = []
    if settling.events > 1:
        words.append(f"settling {settling.events} events")
    if settling.duration:
        words.append(f"settling {format_duration(settling.duration)}")
    words += [f"accuracy {accuracy}"] if accuracy else []
    return [*words, "between samples"] if between else words


def _regions_words(op: Motion) -> str:
    names = [region.name or "a region" for region in op.regions]
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more regions"
