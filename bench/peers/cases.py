"""What is measured: the events, made from fixed seeds, and the patterns."""

from __future__ import annotations

import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whimbrel import Query
from whimbrel import compile as compile_query

OBJECTS = 5_000
LATENESS = 1_000
"""Milliseconds; every object's events arrive with a delay of its own, shorter than this."""

TYPES = (*"ABC", *(f"T{n}" for n in range(17)))
BEGIN = 1_700_000_000_000
"""Milliseconds: when the first event may be."""

PART = 1_250_000
"""Events in a file of those that a stream on Spark takes one by one."""


@dataclass(frozen=True)
class Stream:
    """How often the objects report, and what."""

    name: str
    every: int
    """Milliseconds between two events of an object, on average."""
    shares: tuple[float, ...]
    """How often each of TYPES is; those left out do not occur."""
    seed: int
    watermarks: int
    """Milliseconds between Flink's watermarks: the best for it of 50, 200 (its default) and 1,000."""
    has_ids: bool = False
    """Whether Whimbrel is given an id with each event, which is its row."""


@dataclass(frozen=True)
class Case:
    """One pattern over one stream, said to Whimbrel and to Flink."""

    name: str
    title: str
    stream: Stream
    pattern: str
    """The name that the Java program knows it by."""
    window: int
    """Milliseconds, the last one included."""

    @property
    def parts(self) -> int:
        """How many events a match has."""
        return 3 if self.pattern == "sequence" else 1

    @property
    def query(self) -> str:
        """The pattern in Whimbrel's language; the times of the events tell which they were."""
        if self.pattern == "sequence":
            return (
                f"define S detect A as a then B as b then C as c within {self.window} ms "
                "where b.value > a.value "
                "assign source = group.source, t0 = a.end, t1 = b.end, t2 = c.end group by source"
            )
        return (
            f"define S detect A as a then not B for {self.window} ms "
            "assign source = group.source, t0 = a.end group by source"
        )

    def compiled(self) -> Query:
        """Give the query that Whimbrel runs."""
        return compile_query(self.query)

    def kept(self, names: list[str]) -> list[str]:
        """Choose the columns of the detections that say which events a match has."""
        return [name for name in names if name == "source" or (name[:1] == "t" and name[1:].isdigit())]

    def number_of(self, events: int) -> int:
        """Give how many events are taken where so many are asked for."""
        return events

    def asked_of_flink(self, folder: Path) -> str:
        """Give the first words of the Java program's line; it has the pattern."""
        del folder
        return f"{self.pattern} {self.window}"


SPARSE = Stream("sparse", 1_000, (0.01, 0.02, 0.02, *[0.95 / 17] * 17), 11, 200)
DENSE = Stream("dense", 120_000, (1 / 3, 1 / 3, 1 / 3), 12, 50)
CASES = (
    Case("sequence", "A then B then C within 100 s", SPARSE, "sequence", 100_000),
    Case("dense", "the same, every event an A, B or C", DENSE, "sequence", 100_000),
    Case("absence", "A then not B for 1 min", SPARSE, "absence", 60_000),
)


@dataclass(frozen=True)
class Files:
    """One stream on disk: the same events in the same order in every form."""

    parquet: Path
    parts: Path
    """A folder with the same rows, cut into several files."""
    first: Path
    """A folder with the first of those files."""
    binary: Path
    """What the Java program reads: the number of rows, then type, object, time and value, little-endian."""


def files(stream: Stream, number: int, folder: Path) -> Files:
    """Make the files of a stream, unless they are there."""
    version = zlib.crc32(Path(__file__).read_bytes())
    base = folder / f"{stream.name}-{number}-{version:08x}"
    made = Files(base / "events.parquet", base / "parts", base / "first", base / "events.bin")
    if not (base / "complete").exists():
        shutil.rmtree(base, ignore_errors=True)
        made.parts.mkdir(parents=True)
        made.first.mkdir()
        _write(stream, number, made)
        (base / "complete").touch()
    return made


def _write(stream: Stream, number: int, made: Files) -> None:
    kinds, objects, times, values = make(stream, number)
    with made.binary.open("wb") as file:
        file.write(np.int32(number).tobytes())
        for column in (kinds, objects, times, values):
            column.tofile(file)
    ids = {"id": pa.array(np.arange(number)).cast(pa.string())} if stream.has_ids else {}
    table = pa.table(
        {
            **ids,
            "type": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(TYPES)),
            "source": pa.DictionaryArray.from_arrays(
                pa.array(objects), pa.array([source_name(n) for n in range(OBJECTS)])
            ),
            "time": pa.array(times).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
            "value": pa.array(values),
        }
    )
    pq.write_table(table, made.parquet)
    size = min(PART, -(-number // 2))
    for n, begin in enumerate(range(0, number, size)):
        pq.write_table(table.slice(begin, size), made.parts / f"{n:03}.parquet")
    pq.write_table(table.slice(0, size), made.first / "000.parquet")


def make(stream: Stream, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Give type, object, time (milliseconds) and value of events in order of arrival.

    No two events of an object have the same time. Each object's events are in order; between objects
    they are out of order by less than LATENESS.
    """
    rng = np.random.default_rng(stream.seed)
    objects = rng.integers(0, OBJECTS, number).astype(np.int32)
    times = np.sort(rng.integers(0, int(number / OBJECTS * stream.every), number)) + BEGIN
    by_object = np.argsort(objects, kind="stable")
    times[by_object] = _made_distinct(objects[by_object], times[by_object])
    delays = rng.integers(0, LATENESS, OBJECTS)
    order = np.argsort(times + delays[objects], kind="stable")
    kinds = rng.choice(len(stream.shares), number, p=stream.shares).astype(np.int8)
    return kinds[order], objects[order], times[order], (rng.random(number) * 40)[order]


def _made_distinct(objects: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Move times of the same object apart where needed; both come sorted by object, then time."""
    count = np.arange(len(times))
    apart = objects.astype(np.int64) * (times.max(initial=0) + len(times))
    return np.maximum.accumulate(times - count + apart) - apart + count


def source_name(number: int) -> str:
    """Give the name of an object."""
    return f"veh-{number}"
