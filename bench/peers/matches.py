"""Read what each system found, and compare it event by event."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cases import BEGIN, LATENESS, Case, make, source_name
from steps import StepsCase

FAR = 1 << 40
"""More milliseconds than any stream lasts."""
FILL = -1
"""Stands behind the last number of a match that is shorter than others."""


class Differ(Exception):
    """Two systems found different matches."""


@dataclass(frozen=True)
class Reader:
    """Turns the matches of one case, from any system, into rows of the input: one line a match, sorted."""

    case: Case
    objects: np.ndarray
    times: np.ndarray

    @classmethod
    def of(cls, case: Case, number: int) -> Reader:
        """Make one for a stream of so many events."""
        _, objects, times, _ = make(case.stream, number)
        return cls(case, objects, times)

    def flink(self, path: Path) -> np.ndarray:
        """Read the row numbers that the Java program wrote."""
        return in_order(np.fromfile(path, ">i4").astype(np.int64).reshape(-1, self.case.parts))

    def whimbrel(self, path: Path) -> np.ndarray:
        """Find the rows of a match by the object and the times of its events."""
        table = pq.read_table(path)
        numbers = pc.cast(
            pc.utf8_slice_codeunits(table["source"].cast("string"), len(source_name(0)) - 1), "int64"
        )
        keys = self.objects.astype(np.int64) * FAR + self.times - BEGIN
        sorter = np.argsort(keys)
        columns = []
        for part in range(self.case.parts):
            times = table[f"t{part}"].cast(pa.timestamp("us", "UTC")).cast("int64").to_numpy() // 1_000
            wanted = numbers.to_numpy() * FAR + times - BEGIN
            rows = sorter[np.searchsorted(keys, wanted, sorter=sorter).clip(max=len(keys) - 1)]
            if not np.array_equal(keys[rows], wanted):
                raise Differ(f"{self.case.name}: Whimbrel found an event that is not in the input")
            columns.append(rows)
        return in_order(np.stack(columns, axis=1))

    def known_at_end(self, matches: np.ndarray) -> np.ndarray:
        """Keep what is known once all events have come, though time goes no further than they say."""
        known = self.times[matches[:, -1]]
        if self.case.pattern == "absence":
            known = known + self.case.window
        return matches[known < self.times.max() - LATENESS]


@dataclass(frozen=True)
class StepsReader:
    """Turns the matches of a pattern of steps into lines of equal length, each match once, sorted.

    A line says for each step how many events it took, and which rows of the input these are; then comes FILL.
    Flink tells some matches more than once, where several ways through the pattern take the same events.
    """

    case: StepsCase

    def flink(self, path: Path) -> np.ndarray:
        """Read what the Java program wrote: before each match how many numbers it has."""
        numbers = np.fromfile(path, ">i4").astype(np.int64)
        listed, begins, at = numbers.tolist(), [], 0
        while at < len(listed):
            begins.append(at + 1)
            at += 1 + listed[at]
        starts = np.array(begins, np.int64)
        return each_once(numbers, starts, numbers[starts - 1])

    def whimbrel(self, path: Path) -> np.ndarray:
        """Read the lists of ids that the steps took; an id is a row."""
        table = pq.read_table(path)
        columns = [table[name].combine_chunks() for name in self.case.steps]
        sizes = np.stack([_sizes(column) for column in columns], axis=1)
        lengths = sizes.sum(axis=1) + len(columns)
        starts = np.cumsum(lengths) - lengths
        numbers = np.empty(int(lengths.sum()), np.int64)
        at = starts.copy()
        for column, size in zip(columns, sizes.T, strict=True):
            numbers[at] = size
            numbers[_places(at + 1, size)] = pc.cast(column.flatten(), "int64").to_numpy()
            at += size + 1
        return each_once(numbers, starts, lengths)


def _sizes(column: pa.Array) -> np.ndarray:
    return pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype(np.int64)


def _places(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Count up from each start, as far as its size says."""
    begins = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum())) + np.repeat(starts - begins, sizes)


def each_once(numbers: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Cut numbers into lines, fill these up to the same length and keep each once."""
    lines = np.full((len(starts), int(lengths.max(initial=1))), FILL, np.int64)
    rows = np.repeat(np.arange(len(starts)), lengths)
    lines[rows, _places(np.zeros_like(starts), lengths)] = numbers[_places(starts, lengths)]
    return np.unique(lines, axis=0)


def reader_of(case: Case | StepsCase, number: int) -> Reader | StepsReader:
    """Give what reads the matches of a case over so many events."""
    return StepsReader(case) if isinstance(case, StepsCase) else Reader.of(case, number)


def in_order(matches: np.ndarray) -> np.ndarray:
    """Sort matches by their first event, then the second..."""
    return matches[np.lexsort(matches.T[::-1])]


def _filled_up(matches: np.ndarray, width: int) -> np.ndarray:
    return np.pad(matches, ((0, 0), (0, width - matches.shape[1])), constant_values=FILL)


def check_same(name: str, found: np.ndarray, other: str, expected: np.ndarray) -> None:
    """Raise unless both are the same matches, each as often, and say how they differ."""
    width = max(found.shape[1], expected.shape[1])
    found, expected = (_filled_up(matches, width) for matches in (found, expected))
    if np.array_equal(found, expected):
        return
    ours, theirs = (list(map(tuple, matches.tolist())) for matches in (found, expected))
    lines = [f"{name} found {len(ours):,} matches, {other} {len(theirs):,}; as rows of the input:"]
    for who, only in ((name, set(ours) - set(theirs)), (other, set(theirs) - set(ours))):
        lines.append(f"  only {who}: {len(only):,}, e.g. {sorted(only)[:3]}")
    for who, all_of in ((name, ours), (other, theirs)):
        lines.append(f"  more than once in {who}: {len(all_of) - len(set(all_of)):,}")
    raise Differ("\n".join(lines))
