"""What was counted in a recording of events, and what of it each source of a network sends.

A sender of the network sends the recorded events of its type that name it as their `source`, or the place
that it is at. Those that name nobody who sends the type are shared alike by the senders that have none of
their own, or by all if each has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from whimbrel.plan.arrival_curves import ArrivalCurve, arrival_curve
from whimbrel.plan.network import EventSource

Origin = tuple[str, str | None]
"""The type of events, and the source that they name."""


MULTIPLES = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
"""How many times as high as the mean the rates are beyond which bursts are counted."""
Bursts = tuple[float, ...]
"""Events that come at once beyond each of these rates: in any t seconds, at most burst + rate t came. For
another rate they are the same, as if the recording were played faster or slower."""


def peaks(bursts: Bursts, rate_hz: float, size_b: float) -> ArrivalCurve:
    """Return what bursts say of rates above the mean, in bytes."""
    whole = arrival_curve(
        (multiple * rate_hz * size_b, b * size_b) for multiple, b in zip(MULTIPLES, bursts, strict=True)
    )
    return whole[1:] if rate_hz * size_b else ()


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """What comes of a stream from one source of events."""

    rate_hz: float
    size_b: float
    """Of an event, on average."""
    bursts: Bursts
    """How many events of that size come at once."""


@dataclass(frozen=True)
class Statistics:
    """What was counted in a recording of events. Streams are those of `graph_to_plan(query)`."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """Events a second of every stream."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of an event, of streams that had any and can travel."""
    parts: Mapping[str, Mapping[Origin, SourceStatistics]] = field(default_factory=dict)
    """Of events as they come in, and of those that pass a condition on single ones: what each source has."""
    bursts: Mapping[str, Bursts] = field(default_factory=dict)
    """Of definitions, and of conditions on them: how many events come at once."""
    work: Mapping[str, float] = field(default_factory=dict)
    """Seconds of one core that an operator took for a second of events, where that was timed."""


NO_STATISTICS = Statistics()


class SenderShares:
    """Which sender of a network has which share of the events of one type that were recorded."""

    def __init__(self, senders: Sequence[EventSource], origins: Iterable[Origin]) -> None:
        self.senders = {sender.name: sender for sender in senders}
        kinds = {sender.event_type for sender in senders}
        self.origins = [origin for origin in origins if origin[0] in kinds]

    @cached_property
    def _owned(self) -> dict[str, Origin]:
        """The events that name a sender or its place, by sender."""
        owned: dict[str, Origin] = {}
        for sender in self.senders.values():
            named, there = (sender.event_type, sender.name), (sender.event_type, sender.at)
            if named in self.origins:
                owned[sender.name] = named
            elif there in self.origins and sender.at not in self.senders:
                owned[sender.name] = there
        return owned

    @cached_property
    def of(self) -> dict[str, dict[Origin, float]]:
        """The shares, by sender."""
        owned = self._owned
        others = [origin for origin in self.origins if origin not in owned.values()]
        free = [name for name in self.senders if name not in owned] or [*self.senders]
        shares: dict[str, dict[Origin, float]] = {name: {} for name in self.senders}
        for name, origin in owned.items():
            shares[name][origin] = 1 / sum(other == origin for other in owned.values())
        for name in free:
            shares[name] |= dict.fromkeys(others, 1 / len(free))
        return shares

    def is_named(self, sender: str) -> bool:
        """Tell whether recorded events name a sender."""
        return sender in self._owned

    def part(self, sender: str, parts: Mapping[Origin, SourceStatistics]) -> SourceStatistics:
        """Return what a sender has of a stream; who gets a share of events may get all that come at once."""
        mine = [(parts[origin], share) for origin, share in self.of[sender].items() if origin in parts]
        rate = sum(part.rate_hz * share for part, share in mine)
        bytes_s = sum(part.rate_hz * part.size_b * share for part, share in mine)
        size = bytes_s / rate if rate else 0.0
        bursts = [0.0] * len(MULTIPLES)
        for part, _ in mine if size else ():
            # As many events of the mean size of all, or as many bytes, whichever is more.
            factor = max(part.size_b / size, 1.0)
            bursts = [before + burst * factor for before, burst in zip(bursts, part.bursts, strict=True)]
        return SourceStatistics(rate, size, tuple(bursts))
