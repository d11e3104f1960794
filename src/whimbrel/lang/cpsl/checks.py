"""Which operators and values go with which kind of predicate."""

from __future__ import annotations

from dataclasses import dataclass

from lark import Token

from whimbrel.errors import QuerySyntaxError, Span
from whimbrel.lang.cpsl import tree as c

ARITH_SIGNS = ("<", ">", "=", "<=", ">=", "!")
STRING_SIGNS = ("=", "!", ">*", "*>", "*=", "*<", "<*", "=*")
MOST_BITS = 63
"""Codes are whole numbers of 64 bits with a sign."""


@dataclass(frozen=True, slots=True)
class Sign:
    """An operator, and where it stands."""

    text: str
    at: Span


def check_comparison(kind: str, test: c.CpslComparison) -> None:
    """Refuse operators and values of the wrong kind."""
    if kind == "RFID":
        raise QuerySyntaxError(
            "RFID compares some bits of a code", test.at, "write for example RFID:PRODUCT =(1;8;32) 0x30"
        )
    signs = ARITH_SIGNS if kind == "ARITH" else STRING_SIGNS
    if test.operator not in signs:
        raise QuerySyntaxError(
            f"{test.operator!r} does not go with {kind}", test.at, f"{kind} has {' '.join(signs)}"
        )
    if kind == "ARITH" and isinstance(test.value, str):
        raise QuerySyntaxError("ARITH compares numbers, not texts", test.at, "write STRING: to compare texts")
    if kind == "STRING" and isinstance(test.value, int | float):
        raise QuerySyntaxError("STRING compares texts, not numbers", test.at, "write ARITH:, or add quotes")
    if kind == "STRING" and isinstance(test.value, c.CpslBound) and test.value.operator is not None:
        raise QuerySyntaxError("a text cannot be added to", test.value.at, f"write &{test.value.name} alone")


def check_interval(sign: Sign, low: c.Amount, high: c.Amount) -> None:
    """Refuse other operators than inside and outside, and intervals that hold nothing."""
    if sign.text not in ("<", "<+"):
        raise QuerySyntaxError(
            f"{sign.text!r} does not go with an interval", sign.at, "write < for inside, <+ for outside"
        )
    if high.number < low.number:
        raise QuerySyntaxError(
            f"{high.number} is less than {low.number}", high.at, f"write [{high.number};{low.number}]"
        )


def check_listed(sign: Sign) -> None:
    """Refuse other operators than one of and none of."""
    if sign.text not in ("<", "<+"):
        raise QuerySyntaxError(
            f"{sign.text!r} does not go with a list", sign.at, "write < for one of them, <+ for none of them"
        )


def check_bits(sign: Sign, first: c.Amount, last: c.Amount, length: c.Amount, code: Token | None) -> None:
    """Refuse bits that a code does not have."""
    if sign.text not in ARITH_SIGNS:
        raise QuerySyntaxError(
            f"{sign.text!r} does not go with RFID", sign.at, f"RFID has {' '.join(ARITH_SIGNS)}"
        )
    for each in (first, last, length):
        if not isinstance(each.number, int) or each.number < 1:
            raise QuerySyntaxError(
                "a whole number above zero is needed here",
                each.at,
                "write (first bit;last bit;bits of the code)",
            )
    if length.number > MOST_BITS:
        raise QuerySyntaxError(
            f"a code of {length.number} bits does not fit into a number",
            length.at,
            f"codes have at most {MOST_BITS} bits",
        )
    if not first.number <= last.number <= length.number:
        raise QuerySyntaxError(
            f"a code of {length.number} bits has no bits {first.number} to {last.number}",
            first.at,
            "bits are counted from the left, and the first one is 1",
        )
    if code is not None and code_value(str(code)) >> int(last.number - first.number + 1):
        raise QuerySyntaxError(
            f"this code has more than {last.number - first.number + 1} bits",
            Span(code.line or 1, code.column or 1, code.end_line or 1, code.end_column or 2),
            "shorten it, or compare more bits",
        )


def code_value(code: str) -> int:
    """Read `0101b` or `0x1f`.

    >>> code_value("0101b"), code_value("0x1F")
    (5, 31)
    """
    lowered = code.lower()
    return int(lowered.rstrip("l"), 16) if lowered.startswith("0x") else int(lowered[:-1], 2)
