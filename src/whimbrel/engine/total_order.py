"""The total order of events, (end, start, source, id), in which they are processed, time points among them.

Events without ids are ordered by the ids that will be made for them: by what they say, and a number that
tells equal ones apart. Time points are events that nobody sends, made when time passes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import CONTENT, made_ids
from whimbrel.engine.kernels.ordering import TIED, UNSORTED, number_among_equals, sortedness
from whimbrel.engine.values import BoolArray, Column, Int64Array, decoded, from_arrow, nothing
from whimbrel.model.faults import Mask
from whimbrel.model.schema import RESERVED_COLUMNS
from whimbrel.model.time import TIME_POINT, instant, time_point

ARRIVAL = "@arrival"
"""The column in which events that were dealt out to workers bring their order of arrival along."""


@dataclass(frozen=True, slots=True)
class Released:
    """Events whose time has come, in total order."""

    batch: pa.RecordBatch
    start: Int64Array
    end: Int64Array
    number: Int64Array | None
    """For events without an id: the number among those that agree with it in all that they say."""
    watermark: int
    """Up to which time everything has been released with it."""
    arrival: Int64Array | None = None
    """Where events of the same times stand otherwise than they came: their order of arrival."""

    def filtered(self, kept: npt.NDArray[np.intp] | Mask) -> Released:
        """Keep some of the events."""
        rows = np.flatnonzero(kept) if kept.dtype == np.bool_ else kept
        return Released(
            self.batch.take(pa.array(rows)) if len(rows) else self.batch.slice(0, 0),
            self.start[rows],
            self.end[rows],
            None if self.number is None else self.number[rows],
            self.watermark,
            None if self.arrival is None else self.arrival[rows],
        )


def in_total_order(
    batch: pa.RecordBatch, watermark: int, *, exact: bool = True
) -> tuple[Released, Mask | None]:
    """Sort events, and tell which of them brought an id (None: none did); where some did, the others get one.

    Unless it has to be `exact`, events of the same times stay as they came.
    """
    start, end = int64(batch, "start"), int64(batch, "end")
    state = None if len(end) == 1 else sortedness.at(len(end))(end, start)
    if state == UNSORTED or (state == TIED and ARRIVAL in batch.schema.names):
        came = [int64(batch, ARRIVAL)] if ARRIVAL in batch.schema.names else []
        sorted_ = np.lexsort((*came, start, end))
        batch, start, end = batch.take(pa.array(sorted_)), start[sorted_], end[sorted_]
        state = sortedness.at(len(end))(end, start)
    brought = _ids_brought(batch)
    if brought is not None and not brought.all():  # a batch without ids came among others
        batch = with_ids(batch)
    number = _numbers(batch, start, end) if brought is None and state == TIED else None
    order = _tie_order(batch, start, end, number) if state == TIED and exact else None
    if order is not None:
        batch, start, end = batch.take(pa.array(order)), start[order], end[order]
        number = None if number is None else number[order]
        brought = None if brought is None else brought[order]
    return Released(batch, start, end, number, watermark, order), brought


def source_codes(batch: pa.RecordBatch) -> tuple[Int64Array, list[str]]:
    """Rank every event's source in the order of the texts, 0 for none."""
    if "source" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64), []
    return _ranks(batch.column("source"))


def _ranks(column: pa.Array) -> tuple[Int64Array, list[str]]:
    """Rank texts in the order of the texts, 0 for none; and the texts."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    texts = decoded(column.dictionary).to_pylist()
    rank = {text: number for number, text in enumerate(sorted(set(texts)), start=1)}
    table = np.array([rank[text] for text in texts] + [0], np.int64)
    return table[column.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)], texts


def _ids_brought(batch: pa.RecordBatch) -> Mask | None:
    """Tell which events came with an id; None if all came without."""
    if "id" not in batch.schema.names:
        return None
    ids = batch.column("id")
    brought: Mask = np.ones(len(ids), np.bool_) if not ids.null_count else ids.is_valid().to_numpy(False)
    return brought


def _tie_order(
    batch: pa.RecordBatch, start: Int64Array, end: Int64Array, number: Int64Array | None
) -> Int64Array | None:
    """Find the order by (end, start, source, id), rows being sorted by the first two; None: as it is."""
    source, _ = source_codes(batch)
    if "id" in batch.schema.names:
        keys = {"end": pa.array(end), "start": pa.array(start), "source": pa.array(source)}
        keys["id"] = decoded(batch.column("id"))
        indices = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
        sorted_rows: Int64Array = indices.to_numpy().astype(np.int64)
        return sorted_rows
    order: Int64Array | None = None
    if (np.diff(source)[(np.diff(end) == 0) & (np.diff(start) == 0)] < 0).any():
        order = np.lexsort((source, start, end))
        start, end, source = start[order], end[order], source[order]
    return _order_of_made(batch, (source, start, end), number, order)


def _order_of_made(
    batch: pa.RecordBatch,
    keys: tuple[Int64Array, ...],
    number: Int64Array | None,
    order: Int64Array | None,
) -> Int64Array | None:
    """Go on with an order by some keys, by the ids that will be made: by content, number and type."""
    same = np.all([key[1:] == key[:-1] for key in keys], axis=0)
    if not same.any():
        return order
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = places if order is None else order[places]
    types, _ = _ranks(batch.column("type").take(pa.array(rows)))
    numbers = np.zeros(len(rows), np.int64) if number is None else number[rows]
    contents = contents_of(batch)[rows].view(np.uint64)
    order = np.arange(batch.num_rows) if order is None else order
    order[places] = rows[np.lexsort((types, numbers, contents, *(key[places] for key in keys)))]
    return order


def _numbers(batch: pa.RecordBatch, start: Int64Array, end: Int64Array) -> Int64Array | None:
    """Count for each event how many equal ones came before it; None: none did."""
    kinds = np.zeros(batch.num_rows, np.int64)
    for name in ("source", "type"):
        codes, different = _codes(batch, name)
        kinds = kinds * different + codes
    changes = np.flatnonzero((np.diff(end) != 0) | (np.diff(start) != 0))
    most = int(np.diff(changes, prepend=-1, append=len(end) - 1).max(initial=1))
    places = 1 << int(2 * most).bit_length()
    numbering = number_among_equals.at(4 * len(end))
    number: Int64Array = numbering(end, start, kinds, contents_of(batch), places)
    return number if number.any() else None


def _codes(batch: pa.RecordBatch, name: str) -> tuple[Int64Array, int]:
    """Encode the texts of a column (and no text) as numbers; tell how many different ones there may be."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64), 1
    column = batch.column(name)
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = len(column.dictionary)
    codes = column.indices.fill_null(texts) if column.null_count else column.indices
    return codes.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), texts + 1


def contents_of(batch: pa.RecordBatch) -> Int64Array:
    """Read what events without ids say, as one number each."""
    if CONTENT not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64)
    column = batch.column(CONTENT)
    values: Int64Array = (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)
    return values


# -- ids -------------------------------------------------------------------------------------------------


def with_ids(events: pa.RecordBatch) -> pa.RecordBatch:
    """Add to events in the common form that came without an id the one that is made for them.

    They may be in any order, but all that are equal must be among them.
    """
    brought = _ids_brought(events)
    if brought is None:
        return events.add_column(0, "id", ids_of(events, numbers_of(events)))
    if brought.all():
        return events
    bare = events.filter(pa.array(~brought))
    places = pa.array(np.maximum(np.cumsum(~brought) - 1, 0))
    made_up = ids_of(bare, numbers_of(bare)).take(places)
    ids = pc.coalesce(decoded(events.column("id")), made_up)
    return events.set_column(events.schema.get_field_index("id"), "id", ids)


def ids_of(events: pa.RecordBatch, number: Int64Array) -> pa.Array:
    """Make ids for events in the common form; the number tells those apart that are equal."""
    source, event_type = _texts(events, "source"), _texts(events, "type")
    start, end = int64(events, "start"), int64(events, "end")
    return made_ids(source, event_type, start, end, contents_of(events), number)


def numbers_of(events: pa.RecordBatch) -> Int64Array:
    """Count for each event, in any order, how many equal ones came before it."""
    start, end = int64(events, "start"), int64(events, "end")
    order = np.lexsort((start, end))
    number = np.zeros(events.num_rows, np.int64)
    in_order = _numbers(events.take(pa.array(order)), start[order], end[order])
    if in_order is not None:
        number[order] = in_order
    return number


def _texts(batch: pa.RecordBatch, name: str) -> Column:
    return from_arrow(batch.column(name)) if name in batch.schema.names else nothing(batch.num_rows)


# -- batches ---------------------------------------------------------------------------------------------


def concat(batches: list[pa.RecordBatch], read: set[str] | None) -> pa.RecordBatch:
    """Put batches one after the other, whatever columns and dictionaries each has.

    An attribute that no query reads may have different types; it is left out then.
    """
    tables = [pa.Table.from_batches([plain(batch)]) for batch in batches]
    if read is not None:
        spare = of_several_types(tables) - read - RESERVED_COLUMNS
        tables = [table.drop_columns([n for n in table.column_names if n in spare]) for table in tables]
    whole = pa.concat_tables(tables, promote_options="permissive")
    combined = whole.combine_chunks().to_batches()
    return combined[0] if combined else plain(batches[0])


def of_several_types(tables: list[pa.Table]) -> set[str]:
    """Name the columns that have different types in different tables."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    return {name for name, types in kinds.items() if len(types) > 1}


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Write texts as they are, without dictionaries."""
    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    arrays = [decoded(c) if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def int64(batch: pa.RecordBatch, name: str) -> Int64Array:
    """View a column of times or whole numbers without nulls."""
    values: Int64Array = batch.column(name).to_numpy(zero_copy_only=False)
    return values


# -- time points -----------------------------------------------------------------------------------------


def are_time_points(types: pa.Array) -> BoolArray:
    """Tell which of some types are those of time points."""
    are_points: BoolArray = pc.starts_with(decoded(types), TIME_POINT).to_numpy(zero_copy_only=False)
    return are_points


def times_of(types: pa.Array) -> frozenset[int]:
    """Find the times of the time points among some types."""
    different = decoded(types).unique()
    names = different.filter(pa.array(are_time_points(different), pa.bool_())).to_pylist()
    return frozenset(instant(name.removeprefix(TIME_POINT)) for name in names)


def with_time_points(
    released: list[Released], times: Iterable[int], watermark: int, owned: str | None
) -> list[Released]:
    """Put time points where they stand among events in total order; `owned` marks them as a session's own."""
    for time in sorted(times):
        at = next((n for n, batch in enumerate(released) if batch.watermark >= time), None)
        if at is None:
            released = [*released, _event(time, watermark, owned)]
        else:
            released = [*released[:at], *_among(released[at], time, owned), *released[at + 1 :]]
    return released


def _event(time: int, watermark: int, owned: str | None) -> Released:
    times = np.array([time], np.int64)
    columns = {"id": [time_point(time)], "type": [time_point(time)], "start": times, "end": times}
    if owned is not None:
        columns[owned] = [True]
    return Released(pa.RecordBatch.from_pydict(columns), times, times, None, watermark)


def _among(events: Released, time: int, owned: str | None) -> Iterator[Released]:
    """Part events by a time point; those that end with it stay with it, as time does not pass in between."""
    first, last = (int(np.searchsorted(events.end, time, side=side)) for side in ("left", "right"))
    if first:
        yield replace(_some(events, 0, first), watermark=time - 1)
    watermark = time if last < len(events.end) else events.watermark
    point = _event(time, watermark, owned)
    yield point if first == last else _joined(_some(events, first, last), point)
    if last < len(events.end):
        yield _some(events, last, len(events.end))


def _some(events: Released, first: int, last: int) -> Released:
    rows = slice(first, last)
    return replace(
        events,
        batch=events.batch.slice(first, last - first),
        start=events.start[rows],
        end=events.end[rows],
        number=None if events.number is None else events.number[rows],
        arrival=None if events.arrival is None else events.arrival[rows],
    )


def _joined(events: Released, point: Released) -> Released:
    """Put a time point among the events that end with it."""
    at = _place(events, point)
    before, behind = _some(events, 0, at), _some(events, at, len(events.end))
    return Released(
        concat([part.batch for part in (before, point, behind) if len(part.end)], None),
        np.concatenate([before.start, point.start, behind.start]),
        np.concatenate([before.end, point.end, behind.end]),
        None if events.number is None else np.insert(events.number, at, 0),
        point.watermark,
        None if events.arrival is None else np.insert(events.arrival, at, -1),
    )


def _place(events: Released, point: Released) -> int:
    """Find where a time point stands: by start, source (it has none) and id.

    The id that is made for an event without a source begins with a colon, and that for a time point does not.
    """
    first, last = (
        int(np.searchsorted(events.start, point.start[0], side=side)) for side in ("left", "right")
    )
    same = events.batch.slice(first, last - first)
    own = point.batch.column("id")[0].as_py()
    before = np.ones(same.num_rows, np.bool_)
    if "source" in same.schema.names:
        before &= decoded(same.column("source")).is_null().to_numpy(zero_copy_only=False)
    if "id" in same.schema.names:
        smaller = pc.less(decoded(same.column("id")), own).fill_null(True)
        before &= smaller.to_numpy(zero_copy_only=False)
    return first + int(np.count_nonzero(before))
