"""Make the nodes of the tree from what Lark has parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from lark import Token

from whimbrel.errors import QuerySyntaxError, Span
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.checks import Sign, check_bits, check_comparison, check_interval, check_listed
from whimbrel.lang.plans import Rules
from whimbrel.lang.wbl.literals import number as plain_number
from whimbrel.lang.wbl.literals import quantity as measured
from whimbrel.lang.wbl.literals import short_unit, token_span
from whimbrel.model.length import LENGTHS
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


def _line(_at: Span, name: Token, body: c.Sub, *more: Any) -> c.CpslSubscription:
    *bindings, since = more
    if "-" in name:
        raise QuerySyntaxError(
            f"{str(name)!r} cannot be the name of a subscription",
            token_span(name),
            f"its detections are events of that type; write {name.replace('-', '_')}",
        )
    when = None if since is None else c.CpslInstant(since.number, at=since.at)
    return c.CpslSubscription(str(name), body, tuple(bindings), when, at=token_span(name))


def _binding(_at: Span, variable: Token, *rest: Any) -> c.Binding:
    return c.Binding(_variable(variable), rest[-1], at=token_span(variable))


def _binding_concurrent(at: Span, variable: Token, _sign: Token, other: c.Sub, of: c.Sub) -> c.Binding:
    # `$x; =|(A)B` without a blank: the `=` belongs to the variable.
    return c.Binding(_variable(variable), c.Concurrent(other, of, at=at), at=token_span(variable))


# Subscriptions


def _timed(at: Span, operator: Token, first: Any, second: Any, of: c.Sub) -> c.Timed:
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
    return c.Timed(sign, first, second, of, at=at)


def _inside(at: Span, place: Any, of: c.Sub) -> c.Inside:
    if not isinstance(place, c.CpslRegion):
        raise QuerySyntaxError(
            "@ needs a region",
            place.at,
            "write its corners, @((0,0)(10,0)(10,10))A; IN(A)B is for the place of another event",
        )
    return c.Inside(place, of, at=at)


def _related(at: Span, relation: Token, place: Any, of: c.Sub) -> c.CpslRelation:
    name = _RELATIONS[relation]
    if isinstance(place, c.CpslPoint) or (name == "IN" and isinstance(place, c.CpslRegion)):
        shown = "region" if isinstance(place, c.CpslRegion) else "point"
        other = "@(region)A" if isinstance(place, c.CpslRegion) else "DIST((x,y);=;0)A"
        raise QuerySyntaxError(f"{relation} has no form for a {shown}", place.at, f"write {other}")
    return c.CpslRelation(name, place, of, at=at)


def _repeated(at: Span, letter: Token, *items: Any) -> c.Sub:
    *arguments, of = items
    shown, wanted = _REPEATS[letter]
    if len(arguments) != wanted:
        given = f"{len(arguments)} argument{'s' if len(arguments) > 1 else ''}"
        raise QuerySyntaxError(f"{letter} has {given} here", arguments[-1].at, f"write {shown}")
    if letter == "Q":
        return c.Successive(_count(arguments[0], shown), of, at=at)
    if letter == "P":
        return c.Recurring(_time(arguments[0]), of, at=at)
    count, time, groups = arguments
    return c.CpslGroups(_count(count, shown), _time(time), _count(groups, shown), of, at=at)


# Places, times, numbers


def _corners(at: Span, *corners: c.CpslPoint) -> c.CpslPoint | c.CpslRegion:
    return corners[0] if len(corners) == 1 else _region(at, *corners)


def _region(at: Span, *corners: c.CpslPoint) -> c.CpslRegion:
    return c.CpslRegion(tuple((corner.x, corner.y) for corner in corners), at=at)


def _amount(at: Span, minus: Token | None, token: Token) -> c.Amount:
    value, unit = _value(token)
    return c.Amount(-value if minus else value, unit, at=at)


# Predicates


def _predicate(at: Span, kind: Token, *alternatives: tuple[c.Test, ...]) -> c.Predicate:
    for tests in alternatives:
        for test in tests:
            _check(kind, test, is_alone=len(alternatives) == 1)
    return c.Predicate(_KINDS[kind], alternatives, at=at)


def _sign(_at: Span, sign: Token) -> Sign:
    return Sign("!" if sign == "!=" else str(sign), token_span(sign))


def _comparison(at: Span, name: Token, sign: Sign, value: Any) -> c.CpslComparison:
    if isinstance(value, Token):
        value = _unquoted(value)
    elif isinstance(value, c.Amount):
        value = value.number
    return c.CpslComparison(str(name), sign.text, value, at=at)


def _interval(opening: Literal["[", "("], closing: Literal["]", ")"]) -> Callable[..., c.Interval]:
    def make(at: Span, name: Token, sign: Sign, low: c.Amount, high: c.Amount) -> c.Interval:
        check_interval(sign, low, high)
        is_outside = sign.text == "<+"
        return c.Interval(str(name), low.number, high.number, opening, closing, is_outside, at=at)

    return make


def _listed(at: Span, name: Token, sign: Sign, *texts: Token) -> c.CpslList:
    check_listed(sign)
    return c.CpslList(str(name), tuple(map(_unquoted, texts)), sign.text == "<+", at=at)


def _bits(at: Span, name: Token, sign: Sign, *items: Any) -> c.Bits:
    first, last, length, code = items
    check_bits(sign, first, last, length, code if isinstance(code, Token) else None)
    numbers = int(first.number), int(last.number), int(length.number)
    value = str(code).lower().rstrip("l") if isinstance(code, Token) else code
    return c.Bits(str(name).upper(), sign.text, *numbers, value, at=at)


def _bound(at: Span, name: Token, operator: Token | None = None, number: Any = None) -> c.CpslBound:
    if operator is None:
        return c.CpslBound(str(name), at=at)
    return c.CpslBound(str(name), str(operator), number.number, at=at)


def _unquoted(token: Token) -> str:
    return str(token)[1:-1].replace('""', '"')


def _variable(token: Token) -> str:
    return str(token)[1:].strip()


def _check(kind: Token, test: c.Test, *, is_alone: bool) -> None:
    variable = (
        test.value if isinstance(test, c.CpslComparison) else test.code if isinstance(test, c.Bits) else None
    )
    if isinstance(variable, c.CpslBound) and not is_alone:
        raise QuerySyntaxError(
            f"&{variable.name} stands in an alternative",
            variable.at,
            f"write a predicate of its own: {kind}:...",
        )
    if isinstance(test, c.CpslComparison):
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


RULES: Rules = {
    "start": lambda at, *lines: c.CpslFile(lines, at=at),
    "line": _line,
    "binding": _binding,
    "binding_concurrent": _binding_concurrent,
    # Subscriptions
    "any_of": lambda at, *parts: c.Any(parts, at=at),
    "all_of": lambda at, *parts: c.All(parts, at=at),
    "variable": lambda at, name: c.Variable(_variable(name), at=at),
    "named": lambda at, name: c.CpslReference(str(name), at=at),
    "timed": _timed,
    "concurrent": lambda at, other, of: c.Concurrent(other, of, at=at),
    "inside": _inside,
    "related": _related,
    "distance": lambda at, place, sign, length, of: c.Distance(place, sign.text, _length(length), of, at=at),
    "distance_sign": _sign,
    "repeated": _repeated,
    # Places, times, numbers
    "corner": lambda at, x, y: c.CpslPoint(x.number, y.number, at=at),
    "corners": _corners,
    "wrapped_corners": _region,
    "number": _amount,
    "amount": _amount,
    # Predicates
    "primitive": lambda at, *predicates: c.Primitive(predicates, at=at),
    "predicate": _predicate,
    "tests": lambda _, *tests: tests,
    "sign": _sign,
    "comparison": _comparison,
    "closed_closed": _interval("[", "]"),
    "closed_open": _interval("[", ")"),
    "open_closed": _interval("(", "]"),
    "open_open": _interval("(", ")"),
    "listed": _listed,
    "bits": _bits,
    "bound": _bound,
}
"""What each rule of the grammar becomes: handed where it stands, and what it is made of."""
