"""From the tree back to text, in one canonical form."""

from __future__ import annotations

from decimal import Decimal

from whimbrel.lang.cpsl import tree as c


def print_file(file: c.CpslFile) -> str:
    """Write subscriptions, one a line.

    >>> from whimbrel.lang.cpsl import parse
    >>> print(print_file(parse('near: DIST((3,4);<;2000)(STRING:type="TAXI";STRING:state="free")')), end="")
    near: DIST((3,4);<;2000)(STRING:type = "TAXI", STRING:state = "free")
    """
    return "".join(f"{print_subscription(subscription)}\n" for subscription in file.subscriptions)


def print_subscription(subscription: c.CpslSubscription) -> str:
    """Write one line."""
    pieces = [f"{subscription.name}: {print_sub(subscription.body)}"]
    pieces += [f"${binding.name}; = ({print_sub(binding.sub)})" for binding in subscription.bindings]
    if subscription.since is not None:
        pieces.append(_number(subscription.since.seconds))
    return ", ".join(pieces)


def print_sub(sub: c.Sub) -> str:
    """Write a subscription without its name."""
    match sub:
        case c.Primitive(predicates):
            return ", ".join(_predicate(predicate) for predicate in predicates)
        case c.CpslReference(name):
            return name
        case c.Variable(name):
            return f"${name};"
        case c.All(parts):
            return " && ".join(_grouped(part, c.All | c.Any) for part in parts)
        case c.Any(parts):
            return " || ".join(_grouped(part, c.Any) for part in parts)
    return _operator(sub) + _grouped(_operand(sub), c.Primitive | c.All | c.Any)


def _operand(sub: c.Sub) -> c.Sub:
    return c.children(sub)[-1]


def _operator(sub: c.Sub) -> str:
    match sub:
        case c.Timed(operator, first, second):
            return f"{operator}({_limit(first)};{_limit(second)})"
        case c.Concurrent(other):
            return f"|({print_sub(other)})"
        case c.Inside(region):
            return f"@({_place(region)})"
        case c.CpslRelation(relation, place):
            return f"{relation}({_place(place)})"
        case c.Distance(place, operator, length):
            return f"DIST({_place(place)};{operator};{_amount(length)})"
        case c.Successive(count):
            return f"Q({count})"
        case c.Recurring(time):
            return f"P({_amount(time)})"
        case c.CpslGroups(count, time, groups):
            return f"S({count};{_amount(time)};{groups})"
    raise TypeError(f"not an operator: {sub!r}")


def _grouped(sub: c.Sub, weaker: object) -> str:
    return f"({print_sub(sub)})" if isinstance(sub, weaker) else print_sub(sub)  # type: ignore[arg-type]


def _limit(limit: c.Sub | c.CpslInstant | c.Amount) -> str:
    match limit:
        case c.CpslInstant(seconds):
            return _number(seconds)
        case c.Amount():
            return _amount(limit)
    return print_sub(limit)


def _place(place: c.Sub | c.CpslRegion | c.CpslPoint) -> str:
    match place:
        case c.CpslPoint(x, y):
            return _corner((x, y))
        case c.CpslRegion(corners):
            return f"({''.join(_corner(corner) for corner in corners)})"
    return print_sub(place)


def _corner(corner: c.Corner) -> str:
    return f"({_number(corner[0])},{_number(corner[1])})"


def _amount(amount: c.Amount) -> str:
    if amount.unit is None:
        return _number(amount.number)
    # Units follow decimals, never exponents.
    text = format(Decimal(repr(amount.number)), "f")
    return f"{text} {amount.unit}"


def _number(value: int | float) -> str:
    return repr(value)


# Predicates ----------------------------------------------------------------------------------------


def _predicate(predicate: c.Predicate) -> str:
    alternatives = (" & ".join(_test(test) for test in tests) for tests in predicate.alternatives)
    return f"{predicate.kind}:{' | '.join(alternatives)}"


def _test(test: c.Test) -> str:
    match test:
        case c.CpslComparison(name, operator, value):
            return f"{name} {operator} {_value(value)}"
        case c.Interval(name, low, high, opening, closing, outside):
            return f"{name} {_in(outside)}{opening}{_number(low)};{_number(high)}{closing}"
        case c.CpslList(name, texts, outside):
            return f"{name} {_in(outside)}({','.join(_quoted(text) for text in texts)})"
        case c.Bits(name, operator, first, last, length, code):
            shown = code if isinstance(code, str) else _value(code)
            return f"{name} {operator}({first};{last};{length}) {shown}"


def _in(outside: bool) -> str:
    return "<+" if outside else "<"


def _value(value: int | float | str | c.CpslBound) -> str:
    match value:
        case str():
            return _quoted(value)
        case c.CpslBound(name, None):
            return f"&{name}"
        case c.CpslBound(name, operator, number):
            return f"&{name} {operator} {_number(number)}"
    return _number(value)


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
