"""The columns of a batch of events, as the kernels read them: hashes, numbers, texts and a point each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.identity import hashes
from whimbrel.engine.values import Column, decoded, from_arrow, nothing
from whimbrel.errors import DataError
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.columns import as_numbers, natural
from whimbrel.model.columns import decoded as plain_values
from whimbrel.model.faults import Faults
from whimbrel.model.schema import Coordinates, Type
from whimbrel.space.geometry import Floats
from whimbrel.space.lists import Ints
from whimbrel.subscriptions.kernels.hashing import hash_numbers

_TAGS = {Type.BOOL: 1, Type.INT: 2, Type.FLOAT: 2, Type.TIMESTAMP: 3}
"""Whole numbers and others are compared with each other; a truth or a time equals only its own kind."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that subscriptions ask for, one row of each array a column; see `kernels.conditions`."""

    highs: Ints
    lows: Ints
    values: Floats
    begins: Ints
    ends: Ints
    data: npt.NDArray[np.uint8]

    @property
    def arrays(self) -> tuple[Ints, Ints, Floats, Ints, Ints, npt.NDArray[np.uint8]]:
        """All of them, in the order in which kernels take them."""
        return self.highs, self.lows, self.values, self.begins, self.ends, self.data


def hash_values(values: Sequence[Any], kind: Type) -> tuple[Ints, Ints]:
    """Hash constants as the values of columns are hashed."""
    if kind is Type.STRING:
        return _text_hashes(pa.array(values, pa.string()))
    if kind in (Type.BOOL, Type.TIMESTAMP):
        return _number_hashes(Column(kind, np.array(values).astype(np.int64)))
    if all(isinstance(value, int) and -(2**63) <= value < 2**63 for value in values):
        return _number_hashes(Column(Type.INT, np.array(values, np.int64)))
    return _number_hashes(Column(Type.FLOAT, np.array(values, np.float64)))


def _text_hashes(texts: pa.Array) -> tuple[Ints, Ints]:
    high, low = hashes(texts)
    return high.view(np.int64), low.view(np.int64)


def _number_hashes(column: Column) -> tuple[Ints, Ints]:
    """Hash numbers, a float that is whole like the whole number."""
    assert column.type is not None
    numbers, kinds = column.values, np.full(len(column), _TAGS[column.type], np.int64)
    if column.type is Type.FLOAT:
        numbers = numbers.astype(np.float64, copy=False)
        is_whole = (numbers == np.floor(numbers)) & (np.abs(numbers) < 2.0**63)
        bits = numbers.view(np.int64)
        numbers, kinds = (
            np.where(is_whole, np.where(is_whole, numbers, 0).astype(np.int64), bits),
            kinds + ~is_whole,
        )
    high, low = np.empty(len(numbers), np.int64), np.empty(len(numbers), np.int64)
    hash_numbers(numbers.astype(np.int64, copy=False), kinds, high, low)
    return high, low


def column_hashes(column: Column, high: Ints, low: Ints) -> None:
    """Hash the values of a column into two arrays; null has the hashes 0 and 0."""
    if column.type is None or not len(column):
        high[:] = low[:] = 0
        return
    if column.type is not Type.STRING:
        high[:], low[:] = _number_hashes(column)
    elif pa.types.is_dictionary(column.values.type):
        codes = column.values.indices
        codes = (codes.fill_null(0) if codes.null_count else codes).to_numpy(zero_copy_only=False)
        different = column.values.dictionary if len(column.values.dictionary) else pa.array([""])
        for each, hashed in zip((high, low), _text_hashes(different), strict=True):
            np.take(hashed, codes, out=each, mode="clip")
    else:
        high[:], low[:] = _text_hashes(column.values)
    if column.null is not None:
        high[column.null] = low[column.null] = 0


@dataclass(frozen=True, slots=True)
class WantedColumns:
    """The names of the columns that subscriptions ask for, and whether numbers or texts are asked of any."""

    names: tuple[str, ...]
    numbers: bool
    texts: bool


def read_columns(batch: pa.RecordBatch, wanted: WantedColumns, x: Floats, y: Floats) -> Columns:
    """Read the columns of a batch; one that it does not have is null everywhere."""
    shape = (len(wanted.names), batch.num_rows)
    highs, lows = np.empty(shape, np.int64), np.empty(shape, np.int64)
    values = np.full(shape if wanted.numbers else (shape[0], 0), np.nan)
    begins = np.zeros(shape if wanted.texts else (shape[0], 0), np.int64)
    ends, data = begins - 1, _Bytes()
    for place, name in enumerate(wanted.names):
        column = _column(batch, name, x, y)
        column_hashes(column, highs[place], lows[place])
        if wanted.numbers and column.type in (Type.INT, Type.FLOAT, Type.TIMESTAMP):
            np.add(column.values, 0.0, out=values[place])  # there shall be one zero, not -0.0 beside it
            values[place, column.nulls] = np.nan
        if wanted.texts and column.type is Type.STRING:
            begins[place], ends[place] = data.add(decoded(column.values))
            ends[place, column.nulls] = begins[place, column.nulls] - 1
    return Columns(highs, lows, values, begins, ends, data.joined())


class _Bytes:
    """The texts of several columns, one behind the other."""

    def __init__(self) -> None:
        self.size = 0
        self.pieces: list[npt.NDArray[np.uint8]] = []

    def add(self, texts: pa.Array) -> tuple[Ints, Ints]:
        """Take the texts of a column; give where each begins and ends."""
        _, offsets, data = texts.buffers()
        places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1] + np.int64(
            self.size
        )
        if data is not None and data.size:
            self.pieces.append(np.frombuffer(data, np.uint8))
            self.size += data.size
        return places[:-1], places[1:]

    def joined(self) -> npt.NDArray[np.uint8]:
        return np.concatenate(self.pieces) if self.pieces else np.zeros(0, np.uint8)


def _column(batch: pa.RecordBatch, name: str, x: Floats, y: Floats) -> Column:
    values = {"x": x, "y": y}.get(name)
    if values is not None and len(values):
        return Column(Type.FLOAT, values, np.isnan(values))
    if values is not None or name not in batch.schema.names:
        return nothing(batch.num_rows)
    return from_arrow(natural(name, batch.column(name), Faults(batch.num_rows)))


def read_points(batch: pa.RecordBatch, coordinates: Coordinates) -> tuple[Floats, Floats]:
    """Give where events lie; NaN for those that lie nowhere, empty arrays if none lies anywhere.

    A polygon counts by the centre of its bounding box. What is out of range lies nowhere.
    """
    names = set(batch.schema.names)
    _check_coordinates(batch, names, coordinates)
    pair = ("lon", "lat") if "lon" in names else ("x", "y")
    if names >= set(pair):
        x, y = (_numbers(batch, name) for name in pair)
    elif "geometry" in names:
        x, y = _centres(batch.column("geometry"))
    else:
        return np.zeros(0), np.zeros(0)
    if coordinates is Coordinates.LONLAT:
        with np.errstate(invalid="ignore"):
            outside = (np.abs(x) > 180) | (np.abs(y) > 90)
        if outside.any():
            x = np.where(outside, np.nan, x)
    return x, y


def _check_coordinates(batch: pa.RecordBatch, names: set[str], coordinates: Coordinates) -> None:
    said = (batch.schema.metadata or {}).get(COORDINATES_KEY, b"none").decode(errors="replace")
    in_degrees = bool(names & {"lon", "lat"}) or said == Coordinates.LONLAT
    in_metres = not in_degrees and (bool(names & {"x", "y"}) or said == Coordinates.PLANE)
    if (in_degrees and coordinates is Coordinates.PLANE) or (in_metres and coordinates is Coordinates.LONLAT):
        found = Coordinates.LONLAT if in_degrees else Coordinates.PLANE
        raise DataError(
            f"coordinates are mixed: the events have {found} coordinates, the subscriptions {coordinates}; "
            f"make them with wb.Subscriptions(coordinates={found.value!r})"
        )


def _numbers(batch: pa.RecordBatch, name: str) -> Floats:
    column = as_numbers(name, batch.column(name), Faults(batch.num_rows))
    if column.null_count:
        column = column.fill_null(np.nan)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def _centres(column: pa.Array) -> tuple[Floats, Floats]:
    import shapely

    column = plain_values(column)
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    read = shapely.from_wkt if pa.types.is_string(column.type) else shapely.from_wkb
    bounds = shapely.bounds(read(values, on_invalid="ignore"))
    return (bounds[:, 0] + bounds[:, 2]) / 2, (bounds[:, 1] + bounds[:, 3]) / 2
