"""Replay event files as a stream, at the speed of the events' own time or faster.

Registered as `whimbrel-replay`. Micro-batches are cut at fixed rows of the recording: never where the clock
happened to stand, so that every run of a replay has the same micro-batches, restarted or not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Unpack, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from whimbrel.errors import DataError, did_you_mean
from whimbrel.model.reading import Reading, ReadSettings, carried
from whimbrel.model.schema import EventSchema
from whimbrel.spark.sources._replay_cache import BATCH_ROWS, Instants, ReplayCache, ReplayFiles, open_cache
from whimbrel.spark.sources._spec import Spec

NAME = "whimbrel-replay"
OPTIONS = (
    "path", "format", "order", "speed", "rows_per_batch", "tick", "cache",
    "time_unit", "time_format", "day_first", "time_zone", "columns", "said",
)  # fmt: skip
"""`columns` and `said` are JSON objects."""
ROWS_PER_BATCH = 100_000


def read_replay(
    spark: SparkSession,
    path: str,
    *,
    speed: float = 0,
    rows_per_batch: int = ROWS_PER_BATCH,
    order: str = "time",
    tick: float = 1,
    format: str | None = None,  # noqa: A002 - the name that users of every reader know
    cache: str | None = None,
    schemas: Mapping[str, EventSchema] | None = None,
    **how: Unpack[ReadSettings],
) -> DataFrame:
    """Replay event files as a stream; after the last event the stream is silent.

    Parameters
    ----------
    path
        A file, a folder or a pattern, in any format that Whimbrel reads; every worker must find it there.
    speed
        How many times as fast as the events' own time; 0 for as fast as possible.
    rows_per_batch
        The largest number of rows in a micro-batch.
    order
        "time" for event time, "file" for the order of the rows, or the name of a column with times.
    tick
        How many seconds of the replay one micro-batch covers, if there is a speed.
    format
        The format, if the endings of the files do not tell it.
    cache
        The folder for the recording in order of replay; by default among the machine's temporary files.
    schemas
        The event types that a query declares (`query.schemas`), if they say in which column the time is.
    columns, time_unit, time_format, day_first, time_zone
        Which column is the time and how times are written, as for `detect`: say the same to both. Here it
        decides about the order only; times that do not say their zone are given out as they are.

    Raises
    ------
    DataError
        If there is no such file or column, or an option is wrong.
    """
    given = {"path": path, "speed": speed, "rows_per_batch": rows_per_batch, "order": order, "tick": tick}
    given |= {"format": format, "cache": cache} | _told(how)
    given |= {"said": json.dumps(carried(schemas.values()))} if schemas else {}
    options = {name: str(value) for name, value in given.items() if value is not None}
    settings = ReplayOptions.of(options)
    if not is_remote():
        # Opened here too, because an error of a data source comes wrapped in one of Spark's.
        open_cache(settings.recording)
    spark.dataSource.register(ReplaySource)
    return spark.readStream.format(NAME).options(**options).load()


def _told(how: ReadSettings) -> dict[str, str | None]:
    """Write the settings that tell about times as options."""
    Reading.of(**how)  # refuses what makes no sense
    names = ("time_unit", "time_format", "time_zone")
    texts: dict[str, str | None] = {name: cast("str | None", how.get(name)) for name in names}
    texts["columns"] = json.dumps(dict(columns)) if (columns := how.get("columns")) else None
    texts["day_first"] = None if how.get("day_first") is None else str(how["day_first"]).lower()
    return texts


@dataclass(frozen=True)
class ReplayOptions:
    """The options of a replay, checked."""

    recording: ReplayFiles
    speed: float = 0
    rows_per_batch: int = ROWS_PER_BATCH
    tick: float = 1

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReplayOptions:
        """Read options as Spark gives them: text, with names in any case."""
        given = {name.lower(): text for name, text in options.items()}
        for name in given:
            if name not in OPTIONS:
                raise DataError(f"replay has no option {name!r}; {did_you_mean(name, OPTIONS)}")
        if not given.get("path"):
            raise DataError("replay needs the option 'path': a file, a folder or a pattern")
        recording = ReplayFiles(
            given["path"],
            given.get("format"),
            given.get("order", "time"),
            given.get("cache"),
            _reading(given),
            Reading.of(columns=_mapping("said", given)).columns,
        )
        spec = Spec("replay", "replay", "", given)
        as_fast_as_possible = given.get("speed", "").lower() == "max"
        return cls(
            recording,
            0.0 if as_fast_as_possible else spec.number("speed", 0, also=" or 'max'"),
            spec.whole("rows_per_batch", ROWS_PER_BATCH),
            spec.number("tick", 1, least=1e-3),
        )


def _reading(given: Mapping[str, str]) -> Reading:
    """Read the options that tell about times."""
    day_first = given.get("day_first")
    if day_first not in (None, "true", "false"):
        raise DataError(f"replay: day_first must be true or false, not {day_first!r}")
    return Reading.of(
        columns=_mapping("columns", given),
        time_unit=given.get("time_unit"),
        time_format=given.get("time_format"),
        day_first=None if day_first is None else day_first == "true",
        time_zone=given.get("time_zone"),
    )


def _mapping(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    try:
        return dict(json.loads(given.get(name) or "{}"))
    except (ValueError, TypeError) as error:
        raise DataError(f'replay: {name} must be a JSON object such as {{"time": "seen"}}') from error


class ReplaySource(DataSource):
    """The data source `whimbrel-replay`; its options are the arguments of `read_replay`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        return from_arrow_schema(open_cache(ReplayOptions.of(self.options).recording).schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return ReplayReader(ReplayOptions.of(self.options), schema.fieldNames())


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read a recording; an offset is a row number, with the name of the recording that it counts in."""

    def __init__(
        self, settings: ReplayOptions, columns: Sequence[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        # Spark also makes readers that it only sends to workers, so nothing is opened here.
        self._settings = settings
        self._columns = list(columns)
        self._clock = clock
        self._cache: ReplayCache | None = None
        self._name = ""
        self._paced = settings.speed > 0
        self._began: tuple[float, int] | None = None

    def initialOffset(self) -> dict[str, int | str]:  # noqa: N802 - Spark's name
        return self._offset(0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._settings.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        # All of a recording is available now: the replay does not wait, and its cuts stay the same.
        self._paced = False

    def latestOffset(self, start: dict[str, int | str], limit: ReadLimit) -> dict[str, int | str]:  # noqa: N802
        cache, row = self._opened(), self._row(start)
        cuts = self._cuts(cache)
        end = cache.rows if isinstance(limit, ReadAllAvailable) else cuts.after(row)
        if self._paced and row < cache.rows:
            end = min(end, self._due_until(cache.due, row, cuts))
        return self._offset(end)

    def reportLatestOffset(self) -> dict[str, int | str]:  # noqa: N802 - Spark's name
        return self._offset(self._opened().rows)

    def partitions(self, start: dict[str, int | str], end: dict[str, int | str]) -> Sequence[InputPartition]:
        first, last = self._row(start), self._row(end)
        # Cut where the cache's batches are, so that no worker reads one for the sake of a few rows.
        cuts = [first, *range(first // BATCH_ROWS * BATCH_ROWS + BATCH_ROWS, last, BATCH_ROWS), last]
        return [InputPartition(pair) for pair in pairwise(cuts) if pair[0] < pair[1]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        first, last = partition.value
        for batch in open_cache(self._settings.recording).batches(first, last):
            yield batch.select(self._columns)

    def _opened(self) -> ReplayCache:
        if self._cache is None:
            self._cache = open_cache(self._settings.recording)
            self._name = self._settings.recording.name()
        return self._cache

    def _cuts(self, cache: ReplayCache) -> Cuts:
        speed = self._settings.speed
        step = max(1, int(self._settings.tick * speed * 1e6)) if speed else None
        return Cuts(cache.due, self._settings.rows_per_batch, step)

    def _offset(self, row: int) -> dict[str, int | str]:
        return {"row": row, "of": self._opened().rows, "recording": self._name}

    def _row(self, offset: dict[str, int | str]) -> int:
        """Return the row of an offset, which may come from a checkpoint of long ago."""
        rows = self._opened().rows
        if (offset["recording"], offset["of"]) != (self._name, rows):
            raise DataError(
                f"{self._settings.recording.path}: the checkpoint was made with another recording (it had "
                f"{offset['of']} rows, this one has {rows}): its files, or the order, the format or how "
                "times are read have changed; bring them back, or start with a new checkpoint"
            )
        return int(offset["row"])

    def _due_until(self, due: Instants, row: int, cuts: Cuts) -> int:
        """Return the end of the last micro-batch whose events are all due by now."""
        now = self._clock()
        if self._began is None:
            self._began = now, int(due[row])
        started, from_instant = self._began
        reached = from_instant + int((now - started) * self._settings.speed * 1e6)
        return cuts.before(int(np.searchsorted(due, reached, side="right")), row)


@dataclass(frozen=True)
class Cuts:
    """Where a recording is cut into micro-batches.

    A cut is made after every `rows` rows and, if there is a `step`, wherever another `step` microseconds of
    the recording's time begin; rows are counted anew from there.
    """

    due: Instants
    rows: int
    step: int | None

    def after(self, row: int) -> int:
        """Return the first cut behind `row`."""
        begin, end = self._cell(row)
        return min(begin + ((row - begin) // self.rows + 1) * self.rows, end)

    def before(self, row: int, least: int) -> int:
        """Return the last cut that is not behind `row`, or `least` if there is none behind it."""
        if row >= len(self.due):
            return len(self.due)
        begin, _ = self._cell(row)
        return max(least, begin + (row - begin) // self.rows * self.rows)

    def _cell(self, row: int) -> tuple[int, int]:
        if self.step is None or row >= len(self.due):
            return 0, len(self.due)
        number = (int(self.due[row]) - int(self.due[0])) // self.step
        edges = int(self.due[0]) + self.step * np.array([number, number + 1])
        begin, end = np.searchsorted(self.due, edges, side="left").tolist()
        return begin, end
