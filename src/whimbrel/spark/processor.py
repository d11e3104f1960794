"""What runs on Spark's workers in a stream: the engine of one shard, its state kept by Spark."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from uuid import uuid4

import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
    ValueState,
)

from whimbrel import logs
from whimbrel.engine.report import together
from whimbrel.engine.session import Session
from whimbrel.engine.snapshot import Blocks
from whimbrel.errors import StateError
from whimbrel.graph.operators.base import Types
from whimbrel.graph.query import Query
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import format_duration, format_instant
from whimbrel.space.partitioning import Cells
from whimbrel.spark.checkpoints import other_shards
from whimbrel.spark.packing import blocks_to_batches, from_block, to_block
from whimbrel.spark.retelling import handed_on
from whimbrel.spark.rows import OutcomeRows, counts_since
from whimbrel.spark.types import DeliveryColumns
from whimbrel.spark.worker import PRIMARY, spare_modules

ANSWER = "block binary"
"""What a shard gives for a micro-batch: outcomes as Arrow blocks."""

_DATED = 2**57
"""Times farther from 1970 than this stand for the beginning and the end of time."""

LATE_BURST, LATE_SHARE = 10, 0.01
"""From how many late events on, and which share of a micro-batch, a warning is logged."""

LARGE = 1 << 16
"""Blocks of the state from this size on are kept apart."""

KEPT_ALIVE = 256
"""Sessions that a Python worker remembers between micro-batches; others are restored from their state."""


@dataclass(frozen=True)
class StreamJob:
    """A query over a stream: plain data that is sent to the workers."""

    query: Query | None
    attributes: Types
    lateness: int
    shards: int
    by_space: bool = False
    told: DeliveryColumns | None = None
    """What deliveries have besides detections, if the query follows objects."""
    cells: Cells | None = None
    """How places are parted, where each shard tells of the interests around its own."""
    hands_on: bool = False
    """Whether what is told is compared afterwards, object by object."""
    coordinates: Coordinates | None = None
    log_level: int = field(default_factory=logs.level)
    """From which level on the workers log."""
    key: str = field(default_factory=lambda: uuid4().hex)
    """Tells the sessions of this job from those of others in the same worker."""

    @property
    def rows(self) -> OutcomeRows:
        """How results are written."""
        return OutcomeRows(self.attributes, told=self.told)

    @property
    def reach(self) -> str:
        """How far the interests may reach that are parted by place, in metres; empty: none are."""
        return "" if self.cells is None else f"{self.cells.reach_m:g}"

    def session(self, shard: int) -> Session:
        """Open the session of a shard."""
        return Session(
            self.query,
            lateness=self.lateness,
            follows_events=False,
            owned=PRIMARY if self.by_space else None,
            places=None if self.cells is None else self.cells.of_shard(shard),
            coordinates=self.coordinates,
        )


_alive: OrderedDict[tuple[str, int], tuple[str, Session]] = OrderedDict()
"""Sessions as they were after the micro-batch whose mark goes with them."""

_dropped: dict[tuple[str, int], int] = {}
"""How many matches in the making the log has told of as given up."""
_LOG = logging.getLogger(__name__)


class ShardProcessor(StatefulProcessor):
    """Runs the session of each shard, and keeps its snapshot in Spark's state store.

    The state is a mark, new with every micro-batch, and the snapshot. A worker that still has the session
    with that very mark goes on with it; any other (after a failure, or on another machine) restores the
    snapshot. Large blocks of the snapshot are kept apart, named by what they hold: those that are the same
    as before, as chunks of history are for long, are not written again.
    """

    def __init__(self, job: StreamJob) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state."""
        logs.follow(self.job.log_level)
        self._mark = handle.getValueState("mark", "mark string, apart array<string>")
        self._snapshot = handle.getValueState("snapshot", "snapshot binary")
        self._apart = handle.getMapState("apart", "name string", "content binary")

    def handleInputRows(  # noqa: N802, Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: TimerValues,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """Take in what a micro-batch has for a shard."""
        shard = int(key[0])
        packed = pd.concat(list(rows), ignore_index=True)
        session = self._session(shard)
        answer = self._answer(shard, session, self._run(shard, session, packed))
        self._keep(shard, session)
        yield answer
        spare_modules()

    def _answer(self, shard: int, session: Session, outcomes: Iterator[pa.RecordBatch]) -> pd.DataFrame:
        """Pack what comes of a micro-batch."""
        if not self.job.hands_on:
            return pd.DataFrame({"block": [to_block(batch) for batch in outcomes]})
        batches = list(outcomes)
        return handed_on(batches, shard, self.job.shards, session.watermark)

    def close(self) -> None:
        """Nothing to let go of: the state is Spark's."""

    def _session(self, shard: int) -> Session:
        mark = self._mark.get()
        self._names = [] if mark is None else list(mark[1])
        if mark is not None:
            self._check(mark[0])
            known = _alive.get((self.job.key, shard))
            if known is not None and known[0] == mark[0]:
                return known[1]
            return self._restored(shard)
        return self.job.session(shard)

    def _check(self, mark: str) -> None:
        """Refuse state that was parted otherwise."""
        shards, _, reach = mark.partition(":")[0].partition("@")
        if int(shards) != self.job.shards:
            raise other_shards(int(shards), self.job.shards)
        if reach != self.job.reach:
            raise StateError(
                f"the checkpoint is of a stream whose interests reach {reach or 'no'} m; those of this one "
                f"reach {self.job.reach or 'no'} m: begin with a new checkpoint"
            )

    def _restored(self, shard: int) -> Session:
        """Open a session where its last snapshot left off."""
        session, snapshot = self._open(shard), bytes(value_of(self._snapshot))
        session.take_up(Blocks.from_bytes(snapshot, self._kept_apart))
        moment = _moment(session)
        _LOG.info("shard %d: restored from %d bytes of state, time %s", shard, len(snapshot), moment)
        return session

    def _kept_apart(self, name: str) -> bytes:
        row = self._apart.getValue((name,))
        assert row is not None, "the state has lost a block"
        return bytes(row[0])

    def _open(self, shard: int) -> Session:
        """Open a session with the queries that ran when the snapshot was taken."""
        return self.job.session(shard)

    def _keep(self, shard: int, session: Session) -> None:
        mark = f"{self.job.shards}@{self.job.reach}:{uuid4().hex}"
        self._mark.update((mark, self._names))
        _alive[self.job.key, shard] = (mark, session)
        _alive.move_to_end((self.job.key, shard))
        while len(_alive) > KEPT_ALIVE:
            _alive.popitem(last=False)

    def _run(self, shard: int, session: Session, packed: pd.DataFrame) -> Iterator[pa.RecordBatch]:
        before, began = deepcopy(session.counts), perf_counter()
        for block in packed["rejected"].dropna():
            session.ingest.count_rejected(from_block(bytes(block)))
        events = blocks_to_batches(packed["events"].dropna())
        detections = together(session.feed(events, int(packed["watermark"].max())), session.coordinates)
        size = self._write(session.state())
        progress = counts_since(session.counts, before)
        progress["processed"] += int(packed["unread"].sum())
        progress |= {
            "received": int(packed["received"].sum()),
            # Who compares what is told counts it in the end.
            "detections": 0 if self.job.hands_on else detections.num_rows,
            "shard": shard,
            "state_bytes": size,
            "watermark": session.watermark,
            "engine_us": int((perf_counter() - began) * 1e6),
        }
        self._log(session, progress)
        rows = self.job.rows
        yield from rows.detections(self._written(detections))
        yield from rows.interests(session.take_interests())
        yield from rows.set_aside(session)
        yield from rows.progress(progress)

    def _write(self, state: Blocks) -> int:
        """Write the state, but for large blocks that are there already; give its size."""
        snapshot, apart = state.parted(LARGE)
        self._snapshot.update((snapshot,))
        had = set(self._names)
        for name in apart.keys() - had:
            self._apart.updateValue((name,), (apart[name],))
        for name in had - apart.keys():
            self._apart.removeKey((name,))
        self._names = sorted(apart)
        return len(snapshot) + sum(map(len, apart.values()))

    def _log(self, session: Session, progress: dict[str, int]) -> None:
        """Say what a micro-batch did, and what must be known: events that come too late, lost matches."""
        shard = progress["shard"]
        _LOG.debug(
            "shard %d: %d events, %d detections, %d bytes of state, time %s, %d us",
            shard, progress["received"], progress["detections"], progress["state_bytes"],
            _moment(session), progress["engine_us"],
        )  # fmt: skip
        late, received = progress["late"], progress["received"]
        if late >= LATE_BURST and late > received * LATE_SHARE:
            _LOG.warning(
                "shard %d: %d of %d events came later than the lateness of %s allows, and are set aside",
                shard, late, received, format_duration(self.job.lateness),
            )  # fmt: skip
        dropped, known = sum(session.dropped.values()), _dropped.get((self.job.key, shard), 0)
        if dropped > known:
            _dropped[self.job.key, shard] = dropped
            _LOG.warning(
                "shard %d: %d matches in the making were given up, %d in all: a partition had too many",
                shard, dropped - known, dropped,
            )  # fmt: skip

    def _written(self, found: pa.Table) -> pa.Table:
        """Bring detections to the columns that the job has for them."""
        return found


def _moment(session: Session) -> str:
    """Write how far time has come; before the first event and after the last there is no date for it."""
    return format_instant(session.watermark) if abs(session.watermark) < _DATED else "none"


def value_of(state: ValueState) -> Any:
    """Read the one value of a state that was written before."""
    row = state.get()
    assert row is not None, "the state has lost a value"
    return row[0]


def unpack_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn the answers of shards back into rows."""
    for batch in batches:
        for block in batch.column("block"):
            yield from_block(block.as_py())
    spare_modules()
