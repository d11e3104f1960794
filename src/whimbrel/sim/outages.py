"""Links and brokers that fail: when what does not work, and which ways are left."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from whimbrel.errors import NetworkError
from whimbrel.plan.network import Link, Network, unknown


@dataclass(frozen=True, slots=True)
class Failure:
    """A broker or a link (both ends) that does not work for a while."""

    start_s: float
    end_s: float
    broker: str | None = None
    link: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if (self.broker is None) == (self.link is None):
            raise NetworkError("a failure is of a broker or of a link", "name one of them")
        if not self.start_s < self.end_s:
            raise NetworkError(f"a failure from {self.start_s} s to {self.end_s} s takes no time")

    def stops(self, link: Link) -> bool:
        """Tell whether a link does not work because of it."""
        if self.link is not None:
            return set(self.link) == {link.a, link.b}
        return self.broker in (link.a, link.b)


class Outages:
    """All failures of a run."""

    def __init__(self, network: Network, failures: Iterable[Failure]) -> None:
        self.network = network
        self.failures = tuple(failures)
        for failure in self.failures:
            if failure.link is not None:
                if not any(failure.stops(link) for link in network.links):
                    raise NetworkError(f"no link joins {failure.link[0]!r} and {failure.link[1]!r}")
            elif failure.broker not in network.number:
                raise unknown("broker", str(failure.broker), network.number, "it is to fail")

    @property
    def has_brokers(self) -> bool:
        """Whether any broker fails."""
        return any(failure.broker is not None for failure in self.failures)

    def times(self) -> list[float]:
        """Say when anything begins or ends to fail."""
        found = {time for each in self.failures for time in (each.start_s, each.end_s)}
        return sorted(time for time in found if math.isfinite(time))

    def of(self, link: Link, *, with_brokers: bool) -> list[tuple[float, float]]:
        """Say when a link does not work; with brokers: also because one of its ends does not."""
        return [
            (each.start_s, each.end_s)
            for each in self.failures
            if each.stops(link) and (with_brokers or each.link is not None)
        ]

    def down_at(self, time_s: float) -> set[str]:
        """Name the brokers that do not work at a time."""
        return {
            str(each.broker)
            for each in self.failures
            if each.broker is not None and each.start_s <= time_s < each.end_s
        }

    def known_at(self, time_s: float, notice_s: float) -> list[Failure]:
        """Return the failures that are known at a time, which takes a while from their beginning."""
        return [each for each in self.failures if each.start_s + notice_s <= time_s < each.end_s]

    def without(self, failures: Iterable[Failure]) -> Network:
        """Return the network without the links that failures stop."""
        failures = list(failures)
        links = [link for link in self.network.links if not any(each.stops(link) for each in failures)]
        return replace(self.network, links=tuple(links))
