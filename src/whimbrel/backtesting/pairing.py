"""Match the detections of two running queries as they come, and say what is settled.

A detection waits for its partner until the other query can no longer make one: until time has passed its end
by the longer reach of the two queries, when neither remembers any of its events. Then what has no partner is
added or dropped. So what is settled never changes, and all of it together is what `compare` finds in the end.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.backtesting.compare import (
    CHANGE,
    SAME,
    Pairs,
    Rows,
    comparison_table,
    finding_names,
    matched,
    pairs_by_events,
)
from whimbrel.engine.report import together
from whimbrel.engine.snapshot import Blocks
from whimbrel.io.frames import coordinates_of
from whimbrel.model.columns import decoded

_NONE = np.zeros(0, np.int64)


class Pairing:
    """Detections of two queries that wait for their partners.

    Parameters
    ----------
    reach
        The longer reach of the two queries, in microseconds.
    since
        Detections that start at this time or before are not compared: one of the queries had not begun.
    """

    def __init__(self, reach: int, since: int) -> None:
        self.reach = reach
        self.since = since
        self.skipped = 0
        """How many were not compared."""
        self._old = together([], None)
        self._new = together([], None)

    @property
    def waiting(self) -> int:
        """How many detections of either query wait for their partner."""
        return int(self._old.num_rows + self._new.num_rows)

    def step(self, old: pa.Table, new: pa.Table, watermark: int) -> pa.Table:
        """Take in detections and the time that both queries have reached; give what is settled by them.

        The table is that of `compare`.
        """
        old, new = (_both(kept, self._compared(more)) for kept, more in ((self._old, old), (self._new, new)))
        by_id = matched(_column(old, "id"), _column(new, "id"))
        settled = (
            [comparison_table(old, new, Pairs(by_id.old, by_id.new, _NONE, _NONE))] if len(by_id.old) else []
        )
        old, new = old.take(pa.array(by_id.dropped)), new.take(pa.array(by_id.added))
        ours, theirs = self._over(old, new, watermark)
        if ours.any() or theirs.any():
            settled.append(_compared_alone(old.filter(pa.array(ours)), new.filter(pa.array(theirs))))
        self._old, self._new = old.filter(pa.array(~ours)), new.filter(pa.array(~theirs))
        return joined(settled)

    def _compared(self, table: pa.Table) -> pa.Table:
        """Leave out what began too early to be compared."""
        if not table.num_rows:
            return table
        kept = table.filter(pa.array(_times(table, "start") > self.since))
        self.skipped += table.num_rows - kept.num_rows
        return kept

    def _over(self, old: pa.Table, new: pa.Table, watermark: int) -> tuple[np.ndarray, np.ndarray]:
        """Tell which detections wait in vain: all with the events of one whose time is over."""
        names = pa.concat_arrays([finding_names(old), finding_names(new)])
        ends = np.concatenate([_times(old, "end"), _times(new, "end")])
        over = names.filter(pa.array(ends < watermark - self.reach))
        is_over = pc.is_in(names, over).to_numpy(zero_copy_only=False)
        return is_over[: old.num_rows], is_over[old.num_rows :]

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        blocks.put_json(name, {"since": self.since, "skipped": self.skipped})
        save_table(blocks, f"{name}/old", self._old)
        save_table(blocks, f"{name}/new", self._new)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        self.since, self.skipped = about["since"], about["skipped"]
        self._old, self._new = (load_table(blocks, f"{name}/{side}") for side in ("old", "new"))


def _compared_alone(old: pa.Table, new: pa.Table) -> pa.Table:
    """Compare what has no partner of the same id; detections with the same events go together in order."""
    old, new = (table.take(pc.sort_indices(table, _ORDER)) for table in (old, new))
    return comparison_table(old, new, pairs_by_events(old, new))


_ORDER = [("end", "ascending"), ("start", "ascending"), ("id", "ascending")]


def _both(kept: pa.Table, more: pa.Table) -> pa.Table:
    """Join what waits and what is new; nearly always one of them is empty."""
    if not more.num_rows:
        return kept
    return together([kept, more], None) if kept.num_rows else more


def joined(tables: list[pa.Table]) -> pa.Table:
    """Join tables of comparisons."""
    filled = [table for table in tables if table.num_rows]
    if not filled:
        nothing = together([], None)
        return comparison_table(nothing, nothing, Pairs(_NONE, _NONE, _NONE, _NONE))
    return filled[0] if len(filled) == 1 else together(filled, coordinates_of(filled[0]))


def differing(table: pa.Table) -> pa.Table:
    """Leave out what is the same."""
    return table.filter(pc.not_equal(table.column(CHANGE), SAME))


def _column(table: pa.Table, name: str) -> pa.Array:
    return decoded(table.column(name).combine_chunks())


def _times(table: pa.Table, name: str) -> Rows:
    numbers: Rows = table.column(name).cast(pa.int64()).to_numpy()
    return numbers


# -- tables in snapshots ----------------------------------------------------------------------------------


def save_table(blocks: Blocks, name: str, table: pa.Table) -> None:
    """Write a table."""
    blocks.put_batches(name, table.combine_chunks().to_batches() or [_empty(table)])


def load_table(blocks: Blocks, name: str) -> pa.Table:
    """Read what `save_table` wrote."""
    return pa.Table.from_batches(blocks.batches(name))


def _empty(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, kind) for kind in table.schema.types], schema=table.schema)
