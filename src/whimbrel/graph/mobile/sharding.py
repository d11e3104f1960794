"""How the events of a query can be partitioned among workers, if it follows objects.

An interest has a bound: so events go to each shard that has a cell within that of them, and location updates
to all. Every shard knows all timelines, and the one in whose cell an interest has its centre has all that can
lie in it, what happened there before included. So nothing has to move when an object comes to another cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot

from whimbrel.errors import QueryError
from whimbrel.graph.mobile.interests import (
    BoxInterest,
    CircleInterest,
    Interest,
    OutlineInterest,
    SectorInterest,
)
from whimbrel.graph.mobile.parts import parts
from whimbrel.graph.mobile.policy import RefreshWhenQualityFalls
from whimbrel.graph.mobile.query import MobileQuery
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.query import Query
from whimbrel.graph.sharding import AnyPartition, ByInterests, BySpace, Sharding, SinglePartition, sharding


def sharding_of(query: Query) -> Sharding:
    """Find the way of partitioning the events of a query that parts them the most."""
    return sharding_of_mobile(query.mobile) if query.mobile else sharding(query.rewritten)


def sharding_of_mobile(queries: Sequence[MobileQuery]) -> Sharding:
    """Find the way of partitioning the events of several mobile queries."""
    reasons = [why for each in queries if (why := why_one_partition(each)) is not None]
    if reasons:
        return SinglePartition(reasons[0])
    return ByInterests(
        max(farthest(each) for each in queries), tuple(dict.fromkeys(each.focal.type for each in queries))
    )


def why_one_partition(query: MobileQuery) -> str | None:
    """Say why the interests of a mobile query cannot be parted by their places; None if they can.

    >>> from whimbrel.graph.mobile import CircleInterest, FocalObjects, MobileQuery
    >>> from whimbrel.lang.wbl import compile_text
    >>> query = compile_text("define Late detect A then not B for 1 h group by source")
    >>> why_one_partition(MobileQuery(query, FocalObjects("A"), CircleInterest(500), of_situations=True))
    'mobile looks at situations wherever their events are'
    """
    name, policy = query.name, query.policy
    if extent_m(query.interest) is None:
        return f"an interest of {name} may reach anywhere"
    if _beyond(query) is None:
        return f"{name} looks at situations wherever their events are"
    if isinstance(policy.refresh, RefreshWhenQualityFalls):
        return f"when interests of {name} move depends on the events around them"
    if policy.reuse == "similar" or policy.prediction is not None:
        return f"what stands for an interest of {name} may be found in other places"
    once = parts(query, query.detect.rewritten).once
    movers = next((each.name for each in once.operators if isinstance(each, Motion | Encounter)), None)
    if movers is not None:
        return f"{movers.partition('.')[0]} follows movers wherever they go"
    return None


def farthest(query: MobileQuery, radius_m: float = 0.0) -> float:
    """Tell how far from its centre lies what an interest of any object depends on, in metres.

    Objects that come later may have a radius of `radius_m`.
    """
    reach, beyond = extent_m(query.interest), _beyond(query)
    if reach is None or beyond is None:
        raise QueryError(f"an interest of {query.name} may reach anywhere")
    own = (each.radius_m for each in query.focal.listed or () if each.radius_m is not None)
    return max([reach, radius_m, *own]) + beyond


def _beyond(query: MobileQuery) -> float | None:
    """Tell how far from an interest that lies which its detections depend on; None: nobody knows."""
    if not query.of_situations:
        return 0.0
    match sharding(query.detect.rewritten):
        case AnyPartition():
            return 0.0  # a situation lies where its event does
        case BySpace(reach_m):
            return 2 * reach_m  # from the interest to an event, and from there to what prevents it
    return None


def extent_m(interest: Interest) -> float | None:
    """Tell how far from its centre an interest can reach, in metres; None: nobody knows.

    >>> from whimbrel.graph.mobile import BoxInterest
    >>> extent_m(BoxInterest(60, 80))
    50.0
    """
    match interest:
        case CircleInterest(radius_m):
            return radius_m
        case SectorInterest(distance_m):
            return distance_m
        case BoxInterest(width_m, height_m):
            return hypot(width_m, height_m) / 2
        case OutlineInterest(corners):
            return max(hypot(*corner) for corner in corners)
    return None
