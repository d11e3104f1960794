"""The way in: validates events, puts them in order, sets late and repeated ones aside, keeps the clock."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.content_hashes import CONTENT, normalise_with_content
from whimbrel.engine.identity import HashArray, hashes, made_ids
from whimbrel.engine.input_notes import InputNotes
from whimbrel.engine.kernels.ordering import (
    TIED,
    UNSORTED,
    first_of_its_kind,
    number_among_equals,
    sortedness,
)
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Column, Int64Array, decoded, from_arrow, nothing, type_of
from whimbrel.errors import DataError, StateError
from whimbrel.graph.operators import ANY
from whimbrel.model.batch import FEW, Normalised, Normaliser
from whimbrel.model.faults import Mask, kinds_of_reasons
from whimbrel.model.reading import Reading
from whimbrel.model.schema import RESERVED_COLUMNS, Coordinates, EventSchema, Type
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME

ARRIVAL = "@arrival"
"""The column in which events that were partitioned among workers bring their order of arrival along."""

KEPT_FOR_INSPECTION = 100_000
"""How many late, repeated and rejected events are kept to be looked at; all are counted."""

KEPT_REASONS = 1_000
"""Different reasons that are counted as they are; if there are more, without the values in them."""


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
        """Give what was kept, and forget it."""
        kept = self.look()
        self._batches.clear()
        self._rows = 0
        return kept

    def look(self) -> pa.Table | None:
        """Give what was kept, and go on keeping it."""
        if not self._batches:
            return None
        tables = [pa.Table.from_batches([_plain(batch)]) for batch in self._batches]
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowTypeError:  # an attribute that no query reads may come in several types
            several = _of_several_types(tables)
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
        found, added = self._entered(high, low, end)
        self.size += int(added)
        return np.asarray(found)

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
class Released:
    """Events whose time has come, in total order."""

    batch: pa.RecordBatch
    start: Int64Array
    end: Int64Array
    number: Int64Array | None
    """For events without an id: the number among those that agree with it in all that they say."""
    watermark: int
    """Up to which time everything has been released with it."""
    arrival: Int64Array | None = None
    """Where events of the same times stand otherwise than they came: their order of arrival."""

    def filtered(self, kept: npt.NDArray[np.intp] | Mask) -> Released:
        """Give some of the events."""
        rows = np.flatnonzero(kept) if kept.dtype == np.bool_ else kept
        return Released(
            self.batch.take(pa.array(rows)) if len(rows) else self.batch.slice(0, 0),
            self.start[rows],
            self.end[rows],
            None if self.number is None else self.number[rows],
            self.watermark,
            None if self.arrival is None else self.arrival[rows],
        )


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events that wait for their time, and when the first and the last of them end."""

    batch: pa.RecordBatch
    first_end: int
    last_end: int

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Waiting:
        """Look at the times of some events."""
        end = _int64(batch, "end")
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
        self.duplicates = SideOutput()
        self.rejected = SideOutput()
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
        aside = (ARRIVAL,) if self.owned is None else (ARRIVAL, self.owned)
        normalised = normalise_with_content(self._normaliser, batch, self.counts.received, aside)
        self._check_types(normalised.events.schema)  # a batch that is refused as a whole is not received
        if self.coordinates is None and normalised.coordinates is not None:
            self.coordinates = normalised.coordinates
            self._normaliser = None
        self.counts.received += self._own(batch).num_rows
        self.set_rejected_aside(normalised.rejected)
        self.noticed.see(batch, normalised)
        return normalised

    def _own(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Give the events that are not copies, which alone are counted and can be looked at."""
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
        came = _int64(events, ARRIVAL) + (self._epoch << 45)
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
        late = _int64(events, "end") <= self.watermark
        own = self._own(events.filter(pa.array(late)))
        self.counts.late += own.num_rows
        self.late.add(own)
        return events.filter(pa.array(~late))

    def release(self) -> list[Released]:
        """Give the events that the watermark has reached, in total order, each batch after the one before."""
        ready = self._take_reached()
        if not ready:
            return []
        if len(ready) > 1 and not _follow_each_other(ready):
            ready = [concat(ready, self.read)]
        firsts = [int(_int64(batch, "end")[0]) for batch in ready[1:]]
        watermarks = [*(first - 1 for first in firsts), self.watermark]
        return [self._ordered(batch, until) for batch, until in zip(ready, watermarks, strict=True)]

    def _take_reached(self) -> list[pa.RecordBatch]:
        """Part with the waiting events that the watermark has reached; give those that may matter."""
        ready, rest = [], []
        for waiting in self._waiting:
            if waiting.first_end > self.watermark:
                rest.append(waiting)
                continue
            batch = waiting.batch
            if waiting.last_end > self.watermark:
                reached = _int64(batch, "end") <= self.watermark
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
        self.counts.processed += self._own(_chosen(batch, ~read)).num_rows
        return _chosen(batch, read)

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
        place = None if self.coordinates is None else self.coordinates.value
        types = {key: kind.value for key, kind in self._types.items()}
        about = {"watermark": self.watermark, "counts": counts, "coordinates": place, "types": types}
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
        self._types = {key: Type(kind) for key, kind in about["types"].items()}
        self._waiting = [Waiting.of(batch) for batch in blocks.batches(f"{name}/waiting")]
        self._forget_layouts()
        self.recent.size = about["ids"]
        self._epoch = about["epoch"]
        for key, array in blocks.arrays(f"{name}/recent").items():
            setattr(self.recent, key, array)

    def _ordered(self, batch: pa.RecordBatch, until: int) -> Released:
        start, end = _int64(batch, "start"), _int64(batch, "end")
        state = None if len(end) == 1 else sortedness.at(len(end))(end, start)
        if state == UNSORTED or (state == TIED and ARRIVAL in batch.schema.names):
            order = np.lexsort((*_given_arrival(batch), start, end))
            batch, start, end = batch.take(pa.array(order)), start[order], end[order]
            state = sortedness.at(len(end))(end, start)
        brought = _ids_brought(batch)
        if brought is not None and not brought.all():  # a batch without ids came among others
            batch = with_ids(batch)
        number = _numbers(batch, start, end) if brought is None and state == TIED else None
        arrival = None
        if state == TIED and self.exact:
            total = _tie_order(batch, start, end, number)
            if total is not None:
                batch, start, end = batch.take(pa.array(total)), start[total], end[total]
                number = None if number is None else number[total]
                brought = None if brought is None else brought[total]
                arrival = total
        released = Released(batch, start, end, number, until, arrival)
        if brought is not None:
            released = self._once(released, brought)
        self.counts.processed += len(self._own(released.batch))
        return released

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
        found = np.zeros(len(end), np.bool_)
        found[looked_at] = self.recent.repeated(
            high[looked_at], low[looked_at], end[looked_at], self.watermark
        )
        return found

    def look_ahead(self, batches: list[pa.RecordBatch]) -> None:
        """Find out which ids occur more than once in a whole input; the others need not be remembered."""
        parts = [hashes(batch.column("id"))[0] for batch in batches if "id" in batch.schema.names]
        every = np.concatenate(parts) if parts else np.zeros(0, np.uint64)
        every.sort()
        self.suspects = np.unique(every[1:][every[1:] == every[:-1]])


def _int64(batch: pa.RecordBatch, name: str) -> Int64Array:
    values: Int64Array = batch.column(name).to_numpy(zero_copy_only=False)
    return values


def _given_arrival(batch: pa.RecordBatch) -> list[Int64Array]:
    """Read the order of arrival where the events bring it along from before they were partitioned."""
    return [_int64(batch, ARRIVAL)] if ARRIVAL in batch.schema.names else []


MOST_WAITING = 16
"""Waiting batches that are kept apart; a long list of small ones would be looked through again and again."""

SMALL = 4_096
"""Batches that together have fewer events are joined rather than processed one after the other."""


def _chosen(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    """Give the events of a mask; no copy if they stand together."""
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
        end = _int64(batch, "end")
        if end[0] <= last or bool((end[1:] < end[:-1]).any()):
            return False
        last = int(end[-1])
    return True


def concat(batches: list[pa.RecordBatch], read: set[str] | None) -> pa.RecordBatch:
    """Put batches one after the other, whatever columns and dictionaries each has.

    An attribute that no query reads may have different types; it is left out then.
    """
    tables = [pa.Table.from_batches([_plain(batch)]) for batch in batches]
    if read is not None:
        spare = _of_several_types(tables) - read - RESERVED_COLUMNS
        tables = [table.drop_columns([n for n in table.column_names if n in spare]) for table in tables]
    whole = pa.concat_tables(tables, promote_options="permissive")
    combined = whole.combine_chunks().to_batches()
    return combined[0] if combined else _plain(batches[0])


def _of_several_types(tables: list[pa.Table]) -> set[str]:
    """Name the columns that have different types in different tables."""
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for column in table.schema:
            kinds.setdefault(column.name, set()).add(column.type)
    return {name for name, types in kinds.items() if len(types) > 1}


def _with_texts(table: pa.Table, names: set[str]) -> pa.Table:
    """Write some columns as texts."""
    for number, name in enumerate(table.column_names):
        if name in names:
            table = table.set_column(number, name, table.column(name).cast(pa.string()))
    return table


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    arrays = [decoded(c) if pa.types.is_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def source_codes(batch: pa.RecordBatch) -> tuple[Int64Array, list[str]]:
    """Give every event's source as a number in the order of the texts, 0 for none."""
    if "source" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64), []
    return _ranks(batch.column("source"))


def _ranks(column: pa.Array) -> tuple[Int64Array, list[str]]:
    """Give texts as numbers in the order of the texts, 0 for none; and the texts."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    texts = decoded(column.dictionary).to_pylist()
    rank = {text: number for number, text in enumerate(sorted(set(texts)), start=1)}
    table = np.array([rank[text] for text in texts] + [0], np.int64)
    return table[column.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)], texts


def _ids_brought(batch: pa.RecordBatch) -> Mask | None:
    """Tell which events came with an id; None if all came without."""
    if "id" not in batch.schema.names:
        return None
    ids = batch.column("id")
    brought: Mask = np.ones(len(ids), np.bool_) if not ids.null_count else ids.is_valid().to_numpy(False)
    return brought


def _tie_order(
    batch: pa.RecordBatch, start: Int64Array, end: Int64Array, number: Int64Array | None
) -> Int64Array | None:
    """Give the order by (end, start, source, id), rows being sorted by the first two; None: as it is."""
    source, _ = source_codes(batch)
    if "id" in batch.schema.names:
        keys = {"end": pa.array(end), "start": pa.array(start), "source": pa.array(source)}
        keys["id"] = decoded(batch.column("id"))
        indices = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
        found: Int64Array = indices.to_numpy().astype(np.int64)
        return found
    order: Int64Array | None = None
    if (np.diff(source)[(np.diff(end) == 0) & (np.diff(start) == 0)] < 0).any():
        order = np.lexsort((source, start, end))
        start, end, source = start[order], end[order], source[order]
    return _order_of_made(batch, (source, start, end), number, order)


def _order_of_made(
    batch: pa.RecordBatch,
    keys: tuple[Int64Array, ...],
    number: Int64Array | None,
    order: Int64Array | None,
) -> Int64Array | None:
    """Go on with an order by some keys, by the ids that will be made: by content, number and type."""
    same = np.all([key[1:] == key[:-1] for key in keys], axis=0)
    if not same.any():
        return order
    places = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = places if order is None else order[places]
    types, _ = _ranks(batch.column("type").take(pa.array(rows)))
    numbers = np.zeros(len(rows), np.int64) if number is None else number[rows]
    contents = contents_of(batch)[rows].view(np.uint64)
    order = np.arange(batch.num_rows) if order is None else order
    order[places] = rows[np.lexsort((types, numbers, contents, *(key[places] for key in keys)))]
    return order


def contents_of(batch: pa.RecordBatch) -> Int64Array:
    """Give what events without ids say, as one number each."""
    if CONTENT not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64)
    column = batch.column(CONTENT)
    values: Int64Array = (column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False)
    return values


def with_ids(events: pa.RecordBatch) -> pa.RecordBatch:
    """Give events in the common form that came without an id the one that is made for them.

    They may be in any order, but all that are equal must be among them.
    """
    brought = _ids_brought(events)
    if brought is None:
        return events.add_column(0, "id", ids_of(events, numbers_of(events)))
    if brought.all():
        return events
    bare = events.filter(pa.array(~brought))
    places = pa.array(np.maximum(np.cumsum(~brought) - 1, 0))
    made = ids_of(bare, numbers_of(bare)).take(places)
    ids = pc.coalesce(decoded(events.column("id")), made)
    return events.set_column(events.schema.get_field_index("id"), "id", ids)


def ids_of(events: pa.RecordBatch, number: Int64Array) -> pa.Array:
    """Make ids for events in the common form; the number tells those apart that are equal."""
    source, event_type = _texts(events, "source"), _texts(events, "type")
    start, end = _int64(events, "start"), _int64(events, "end")
    return made_ids(source, event_type, start, end, contents_of(events), number)


def numbers_of(events: pa.RecordBatch) -> Int64Array:
    """Give events, in any order, their numbers among those that are equal."""
    start, end = _int64(events, "start"), _int64(events, "end")
    order = np.lexsort((start, end))
    number = np.zeros(events.num_rows, np.int64)
    found = _numbers(events.take(pa.array(order)), start[order], end[order])
    if found is not None:
        number[order] = found
    return number


def _texts(batch: pa.RecordBatch, name: str) -> Column:
    return from_arrow(batch.column(name)) if name in batch.schema.names else nothing(batch.num_rows)


def _numbers(batch: pa.RecordBatch, start: Int64Array, end: Int64Array) -> Int64Array | None:
    """Give each event its number among those that are equal to it; None: all have 0."""
    kinds = np.zeros(batch.num_rows, np.int64)
    for name in ("source", "type"):
        codes, different = _codes(batch, name)
        kinds = kinds * different + codes
    changes = np.flatnonzero((np.diff(end) != 0) | (np.diff(start) != 0))
    most = int(np.diff(changes, prepend=-1, append=len(end) - 1).max(initial=1))
    places = 1 << int(2 * most).bit_length()
    numbering = number_among_equals.at(4 * len(end))
    number: Int64Array = numbering(end, start, kinds, contents_of(batch), places)
    return number if number.any() else None


def _codes(batch: pa.RecordBatch, name: str) -> tuple[Int64Array, int]:
    """Give the texts of a column (and no text) as numbers; tell how many different ones there may be."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int64), 1
    column = batch.column(name)
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    texts = len(column.dictionary)
    codes = column.indices.fill_null(texts) if column.null_count else column.indices
    return codes.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), texts + 1
