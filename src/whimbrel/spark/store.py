"""The event store on Spark: tasks write its files, and Catalyst leaves out what a query cannot use.

The folder of a store has to be seen under one path by the program and by all workers, as the files that
Spark itself writes. Only the DataFrame API is used, so it also works over Spark Connect.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from functools import reduce
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Unpack
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from whimbrel.errors import DataError, WhimbrelError
from whimbrel.graph.query import Query
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.reading import ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import BEGINNING_OF_TIME, DAY, END_OF_TIME, instant
from whimbrel.spark.contents import columns_of_equals
from whimbrel.spark.errors import plain_errors
from whimbrel.spark.frames import named
from whimbrel.spark.lines import LINE, PLACED_SCHEMA, normalise_lines, write_placed
from whimbrel.spark.types import quoted
from whimbrel.store.bounds import ANYTHING, EVERYWHERE, Bounds, location_names, simplified
from whimbrel.store.cells import day_name
from whimbrel.store.event_store import Appended, Moment, Store, asked_for
from whimbrel.store.following import bounds_from
from whimbrel.store.log import StoredFile
from whimbrel.store.read import ScanSelection
from whimbrel.store.write import Staged, WriteInput, Writer, storable

FORMATS = ("parquet", "delta")
MOST_CELLS = 1_000
"""A longer list of cells would take Catalyst longer than it saves."""

_REPORT = "staged string, rejected string"


@plain_errors()
def read_store(
    spark: SparkSession,
    root: str | PathLike[str],
    query: Query | None = None,
    *,
    since: Moment | None = None,
    until: Moment | None = None,
    format: str = "parquet",  # noqa: A002 - the name that users of every reader know
) -> DataFrame:
    """Read the events of a store as a DataFrame, without those that the query cannot use.

    The frame is of the files that the store has now; what is appended later is not in it. It has the columns
    of events, the attributes that the query needs (all, without a query), and `day` and `cell`. Which files
    are read shows in `explain()` under PartitionFilters and PushedFilters.

    Parameters
    ----------
    since, until
        Events with since <= end < until; for a query that follows something, also those before that are the
        history of its first interests.
    format
        "parquet" for a store; "delta" for a Delta table that `write_store` made.
    """
    _check_format(format)
    if format == "delta":
        return _read_delta(spark, fspath(root), query, since, until)
    store = Store.open(Path(fspath(root)).absolute())
    selection = store.selection(query, since=since, until=until)
    schema = _spark_schema(selection.schema)
    if not selection.files:
        return spark.createDataFrame([], schema)
    paths = [str(store.root / file.path) for file in selection.files]
    frame = spark.read.schema(schema).option("basePath", str(store.root)).parquet(*paths)
    return frame.filter(_partitions(selection)).filter(_rows(selection.bounds, store.coordinates))


def _spark_schema(arrow: pa.Schema) -> T.StructType:
    return from_arrow_schema(pa.schema([*arrow, ("day", pa.date32()), ("cell", pa.string())]))


def _partitions(selection: ScanSelection) -> Column:
    """Build the test of the folders: the days, and the cells where the query names a place."""
    days = sorted({file.day for file in selection.files})
    test = fn.col("day").between(fn.lit(days[0]).cast("date"), fn.lit(days[-1]).cast("date"))
    cells = sorted({file.cell for file in selection.files})
    is_placed = all(bounds.box != EVERYWHERE for bounds in selection.bounds)
    return test & fn.col("cell").isin(cells) if is_placed and len(cells) <= MOST_CELLS else test


def _rows(alternatives: tuple[Bounds, ...], coordinates: Coordinates | None) -> Column:
    """Build the test of single events; polygons pass wherever they lie, their centre is not in the file."""
    return reduce(lambda one, other: one | other, [_row(bounds, coordinates) for bounds in alternatives])


def _row(bounds: Bounds, coordinates: Coordinates | None) -> Column:
    tests = [] if bounds.types is None else [fn.col("type").isin(sorted(bounds.types))]
    for name, (low, high) in (("end", bounds.end), ("start", bounds.start)):
        tests += [fn.col(name) >= _moment(low)] if low > BEGINNING_OF_TIME else []
        tests += [fn.col(name) <= _moment(high)] if high < END_OF_TIME else []
    if bounds.box != EVERYWHERE:
        x, y = location_names(coordinates)
        limits = ((x, bounds.box[0], bounds.box[2]), (y, bounds.box[1], bounds.box[3]))
        inside = [fn.col(axis) >= low for axis, low, _ in limits if low > -math.inf]
        inside += [fn.col(axis) <= high for axis, _, high in limits if high < math.inf]
        tests.append(_all(inside) | fn.col("geometry").isNotNull())
    return _all(tests)


def _all(tests: list[Column]) -> Column:
    return reduce(lambda one, other: one & other, tests) if tests else fn.lit(True)


def _moment(microseconds: int) -> Column:
    return fn.timestamp_micros(fn.lit(microseconds))


# -- writing -----------------------------------------------------------------------------------------------


@plain_errors()
def write_store(
    frame: DataFrame,
    root: str | PathLike[str],
    *,
    batch: str | int | None = None,
    rejected: str | PathLike[str] | None = None,
    format: str = "parquet",  # noqa: A002
    **settings: Unpack[ReadSettings],
) -> Appended:
    """Add the rows of a batch DataFrame to a store: all of them or, if anything goes wrong, none.

    Every task of the frame writes files of its own for the days and cells of its rows, so a frame of few
    partitions makes few files; `Store.compact` joins them later. Rows without an `id` get the ones that
    detection would make; they are partitioned anew for that, so that equal ones can be numbered.

    Parameters
    ----------
    batch
        A name for these events. A batch of the same name takes the place of the one before.
    rejected
        A file for rows that are no events, each with its reason (JSON lines); made only if there are any.
    format
        "parquet" for a store, which `Store.create` has made; "delta" for a Delta table.
    columns, time_unit, time_format, day_first, time_zone, default_type
        How rows are read, as for `whimbrel.run`.
    """
    if frame.isStreaming:
        raise DataError("the frame is a stream; write it with foreachBatch(batch_writer(root))")
    frame, reading, noticed = named(frame, **settings)
    if format == "delta" and "id" not in frame.columns:
        raise DataError(
            "the frame has no column 'id', and equal rows cannot be numbered on from those of a Delta table; "
            "add one"
        )
    _check_format(format)
    if "id" not in frame.columns:
        frame = frame.repartition(*(fn.col(quoted(name)) for name in columns_of_equals(frame)))
    if format == "delta":
        with RejectedWriter(rejected) as refused:
            return _write_delta(frame, fspath(root), batch, WriteInput(None, reading), refused)
    store = Store.open(Path(fspath(root)).absolute())
    how = WriteInput(store.coordinates, reading)
    with RejectedWriter(rejected) as refused:

        def stage(writer: Writer) -> Staged:
            # Earlier files serve to number equal events that bring no ids.
            task = _Task(replace(writer, before=()) if "id" in frame.columns else writer, how)
            reports = frame.mapInArrow(task, _REPORT).collect()
            for report in reports:
                if report["rejected"]:
                    write_placed(refused, _rejected(report["rejected"]))
            staged = Staged.together([_staged(row["staged"]) for row in reports if row["staged"]])
            writer.made = list(staged.files)  # so that they are discarded if the commit fails
            return staged

        appended = store.append_staged(stage, batch=batch)
    return replace(appended, rejected=refused.total, reasons=Counter(refused.counts), notes=noticed.lines())


def batch_writer(
    root: str | PathLike[str], name: str = "stream", **settings: Any
) -> Callable[[DataFrame, int], None]:
    """Make the function that a stream needs to write its micro-batches to a store.

    A micro-batch that Spark repeats after a failure takes the place of its first try. Every stream that
    writes to the store needs a `name` of its own. The settings are those of `write_store`.

    >>> from pyspark.sql import DataFrame
    >>> def start(positions: DataFrame) -> None:
    ...     positions.writeStream.foreachBatch(batch_writer("events", "positions")).start()
    """
    path = fspath(root)

    def append_batch(frame: DataFrame, batch_id: int) -> None:
        write_store(frame, path, batch=f"{name}-{batch_id}", **settings)

    return append_batch


class _Task:
    """Writes the rows of one task to staged files, and reports them as rows of JSON."""

    def __init__(self, writer: Writer, how: WriteInput) -> None:
        self.writer = writer
        self.how = how

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A task may run twice, one after the other or both at once: each try has files of its own.
        writer = replace(self.writer, name=f"{self.writer.name}-{uuid4().hex[:12]}", made=[], attributes={})
        for batch in rows:
            normalised = normalise_lines(self.how.normalise, batch)
            if normalised.rejected.num_rows:
                yield _report(rejected=json.dumps(normalised.rejected.to_pylist()))
            writer.add(normalised)
        writer.flush()
        yield _report(staged=json.dumps(asdict(writer.staged)))


def _report(staged: str | None = None, rejected: str | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"staged": pa.array([staged], pa.string()), "rejected": pa.array([rejected], pa.string())}
    )


def _rejected(text: str) -> pa.Table:
    return pa.Table.from_pylist(json.loads(text), schema=PLACED_SCHEMA)


def _staged(text: str) -> Staged:
    fields = json.loads(text)
    said = fields["coordinates"]
    return Staged(
        tuple(StoredFile.from_json(file) for file in fields["files"]),
        fields["rows"],
        fields["check"],
        fields["attributes"],
        None if said is None else Coordinates(said),
    )


# -- Delta -------------------------------------------------------------------------------------------------


def _check_format(format: str) -> None:  # noqa: A002
    if format not in FORMATS:
        raise DataError(f"format {format!r} is not known; use one of: {', '.join(FORMATS)}")
    if format == "delta" and find_spec("delta") is None:
        raise WhimbrelError(
            "Delta tables need the package 'delta-spark', which is not part of Whimbrel; install it with: "
            "pip install delta-spark, or leave format out to use the store's own Parquet files"
        )


def _write_delta(
    frame: DataFrame, root: str, batch: str | int | None, how: WriteInput, refused: RejectedWriter
) -> Appended:
    normalised = normalised_frame(frame, how)
    # The frame is computed twice, because a sink of Spark takes rows of one kind only.
    (counted,) = normalised.agg(
        fn.count("id").alias("events"), fn.collect_list("rejected").alias("rejected")
    ).collect()
    for text in counted["rejected"]:
        write_placed(refused, _rejected(text))
    events = normalised.filter(fn.col("rejected").isNull()).drop("rejected")
    writer = events.write.format("delta").mode("append").option("mergeSchema", "true").partitionBy("day")
    name, _, number = str(batch).rpartition("-")
    if number.isdigit():
        # Delta passes over a transaction that it has seen before.
        writer = writer.option("txnAppId", name or "whimbrel").option("txnVersion", number)
    writer.save(root)
    return Appended("" if batch is None else str(batch), counted["events"], refused.total, 0, refused.counts)


def _read_delta(
    spark: SparkSession, root: str, query: Query | None, since: Moment | None, until: Moment | None
) -> DataFrame:
    frame = spark.read.format("delta").load(root)
    asked = asked_for(since if query is None else None, until)
    first = BEGINNING_OF_TIME if since is None else instant(since)
    wanted = (ANYTHING,) if query is None else bounds_from(query, frame.columns, first)
    bounds = simplified(asked.both(each) for each in wanted)
    return (
        frame.filter(_days(reduce(Bounds.either, bounds))).filter(_rows(bounds, _place_of(frame.columns)))
        if bounds
        else frame.limit(0)
    )


def _days(asked: Bounds) -> Column:
    """Build the test of the day that a stretch of time stands for."""
    first, last = asked.end
    tests = []
    if first > BEGINNING_OF_TIME:
        tests.append(fn.col("day") >= fn.lit(day_name(first // DAY)).cast("date"))
    if last < END_OF_TIME:
        tests.append(fn.col("day") <= fn.lit(day_name(last // DAY)).cast("date"))
    return _all(tests)


def _place_of(names: list[str]) -> Coordinates:
    return Coordinates.LONLAT if "lon" in names else Coordinates.PLANE


def normalised_frame(frame: DataFrame, how: WriteInput) -> DataFrame:
    """Bring the rows of a frame into the form that files have, with the `day` that each event ended on.

    A row that is no event has nulls in all columns but `rejected`: what it held and why, as JSON.
    """
    schema = frame.drop(LINE).limit(0).toArrow().schema
    task = _Normalising(how)
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in schema.types], schema=schema)
    example = next(iter(task([empty])))
    return frame.mapInArrow(task, from_arrow_schema(example.schema))


class _Normalising:
    """Brings the rows of one task into the common form."""

    def __init__(self, how: WriteInput) -> None:
        self.how = how

    def __call__(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            normalised = normalise_lines(self.how.normalise, batch)
            events = storable(normalised)
            day = events.column("end").cast(pa.timestamp("us")).cast(pa.date32(), safe=False)
            events = events.append_column("day", day)
            events = events.append_column("rejected", pa.nulls(events.num_rows, pa.string()))
            yield events
            if normalised.rejected.num_rows:
                text = json.dumps(normalised.rejected.to_pylist())
                columns = [pa.nulls(1, column.type) for column in list(events.schema)[:-1]]
                yield pa.RecordBatch.from_arrays([*columns, pa.array([text])], schema=events.schema)
