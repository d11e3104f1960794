"""What is measured of deliveries: quality at every location update, and whether an order is kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.reference.data import Event
from tests.reference.expressions import World

from .additional_time import additional_time
from .areas import area
from .deliveries import Delivery, place_in_time
from .quality import quality
from .query import MobileQuery, Quality
from .timelines import Interest, location_updates, read_events


def measured(query: MobileQuery, interest: Interest, events: Sequence[Event], world: World) -> list[Quality]:
    """Give the quality of an interest for the true one at each location update while it is current.

    It is counted over all events that the interest has time for, those of its history included; where the
    object's own events do not count, they do not here.
    """
    since = interest.start - query.lifetime - max(additional_time(query.graph).values(), default=0)
    read = read_events(query, events, interest.samples[-1])
    until = max((event.end for event in read), default=0) if interest.end is None else interest.end - 1
    updates = location_updates(query, events, world)[interest.focal]
    return [
        quality(
            read,
            area(query, updates[: number + 1], world.coordinates),
            interest.area,
            since,
            until,
            world.coordinates,
        )
        for number, update in enumerate(updates)
        if interest.start <= update.end and (interest.end is None or update.end < interest.end)
    ]


def keeps_order(query: MobileQuery, told: Sequence[Delivery]) -> bool:
    """Tell whether deliveries, as they came, are in the order that the query asks for, object by object."""
    keys = {
        "arrival": lambda _: (),
        "spatial": lambda each: (each.interest,),
        "spatio-temporal": lambda each: (each.interest, *place_in_time(each)),
        "temporal": place_in_time,
    }
    key = keys[query.order]
    return all(
        key(one) <= key(other)
        for focal in {each.focal for each in told}
        for one, other in pairwise([each for each in told if each.focal == focal])
    )
