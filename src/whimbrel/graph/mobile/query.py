"""A mobile query: a plain query, the objects that it follows, their interests, and a policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.mobile.interests import CircleInterest, Interest
from whimbrel.graph.mobile.policy import MobilePolicy
from whimbrel.graph.mobile.refusals import refuse_mobile
from whimbrel.graph.mobile.traps import traps
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.model.length import Length, metres
from whimbrel.model.schema import Value
from whimbrel.model.time import Duration, duration


@dataclass(frozen=True, slots=True, init=False)
class ListedObject:
    """A focal object that is listed in a table, perhaps with a radius and a lifetime of its own."""

    key: Value
    radius_m: float | None
    lifetime: int | None

    def __init__(self, key: Value, radius_m: Length | None = None, lifetime: Duration | None = None) -> None:
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "radius_m", None if radius_m is None else metres(radius_m))
        object.__setattr__(self, "lifetime", None if lifetime is None else duration(lifetime))
        if self.radius_m is not None and self.radius_m <= 0:
            raise QueryError(f"the radius of {key!r} has to be more than 0 m, not {self.radius_m:g} m")
        if self.lifetime is not None and self.lifetime < 0:
            raise QueryError(f"the lifetime of {key!r} cannot be negative")


@dataclass(frozen=True, slots=True, init=False)
class FocalObjects:
    """Whom a mobile query follows: objects that report where they are by events of one type.

    `whimbrel.focal` makes them with conditions as text and with tables.
    """

    type: str
    key: str
    """The attribute that tells objects apart, or `source`."""
    only: frozenset[Value] | None
    """The keys of those that are followed; None: all."""
    condition: Expr | None
    """What a location update has to fulfil."""
    listed: tuple[ListedObject, ...] | None
    """The objects of a table, each a query of its own; None: there is no table."""

    def __init__(
        self,
        type: str,
        key: str = "source",
        only: Iterable[Value] | None = None,
        condition: Expr | None = None,
        listed: Iterable[ListedObject] | None = None,
    ) -> None:
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "only", None if only is None else frozenset(only))
        object.__setattr__(self, "condition", condition)
        object.__setattr__(self, "listed", None if listed is None else tuple(listed))


@dataclass(frozen=True, slots=True, init=False)
class MobileQuery:
    """A query that follows moving objects.

    Times are microseconds, lengths metres; both may be given as text. `whimbrel.follow` makes one with less
    writing.

    Parameters
    ----------
    detect
        The plain query: what is told of each interest. Its outputs are what is reported.
    focal
        Whom it follows.
    interest
        Where things happen that count: a region around the object; a length is the radius of a circle.
    lifetime
        For how long before a switch what happened in the new interest is told, too.
    policy
        When the interest follows the object, what is guaranteed, and what it may cost.
    name
        What its deliveries call it.

    Examples
    --------
    >>> import whimbrel as wb
    >>> jam = wb.compile("define Jam over 2 min every 30 s detect Car(speed < 3) as c assign n = count(c)")
    >>> around = wb.MobileQuery(jam, wb.FocalObjects("Ambulance"), "500 m", lifetime="30 min")
    >>> around.interest, around.lifetime // 60_000_000
    (CircleInterest(radius_m=500.0), 30)
    """

    detect: Query
    focal: FocalObjects
    interest: Interest
    lifetime: int
    policy: MobilePolicy
    name: str
    of_situations: bool
    """Whether detections of one run over all events are told, those whose place meets the interest."""
    motion_within: bool
    """Whether motions are found from the events in the interest alone, and not from all."""
    excluding_itself: bool
    """Whether the object's own events do not count."""
    silent: int | None
    """For how long the object may be silent before its interest ends."""

    def __init__(
        self,
        detect: Query | Compilable,
        focal: FocalObjects,
        interest: Interest | Length,
        lifetime: Duration = 0,
        policy: MobilePolicy | None = None,
        name: str = "mobile",
        of_situations: bool = False,
        motion_within: bool = False,
        excluding_itself: bool = False,
        silent: Duration | None = None,
    ) -> None:
        given = {
            "detect": compiled(detect),
            "focal": focal,
            "interest": CircleInterest(interest) if isinstance(interest, float | int | str) else interest,
            "lifetime": duration(lifetime),
            "policy": policy or MobilePolicy(),
            "name": name,
            "of_situations": of_situations,
            "motion_within": motion_within,
            "excluding_itself": excluding_itself,
            "silent": None if silent is None else duration(silent),
        }
        for field, value in given.items():
            object.__setattr__(self, field, value)
        refuse_mobile(self)

    def compile(self) -> Query:
        """Give the query that runs it, so that a mobile query goes wherever a query goes."""
        warnings = (*self.detect.warnings, *traps(self))
        return replace(self.detect, mobile=(self,), text="", warnings=warnings)

    def with_detect(self, detect: Query) -> MobileQuery:
        """Give the same mobile query of another plain query, such as one rewritten."""
        return replace(self, detect=detect)
