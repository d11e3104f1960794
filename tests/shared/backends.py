"""The ways of running a query, each behind the same few words, and how their answers are compared."""

from __future__ import annotations

import os
import random
import tempfile
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from tests.reference.identity import made_ids

import whimbrel as wb
from whimbrel.engine import query_templates
from whimbrel.model.columns import LAST_INSTANT
from whimbrel.model.time import instant
from whimbrel.space.kernels.jit import ALLOWED
from whimbrel.testing import detections, events, table

Row = dict[str, Any]
FIXED = ("id", "geometry")


class Found(list[Row]):
    """Detections as rows of `type`, `start`, `end` (microseconds), attributes but for nulls, and `events`.

    Sorted by end, start, type, events, attributes. `ids` and `places` (WKT or None) go with them.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        ordered = sorted(rows, key=lambda row: sort_key(plain(row)))
        super().__init__(plain(row) for row in ordered)
        self.ids: list[str] = [row["id"] for row in ordered]
        self.places: list[str | None] = [wkt(row["geometry"]) for row in ordered]

    @property
    def events(self) -> list[str]:
        """The ids of each detection's events, joined by blanks."""
        return [" ".join(row["events"]) for row in self]

    def values(self, name: str) -> list[Any]:
        """One attribute of every detection; None where it is null."""
        return [row.get(name) for row in self]


def plain(row: Mapping[str, Any]) -> Row:
    kept = {name: _value(value) for name, value in row.items() if value is not None and name not in FIXED}
    return kept | {"events": tuple(row["events"])}


def _value(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    return instant(value) if isinstance(value, datetime) else value


def sort_key(row: Row) -> tuple[Any, ...]:
    values = sorted(
        (name, repr(value)) for name, value in row.items() if name not in ("start", "end", "events")
    )
    return row["end"], row["start"], row["type"], row["events"], values


def expect(text: str) -> list[Row]:
    """Read expected detections, `TYPE@START..END:name=value: id id`, and sort them as `Found` does."""
    rows = [{name: value for name, value in row.items() if value is not None} for row in detections(text)]
    return sorted(rows, key=sort_key)


def wkt(place: bytes | str | None) -> str | None:
    """A location as text, whatever corner it begins with."""
    if place is None:
        return None
    shape = shapely.from_wkb(place) if isinstance(place, bytes) else shapely.from_wkt(place)
    return str(shapely.to_wkt(shapely.normalize(shape), rounding_precision=9))


def named(text: str) -> list[Row]:
    """Read events; those without an id are called after their type and number: a1, a2, b1."""
    rows, seen = events(text), dict[str, int]()
    for row in rows:
        number = seen[row["type"]] = seen.get(row["type"], 0) + 1
        row.setdefault("id", f"{row['type'].lower()}{number}")
    return rows


def called(rows: Sequence[Row]) -> dict[str, str]:
    """What events are called, by the ids that they would get; nothing if some are given without."""
    if not all("id" in row for row in rows):
        return {}
    assert len({row["id"] for row in rows}) == len(rows), "events that come twice need ids"
    return dict(zip(made_ids(rows), (row["id"] for row in rows), strict=True))


def _renamed(row: Row, names: Mapping[str, str]) -> Row:
    return row | {"events": [names.get(each, each) for each in row["events"]]}


class Backend(ABC):
    """A way of running queries. `run` is all that one has to bring."""

    name: str
    gives_ids = True
    """Whether events are given with their ids; else they must get those that the reference makes for them."""

    @abstractmethod
    def run(self, query: wb.Query, rows: Sequence[Row], **settings: Any) -> Iterable[pa.Table]:
        """Detect over a bounded set of events, in as many tables as it likes."""

    def detect(
        self,
        text: str,
        data: str | Sequence[Row],
        *,
        params: Mapping[str, Any] | None = None,
        functions: Sequence[wb.Function] = (),
        horizon: str | None = None,
        emit: Sequence[str] | str | None = None,
        **settings: Any,
    ) -> Found:
        """Compile a query and give what it detects."""
        query = wb.compile(text, params=params, functions=functions, horizon=horizon, emit=emit)
        rows = named(data) if isinstance(data, str) else list(data)
        names = {} if self.gives_ids else called(rows)
        if names:
            rows = [{key: value for key, value in row.items() if key != "id"} for row in rows]
        tables = self.run(query, rows, **settings)
        return Found(_renamed(row, names) for found in tables for row in found.to_pylist())

    def pattern(self, pattern: str, data: str | Sequence[Row], **settings: Any) -> list[str]:
        """The events of what one pattern detects."""
        return self.detect(f"define Found detect {pattern}", data, **settings).events

    def value(self, expression: str, data: str = "A@0s", **settings: Any) -> Any:
        """What an expression gives for the only event."""
        (value,) = self.detect(f"define D detect A assign value = {expression}", data, **settings).values(
            "value"
        )
        return value


class Embedded(Backend):
    """The whole input at once, its rows in no order."""

    name = "embedded"

    def run(self, query: wb.Query, rows: Sequence[Row], **settings: Any) -> Iterable[pa.Table]:
        return [wb.detect(query, table(shuffled(rows)), **settings)]


class PlainKernels(Embedded):
    """The whole input at once, with kernels as plain Python wherever few events would run like that."""

    name = "plain"

    def run(self, query: wb.Query, rows: Sequence[Row], **settings: Any) -> Iterable[pa.Table]:
        with ALLOWED.set_to(float("inf")):
            return super().run(query, rows, **settings)


class EventByEvent(Backend):
    """A session that gets one event after the other, out of order as far as the lateness allows.

    Its query runs as the only instance of a template, if it can.
    """

    name = "session"

    def run(self, query: wb.Query, rows: Sequence[Row], **settings: Any) -> Iterable[pa.Table]:
        lateness, arriving = arrivals(rows)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(query_templates, "FEW", 1)
            session = wb.Session(query, lateness=timedelta(microseconds=lateness), **settings)
            for row in arriving:
                yield session.push(table([row]))
            yield session.close()
        assert session.counts.processed == len(rows)


class SparkBatch(Backend):
    """A static Spark frame, its rows in no order, in three partitions."""

    name = "spark-batch"

    def run(self, query: wb.Query, rows: Sequence[Row], **settings: Any) -> Iterable[pa.Table]:
        frame = spark().createDataFrame(table(shuffled(rows)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of queries that cannot be partitioned
            return [wb.detect(query, frame, partitions=3, **settings).toArrow()]


class SparkStream(Backend):
    """A streaming Spark frame: micro-batches cut at random, out of order as far as the lateness allows."""

    name = "spark-stream"

    def run(self, query: wb.Query, rows: Sequence[Row], **settings: Any) -> Iterable[pa.Table]:
        lateness, arriving = arrivals(rows)
        names = dict.fromkeys(["type", "start", "end", *(name for row in rows for name in row)])
        whole = table([{name: row.get(name) for name in names} for row in arriving])
        with tempfile.TemporaryDirectory() as folder:
            events = streamed(whole, Path(folder) / "events")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                late = timedelta(microseconds=lateness)
                found = wb.detect(query, events, lateness=late, shards=3, **settings)
            return [collected(found, Path(folder) / "checkpoint")]


def spark() -> Any:
    """The Spark session of the tests."""
    from whimbrel.spark import local_session

    return local_session()


def streamed(whole: pa.Table, folder: Path) -> Any:
    """A stream of the rows of a table, cut into micro-batches at random, and then of the end of time."""
    rng = random.Random(whole.num_rows)
    cuts = sorted(rng.sample(range(1, whole.num_rows), min(2, whole.num_rows - 1))) if whole.num_rows else []
    pieces = [whole.slice(a, b - a) for a, b in pairwise([0, *cuts, whole.num_rows])]
    last = {"id": "the end", "type": "the end", "start": LAST_INSTANT, "end": LAST_INSTANT}
    if whole.num_rows and "id" not in whole.column_names:
        del last["id"]
    end = table([last])
    pieces.append(
        pa.concat_tables([whole.slice(0, 0), end], promote_options="permissive").select(end_first(whole, end))
    )
    folder.mkdir()
    for number, piece in enumerate(pieces):
        path = folder / f"{number:03}.parquet"
        pq.write_table(piece, path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # files are read oldest first
    schema = spark().createDataFrame(pieces[-1]).schema
    return spark().readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def end_first(whole: pa.Table, end: pa.Table) -> list[str]:
    """The columns of both tables."""
    return list(dict.fromkeys([*whole.column_names, *end.column_names]))


def collected(found: Any, checkpoint: Path) -> pa.Table:
    """Everything that comes of a stream which ends."""
    name = f"found_{uuid4().hex}"
    query = (
        found.writeStream.format("memory")
        .queryName(name)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    answer = spark().table(name).toArrow()
    spark().catalog.dropTempView(name)
    return answer


def shuffled(rows: Sequence[Row]) -> list[Row]:
    """Rows in another order, the same on every run."""
    return random.Random(zlib.crc32(repr(rows).encode())).sample(rows, len(rows))


def arrivals(rows: Sequence[Row]) -> tuple[int, list[Row]]:
    """A lateness in microseconds, and an order of arrival in which no event is later than that.

    Values that are missing are left out: each event comes with the columns it has.
    """
    if not rows:
        return 0, []
    ends = [row["end"] for row in rows]
    lateness = (max(ends) - min(ends)) // 3 + 1
    rng = random.Random(zlib.crc32(repr(rows).encode()))
    held_back = sorted(shuffled(rows), key=lambda row: row["end"] + rng.randrange(lateness + 1))
    return lateness, [{name: value for name, value in row.items() if value is not None} for row in held_back]


BACKENDS: dict[str, type[Backend]] = {
    kind.name: kind for kind in (Embedded, PlainKernels, EventByEvent, SparkBatch, SparkStream)
}
