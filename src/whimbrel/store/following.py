"""What queries that follow something need of a store: location updates, and what happened before them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from whimbrel.graph.expressions import Attribute, Binary, Literal, conjunction
from whimbrel.graph.mobile import MobileQuery, RefreshWhenQualityFalls
from whimbrel.graph.mobile.explaining import MobileFacts
from whimbrel.graph.operators import ANY
from whimbrel.graph.query import Query
from whimbrel.model.schema import Type
from whimbrel.model.time import BEGINNING_OF_TIME
from whimbrel.store.bounds import Bounds, bounds_of, of_condition, simplified


def bounds_from(
    query: Query, attributes: Collection[str] = (), since: int = BEGINNING_OF_TIME
) -> tuple[Bounds, ...]:
    """List the alternatives, one of which every event lies in that a query can use from a time on."""
    if query.mobile:
        return _bounds_of_mobile(query, attributes, since)
    return simplified(_since(each, since) for each in bounds_of(query, attributes))


def _bounds_of_mobile(query: Query, attributes: Collection[str], since: int) -> tuple[Bounds, ...]:
    """Bound the events that mobile queries can use.

    Objects are followed from `since` on. What happened before is history: it reaches back as far as the
    lifetime, and as far again as what happens in a lifetime may depend on.
    """
    return simplified(
        bounds for mobile in query.mobile for bounds in _bounds(query, mobile, attributes, since)
    )


def _bounds(query: Query, mobile: MobileQuery, attributes: Collection[str], since: int) -> list[Bounds]:
    focal, facts = mobile.focal, MobileFacts.of(mobile)
    updates = Bounds(None if focal.type == ANY else frozenset({focal.type}))
    if focal.condition is not None:
        updates = updates.both(of_condition(focal.condition, query, attributes))
    found = [_since(updates, since)]
    refresh = mobile.policy.refresh
    over = refresh.over if isinstance(refresh, RefreshWhenQualityFalls) else 0
    for event_type, back in facts.back.items():
        first = max(since - max(facts.longest_lifetime + back, over), BEGINNING_OF_TIME)
        of_type = Bounds(None if event_type == ANY else frozenset({event_type}))
        # Quality is counted over all events of a type, also those that no condition lets pass.
        plain = [of_type] if over else [each.both(of_type) for each in bounds_of(mobile.detect, attributes)]
        found += [_since(each, first) for each in plain]
    return found


def _since(bounds: Bounds, first: int) -> Bounds:
    return bounds.both(Bounds(end=(first, bounds.end[1]))) if first > BEGINNING_OF_TIME else bounds


def following_from(query: Query, since: int) -> Query:
    """Give the same mobile queries, which follow nobody before a time."""
    begins = Binary(">=", Attribute(None, "end"), Literal(since, Type.TIMESTAMP))
    return replace(query, mobile=tuple(_from(mobile, begins) for mobile in query.mobile))


def _from(mobile: MobileQuery, begins: Binary) -> MobileQuery:
    conditions = (begins,) if mobile.focal.condition is None else (begins, mobile.focal.condition)
    return replace(mobile, focal=replace(mobile.focal, condition=conjunction(conditions)))
