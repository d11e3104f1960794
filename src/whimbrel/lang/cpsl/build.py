"""Make the nodes of the tree from what Lark has parsed."""

# ruff: noqa: ARG002 (every rule is handed the same two arguments)

from __future__ import annotations

from typing import Any, Literal

from lark import Token

from whimbrel.errors import QuerySyntaxError
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.checks import Sign, check_bits, check_comparison, check_interval, check_listed
from whimbrel.lang.plans import Extent
from whimbrel.lang.wbl.build import meta_span
from whimbrel.lang.wbl.literals import LENGTHS, short_unit, token_span
from whimbrel.lang.wbl.literals import number as plain_number
from whimbrel.lang.wbl.literals import quantity as measured
from whimbrel.model.time import UNITS

_REPEATS = {
    "Q": ("Q(n)A: n successive events", 1),
    "P": ("P(t)A: two successive events within the time t", 1),
    "S": ("S(n;t;k)A: k successive groups of n events, each within the time t", 3),
}
_RELATIONS: dict[str, Literal["IN", "OVLP", "SPL"]] = {
    "IN": "IN",
    "OVLP": "OVLP",
    "OVL": "OVLP",
    "SPL": "SPL",
}
_KINDS: dict[str, c.Kind] = {"ARITH": "ARITH", "STRING": "STRING", "RFID": "RFID"}
_TIMED: dict[str, Literal["=|", "|=", "!"]] = {"BETWEEN": "=|", "AFTER": "|=", "NOT": "!"}


class CpslTreeBuilder:
    """Make the nodes of the tree: a method for each rule of the grammar."""

    def start(self, meta: Extent, items: list[Any]) -> c.CpslFile:
        return c.CpslFile(tuple(items), at=meta_span(meta))

    def line(self, meta: Extent, items: list[Any]) -> c.CpslSubscription:
        name, body, *bindings, since = items
        if "-" in name:
            raise QuerySyntaxError(
                f"{str(name)!r} cannot be the name of a subscription",
                token_span(name),
                f"its detections are events of that type; write {name.replace('-', '_')}",
            )
        when = None if since is None else c.CpslInstant(since.number, at=since.at)
        return c.CpslSubscription(str(name), body, tuple(bindings), when, at=token_span(name))

    def binding(self, meta: Extent, items: list[Any]) -> c.Binding:
        return c.Binding(_variable(items[0]), items[-1], at=token_span(items[0]))

    def binding_concurrent(self, meta: Extent, items: list[Any]) -> c.Binding:
        # `$x; =|(A)B` without a blank: the `=` belongs to the variable.
        variable, _, other, of = items
        concurrent = c.Concurrent(other, of, at=meta_span(meta))
        return c.Binding(_variable(variable), concurrent, at=token_span(variable))

    # Subscriptions

    def any_of(self, meta: Extent, items: list[Any]) -> c.Any:
        return c.Any(tuple(items), at=meta_span(meta))

    def all_of(self, meta: Extent, items: list[Any]) -> c.All:
        return c.All(tuple(items), at=meta_span(meta))

    def variable(self, meta: Extent, items: list[Any]) -> c.Variable:
        return c.Variable(_variable(items[0]), at=meta_span(meta))

    def named(self, meta: Extent, items: list[Any]) -> c.CpslReference:
        return c.CpslReference(str(items[0]), at=meta_span(meta))

    def timed(self, meta: Extent, items: list[Any]) -> c.Timed:
        operator, first, second, of = items
        sign = _TIMED[operator.type]
        if isinstance(first, c.Amount):
            if not isinstance(second, c.Amount):
                raise QuerySyntaxError(
                    f"a time point is followed by an amount of time, as in {sign}(T;t)A",
                    first.at,
                    f"write {sign}(A;t)B or {sign}(A;B)C if a subscription is meant",
                )
            first = _instant(first)
        if isinstance(second, c.Amount):
            second = _time(second, at_least_zero=sign == "|=")
        return c.Timed(sign, first, second, of, at=meta_span(meta))

    def concurrent(self, meta: Extent, items: list[Any]) -> c.Concurrent:
        return c.Concurrent(*items, at=meta_span(meta))

    def inside(self, meta: Extent, items: list[Any]) -> c.Inside:
        place, of = items
        if not isinstance(place, c.CpslRegion):
            raise QuerySyntaxError(
                "@ needs a region",
                place.at,
                "write its corners, @((0,0)(10,0)(10,10))A; IN(A)B is for the place of another event",
            )
        return c.Inside(place, of, at=meta_span(meta))

    def related(self, meta: Extent, items: list[Any]) -> c.CpslRelation:
        relation, place, of = items
        name = _RELATIONS[relation]
        if isinstance(place, c.CpslPoint) or (name == "IN" and isinstance(place, c.CpslRegion)):
            shown = "region" if isinstance(place, c.CpslRegion) else "point"
            other = "@(region)A" if isinstance(place, c.CpslRegion) else "DIST((x,y);=;0)A"
            raise QuerySyntaxError(f"{relation} has no form for a {shown}", place.at, f"write {other}")
        return c.CpslRelation(name, place, of, at=meta_span(meta))

    def distance(self, meta: Extent, items: list[Any]) -> c.Distance:
        place, sign, length, of = items
        return c.Distance(place, sign.text, _length(length), of, at=meta_span(meta))

    def distance_sign(self, meta: Extent, items: list[Any]) -> Sign:
        return self.sign(meta, items)

    def repeated(self, meta: Extent, items: list[Any]) -> c.Sub:
        letter, *arguments, of = items
        shown, wanted = _REPEATS[letter]
        if len(arguments) != wanted:
            given = f"{len(arguments)} argument{'s' if len(arguments) > 1 else ''}"
            raise QuerySyntaxError(f"{letter} has {given} here", arguments[-1].at, f"write {shown}")
        at = meta_span(meta)
        if letter == "Q":
            return c.Successive(_count(arguments[0], shown), of, at=at)
        if letter == "P":
            return c.Recurring(_time(arguments[0]), of, at=at)
        count, time, groups = arguments
        return c.CpslGroups(_count(count, shown), _time(time), _count(groups, shown), of, at=at)

    # Places, times, numbers

    def corner(self, meta: Extent, items: list[Any]) -> c.CpslPoint:
        return c.CpslPoint(items[0].number, items[1].number, at=meta_span(meta))

    def corners(self, meta: Extent, items: list[Any]) -> c.CpslPoint | c.CpslRegion:
        return items[0] if len(items) == 1 else self.wrapped_corners(meta, items)

    def wrapped_corners(self, meta: Extent, items: list[Any]) -> c.CpslRegion:
        return c.CpslRegion(tuple((corner.x, corner.y) for corner in items), at=meta_span(meta))

    def number(self, meta: Extent, items: list[Any]) -> c.Amount:
        return self.amount(meta, items)

    def amount(self, meta: Extent, items: list[Any]) -> c.Amount:
        minus, token = items
        value, unit = _value(token)
        return c.Amount(-value if minus else value, unit, at=meta_span(meta))

    # Predicates

    def primitive(self, meta: Extent, items: list[Any]) -> c.Primitive:
        return c.Primitive(tuple(items), at=meta_span(meta))

    def predicate(self, meta: Extent, items: list[Any]) -> c.Predicate:
        kind, *alternatives = items
        for tests in alternatives:
            for test in tests:
                _check(kind, test, is_alone=len(alternatives) == 1)
        return c.Predicate(_KINDS[kind], tuple(alternatives), at=meta_span(meta))

    def tests(self, meta: Extent, items: list[Any]) -> tuple[c.Test, ...]:
        return tuple(items)

    def sign(self, meta: Extent, items: list[Any]) -> Sign:
        return Sign("!" if items[0] == "!=" else str(items[0]), token_span(items[0]))

    def comparison(self, meta: Extent, items: list[Any]) -> c.Comparison:
        name, sign, value = items
        if isinstance(value, Token):
            value = str(value)[1:-1].replace('""', '"')
        elif isinstance(value, c.Amount):
            value = value.number
        return c.Comparison(str(name), sign.text, value, at=meta_span(meta))

    def closed_closed(self, meta: Extent, items: list[Any]) -> c.Interval:
        return self._interval(meta, items, "[", "]")

    def closed_open(self, meta: Extent, items: list[Any]) -> c.Interval:
        return self._interval(meta, items, "[", ")")

    def open_closed(self, meta: Extent, items: list[Any]) -> c.Interval:
        return self._interval(meta, items, "(", "]")

    def open_open(self, meta: Extent, items: list[Any]) -> c.Interval:
        return self._interval(meta, items, "(", ")")

    def _interval(
        self, meta: Extent, items: list[Any], opening: Literal["[", "("], closing: Literal["]", ")"]
    ) -> c.Interval:
        name, sign, low, high = items
        check_interval(sign, low, high)
        ends = opening, closing
        return c.Interval(str(name), low.number, high.number, *ends, sign.text == "<+", at=meta_span(meta))

    def listed(self, meta: Extent, items: list[Any]) -> c.CpslList:
        name, sign, *texts = items
        check_listed(sign)
        values = tuple(str(text)[1:-1].replace('""', '"') for text in texts)
        return c.CpslList(str(name), values, sign.text == "<+", at=meta_span(meta))

    def bits(self, meta: Extent, items: list[Any]) -> c.Bits:
        name, sign, first, last, length, code = items
        check_bits(sign, first, last, length, code if isinstance(code, Token) else None)
        numbers = int(first.number), int(last.number), int(length.number)
        value = str(code).lower().rstrip("l") if isinstance(code, Token) else code
        return c.Bits(str(name).upper(), sign.text, *numbers, value, at=meta_span(meta))

    def bound(self, meta: Extent, items: list[Any]) -> c.CpslBound:
        name, *arithmetic = items
        if not arithmetic or arithmetic[0] is None:
            return c.CpslBound(str(name), at=meta_span(meta))
        operator, number = arithmetic
        return c.CpslBound(str(name), str(operator), number.number, at=meta_span(meta))


def _variable(token: Token) -> str:
    return str(token)[1:].strip()


def _check(kind: Token, test: c.Test, *, is_alone: bool) -> None:
    variable = (
        test.value if isinstance(test, c.Comparison) else test.code if isinstance(test, c.Bits) else None
    )
    if isinstance(variable, c.CpslBound) and not is_alone:
        raise QuerySyntaxError(
            f"&{variable.name} stands in an alternative",
            variable.at,
            f"write a predicate of its own: {kind}:...",
        )
    if isinstance(test, c.Comparison):
        check_comparison(kind, test)
        return
    belongs = {c.Interval: "ARITH", c.CpslList: "STRING", c.Bits: "RFID"}[type(test)]
    if belongs != kind:
        raise QuerySyntaxError(f"this test belongs to {belongs}, not to {kind}", test.at, f"write {belongs}:")
    if isinstance(test, c.Bits) and test.name not in ("PRODUCT", "READER"):
        raise QuerySyntaxError(
            f"RFID knows the codes PRODUCT and READER, not {test.name}", test.at, "write RFID:PRODUCT"
        )


def _value(token: Token) -> tuple[int | float, str | None]:
    if token.type == "QUANTITY":
        return measured(token)
    plain = token.update(value=str(token).rstrip("lL"))
    if token.type == "HEX":
        value = int(plain, 16)
        if value >= 2**63:
            raise QuerySyntaxError(
                "this whole number does not fit into 64 bits", token_span(token), "write less"
            )
        return value, None
    return plain_number(plain), None


def _instant(amount: c.Amount) -> c.CpslInstant:
    if amount.unit is not None:
        raise QuerySyntaxError(
            "a time point is a number of seconds since 1970", amount.at, "leave out the unit"
        )
    return c.CpslInstant(amount.number, at=amount.at)


def _time(amount: c.Amount, *, at_least_zero: bool = False) -> c.Amount:
    unit = _unit(amount, UNITS, "an amount of time", "seconds, or write for example '5 min'")
    if amount.number < 0 or (amount.number == 0 and not at_least_zero):
        raise QuerySyntaxError(
            "an amount of time must be more than nothing", amount.at, "write a larger number"
        )
    return c.Amount(amount.number, unit, at=amount.at)


def _length(amount: c.Amount) -> c.Amount:
    unit = _unit(amount, LENGTHS, "a length", "metres, or write for example '2 km'")
    if amount.number < 0:
        raise QuerySyntaxError("a length cannot be less than nothing", amount.at, "write a larger number")
    return c.Amount(amount.number, unit, at=amount.at)


def _unit(amount: c.Amount, known: dict[str, Any], what: str, hint: str) -> str | None:
    unit = None if amount.unit is None else short_unit(amount.unit)
    if unit is not None and unit not in known:
        raise QuerySyntaxError(
            f"{what} is needed here, and {unit!r} is no unit of it", amount.at, f"give {hint}"
        )
    return unit


def _count(amount: c.Amount, shown: str) -> int:
    if amount.unit is not None or not isinstance(amount.number, int) or amount.number < 1:
        raise QuerySyntaxError("a whole number above zero is needed here", amount.at, shown)
    return amount.number
