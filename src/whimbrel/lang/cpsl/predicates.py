"""From predicates to conditions of the Whimbrel language."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from whimbrel.errors import QueryError, Span
from whimbrel.graph.operators import ANY
from whimbrel.lang.cpsl import tree as c
from whimbrel.lang.cpsl.checks import MOST_BITS, code_value
from whimbrel.lang.wbl import tree as t

Reader = Callable[[str], t.Expression]
"""Gives the expression that reads an attribute of some event."""

_NAME = re.compile(r"[^\W\d]\w*")
_PREFIXES = frozenset({"not", "outer", "each", "first", "last"})
"""What a type cannot be called in a pattern, because it means something there."""
_VALUES = frozenset({"not", "null", "true", "false", "this"})
_TEXT_TESTS = {">*": "startswith", "*>": "endswith", "*=": "contains"}
_CONVERSE = {"*<": ">*", "<*": "*>", "=*": "*="}


@dataclass(frozen=True, slots=True)
class Use:
    """A predicate with a variable `&name`: what is compared, how, and with what beside the variable."""

    variable: str
    is_text: bool
    operator: str
    other: c.CpslBound
    read: Callable[[Reader], t.Expression]
    at: Span | None

    @property
    def binds(self) -> bool:
        """Whether it may give the variable its value."""
        return self.operator == "=" and self.other.operator is None

    def compared(self, own: t.Expression, value: t.Expression) -> t.Expression:
        """Compare the attribute with the value of the variable."""
        if self.other.operator is not None:
            value = t.Infix(self.other.operator, value, number(self.other.number))
        return _related(own, self.operator, value, self.at)


def own(name: str) -> t.Expression:
    """Read an attribute of the event in whose parentheses a condition stands."""
    return t.Dotted("this", name) if name in _VALUES else t.Name(name)


def of_part(part: str) -> Reader:
    """Read attributes of a part."""
    return lambda name: t.Dotted(part, name)


def type_and_conditions(primitive: c.Primitive) -> tuple[str, tuple[t.Expression, ...]]:
    """Determine the type that a primitive subscription asks for, and its conditions without variables."""
    chosen = next((text for each in primitive.predicates if (text := _type_text(each)) is not None), None)
    conditions: list[t.Expression] = []
    for predicate in primitive.predicates:
        if chosen is not None and _type_text(predicate) == chosen:
            continue
        conditions += _conditions(predicate)
    kind, test = occurrence_type(chosen, primitive.at)
    return kind, (*test, *conditions)


def occurrence_type(name: str | None, at: Span | None = None) -> tuple[str, tuple[t.Expression, ...]]:
    """Name a type in a pattern; one that is no name there is tested by a condition on any event."""
    if name is None:
        return ANY, ()
    if _NAME.fullmatch(name) and name not in _PREFIXES:
        return name, ()
    return ANY, (t.Compare((t.Name("type"), t.Constant(name)), ("=",), at=at),)


def uses(primitive: c.Primitive) -> list[Use]:
    """List the predicates that read a variable, in the order in which they are written."""
    comparisons = []
    for predicate in primitive.predicates:
        for test in predicate.alternatives[0]:
            use = _use(predicate.kind, test)
            if use is not None:
                comparisons.append(use)
    return comparisons


def number(value: int | float) -> t.Expression:
    """Write a number as the Whimbrel language does: a negative one as the negative of another."""
    return t.Negative(t.Constant(-value)) if value < 0 else t.Constant(value)


def joined(operator: str, operands: list[t.Expression]) -> t.Expression:
    """Join conditions, if there are several."""
    return operands[0] if len(operands) == 1 else t.Logic(operator, tuple(operands))


# Tests ---------------------------------------------------------------------------------------------


def _type_text(predicate: c.Predicate) -> str | None:
    match predicate:
        case c.Predicate("STRING", ((c.CpslComparison("type", "=", str() as text),),)):
            return text
    return None


def _conditions(predicate: c.Predicate) -> list[t.Expression]:
    alternatives = [
        [_condition(test) for test in tests if not _has_variable(test)] for tests in predicate.alternatives
    ]
    if len(alternatives) == 1:
        return alternatives[0]
    return [joined("or", [joined("and", tests) for tests in alternatives])]


def _has_variable(test: c.Test) -> bool:
    match test:
        case c.CpslComparison(_, _, c.CpslBound()) | c.Bits(code=c.CpslBound()):
            return True
    return False


def _condition(test: c.Test) -> t.Expression:
    check_attribute(test)
    attribute = own(test.name)
    match test:
        case c.CpslComparison(_, operator, value):
            other = t.Constant(value) if isinstance(value, str) else number(_plain(value))
            return _related(attribute, operator, other, test.at)
        case c.CpslList(_, texts, outside):
            return t.Among(attribute, tuple(t.Constant(text) for text in texts), outside, at=test.at)
        case c.Interval():
            return _interval(attribute, test)
        case c.Bits(_, operator, first, last, length, code):
            shift = length - last
            wanted = code_value(str(code)) << shift
            return _related(_shifted_bits(attribute, first, last, length), operator, number(wanted), test.at)


def check_attribute(test: c.Test) -> None:
    """Refuse names that the Whimbrel language cannot say."""
    if not _NAME.fullmatch(test.name):
        raise QueryError(
            f"the attribute {test.name!r} cannot be read, because '-' means minus",
            test.at,
            f"call it {test.name.replace('-', '_')!r} in the events",
        )


def _plain(value: int | float | str | c.CpslBound) -> int | float:
    assert isinstance(value, int | float)
    return value


def _interval(attribute: t.Expression, test: c.Interval) -> t.Expression:
    low, high = number(test.low), number(test.high)
    ends = (test.opening, test.closing)
    if ends == ("[", "]"):
        return t.BetweenNode(attribute, low, high, test.outside, at=test.at)
    if not test.outside:
        signs = ("<=" if test.opening == "[" else "<", "<=" if test.closing == "]" else "<")
        return t.Compare((low, attribute, high), signs, at=test.at)
    below = t.Compare((attribute, low), ("<" if test.opening == "[" else "<=",))
    above = t.Compare((attribute, high), (">" if test.closing == "]" else ">=",))
    return t.Logic("or", (below, above), at=test.at)


def _related(left: t.Expression, operator: str, right: t.Expression, at: Span | None) -> t.Expression:
    if operator in _CONVERSE:
        return t.Apply(_TEXT_TESTS[_CONVERSE[operator]], (right, left), at=at)
    if operator in _TEXT_TESTS:
        return t.Apply(_TEXT_TESTS[operator], (left, right), at=at)
    return t.Compare((left, right), ("!=" if operator == "!" else operator,), at=at)


def _shifted_bits(code: t.Expression, first: int, last: int, length: int) -> t.Expression:
    """Cut bits out of a code, counted from the left, and leave them where they stand: whole numbers only."""
    above, below = length - first + 1, length - last
    upper = code if above == MOST_BITS else t.Infix("%", code, t.Constant(2**above))
    return t.Infix("-", upper, t.Infix("%", code, t.Constant(2**below))) if below else upper


def _use(kind: c.Kind, test: c.Test) -> Use | None:
    match test:
        case c.CpslComparison(name, operator, c.CpslBound() as other):
            check_attribute(test)
            return Use(other.name, kind == "STRING", operator, other, lambda read: read(name), test.at)
        case c.Bits(name, operator, first, last, length, c.CpslBound() as other):
            return Use(
                other.name,
                False,
                operator,
                other,
                lambda read: _bits(read(name), first, last, length),
                test.at,
            )
    return None


def _bits(code: t.Expression, first: int, last: int, length: int) -> t.Expression:
    shifted = _shifted_bits(code, first, last, length)
    shift = length - last
    return t.Infix("/", shifted, t.Constant(2**shift)) if shift else shifted
