"""How the times of an input are read: numbers by their unit, texts by their form, local times by zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.errors import DataError

TIME_UNITS = ("s", "ms", "us", "ns")
"""Units of times that are plain numbers."""
FACTORS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""How many microseconds they are; of nanoseconds it takes a thousand."""

NAIVE = pa.timestamp("us")
INSTANT = pa.timestamp("us", "UTC")

_SIZES = (("s", 0.0), ("ms", 1e11), ("us", 1e14), ("ns", 1e17))
"""From which size on a number is of which unit, if none was said: as seconds, 1e11 lies in the year 5138, as
milliseconds in 1973."""
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}

DAY_OR_MONTH = r"^\s*\d{1,2}[/.-]\d{1,2}[/.-]\d{4}(\D|$)"
"""Texts that begin with the day or with the month, which only people can tell."""

_STEPS: tuple[tuple[str, str], ...] = (
    (r"^\s+|\s+$", ""),
    (r"\s*(UTC|GMT|utc|gmt)$", "Z"),
    (r"(:\d\d(\.\d+)?)\s+([+-]\d\d:?\d\d|Z)$", r"\1\3"),
    (r"^(\d{4})[/.](\d{1,2})[/.](\d{1,2})", r"\1-\2-\3"),
    (r"^(\d{4})-(\d)-", r"\1-0\2-"),
    (r"^(\d{4}-\d\d)-(\d)(\D|$)", r"\1-0\2\3"),
    (r"^(\d{4}-\d\d-\d\d)[T ]+(\d):", r"\1 0\2:"),
    (r"(\.\d{6})\d+", r"\1"),
)
"""How usual texts become ISO 8601, one step after the other."""
_DAY_FIRST = (r"^\s*(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})", r"\3-\2-\1")
_MONTH_FIRST = (r"^\s*(\d{1,2})[/.-](\d{1,2})[/.-](\d{4})", r"\3-\1-\2")


@dataclass(frozen=True, slots=True)
class TimeReading:
    """How to read times."""

    unit: str | None = None
    """The unit of plain numbers; None tells it by the size of each."""
    format: str | None = None
    """The form of texts, in the words of `strptime`; None takes ISO 8601 and what is like it."""
    day_first: bool | None = None
    """Whether 03/01/2022 is in January (True) or in March (False); None asks."""
    zone: str | None = None
    """The time zone of times that do not say theirs; None is UTC."""

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in TIME_UNITS:
            known = ", ".join(TIME_UNITS)
            raise DataError(f"time unit {self.unit!r} is not known; use one of: {known}")
        if self.format is not None:
            _check_format(self.format)
        if self.zone is not None:
            _check_zone(self.zone)

    def steps(self) -> tuple[tuple[str, str], ...]:
        """List the rewritings that make ISO 8601 of texts."""
        if self.day_first is None:
            return _STEPS
        return (_DAY_FIRST if self.day_first else _MONTH_FIRST, *_STEPS)

    def iso_texts(self, texts: pa.Array) -> pa.Array:
        """Write usual texts as ISO 8601; what is none stays as it is."""
        for pattern, rewritten in self.steps():
            texts = pc.replace_substring_regex(texts, pattern, rewritten)
        return texts

    def iso_text(self, text: str) -> str:
        """Do the same with one text."""
        for pattern, rewritten in self.steps():
            text = re.sub(pattern, re.sub(r"\\(\d)", r"\\g<\1>", rewritten), text, flags=re.ASCII)
        return text

    def from_naive(self, column: pa.Array) -> pa.Array:
        """Turn times without a zone into instants; a time that clocks skip becomes null.

        In the hour that clocks show twice a time is its first one.
        """
        if self.zone is None:
            return column.cast(INSTANT)
        try:
            return pc.assume_timezone(column, self.zone, ambiguous="earliest", nonexistent="raise").cast(
                INSTANT
            )
        except pa.ArrowInvalid:
            last, first = (
                pc.assume_timezone(column, self.zone, ambiguous="earliest", nonexistent=side).cast(INSTANT)
                for side in ("earliest", "latest")
            )
            return pc.if_else(pc.equal(last, first), first, pa.scalar(None, INSTANT))

    def from_format(self, texts: pa.Array) -> pa.Array:
        """Read texts by the format; what does not fit becomes null."""
        assert self.format is not None
        if "%f" in self.format:
            return self._one_by_one(texts)
        parsed = pc.strptime(texts, format=self.format, unit="us", error_is_null=True)
        parsed = parsed.cast(INSTANT) if "%z" in self.format else parsed.cast(NAIVE)
        if parsed.null_count < len(parsed):
            parsed = self._without_overflow(texts, parsed)
        return parsed if "%z" in self.format else self.from_naive(parsed)

    def _without_overflow(self, texts: pa.Array, parsed: pa.Array) -> pa.Array:
        """Take back what the C library makes of the 31st of February: the 3rd of March."""
        suspect = pc.fill_null(pc.less_equal(pc.day(parsed), 3), False)
        rows = np.flatnonzero(suspect.to_numpy(zero_copy_only=False))
        if not len(rows):
            return parsed
        distinct = texts.take(pa.array(rows)).dictionary_encode()
        wrong = np.array([self._parsed(text) is None for text in distinct.dictionary.to_pylist()], np.bool_)
        if not wrong.any():
            return parsed
        bad = np.zeros(len(parsed), np.bool_)
        bad[rows] = wrong[distinct.indices.to_numpy(zero_copy_only=False)]
        return pc.if_else(pa.array(bad), pa.scalar(None, parsed.type), parsed)

    def _one_by_one(self, texts: pa.Array) -> pa.Array:
        """Read each different text once with Python, which knows fractions of seconds."""
        encoded = texts.dictionary_encode()
        moments = [None if text is None else self._parsed(text) for text in encoded.dictionary.to_pylist()]
        aware = [moment is not None and moment.tzinfo is not None for moment in moments]
        naive = pa.array([None if is_aware else m for m, is_aware in zip(moments, aware, strict=True)], NAIVE)
        with_zone = pa.array(
            [m if is_aware else None for m, is_aware in zip(moments, aware, strict=True)], INSTANT
        )
        return pc.coalesce(with_zone, self.from_naive(naive)).take(encoded.indices)

    def _parsed(self, text: str) -> datetime | None:
        try:
            return datetime.strptime(text.strip(), self.format or "")  # noqa: DTZ007 - the zone comes later
        except ValueError:
            return None


def unit_of(size: float) -> str:
    """Tell the unit of a number by its size.

    >>> unit_of(1_641_168_000), unit_of(1_641_168_000_000)
    ('s', 'ms')
    """
    return next(unit for unit, least in reversed(_SIZES) if size >= least)


def units_by_size(values: npt.NDArray[Any]) -> tuple[str, ...]:
    """Name the units that numbers are of by their sizes; zero is of any."""
    sizes = np.abs(values[np.isfinite(values)].astype(np.float64))
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return ()
    least, most = unit_of(float(sizes.min())), unit_of(float(sizes.max()))
    if least == most:
        return (least,)
    bounds = [bound for _, bound in _SIZES]
    numbers = set(np.searchsorted(bounds, sizes, side="right").tolist())
    return tuple(unit for number, (unit, _) in enumerate(_SIZES, 1) if number in numbers)


def microseconds_by_size(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Turn finite numbers of any unit into microseconds, each by its own size."""
    sizes = np.abs(values.astype(np.float64))
    micros = values * 1_000_000
    for (_, least), factor in zip(_SIZES[1:3], (1_000, 1), strict=True):
        micros = np.where(sizes >= least, values * factor, micros)
    return np.where(sizes >= _SIZES[3][1], values // 1_000, micros)


def width_of(form: str) -> int:
    """Tell how many digits a format of digits alone has; 0 for any other.

    >>> width_of("%H%M%S"), width_of("%Y%m%d"), width_of("%d.%m.%Y")
    (6, 8, 0)
    """
    if re.fullmatch(r"(%[YmdyHMSj])+", form) is None:
        return 0
    return sum({"Y": 4, "j": 3}.get(letter, 2) for letter in form.replace("%", ""))


def _check_format(form: str) -> None:
    sample = datetime(2001, 12, 13, 14, 15, 16, 170_000, tzinfo=UTC)
    try:
        read = datetime.strptime(sample.strftime(form), form)  # noqa: DTZ007
    except ValueError as error:
        raise DataError(
            f"{form!r} is no time format ({error}); write for example '%d.%m.%Y %H:%M:%S'"
        ) from error
    if (read.year, read.month, read.day) != (sample.year, sample.month, sample.day):
        raise DataError(
            f"the time format {form!r} does not say year, month and day; write for example "
            "'%d.%m.%Y %H:%M:%S'"
        )


def _check_zone(zone: str) -> None:
    try:
        ZoneInfo(zone)
        pc.assume_timezone(pa.array([0], NAIVE), zone, ambiguous="earliest", nonexistent="earliest")
    except (ZoneInfoNotFoundError, ValueError, OSError, pa.ArrowException) as error:
        raise DataError(
            f"{zone!r} is no time zone that is known here; write for example UTC or Europe/Berlin"
        ) from error
