"""Find out what a column of a text file holds, from all of its values and not only the first ones.

A text file does not say what its columns hold, and a guess from the first block would make the answer
depend on where blocks end. So a file whose columns are not all known is read twice: the first pass only
narrows down what each column can be, in this order, and the second reads every block by that one result:

    nothing yet -> bool
    nothing yet -> int -> float
    anything else, or any other mixture -> text

A number with leading zeros, and a whole number that does not fit in 64 bits, make a column text: they are
names, not amounts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.model.columns import arrow_type
from whimbrel.model.schema import Type


def join(one: Type | None, other: Type | None) -> Type | None:
    """Return the narrowest kind that holds both; None stands for no value at all."""
    if one is None or one is other:
        return other
    if other is None:
        return one
    return Type.FLOAT if {one, other} == {Type.INT, Type.FLOAT} else Type.STRING


def join_all(into: dict[str, Type | None], more: Mapping[str, Type | None]) -> None:
    """Join the kinds of several columns into `into`, which keeps the order of first sight."""
    for name, kind in more.items():
        into[name] = join(into.get(name), kind)


def kind_of_texts(texts: pa.Array, so_far: Type | None) -> Type | None:
    """Return what a text column can be, given that earlier blocks left it as `so_far`."""
    if so_far is Type.STRING:
        return so_far
    texts = pc.drop_null(texts)
    if len(texts) and pc.min(pc.binary_length(texts)).as_py() == 0:
        texts = texts.filter(pc.not_equal(texts, ""))
    if len(texts) == 0:
        return so_far
    if so_far in (None, Type.BOOL) and _are_truths(texts):
        return Type.BOOL
    if so_far is Type.BOOL:
        return Type.STRING
    if so_far is not Type.FLOAT and _are_whole(texts):
        return Type.INT
    return Type.FLOAT if _are_numbers(texts) else Type.STRING


def _are_truths(texts: pa.Array) -> bool:
    lowered = pc.utf8_lower(texts)
    return bool(pc.all(pc.or_(pc.equal(lowered, "true"), pc.equal(lowered, "false"))).as_py())


def _are_whole(texts: pa.Array) -> bool:
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    # Arrow also takes 007, -0 and 0x10, which would not come out as they went in.
    return bool(numbers.cast(pa.string()).equals(texts))


def _are_numbers(texts: pa.Array) -> bool:
    if _has_leading_zeros(texts):
        return False
    try:
        numbers = texts.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    large = pc.greater_equal(pc.abs(numbers), 2.0**63)
    if not pc.any(large).as_py():
        return True
    return not pc.any(
        pc.match_substring_regex(texts.filter(pc.fill_null(large, False)), r"^[+-]?\d+$")
    ).as_py()


def _has_leading_zeros(texts: pa.Array) -> bool:
    """Tell whether any of these texts, none of them empty, starts like 007 or -01."""
    offsets = np.frombuffer(texts.buffers()[1], "i4", len(texts) + 1, texts.offset * 4)
    # Two bytes more, so that looking ahead from the last text stays inside.
    data = np.frombuffer(texts.buffers()[2], "u1")
    data = np.concatenate([data[: offsets[-1]], np.zeros(2, "u1")])
    starts, ends = offsets[:-1].astype("i8"), offsets[1:]
    starts = starts + np.isin(data[starts], (ord("+"), ord("-")))
    digit_next = (data[starts + 1] >= ord("0")) & (data[starts + 1] <= ord("9")) & (starts + 1 < ends)
    return bool(((data[starts] == ord("0")) & digit_next).any())


def read_texts(texts: pa.Array, kind: Type | None) -> pa.Array:
    """Convert texts that the first pass found to be of `kind`; an empty text is then a missing value."""
    if kind is None or kind is Type.STRING:
        return texts
    empty = pc.equal(texts, "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), texts).cast(arrow_type(kind))
