"""Time points: events that nobody sends, made when time passes them and put among the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.ingest import Released, concat
from whimbrel.engine.values import BoolArray, decoded
from whimbrel.model.time import TIME_POINT, instant, time_point


def are_time_points(types: pa.Array) -> BoolArray:
    """Tell which of some types are those of time points."""
    found: BoolArray = pc.starts_with(decoded(types), TIME_POINT).to_numpy(zero_copy_only=False)
    return found


def times_of(types: pa.Array) -> frozenset[int]:
    """Give the times of the time points among some types."""
    found = decoded(types).unique()
    names = found.filter(pa.array(are_time_points(found), pa.bool_())).to_pylist()
    return frozenset(instant(name.removeprefix(TIME_POINT)) for name in names)


def with_time_points(
    released: list[Released], times: Iterable[int], watermark: int, owned: str | None
) -> list[Released]:
    """Put time points where they stand among events in total order; `owned` marks them as a session's own."""
    for time in sorted(times):
        at = next((n for n, each in enumerate(released) if each.watermark >= time), None)
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
        concat([each.batch for each in (before, point, behind) if len(each.end)], None),
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
