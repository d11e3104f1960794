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
class CpslNode:
    """Base of all nodes."""

    at: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


# Predicates ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CpslBound(CpslNode):
    """`&name`, perhaps with `operator number` behind it: a value that another predicate has bound."""

    name: str
    operator: str | None = None
    number: int | float = 0


@dataclass(frozen=True, slots=True)
class CpslComparison(CpslNode):
    """`name operator value`, of numbers or of texts."""

    name: str
    operator: str
    value: int | float | str | CpslBound


@dataclass(frozen=True, slots=True)
class Interval(CpslNode):
    """`name <[low;high)`: inside, or with `<+` outside; square brackets belong to the inside."""

    name: str
    low: int | float
    high: int | float
    opening: Literal["[", "("] = "["
    closing: Literal["]", ")"] = "]"
    outside: bool = False


@dataclass(frozen=True, slots=True)
class CpslList(CpslNode):
    """`name <("a","b")`: one of them, or with `<+` none of them."""

    name: str
    texts: tuple[str, ...]
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Bits(CpslNode):
    """`PRODUCT =(first;last;length) code`: some bits of a code of so many bits, compared as a number.

    `code` is kept as it is written, `0101b` or `0x1f`.
    """

    name: str
    operator: str
    first: int
    last: int
    length: int
    code: str | CpslBound


Test = CpslComparison | Interval | CpslList | Bits


@dataclass(frozen=True, slots=True)
class Predicate(CpslNode):
    """`KIND: test & test | test`: one of the alternatives holds, all tests of it."""

    kind: Kind
    alternatives: tuple[tuple[Test, ...], ...]


# Places and times ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CpslRegion(CpslNode):
    """`((x,y)(x,y)...)`: a polygon by its corners."""

    corners: tuple[Corner, ...]


@dataclass(frozen=True, slots=True)
class CpslPoint(CpslNode):
    """`(x,y)`."""

    x: int | float
    y: int | float


@dataclass(frozen=True, slots=True)
class Amount(CpslNode):
    """A time or a length; without a unit, seconds or metres."""

    number: int | float
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class CpslInstant(CpslNode):
    """A time point, in seconds since 1970 UTC; by itself, something that happens then."""

    seconds: int | float


# Subscriptions -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Primitive(CpslNode):
    """Predicates that one event must satisfy, all of them."""

    predicates: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class CpslReference(CpslNode):
    """A bare name: events of that type, or what the subscription of that name detects."""

    name: str


@dataclass(frozen=True, slots=True)
class Variable(CpslNode):
    """`$name;`: the one event that the variable is bound to."""

    name: str


@dataclass(frozen=True, slots=True)
class Timed(CpslNode):
    """`=|(first;second)of`, `|=(first;second)of` or `!(first;second)of`.

    `first` and `second` are a time point and an amount of time, a subscription and an amount, or two
    subscriptions.
    """

    operator: Literal["=|", "|=", "!"]
    first: Sub | CpslInstant
    second: Sub | Amount
    of: Sub


@dataclass(frozen=True, slots=True)
class Concurrent(CpslNode):
    """`|(other)of`."""

    other: Sub
    of: Sub


@dataclass(frozen=True, slots=True)
class Inside(CpslNode):
    """`@(region)of`."""

    region: CpslRegion
    of: Sub


@dataclass(frozen=True, slots=True)
class CpslRelation(CpslNode):
    """`IN(place)of`, `OVLP(place)of` or `SPL(place)of`; for IN the place is a subscription."""

    relation: Literal["IN", "OVLP", "SPL"]
    place: Sub | CpslRegion
    of: Sub


@dataclass(frozen=True, slots=True)
class Distance(CpslNode):
    """`DIST(place;operator;length)of`."""

    place: Sub | CpslRegion | CpslPoint
    operator: Literal["<", "=", ">"]
    length: Amount
    of: Sub


@dataclass(frozen=True, slots=True)
class Successive(CpslNode):
    """`Q(count)of`: so many successive events."""

    count: int
    of: Sub


@dataclass(frozen=True, slots=True)
class Recurring(CpslNode):
    """`P(time)of`: two successive events within the time."""

    time: Amount
    of: Sub


@dataclass(frozen=True, slots=True)
class CpslGroups(CpslNode):
    """`S(count;time;groups)of`: successive groups of so many successive events, each within the time."""

    count: int
    time: Amount
    groups: int
    of: Sub


@dataclass(frozen=True, slots=True)
class All(CpslNode):
    """`A && B && C`."""

    parts: tuple[Sub, ...]


@dataclass(frozen=True, slots=True)
class Any(CpslNode):
    """`A || B || C`."""

    parts: tuple[Sub, ...]


Sub = (
    Primitive
    | CpslReference
    | Variable
    | Timed
    | Concurrent
    | Inside
    | CpslRelation
    | Distance
    | Successive
    | Recurring
    | CpslGroups
    | All
    | Any
)


@dataclass(frozen=True, slots=True)
class Binding(CpslNode):
    """`$name; = (sub)`."""

    name: str
    sub: Sub


@dataclass(frozen=True, slots=True)
class CpslSubscription(CpslNode):
    """`name: body, $x; = (...), since`: one line of a file."""

    name: str
    body: Sub
    bindings: tuple[Binding, ...] = ()
    since: CpslInstant | None = None


@dataclass(frozen=True, slots=True)
class CpslFile(CpslNode):
    """A whole text."""

    subscriptions: tuple[CpslSubscription, ...]


def children(sub: Sub) -> tuple[Sub, ...]:
    """List the subscriptions directly inside one, in the order in which they are written."""
    inner: tuple[Sub | CpslInstant | Amount | CpslRegion | CpslPoint, ...]
    match sub:
        case Timed(_, first, second, of):
            inner = (first, second, of)
        case Concurrent(other, of):
            inner = (other, of)
        case CpslRelation(_, place, of) | Distance(place, _, _, of):
            inner = (place, of)
        case Inside(_, of) | Successive(_, of) | Recurring(_, of) | CpslGroups(_, _, _, of):
            inner = (of,)
        case All(parts) | Any(parts):
            inner = parts
        case _:
            inner = ()
    return tuple(
        each for each in inner if not isinstance(each, CpslInstant | Amount | CpslRegion | CpslPoint)
    )
