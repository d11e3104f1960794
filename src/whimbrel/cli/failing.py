"""`--fail`: brokers and links that do not work for a while, as `whimbrel simulate` takes them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from whimbrel.cli.options import Value
from whimbrel.errors import DataError
from whimbrel.model.time import SECOND, duration

if TYPE_CHECKING:
    from whimbrel.plan.network import Network
    from whimbrel.sim.outages import Failure

BETWEEN = " - "


class Outage(Value):
    """`NAME=FROM..TO`: a broker or a link, and when it does not work; without TO, it never works again."""

    name = "name=from..to"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        name, equals, times = str(value).rpartition("=")
        start, dots, end = times.partition("..")
        if not (equals and dots and name.strip()):
            self.fail(
                f"{value!r} is not NAME=FROM..TO; write for example gate=10s..25s or 'gate - cloud=1min..'",
                param,
                ctx,
            )
        try:
            start_s = duration(start) / SECOND
            end_s = duration(end) / SECOND if end.strip() else math.inf
        except DataError as error:
            self.fail(str(error), param, ctx)
        if start_s >= end_s:
            self.fail(f"{value!r} ends before it begins", param, ctx)
        return name.strip(), start_s, end_s


def failures_of(outages: Iterable[tuple[str, float, float]], network: Network) -> tuple[Failure, ...]:
    """Say of which broker or link of a network each outage is."""
    from whimbrel.plan.network import unknown
    from whimbrel.sim.outages import Failure

    links = {
        f"{one}{BETWEEN}{other}"
        for link in network.links
        for one, other in ((link.a, link.b), (link.b, link.a))
    }
    found = []
    for name, start_s, end_s in outages:
        if name in network.number:
            found.append(Failure(start_s, end_s, broker=name))
        elif name in links:
            one, _, other = name.partition(BETWEEN)
            found.append(Failure(start_s, end_s, link=(one, other)))
        else:
            raise unknown("broker or link", name, [*network.number, *sorted(links)], "it is to fail")
    return tuple(found)
