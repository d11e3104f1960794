"""Turn one Arrow column of any usual type into the form that events keep it in.

Everything here works on whole columns. Only where a whole column cannot be converted is it halved again and
again, so that one bad text among a million costs some twenty conversions and not a million.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.errors import DataError
from whimbrel.model.faults import Faults, Mask
from whimbrel.model.reading import PART
from whimbrel.model.schema import Type
from whimbrel.model.time import instant
from whimbrel.model.times import (
    DAY_OR_MONTH,
    FACTORS,
    NAIVE,
    UNIT_NAMES,
    TimeReading,
    microseconds_by_size,
    unit_of,
    units_by_size,
    width_of,
)

TEXT = pa.dictionary(pa.int32(), pa.string())
INSTANT = pa.timestamp("us", "UTC")
MICROSECONDS = TimeReading("us")
FIRST_INSTANT = instant(datetime(1, 1, 1, tzinfo=UTC))
LAST_INSTANT = instant(datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC))
"""Times that ISO 8601 and Python can write: the years 1 to 9999."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WHOLE = re.compile(r"[+-]?\d{1,30}")
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_LEAF = 32


def fail_type(name: str, kind: pa.DataType, wanted: str) -> DataError:
    """Build the error for a column whose Arrow type cannot hold what it should."""
    return DataError(f"column {name!r} has the type {kind}, which is not supported; it must hold {wanted}")


def plain(column: pa.Array) -> pa.Array:
    """Return the values without extension type, run-length or large and view layouts."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return column.cast(pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind):
        return column.cast(pa.binary())
    return column


def decoded(column: pa.Array) -> pa.Array:
    """Return the values without dictionary encoding."""
    column = plain(column)
    return plain(column.dictionary_decode()) if pa.types.is_dictionary(column.type) else column


def is_text(kind: pa.DataType) -> bool:
    """Tell whether columns of this type hold text, dictionary encoded or not."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def values_of(column: pa.Array, dtype: str) -> npt.NDArray[Any]:
    """View the values of a fixed-width column as NumPy, without copying; slots of nulls hold anything."""
    if len(column) == 0:
        return np.empty(0, dtype)
    return np.frombuffer(
        column.buffers()[1], dtype=dtype, count=len(column), offset=column.offset * np.dtype(dtype).itemsize
    )


def nulls_of(column: pa.Array) -> Mask:
    """Return which rows are null."""
    mask: Mask = column.is_null().to_numpy(zero_copy_only=False)
    return mask


_KINDS = {"<i8": pa.int64(), "<f8": pa.float64(), "<i4": pa.int32(), "<u8": pa.uint64()}


def from_values(values: npt.NDArray[Any], missing: Mask | None = None) -> pa.Array:
    """Return whole or floating numbers as an Arrow column, without copying.

    Not `pa.array`, which imports pandas wherever it is installed.
    """
    values = np.ascontiguousarray(values)
    kind = _KINDS[values.dtype.str]
    given = (
        None
        if missing is None or not missing.any()
        else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    )
    return pa.Array.from_buffers(kind, len(values), [given, pa.py_buffer(values)])


def with_nulls(column: pa.Array, missing: Mask) -> pa.Array:
    """Return the column with the rows of `missing` set to null."""
    return pc.if_else(pa.array(missing), pa.scalar(None, column.type), column) if missing.any() else column


def as_text_dictionary(name: str, column: pa.Array) -> pa.Array:
    """Return texts (or whole numbers, as texts) dictionary encoded; the usual form comes back as it is."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if (
        pa.types.is_dictionary(kind)
        and kind.value_type == TEXT.value_type
        and not column.dictionary.null_count
    ):
        if kind == TEXT:
            return column
        return pa.DictionaryArray.from_arrays(column.indices.cast(TEXT.index_type), column.dictionary)
    column = as_text(name, column)
    return column.dictionary_encode()


def as_text(name: str, column: pa.Array) -> pa.Array:
    """Return texts (or whole numbers, as texts) as a plain string column."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return column.cast(pa.string())
    raise fail_type(name, kind, "text")


def as_numbers(name: str, column: pa.Array, faults: Faults) -> pa.Array:
    """Return a coordinate column as float64; text that is no number is a fault."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_float64(kind):
        return column
    if (
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
    ):
        return _floats(column)
    if pa.types.is_string(kind):
        return parse_text(name, column, Type.FLOAT, MICROSECONDS, faults)
    raise fail_type(name, kind, "numbers")


def as_instants(name: str, column: pa.Array, times: TimeReading, faults: Faults) -> pa.Array:
    """Return times as int64 microseconds."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _from_timestamps(name, column, times, faults)
    if pa.types.is_date(kind):
        days = column.cast(pa.date32())
        if times.zone is not None:
            return _from_timestamps(name, days.cast(NAIVE), times, faults)
        return _scaled(name, days.view(pa.int32()).cast(pa.int64()), 86_400_000_000, faults)
    if pa.types.is_integer(kind) and times.format is None:
        return _from_whole(name, _int64(name, column, faults), times, faults)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _from_floats(name, column.cast(pa.float64(), safe=False), times, faults)
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    if pa.types.is_string(kind) or pa.types.is_integer(kind):
        texts = column.cast(pa.string())
        parsed = parse_text(name, texts, Type.TIMESTAMP, times, faults).view(pa.int64())
        return _scaled(name, parsed, 1, faults)
    raise fail_type(name, kind, "times: timestamps, ISO 8601 text or numbers")


def as_one_text(name: str, column: pa.Array, times: TimeReading) -> pa.Array:
    """Write the columns that make a time together as one text each, with blanks between them.

    Other columns come back as they are. Where one of the columns is missing or blank, so is the text.

    Raises
    ------
    DataError
        If a column can be no part of a time, or holds whole numbers, which have lost their leading zeros, and
        no format says how many digits they had.
    """
    if not pa.types.is_struct(column.type) or not all(part.name.startswith(PART) for part in column.type):
        return column
    parts = [field.name.removeprefix(PART) for field in column.type]
    formats = (times.format or "").split()
    widths = [width_of(form) for form in formats] if len(formats) == len(parts) else None
    texts = [
        _part_text(part, values, None if widths is None else widths[number])
        for number, (part, values) in enumerate(zip(parts, column.flatten(), strict=True))
    ]
    if any(text is None for text in texts):
        raise _ask_for_digits(name, parts, parts[texts.index(None)])
    return pc.binary_join_element_wise(*texts, " ", null_handling="emit_null")


def _ask_for_digits(name: str, parts: list[str], numbers: str) -> DataError:
    said = " and ".join(map(repr, parts))
    return DataError(
        f"{name} is made of {said}, and {numbers!r} holds whole numbers, which say 90500 for 090500; say how "
        "they were written, with a blank between the columns: --time-format '%Y%m%d %H%M%S' (in Python, "
        "time_format=...)"
    )


def _part_text(name: str, column: pa.Array, width: int | None) -> pa.Array | None:
    """Write a date or a time of day as text; None where that takes a width, and there is none."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    if pa.types.is_string(kind):
        texts = pc.utf8_trim_whitespace(column)
        return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.string())
    if pa.types.is_time(kind):
        return column.cast(pa.string())
    if pa.types.is_timestamp(kind):  # a data frame has no days, but midnights
        return pc.replace_substring_regex(column.cast(pa.string()), r"[ T]00:00:00(\.0+)?Z?$", "")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return None if width is None else pc.utf8_lpad(_digits(column), width, "0")
    raise fail_type(name, kind, "dates or times of day: text, dates, times or whole numbers")


def _digits(column: pa.Array) -> pa.Array:
    """Write numbers as text; whole ones have no point, also where missing values have made them floats."""
    if pa.types.is_integer(column.type):
        return column.cast(pa.string())
    column = _without_nan(column.cast(pa.float64(), safe=False))
    is_whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**53))
    whole = pc.if_else(is_whole, column, 0.0).cast(pa.int64()).cast(pa.string())
    return pc.if_else(is_whole, whole, column.cast(pa.string()))


def _from_timestamps(name: str, column: pa.Array, times: TimeReading, faults: Faults) -> pa.Array:
    kind = column.type
    if kind.unit == "ns":
        micros = _floor_divided(column, 1_000)
    else:
        micros = _scaled(name, column.view(pa.int64()), FACTORS[kind.unit], faults)
    if kind.tz is not None or times.zone is None:
        return micros
    local = times.from_naive(micros.view(NAIVE))
    if local.null_count != micros.null_count:
        skipped = nulls_of(local) & ~nulls_of(micros)
        shown = micros.view(NAIVE)
        faults.add(skipped, lambda row: f"{name} is skipped by the clocks in {times.zone}: {shown[row]}")
    return local.view(pa.int64())


def _from_whole(name: str, column: pa.Array, times: TimeReading, faults: Faults) -> pa.Array:
    unit = times.unit or _common_unit(values_of(column, "i8"))
    if unit in FACTORS:
        return _scaled(name, column, FACTORS[unit], faults)
    if unit is not None:
        return _floor_divided(column, 1_000)
    micros = microseconds_by_size(values_of(column, "i8"))
    return from_values(micros, nulls_of(column) if column.null_count else None)


def _from_floats(name: str, column: pa.Array, times: TimeReading, faults: Faults) -> pa.Array:
    values = values_of(column, "f8")
    unit = times.unit
    if unit is None and not len(units_by_size(values)) > 1:
        unit = next(iter(units_by_size(values)), "s")
    return _scaled_float(name, column, unit, faults)


def _common_unit(values: npt.NDArray[Any]) -> str | None:
    """Tell the unit of whole numbers by their sizes; None if they differ."""
    if not len(values):
        return "s"
    least, most = abs(float(values.min())), abs(float(values.max()))
    if unit_of(max(least, most)) == "s":
        return "s"
    units = units_by_size(values)
    return None if len(units) > 1 else next(iter(units), "s")


def unit_taken(name: str, column: pa.Array, times: TimeReading) -> str | None:
    """Tell in which unit numbers are taken to be by their size, if it is not seconds.

    Raises
    ------
    DataError
        If they are of several sizes, and the unit was not said.
    """
    column = decoded(column)
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if times.unit is not None or times.format is not None or not is_number:
        return None
    values = pc.drop_null(column).to_numpy(zero_copy_only=False)
    if not len(values) or np.nanmax(np.abs(values), initial=0) < 1e11:
        return None
    units = units_by_size(values)
    if len(units) > 1:
        said = " and ".join(UNIT_NAMES[unit] for unit in units)
        raise DataError(
            f"the numbers in {name!r} look like {said} at once; say their unit: --time-unit {units[-1]} "
            f"(in Python, time_unit={units[-1]!r})"
        )
    return units[0] if units else None


def ask_for_day(name: str, column: pa.Array, times: TimeReading) -> None:
    """Refuse a column of texts of which all begin with the day or the month, and nobody said which.

    Raises
    ------
    DataError
        If it is such a column; the text shows what to say.
    """
    if times.day_first is not None or times.format is not None or not is_text(column.type):
        return
    texts = pc.drop_null(decoded(column))
    if not len(texts) or re.match(DAY_OR_MONTH, texts[0].as_py()) is None:
        return
    if pc.all(pc.match_substring_regex(texts, DAY_OR_MONTH)).as_py():
        raise DataError(
            f"{name} may begin with the day or the month: {_shown(texts[0].as_py())}; say --day-first, "
            "--month-first or --time-format '%d/%m/%Y %H:%M:%S' (in Python, day_first=True or False, or "
            "time_format=...)"
        )


def _floor_divided(column: pa.Array, divisor: int) -> pa.Array:
    # Arrow's cast cuts towards zero, which would move times before 1970 forward.
    values = values_of(column, "i8") // divisor
    return from_values(values, nulls_of(column) if column.null_count else None)


def _scaled(name: str, column: pa.Array, factor: int, faults: Faults) -> pa.Array:
    """Multiply int64 by `factor`, with a fault for each result outside the years 1 to 9999."""
    values = values_of(column, "i8")
    low, high = -(-FIRST_INSTANT // factor), LAST_INSTANT // factor
    if len(values) and (values.min() < low or values.max() > high):
        bad = ((values < low) | (values > high)) & ~nulls_of(column)
        faults.add(bad, lambda row: f"{name} is out of range: {values[row]} lies outside the years 1 to 9999")
        values = np.where(bad, 0, values)
        # What lies under a null may be anything, so the product may wrap there; nobody reads it.
        column = from_values(values, nulls_of(column) if column.null_count else None)
    if factor == 1:
        return column
    return from_values(values_of(column, "i8") * factor, nulls_of(column) if column.null_count else None)


def _scaled_float(name: str, column: pa.Array, unit: str | None, faults: Faults) -> pa.Array:
    values, missing = values_of(column, "f8"), nulls_of(column)
    with np.errstate(all="ignore"):
        exact = np.rint(_micros_of_floats(values, unit))
        finite = np.isfinite(values)
        outside = finite & ((exact < FIRST_INSTANT) | (exact > LAST_INSTANT))
    faults.add(~finite & ~missing, lambda row: f"{name} is not finite: {values[row]}")
    faults.add(
        outside & ~missing,
        lambda row: f"{name} is out of range: {values[row]} lies outside the years 1 to 9999",
    )
    usable = finite & ~outside & ~missing
    return from_values(np.where(usable, exact, 0).astype("i8"), missing)


def _micros_of_floats(values: npt.NDArray[Any], unit: str | None) -> npt.NDArray[Any]:
    if unit is None:
        return microseconds_by_size(values)
    return values * FACTORS[unit] if unit in FACTORS else values / 1_000


def _int64(name: str, column: pa.Array, faults: Faults) -> pa.Array:
    if not pa.types.is_uint64(column.type):
        return column.cast(pa.int64())
    values = values_of(column, "u8")
    bad = (values > np.uint64(2**63 - 1)) & ~nulls_of(column)
    faults.add(bad, lambda row: f"{name} does not fit in 64 bits: {values[row]}")
    return with_nulls(column, bad).cast(pa.int64(), safe=False)


def natural(name: str, column: pa.Array, faults: Faults) -> pa.Array:
    """Return an attribute column in the one form that events keep values of its kind in."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    kind = column.type
    if pa.types.is_dictionary(kind):
        return (
            as_text_dictionary(name, column)
            if is_text(kind)
            else natural(name, column.dictionary_decode(), faults)
        )
    column = plain(column)
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _without_nan(_floats(column))
    if pa.types.is_integer(kind):
        return _int64(f"attribute {name!r}", column, faults)
    if pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return column
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return as_instants(f"attribute {name!r}", column, MICROSECONDS, faults).view(INSTANT)
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    raise fail_type(name, kind, "bool, whole numbers, floats, text or timestamps (or leave it out)")


def _floats(column: pa.Array) -> pa.Array:
    """Return numbers as float64, each the nearest there is."""
    if pa.types.is_decimal(column.type):
        # Arrow's own cast can be off by the last bit, so that 7.77 would not be 7.77.
        column = column.cast(pa.string())
    return column.cast(pa.float64(), safe=False)


def _without_nan(column: pa.Array) -> pa.Array:
    values = values_of(column, "f8")
    # A sum is NaN if any value is: one pass and no mask for the usual column that has none.
    with np.errstate(all="ignore"):
        if not np.isnan(np.add.reduce(values)):
            return column
    missing = np.isnan(values)
    if column.null_count:
        missing &= ~nulls_of(column)
    return with_nulls(column, missing)


def declared(name: str, column: pa.Array, kind: Type, times: TimeReading, faults: Faults) -> pa.Array:
    """Convert an attribute in its natural form to the declared type; what does not fit is a fault."""
    given = type_of(column.type)
    if given is kind:
        return column
    if kind is Type.TIMESTAMP and given in (Type.INT, Type.FLOAT, Type.STRING):
        return _declared_times(f"attribute {name!r}", decoded(column), times, faults)
    if given is Type.STRING:
        parsed = parse_text(f"attribute {name!r}", decoded(column), kind, times, faults)
        return _without_nan(parsed) if kind is Type.FLOAT else parsed
    if kind is Type.STRING:
        return _as_iso(column) if given is Type.TIMESTAMP else column.cast(pa.string())
    if kind is Type.FLOAT and given in (Type.INT, Type.BOOL):
        return column.cast(pa.float64(), safe=False)
    if kind is Type.INT and given is Type.BOOL:
        return column.cast(pa.int64())
    if kind is Type.INT and given is Type.FLOAT:
        return _whole(name, column, faults)
    if kind is Type.BOOL and given in (Type.INT, Type.FLOAT):
        return _truth(name, column, faults)
    faults.add(~nulls_of(column), f"attribute {name!r} is not a {kind}: the column holds {given}s")
    return pa.nulls(len(column), ARROW_TYPES[kind])


def _declared_times(name: str, column: pa.Array, times: TimeReading, faults: Faults) -> pa.Array:
    """Read times of an attribute: by the format, which is that of the events' times, or in the usual ways."""
    usual = replace(times, format=None)
    if times.format is None or not pa.types.is_string(column.type):
        return as_instants(name, column, usual, faults).view(INSTANT)
    formatted = times.from_format(column)
    rest = as_instants(name, with_nulls(column, ~nulls_of(formatted)), usual, faults)
    return pc.coalesce(formatted, rest.view(INSTANT))


@lru_cache(maxsize=1024)
def type_of(arrow: pa.DataType) -> Type | None:
    """Tell the attribute type that an Arrow type stands for; None for the null type."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_boolean(arrow):
        return Type.BOOL
    if pa.types.is_integer(arrow):
        return Type.INT
    if pa.types.is_floating(arrow):
        return Type.FLOAT
    if pa.types.is_timestamp(arrow):
        return Type.TIMESTAMP
    if pa.types.is_duration(arrow):
        return Type.DURATION
    if pa.types.is_null(arrow):
        return None
    if pa.types.is_list(arrow):
        return Type.TEXTS
    return Type.STRING


ARROW_TYPES: dict[Type, pa.DataType] = {
    Type.BOOL: pa.bool_(),
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.TIMESTAMP: INSTANT,
    Type.DURATION: pa.duration("us"),
    Type.TEXTS: pa.list_(pa.string()),
}


def arrow_type(kind: Type | None) -> pa.DataType:
    """Look up the Arrow type of a column; one without any value is text."""
    return ARROW_TYPES[kind or Type.STRING]


def _as_iso(column: pa.Array) -> pa.Array:
    return pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)


def _whole(name: str, column: pa.Array, faults: Faults) -> pa.Array:
    values, missing = values_of(column, "f8"), nulls_of(column)
    with np.errstate(all="ignore"):
        bad = ~missing & ~((values == np.floor(values)) & (np.abs(values) < 2.0**63))
    faults.add(bad, lambda row: f"attribute {name!r} is not a whole number: {values[row]}")
    return with_nulls(column, bad).cast(pa.int64(), safe=False)


def _truth(name: str, column: pa.Array, faults: Faults) -> pa.Array:
    bad = ~pc.fill_null(pc.is_in(column, pa.array([0, 1], column.type)), True).to_numpy(zero_copy_only=False)
    bad &= ~nulls_of(column)
    faults.add(bad, lambda row: f"attribute {name!r} is not true or false: {column[row].as_py()}")
    return with_nulls(column, bad).cast(pa.bool_())


def parse_text(name: str, texts: pa.Array, kind: Type, times: TimeReading, faults: Faults) -> pa.Array:
    """Read texts as values of `kind`; an empty one is null, one that cannot be read null and a fault."""
    if len(texts) and pc.min(pc.binary_length(texts)).as_py() == 0:
        # An empty text is how many text files write a missing value.
        texts = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    if kind is Type.TIMESTAMP and times.format is not None:
        parsed = times.from_format(texts)
    else:
        whole, single = _parsers(kind, times)
        pieces: list[pa.Array] = []
        _parse_pieces(texts, whole, single, ARROW_TYPES[kind], pieces)
        parsed = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    if parsed.null_count != texts.null_count:
        bad = nulls_of(parsed) & ~nulls_of(texts)
        faults.add(bad, lambda row: _why_unreadable(name, texts[row].as_py(), kind, times))
    return parsed


def _why_unreadable(name: str, text: str, kind: Type, times: TimeReading) -> str:
    if kind is not Type.TIMESTAMP:
        return f"{name} is not {_WANTED[kind]}: {_shown(text)}"
    if times.format is not None:
        return f"{name} is not written as {times.format!r}: {_shown(text)}"
    if times.day_first is None and re.match(DAY_OR_MONTH, text):
        return (
            f"{name} may begin with the day or the month (say --day-first or --month-first): {_shown(text)}"
        )
    if (
        times.zone is not None
        and _instant_from(text, TimeReading(times.unit, None, times.day_first)) is not None
    ):
        return f"{name} is skipped by the clocks in {times.zone}: {_shown(text)}"
    return f"{name} is not {_WANTED[kind]}: {_shown(text)}"


_WANTED = {
    Type.BOOL: "true or false",
    Type.INT: "a whole number",
    Type.FLOAT: "a number",
    Type.TIMESTAMP: "a readable time",
}


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _parse_pieces(
    texts: pa.Array,
    whole: Callable[[pa.Array], pa.Array],
    single: Callable[[str], Any],
    target: pa.DataType,
    into: list[pa.Array],
) -> None:
    try:
        into.append(whole(texts))
    except pa.ArrowInvalid:
        if len(texts) <= _LEAF:
            parsed = [None if text is None else single(text) for text in texts.to_pylist()]
            into.append(pa.array(parsed, target))
            return
        middle = len(texts) // 2
        _parse_pieces(texts.slice(0, middle), whole, single, target, into)
        _parse_pieces(texts.slice(middle), whole, single, target, into)


def _parsers(kind: Type, times: TimeReading) -> tuple[Callable[[pa.Array], pa.Array], Callable[[str], Any]]:
    """Return how to read a whole column at once, and one text that the first way did not take.

    The second reads all that the first does, and alike: what a text means must not hang on its neighbours.
    """
    if kind is Type.TIMESTAMP:
        return lambda texts: _instants_from(texts, times), lambda text: _instant_from(text, times)
    single = {Type.BOOL: _bool_from, Type.INT: _int_from, Type.FLOAT: _float_from}[kind]
    return lambda texts: texts.cast(ARROW_TYPES[kind]), single


def _instants_from(texts: pa.Array, times: TimeReading) -> pa.Array:
    instants = _iso_instants(texts, times)
    if instants is None:
        instants = _iso_instants(times.iso_texts(texts), times)
    if instants is not None:
        return instants
    numbers = texts.cast(pa.float64())
    micros = _scaled_float("", numbers, times.unit, out := Faults(len(texts)))
    if out:
        raise pa.ArrowInvalid("a number out of range")
    return micros.view(INSTANT)


def _iso_instants(texts: pa.Array, times: TimeReading) -> pa.Array | None:
    try:
        return texts.cast(INSTANT)
    except pa.ArrowInvalid:
        pass
    try:
        return times.from_naive(texts.cast(NAIVE))
    except pa.ArrowInvalid:
        return None


def _instant_from(text: str, times: TimeReading) -> int | None:
    text = text.strip()
    if _NUMBER.fullmatch(text):
        number = np.array([float(text)])
        if not np.isfinite(number[0]):
            return 2**62
        with np.errstate(all="ignore"):
            micros = float(_micros_of_floats(number, times.unit)[0])
        return round(micros) if abs(micros) < 2**62 else 2**62
    try:
        moment = datetime.fromisoformat(times.iso_text(text.upper()))
    except ValueError:
        return None
    if moment.tzinfo is not None:
        return instant(moment)
    micros = times.from_naive(pa.array([moment], NAIVE)).view(pa.int64())[0].as_py()
    return None if micros is None else int(micros)


def _bool_from(text: str) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower())


def _int_from(text: str) -> int | None:
    text = text.strip()
    if _HEXADECIMAL.fullmatch(text):
        value = int(text, 16)
    elif _WHOLE.fullmatch(text):
        value = int(text)
    else:
        exact = _float_from(text)
        if exact is None or not exact.is_integer():
            return None
        value = int(exact)
    return value if -(2**63) <= value < 2**63 else None


def _float_from(text: str) -> float | None:
    text = text.strip()
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None
