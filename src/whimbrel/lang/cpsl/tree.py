"""The syntax tree of CPSL: what a subscription says, before anyone asks what its names mean.

Plain frozen data. `at` is where a node stands in the text; it does not count for equality, so
`parse(print_file(tree)) == tree`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from whimbrel.errors import Span

Kind = Literal["ARITH", "STRING", "RFID"]
Corner = tuple[int | float, int | float]


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes."""

    at: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


# Predicates ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bound(Node):
    """`&name`, perhaps with `operator number` behind it: a value that another predicate has bound."""

    name: str
    operator: str | None = None
    number: int | float = 0


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """`name operator value`, of numbers or of texts."""

    name: str
    operator: str
    value: int | float | str | Bound


@dataclass(frozen=True, slots=True)
class Interval(Node):
    """`name <[low;high)`: inside, or with `<+` outside; square brackets belong to the inside."""

    name: str
    low: int | float
    high: int | float
    opening: Literal["[", "("] = "["
    closing: Literal["]", ")"] = "]"
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Listed(Node):
    """`name <("a","b")`: one of them, or with `<+` none of them."""

    name: str
    texts: tuple[str, ...]
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Bits(Node):
    """`PRODUCT =(first;last;length) code`: some bits of a code of so many bits, compared as a number.

    `code` is kept as it is written, `0101b` or `0x1f`.
    """

    name: str
    operator: str
    first: int
    last: int
    length: int
    code: str | Bound


Test = Comparison | Interval | Listed | Bits


@dataclass(frozen=True, slots=True)
class Predicate(Node):
    """`KIND: test & test | test`: one of the alternatives holds, all tests of it."""

    kind: Kind
    alternatives: tuple[tuple[Test, ...], ...]


# Places and times ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Region(Node):
    """`((x,y)(x,y)...)`: a polygon by its corners."""

    corners: tuple[Corner, ...]


@dataclass(frozen=True, slots=True)
class Point(Node):
    """`(x,y)`."""

    x: int | float
    y: int | float


@dataclass(frozen=True, slots=True)
class Amount(Node):
    """A time or a length; without a unit, seconds or metres."""

    number: int | float
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Instant(Node):
    """A time point, in seconds since 1970 UTC; by itself, something that happens then."""

    seconds: int | float


# Subscriptions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Primitive(Node):
    """Predicates that one event must satisfy, all of them."""

    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Named(Node):
    """A bare name: events of that type, or what the subscription of that name detects."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """`$name;`: the one event that the variable is bound to."""

    name: str


@dataclass(frozen=True, slots=True)
class Timed(Node):
    """`=|(first;second)of`, `|=(first;second)of` or `!(first;second)of`.

    `first` and `second` are a time point and an amount of time, a subscription and an amount, or two
    subscriptions.
    """

    operator: Literal["=|", "|=", "!"]
    first: Sub | Instant
    second: Sub | Amount
    of: Sub


@dataclass(frozen=True, slots=True)
class Concurrent(Node):
    """`|(other)of`."""

    other: Sub
    of: Sub


@dataclass(frozen=True, slots=True)
class Inside(Node):
    """`@(region)of`."""

    region: Region
    of: Sub


@dataclass(frozen=True, slots=True)
class Related(Node):
    """`IN(place)of`, `OVLP(place)of` or `SPL(place)of`; for IN the place is a subscription."""

    relation: Literal["IN", "OVLP", "SPL"]
    place: Sub | Region
    of: Sub


@dataclass(frozen=True, slots=True)
class Distance(Node):
    """`DIST(place;operator;length)of`."""

    place: Sub | Region | Point
    operator: Literal["<", "=", ">"]
    length: Amount
    of: Sub


@dataclass(frozen=True, slots=True)
class Successive(Node):
    """`Q(count)of`: so many successive events."""

    count: int
    of: Sub


@dataclass(frozen=True, slots=True)
class Recurring(Node):
    """`P(time)of`: two successive events within the time."""

    time: Amount
    of: Sub


@dataclass(frozen=True, slots=True)
class Groups(Node):
    """`S(count;time;groups)of`: successive groups of so many successive events, each within the time."""

    count: int
    time: Amount
    groups: int
    of: Sub


@dataclass(frozen=True, slots=True)
class All(Node):
    """`A && B && C`."""

    parts: tuple[Sub, ...]


@dataclass(frozen=True, slots=True)
class Any(Node):
    """`A || B || C`."""

    parts: tuple[Sub, ...]


Sub = (
    Primitive
    | Named
    | Variable
    | Timed
    | Concurrent
    | Inside
    | Related
    | Distance
    | Successive
    | Recurring
    | Groups
    | All
    | Any
)


@dataclass(frozen=True, slots=True)
class Binding(Node):
    """`$name; = (sub)`."""

    name: str
    sub: Sub


@dataclass(frozen=True, slots=True)
class Subscription(Node):
    """`name: body, $x; = (...), since`: one line of a file."""

    name: str
    body: Sub
    bindings: tuple[Binding, ...] = ()
    since: Instant | None = None


@dataclass(frozen=True, slots=True)
class File(Node):
    """A whole text."""

    subscriptions: tuple[Subscription, ...]


def children(sub: Sub) -> tuple[Sub, ...]:
    """Give the subscriptions directly inside one, in the order in which they are written."""
    found: tuple[Sub | Instant | Amount | Region | Point, ...]
    match sub:
        case Timed(_, first, second, of):
            found = (first, second, of)
        case Concurrent(other, of):
            found = (other, of)
        case Related(_, place, of) | Distance(place, _, _, of):
            found = (place, of)
        case Inside(_, of) | Successive(_, of) | Recurring(_, of) | Groups(_, _, _, of):
            found = (of,)
        case All(parts) | Any(parts):
            found = parts
        case _:
            found = ()
    return tuple(each for each in found if not isinstance(each, Instant | Amount | Region | Point))
