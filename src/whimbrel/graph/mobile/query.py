"""A mobile query: a plain query, the objects that it follows, their interests, and a policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.mobile.interests import Interest, depends_on_place_alone
from whimbrel.graph.mobile.policy import MobilePolicy, RefreshWhenQualityFalls
from whimbrel.graph.query import Query
from whimbrel.graph.reach import reach
from whimbrel.model.schema import Value


@dataclass(frozen=True, slots=True)
class ListedObject:
    """A focal object that is listed in a table, perhaps with a radius and a lifetime of its own."""

    key: Value
    radius_m: float | None = None
    lifetime: int | None = None


@dataclass(frozen=True, slots=True)
class FocalObjects:
    """Whom a mobile query follows: objects that report where they are by events of one type."""

    type: str
    key: str = "source"
    """The attribute that tells objects apart, or `source`."""
    only: frozenset[Value] | None = None
    """The keys of those that are followed; None: all."""
    condition: Expr | None = None
    """What a location update has to fulfil."""
    listed: tuple[ListedObject, ...] | None = None
    """The objects of a table, each a query of its own; None: there is no table."""


@dataclass(frozen=True, slots=True)
class MobileQuery:
    """A query that follows moving objects.

    Times are microseconds, lengths metres. `whimbrel.follow` makes one with less writing.

    Parameters
    ----------
    detect
        The plain query: what is told of each interest. Its outputs are what is reported.
    focal
        Whom it follows.
    interest
        Where things happen that count: a region around the object.
    lifetime
        For how long before a switch what happened in the new interest is told, too.
    """

    detect: Query
    focal: FocalObjects
    interest: Interest
    lifetime: int = 0
    policy: MobilePolicy = field(default_factory=MobilePolicy)
    name: str = "mobile"
    of_situations: bool = False
    """Whether detections of one run over all events are told, those whose place meets the interest."""
    motion_within: bool = False
    """Whether motions are found from the events in the interest alone, and not from all."""
    excluding_itself: bool = False
    """Whether the object's own events do not count."""
    silent: int | None = None
    """For how long the object may be silent before its interest ends."""

    def __post_init__(self) -> None:
        _check(self)

    def compile(self) -> Query:
        """Give the query that runs it, so that a mobile query goes wherever a query goes."""
        return replace(self.detect, mobile=(self,))


def _check(query: MobileQuery) -> None:
    """Refuse what nobody could answer, with the reason."""
    policy = query.policy
    if query.detect.mobile:
        raise QueryError("a mobile query follows objects with a plain query, not with another mobile query")
    if not query.detect.graph.outputs:
        raise QueryError(f"the mobile query {query.name!r} reports nothing", hint="report a definition")
    if query.lifetime < 0:
        raise QueryError("a lifetime cannot be negative")
    if policy.order == "temporal" and query.lifetime:
        raise QueryError(
            "order temporal needs lifetime 0: each interest begins with what happened before it, "
            "so that what is told goes back in time at every switch",
            hint="order spatio-temporal keeps to time within each interest",
        )
    if policy.completeness == "strong":
        _check_strong(query)
    if isinstance(policy.refresh, RefreshWhenQualityFalls) and policy.quality.is_perfect:
        raise QueryError(
            "with quality 1, quality falls at each location update that changes anything",
            hint="write refresh always, or the quality that is enough: quality 0.9",
        )
    if policy.prediction is not None and policy.quality.is_perfect and policy.grid_m is None:
        raise QueryError(
            "with quality 1, nothing that was prepared for another place could ever be used",
            hint="write the quality that is enough, such as quality 0.9, or places on a grid",
        )
    for output in query.detect.graph.outputs:
        reach(query.detect.graph, output)  # an operator without a bound refuses


def _check_strong(query: MobileQuery) -> None:
    if query.policy.grid_m is None or query.policy.grid_m <= 0:
        raise QueryError(
            "completeness strong needs a grid: no two objects are at one place by chance",
            hint="completeness strong on a grid of 100 m",
        )
    if not depends_on_place_alone(query.interest):
        raise QueryError(
            "completeness strong needs an interest that depends on the place alone: a circle, box or outline"
        )
    if query.excluding_itself:
        raise QueryError(
            "completeness strong shares one run, which cannot leave out the events of each object"
        )
    if isinstance(query.policy.refresh, RefreshWhenQualityFalls):
        raise QueryError("completeness strong has areas on a grid: their quality is not what decides")
