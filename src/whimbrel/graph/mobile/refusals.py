"""What no mobile query can be, with the reason: what nobody could answer, or could ever be of use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from whimbrel.errors import QueryError, UnboundedError
from whimbrel.graph.mobile.interests import CircleInterest, depends_on_place_alone
from whimbrel.graph.mobile.policy import RefreshWhenQualityFalls
from whimbrel.graph.reach import reach

if TYPE_CHECKING:
    from whimbrel.graph.mobile.query import MobileQuery


class MobileQueryError(QueryError):
    """A mobile query that is refused; `clause` is what it is about, as the language calls it."""

    def __init__(self, clause: str, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.clause = clause


def refuse_mobile(query: MobileQuery) -> None:
    """Refuse what nobody could answer, with the reason.

    Raises
    ------
    MobileQueryError
        For the first reason that there is.
    UnboundedError
        If the plain query would have to remember events for ever.
    """
    for refused in _reasons(query):
        raise refused
    for output in query.detect.graph.outputs:
        try:
            reach(query.detect.graph, output)
        except UnboundedError as error:
            error.hint = error.hint or "add 'within 1 h' (or what fits) to its pattern, or give a horizon"
            raise


def _reasons(query: MobileQuery) -> Iterator[MobileQueryError]:
    yield from _wrong_parts(query)
    yield from _wrong_amounts(query)
    yield from _wrong_policy(query)
    if query.policy.completeness == "strong":
        yield from _wrong_if_strong(query)


def _wrong_parts(query: MobileQuery) -> Iterator[MobileQueryError]:
    if query.detect.mobile:
        yield MobileQueryError(
            "report",
            "a mobile query follows objects with a plain query, not with another mobile query",
            "give it the query that the other one follows its objects with",
        )
    if not query.detect.graph.outputs:
        yield MobileQueryError(
            "report", f"the mobile query {query.name!r} reports nothing", "report a definition"
        )


def _wrong_amounts(query: MobileQuery) -> Iterator[MobileQueryError]:
    if query.lifetime < 0:
        yield MobileQueryError("lifetime", "a lifetime cannot be negative", "write for example 30 min, or 0")
    if query.silent is not None and query.silent <= 0:
        yield MobileQueryError(
            "until silent for", "an object is silent for more than nothing", "write for example 10 min"
        )
    listed = query.focal.listed or ()
    if any(each.radius_m is not None for each in listed) and not isinstance(query.interest, CircleInterest):
        yield MobileQueryError(
            "listed in",
            "objects have a radius of their own, but the interest is no circle",
            "write within 500 m, or leave out the radius",
        )


def _wrong_policy(query: MobileQuery) -> Iterator[MobileQueryError]:
    policy = query.policy
    lifetimes = [query.lifetime, *(each.lifetime or 0 for each in query.focal.listed or ())]
    if policy.order == "temporal" and any(lifetimes):
        yield MobileQueryError(
            "order",
            "order temporal needs lifetime 0: each interest begins with what happened before it, "
            "so that what is told goes back in time at every switch",
            "order spatio-temporal keeps to time within each interest",
        )
    if isinstance(policy.refresh, RefreshWhenQualityFalls) and policy.quality.is_perfect:
        yield MobileQueryError(
            "refresh",
            "with quality 1, quality falls at each location update that changes anything",
            "write refresh always, or the quality that is enough: quality 0.9",
        )
    if policy.prediction is not None and policy.quality.is_perfect and policy.grid_m is None:
        yield MobileQueryError(
            "predict",
            "with quality 1, nothing that was prepared for another place could ever be used",
            "write the quality that is enough, such as quality 0.9, or places on a grid",
        )


def _wrong_if_strong(query: MobileQuery) -> Iterator[MobileQueryError]:
    if query.policy.grid_m is None or query.policy.grid_m <= 0:
        yield MobileQueryError(
            "completeness",
            "completeness strong needs a grid: no two objects are at one place by chance",
            "write completeness strong on a grid of 100 m",
        )
    if not depends_on_place_alone(query.interest):
        yield MobileQueryError(
            "completeness",
            "completeness strong needs an interest that depends on the place alone",
            "write a circle, a box or an outline: within 500 m",
        )
    if query.excluding_itself:
        yield MobileQueryError(
            "excluding itself",
            "completeness strong shares one run, which cannot leave out the events of each object",
            "leave out one of them",
        )
    if isinstance(query.policy.refresh, RefreshWhenQualityFalls):
        yield MobileQueryError(
            "refresh",
            "completeness strong has areas on a grid: their quality is not what decides",
            "write refresh always, or refresh when moved",
        )
