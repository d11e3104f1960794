"""Read what each system found, and compare it event by event."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cases import BEGIN, LATENESS, Case, make, source_name

FAR = 1 << 40
"""More milliseconds than any stream lasts."""


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


def in_order(matches: np.ndarray) -> np.ndarray:
    """Sort matches by their first event, then the second..."""
    return matches[np.lexsort(matches.T[::-1])]


def check_same(name: str, found: np.ndarray, other: str, expected: np.ndarray) -> None:
    """Raise unless both are the same matches, each as often, and say how they differ."""
    if np.array_equal(found, expected):
        return
    ours, theirs = (list(map(tuple, matches.tolist())) for matches in (found, expected))
    lines = [f"{name} found {len(ours):,} matches, {other} {len(theirs):,}; as rows of the input:"]
    for who, only in ((name, set(ours) - set(theirs)), (other, set(theirs) - set(ours))):
        lines.append(f"  only {who}: {len(only):,}, e.g. {sorted(only)[:3]}")
    for who, all_of in ((name, ours), (other, theirs)):
        lines.append(f"  more than once in {who}: {len(all_of) - len(set(all_of)):,}")
    raise Differ("\n".join(lines))
