"""The way in: events wait for their time here; late, repeated and rejected ones are counted and set aside."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import HashArray, hashes, normalise_with_content
from whimbrel.engine.input_notes import InputNotes
from whimbrel.engine.kernels.ordering import first_of_its_kind
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.total_order import (
    ARRIVAL,
    Released,
    concat,
    in_total_order,
    int64,
    of_several_types,
    plain,
    with_time_points,
)
from whimbrel.engine.values import Int64Array, decoded
from whimbrel.errors import DataError, StateError
from whimbrel.graph.operators import ANY
from whimbrel.model.batch import FEW, Normalised, Normaliser
from whimbrel.model.columns import type_of
from whimbrel.model.faults import Mask, kinds_of_reasons
from whimbrel.model.reading import Reading
from whimbrel.model.schema import Coordinates, EventSchema, Type
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME

KEPT_FOR_INSPECTION = 100_000
"""How many late, repeated and rejected events are kept to be looked at; all are counted."""

KEPT_REASONS = 1_000
"""Different reasons that are counted as they are; if there are more, without the values in them."""


MOST_WAITING = 16
"""Waiting batches that are kept apart; a long list of small ones would be looked through again and again."""

SMALL = 4_096
"""Batches that together have fewer events are joined rather than processed one after the other."""


@dataclass
class Counts:
    """What became of the events: received = processed + waiting + late + duplicate + rejected."""

    received: int = 0
    processed: int = 0
    waiting: int = 0
    late: int = 0
    duplicate: int = 0
    rejected: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class SideOutput:
    """Events that were not processed, the most recent ones, to be looked at."""

    def __init__(self) -> None:
        self._batches: deque[pa.RecordBatch] = deque()
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch; let the oldest ones go when there are too many."""
        if not batch.num_rows:
            return
        self._batches.append(batch)
        self._rows += batch.num_rows
        while self._rows - self._batches[0].num_rows >= KEPT_FOR_INSPECTION:
            self._rows -= self._batches.popleft().num_rows

    def take(self) -> pa.Table | None:
        """Hand out what was kept, and forget it."""
        kept = self.look()
        self._batches.clear()
        self._rows = 0
        return kept

    def look(self) -> pa.Table | None:
        """Look at what was kept, and go on keeping it."""
        if not self._batches:
            return None
        tables = [pa.Table.from_batches([plain(batch)]) for batch in self._batches]
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowTypeError:  # an attribute that no query reads may come in several types
            several = of_several_types(tables)
            tables = [_with_texts(table, several) for table in tables]
            return pa.concat_tables(tables, promote_options="permissive")


class RecentIds:
    """Ids of processed events, for as long as the same event may come again."""

    def __init__(self, wait: int, room: int = 1024) -> None:
        self.wait = wait
        self.high = np.zeros(room, np.uint64)
        self.low = np.zeros(room, np.uint64)
        self.end = np.zeros(room, np.int64)
        self.used = np.zeros(room, np.uint8)
        self.size = 0

    def repeated(self, high: HashArray, low: HashArray, end: Int64Array, watermark: int) -> np.ndarray:
        """Mark the events, in total order, whose id (given by its hashes) was there already."""
        self._make_room(len(high), watermark)
        repeated, added = self._entered(high, low, end)
        self.size += int(added)
        return np.asarray(repeated)

    def _make_room(self, more: int, watermark: int) -> None:
        if 2 * (self.size + more) <= len(self.high):
            return
        live = (self.used == 1) & (self.end >= watermark - self.wait)
        high, low, end = self.high[live], self.low[live], self.end[live]
        places = max(1024, 1 << int(np.ceil(np.log2(4 * (len(high) + more)))))
        self.high, self.low = np.zeros(places, np.uint64), np.zeros(places, np.uint64)
        self.end, self.used = np.zeros(places, np.int64), np.zeros(places, np.uint8)
        self._entered(high, low, end)
        self.size = len(high)

    def _entered(self, high: HashArray, low: HashArray, end: Int64Array) -> tuple[np.ndarray, int]:
        enter = first_of_its_kind.at(2 * len(high))
        return enter(high, low, end, self.high, self.low, self.end, self.used, self.wait)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events that wait for their time, and when the first and the last of them end."""

    batch: pa.RecordBatch
    first_end: int
    last_end: int

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Waiting:
        """Look at the times of some events."""
        end = int64(batch, "end")
        if len(end) == 1:
            return cls(batch, only := int(end[0]), only)
        return cls(batch, int(end.min()), int(end.max()))


class Ingest:
    """Takes batches in any order within the lateness; gives events in total order, once each.

    `lateness` None stands for a bounded input: nothing is late, and time moves only with `advance`.
    `exact` asks for the whole total order; without it, events of the same times keep the order they came in.
    Equal events without ids are numbered as they came. They end together, so they are all there by then.
    """

    def __init__(
        self,
        *,
        lateness: int | None,
        schemas: Mapping[str, EventSchema],
        coordinates: Coordinates | None,
        reading: Reading | None = None,
    ) -> None:
        self.lateness = lateness
        self.schemas = dict(schemas)
        self.coordinates = coordinates
        self.reading = reading or Reading()
        """How rows are read as events."""
        self._normaliser: Normaliser | None = None
        """Brings batches into the common form; None where what it depends on has changed."""
        self.noticed = InputNotes()
        """What was taken for what, and what looks wrong."""
        self.mentioned: Collection[str] = ()
        """The attributes that queries name."""
        self.exact = True
        self.owned: str | None = None
        """Where some events are copies of what another session has: the attribute that its own ones have."""
        self.follows_events = lateness is not None
        """Whether time moves with the events that come; else with `advance` only."""
        self.columns: set[str] | None = None
        """The attributes to keep of an event that comes in; None: all."""
        self.read: set[str] | None = None
        """The attributes that any query reads; None: all."""
        self.types: Collection[str] = ()
        """The types that any query reads."""
        self.watermark = BEGINNING_OF_TIME
        self.counts = Counts()
        self._checked: pa.Schema | None = None
        """The schema of the last events, whose types fit."""
        self.late = SideOutput()
        self.note_late: Callable[[pa.RecordBatch], None] | None = None
        """Told of late events, besides."""
        self.duplicates = SideOutput()
        self.rejected = SideOutput()
        self.time_points: set[int] = set()
        """The time points that queries wait for."""
        self._waiting: list[Waiting] = []
        self._epoch = 0
        self._types: dict[str, Type] = {}
        self.recent = RecentIds(END_OF_TIME if lateness is None else lateness)
        self.suspects: npt.NDArray[np.uint64] | None = None
        """Where the whole input is known: hashes of the ids that occur more than once."""

    def expect(
        self, read: set[str] | None, mentioned: Collection[str], *, only_these: bool, exact: bool
    ) -> None:
        """Take note of what the queries need, which have changed: the attributes that they read, or name.

        `only_these` says that no other query will come, so that other attributes need not be kept.
        """
        self.read, self.mentioned, self.exact = read, mentioned, exact
        self.columns = read if only_these else None
        self._forget_layouts()

    def _forget_layouts(self) -> None:
        self._normaliser = self._checked = None

    def normalise(self, batch: pa.RecordBatch) -> Normalised:
        """Bring a batch into the common form, as the queries declare it."""
        if self._normaliser is None:
            self._normaliser = Normaliser(
                self.schemas,
                self.coordinates,
                self.noticed.reading_for(self.reading, self.types),
                columns=self.columns,
                read=self.mentioned,
                keep_untyped=False,
            )
        not_own = (ARRIVAL,) if self.owned is None else (ARRIVAL, self.owned)
        normalised = normalise_with_content(self._normaliser, batch, self.counts.received, not_own)
        self._check_types(normalised.events.schema)  # a batch that is refused as a whole is not received
        normalised = replace(normalised, rejected=self._own_rejected(normalised.rejected, batch))
        if self.coordinates is None and normalised.coordinates is not None:
            self.coordinates = normalised.coordinates
            self._normaliser = None
        self.counts.received += self._own(batch).num_rows
        self.set_rejected_aside(normalised.rejected)
        self.noticed.see(batch, normalised)
        return normalised

    def _own_rejected(self, rejected: pa.RecordBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Choose the rejected rows of a batch that are not copies: each is rejected once."""
        if self.owned is None or self.owned not in batch.schema.names or not rejected.num_rows:
            return rejected
        positions = pc.subtract(rejected.column("row"), self.counts.received)
        return rejected.filter(batch.column(self.owned).take(positions))

    def _own(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Choose the events that are not copies, which alone are counted and can be looked at."""
        if self.owned is None or self.owned not in batch.schema.names:
            return batch
        return batch.filter(batch.column(self.owned))

    def begin(self) -> None:
        """Say that other events come now than before: they stand behind all that wait."""
        self._epoch = self._epoch + 1 if self._waiting else 0

    def accept(self, events: pa.RecordBatch) -> None:
        """Take in events in the common form; those that are late are set aside."""
        self._check_types(events.schema)
        if not events.num_rows:
            return
        if self._epoch and ARRIVAL in events.schema.names:
            events = self._behind_others(events)
        waiting = Waiting.of(events)
        if waiting.first_end <= self.watermark:
            events = self._without_late(events)
            if not events.num_rows:
                return
            waiting = Waiting.of(events)
        self._waiting.append(waiting)
        self.counts.waiting += self._own(events).num_rows
        if self.follows_events and self.lateness is not None:
            self.advance(waiting.last_end - self.lateness - 1)

    def _behind_others(self, events: pa.RecordBatch) -> pa.RecordBatch:
        """Let the order of arrival that events bring along count among those that came together only."""
        came = int64(events, ARRIVAL) + (self._epoch << 45)
        return events.set_column(events.schema.get_field_index(ARRIVAL), ARRIVAL, pa.array(came))

    def advance(self, watermark: int) -> None:
        """Say that every event up to `watermark` has been seen. The clock never goes back."""
        self.watermark = max(self.watermark, watermark)

    def set_rejected_aside(self, rejected: pa.RecordBatch) -> None:
        """Count and keep rows that are no events."""
        if rejected.num_rows:
            self.counts.rejected += rejected.num_rows
            self.counts.reasons.update(rejected.column("reason").to_pylist())
            if len(self.counts.reasons) > KEPT_REASONS:
                self.counts.reasons = kinds_of_reasons(self.counts.reasons)
            self.rejected.add(rejected)

    def _check_types(self, schema: pa.Schema) -> None:
        if self._checked is not None and self._checked.equals(schema):
            return
        kinds = {column.name: kind for column in schema if (kind := type_of(column.type)) is not None}
        for name, kind in kinds.items():
            known = self._types.get(name, kind)
            if kind is known or (kind.is_number and known.is_number):
                continue
            if name not in ("id", "type", "source", "geometry") and self._is_read(name):
                raise DataError(
                    f"attribute {name!r} is {kind.value} here and was {known.value} before; "
                    f"declare its type in the query, or give the two attributes different names"
                )
        self._types = kinds | self._types
        self._checked = schema

    def _is_read(self, name: str) -> bool:
        return self.read is None or name in self.read

    def _without_late(self, events: pa.RecordBatch) -> pa.RecordBatch:
        late = int64(events, "end") <= self.watermark
        own = self._own(events.filter(pa.array(late)))
        self.counts.late += own.num_rows
        self.late.add(own)
        if self.note_late is not None and own.num_rows:
            self.note_late(own)
        return events.filter(pa.array(~late))

    def release(self) -> list[Released]:
        """Take the events that the watermark has reached, in total order, each batch after the one before.

        The time points that it has passed are among them.
        """
        passed = {time for time in self.time_points if time <= self.watermark}
        self.time_points -= passed
        return with_time_points(self._released(), passed, self.watermark, self.owned)

    def _released(self) -> list[Released]:
        ready = self._take_reached()
        if not ready:
            return []
        if len(ready) > 1 and not _follow_each_other(ready):
            ready = [concat(ready, self.read)]
        firsts = [int(int64(batch, "end")[0]) for batch in ready[1:]]
        watermarks = [*(first - 1 for first in firsts), self.watermark]
        return [self._ordered(batch, until) for batch, until in zip(ready, watermarks, strict=True)]

    def _ordered(self, batch: pa.RecordBatch, watermark: int) -> Released:
        released, brought = in_total_order(batch, watermark, exact=self.exact)
        if brought is not None:
            released = self._once(released, brought)
        self.counts.processed += self._own(released.batch).num_rows
        return released

    def _take_reached(self) -> list[pa.RecordBatch]:
        """Part with the waiting events that the watermark has reached; give those that may matter."""
        ready, rest = [], []
        for waiting in self._waiting:
            if waiting.first_end > self.watermark:
                rest.append(waiting)
                continue
            batch = waiting.batch
            if waiting.last_end > self.watermark:
                reached = int64(batch, "end") <= self.watermark
                batch = _chosen(batch, reached)
                rest.append(Waiting.of(_chosen(waiting.batch, ~reached)))
            self.counts.waiting -= self._own(batch).num_rows
            ready.append(self._of_types_read(batch))
        self._waiting = rest
        if ready and len(rest) > MOST_WAITING:
            self._waiting = [Waiting.of(concat([waiting.batch for waiting in rest], self.read))]
        return [batch for batch in ready if batch.num_rows]

    def _of_types_read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out events of types that no query reads: putting them in order would be in vain.

        Not so where ids may be repeated: of whichever type, an event is the first with its id or a later one.
        """
        if "id" in batch.schema.names and (self.suspects is None or len(self.suspects)):
            return batch
        read = of_types(batch.column("type"), self.types)
        if read.all():
            return batch
        chosen = _chosen(batch, read)
        self.counts.processed += self._own(batch).num_rows - self._own(chosen).num_rows
        return chosen

    def take_back(self, ids: Collection[str]) -> int:
        """Drop events that wait for their time; tell how many there were."""
        before = sum(waiting.batch.num_rows for waiting in self._waiting)
        wanted = pa.array(sorted(ids), pa.string())
        kept = [waiting.batch for waiting in self._waiting]
        for number, batch in enumerate(kept):
            if "id" in batch.schema.names:
                texts = batch.column("id").cast(pa.string())
                kept[number] = batch.filter(pc.invert(pc.is_in(texts, wanted)))
        self._waiting = [Waiting.of(batch) for batch in kept if batch.num_rows]
        dropped = before - sum(batch.num_rows for batch in kept)
        self.counts.waiting -= dropped
        self.counts.processed += dropped
        return dropped

    def save(self, blocks: Blocks, name: str) -> None:
        """Write everything that later events and results depend on."""
        counts = asdict(self.counts) | {"reasons": dict(self.counts.reasons)}
        coordinates = None if self.coordinates is None else self.coordinates.value
        types = {key: kind.value for key, kind in self._types.items()}
        about = {"watermark": self.watermark, "counts": counts, "coordinates": coordinates, "types": types}
        blocks.put_json(
            name, about | {"lateness": self.lateness, "ids": self.recent.size, "epoch": self._epoch}
        )
        blocks.put_batches(f"{name}/waiting", [waiting.batch for waiting in self._waiting])
        arrays = {key: getattr(self.recent, key) for key in ("high", "low", "end", "used")}
        blocks.put_arrays(f"{name}/recent", arrays)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        if about["lateness"] != self.lateness:
            raise StateError(
                "the snapshot was made with another lateness; open the session with the same one"
            )
        self.watermark = about["watermark"]
        self.counts = Counts(**about["counts"] | {"reasons": Counter(about["counts"]["reasons"])})
        self.coordinates = None if about["coordinates"] is None else Coordinates(about["coordinates"])
        self.time_points = {time for time in self.time_points if time > self.watermark}
        self._types = {key: Type(kind) for key, kind in about["types"].items()}
        self._waiting = [Waiting.of(batch) for batch in blocks.batches(f"{name}/waiting")]
        self._forget_layouts()
        self.recent.size = about["ids"]
        self._epoch = about["epoch"]
        for key, array in blocks.arrays(f"{name}/recent").items():
            setattr(self.recent, key, array)

    def _once(self, released: Released, brought: Mask) -> Released:
        """Set aside events whose id was there already; those that did not bring theirs are never repeated."""
        repeated = self._repeated(released.batch.column("id"), released.end, brought)
        if repeated is None or not repeated.any():
            return released
        own = self._own(released.batch.filter(pa.array(repeated)))
        self.counts.duplicate += own.num_rows
        self.duplicates.add(own)
        return released.filtered(~repeated)

    def _repeated(self, ids: pa.Array, end: Int64Array, brought: Mask) -> Mask | None:
        """Mark the events whose id was there already."""
        if self.suspects is not None and not len(self.suspects):
            return None
        high, low = hashes(ids)
        looked_at = brought if self.suspects is None else brought & np.isin(high, self.suspects)
        if looked_at.all():
            return self.recent.repeated(high, low, end, self.watermark)
        repeated = np.zeros(len(end), np.bool_)
        repeated[looked_at] = self.recent.repeated(
            high[looked_at], low[looked_at], end[looked_at], self.watermark
        )
        return repeated

    def count_rejected(self, rejected: pa.RecordBatch) -> None:
        """Count rows that a reader could not even read."""
        self.counts.received += rejected.num_rows
        self.set_rejected_aside(rejected)

    def look_aside(self) -> dict[str, pa.Table | None]:
        """Look at the late, duplicate and rejected events that were kept, leaving them where they are."""
        outputs = {"late": self.late, "duplicate": self.duplicates, "rejected": self.rejected}
        return {kind: output.look() for kind, output in outputs.items()}

    def expect_each_once(self) -> None:
        """Take every event as new: whoever sends them delivers each once, and no ids need be remembered."""
        self.look_ahead([])
        self.recent = RecentIds(END_OF_TIME, room=1)

    def look_ahead(self, batches: list[pa.RecordBatch]) -> None:
        """Find out which ids occur more than once in a whole input; the others need not be remembered."""
        parts = [hashes(batch.column("id"))[0] for batch in batches if "id" in batch.schema.names]
        every = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
        every.sort()
        self.suspects = np.unique(every[1:][every[1:] == every[:-1]])


def _chosen(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    """Choose the events of a mask; no copy if they stand together."""
    count, first = int(np.count_nonzero(mask)), int(mask.argmax()) if len(mask) else 0
    if mask[first : first + count].all():
        return batch.slice(first, count)
    return batch.filter(pa.array(mask))


def of_types(types: pa.Array, wanted: Collection[str]) -> Mask:
    """Mark the events that are of one of the wanted types."""
    if ANY in wanted:
        return np.ones(len(types), np.bool_)
    if len(types) <= FEW:
        return np.array([name in wanted for name in types.to_pylist()], np.bool_)
    types = types if pa.types.is_dictionary(types.type) else types.dictionary_encode()
    is_wanted = np.array([name in wanted for name in decoded(types.dictionary).to_pylist()], np.bool_)
    if is_wanted.all():
        return np.ones(len(types), np.bool_)
    mask: Mask = is_wanted[types.indices.to_numpy(zero_copy_only=False)]
    return mask


def _follow_each_other(batches: list[pa.RecordBatch]) -> bool:
    """Tell whether batches are sorted, do not overlap in time, and are worth processing one by one."""
    if sum(batch.num_rows for batch in batches) < SMALL:
        return False
    last = BEGINNING_OF_TIME
    for batch in batches:
        end = int64(batch, "end")
        if end[0] <= last or bool((end[1:] < end[:-1]).any()):
            return False
        last = int(end[-1])
    return True


def _with_texts(table: pa.Table, names: set[str]) -> pa.Table:
    """Write some columns as texts."""
    for number, name in enumerate(table.column_names):
        if name in names:
            table = table.set_column(number, name, table.column(name).cast(pa.string()))
    return table
