"""What an event without an id says, as one number: the content that its id is made with.

It is the exclusive or, over all values that an event has besides its type, its source and its times, of the
XXH64 of the value, seeded with the XXH64 (seed 42) of the column's name: what Spark's
`xxhash64(lit(name), value)` gives. So neither the order of columns nor missing values matter; on Spark the
part of the attributes is computed before columns that nobody reads are left out. Attributes count as they
come, under the names that the input gives them and before a query's declarations convert them, so that no
id depends on a query; the location counts as the event has it, however it was
given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.engine.kernels.contents import hash_bytes, mix_in_numbers
from whimbrel.errors import DataError
from whimbrel.model.batch import Normalised, Normaliser
from whimbrel.model.columns import from_values, natural, nulls_of, values_of
from whimbrel.model.faults import Faults
from whimbrel.model.schema import RESERVED_COLUMNS

HashArray = npt.NDArray[np.uint64]

CONTENT = "@content"
"""The column of a batch in the common form that has the content of events without ids."""
ATTRIBUTES = "@attributes"
"""The column of a batch that has the part of its attributes already, because some of them were left out."""

_SEED = np.uint64(42)
_NOTHING_MISSING = np.zeros(0, np.bool_)
_LOCATION = ("x", "y", "geometry")


def normalise_with_content(
    normaliser: Normaliser, batch: pa.RecordBatch, first_row: int = 0, aside: Collection[str] = ()
) -> Normalised:
    """Bring a batch into the common form, and note what events say that bring no ids.

    A batch that has it keeps it. Columns `aside` were added on the way and are not the events' own.
    """
    known = None
    if ATTRIBUTES in batch.schema.names:
        known = values_of(batch.column(ATTRIBUTES), "u8")
        batch = batch.drop_columns([ATTRIBUTES])
    normalised = normaliser.normalise(batch, first_row)
    events, names = normalised.events, normalised.events.schema.names
    if "id" in names or CONTENT in names:
        return normalised
    if known is None and normalised.is_as_given and not any(name in names for name in aside):
        own = [name for name in names if name not in RESERVED_COLUMNS or name in _LOCATION]
        content = hashes_of({name: events.column(name) for name in own}, events.num_rows)
    else:
        content = attribute_hashes(batch, {*aside, *normalised.named.used}) if known is None else known
        if normalised.rejected.num_rows:
            content = np.delete(content, normalised.rejected.column("row").to_numpy() - first_row)
        location = {name: events.column(name) for name in _LOCATION if name in names}
        content = content ^ hashes_of(location, len(content))
    return replace(normalised, events=events.append_column(CONTENT, from_values(content.view(np.int64))))


def attribute_hashes(batch: pa.RecordBatch, aside: Collection[str] = ()) -> HashArray:
    """Hash the attributes of every row, under the names that the input gives them.

    Columns `aside` are none: those that say what the event's type, source, times and location are. Columns
    that cannot be attributes do not count.
    """
    return hashes_of(dict(_attributes(batch, aside)), batch.num_rows)


def _attributes(batch: pa.RecordBatch, aside: Collection[str]) -> Iterator[tuple[str, pa.Array]]:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name not in aside:
            try:
                yield name, natural(name, column, Faults(len(column)))
            except DataError:  # such a column is refused where it is read, and else nobody minds it
                continue


def hashes_of(columns: Mapping[str, pa.Array], rows: int) -> HashArray:
    """Hash the values of every row, in columns that are in their natural form."""
    found = np.zeros(rows, np.uint64)
    for name, column in columns.items():
        if column.null_count < rows:
            _mix_in(column, _text_hash(name), found)
    return found


def _mix_in(column: pa.Array, seed: np.uint64, found: HashArray) -> None:
    kind = column.type
    missing = nulls_of(column) if column.null_count else _NOTHING_MISSING
    if pa.types.is_dictionary(kind):
        own = _bytes_hashes(column.dictionary, seed)
        codes = column.indices.fill_null(0) if column.null_count else column.indices
        _mix_in_found(own[codes.to_numpy(zero_copy_only=False)], missing, found)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        _mix_in_found(_bytes_hashes(column, seed), missing, found)
    elif pa.types.is_boolean(kind):
        values = column.fill_null(False) if column.null_count else column
        both = np.array([_int_hash(0, seed), _int_hash(1, seed)], np.uint64)
        _mix_in_found(both[values.to_numpy(zero_copy_only=False).astype(np.intp)], missing, found)
    else:
        numbers = values_of(column, "i8")
        mix_in_numbers.at(8 * len(numbers))(numbers, pa.types.is_floating(kind), missing, seed, found)


def _mix_in_found(hashes: HashArray, missing: npt.NDArray[np.bool_], found: HashArray) -> None:
    if len(missing):
        hashes[missing] = 0
    found ^= hashes


def _bytes_hashes(column: pa.Array, seed: np.uint64) -> HashArray:
    """Hash texts or bytes; what is null hashes as anything."""
    hashes = np.empty(len(column), np.uint64)
    if len(column):
        _, offsets, data = column.buffers()
        bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        content = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_BYTES
        work = 4 * len(column) + int(bounds[-1] - bounds[0]) // 2
        hash_bytes.at(work)(bounds, content, seed, hashes)
    return hashes


_NO_BYTES = np.frombuffer(b"\0", np.uint8)


@lru_cache(maxsize=4096)
def _text_hash(text: str) -> np.uint64:
    return np.uint64(_bytes_hashes(pa.array([text], pa.string()), _SEED)[0])


def _int_hash(value: int, seed: np.uint64) -> np.uint64:
    """Hash a number of four bytes."""
    return np.uint64(_bytes_hashes(pa.array([value.to_bytes(4, "little")], pa.binary()), seed)[0])
