"""Runs a `Custom` operator: the execution environment of the mobile CEP thesis (Algorithms 3.1 and 3.2).

Events are taken in total order and partitioned; each partition goes through its correlation
steps by itself (`steps`), with windows of its own (`windows`). Where the thesis
leaves freedom:

* An event stands at its `end`. Distances are closed, cells of the time grid half open, as everywhere.
* A restriction window that shifts by events starts (or ends) with an event; one that shifts by time ends
  at a multiple of its shift. It begins with the first event of a partition.
* A window makes its whole shift or stays where it is; dependencies cut a shift short. A selection follows
  another as soon as one window can shift.
* A dependent window is placed once the window it depends on is complete; an empty one sets no bound.
* Without predicates, an empty selection is not processed. With predicates that an empty selection fulfils,
  it is processed when it is complete, so that absence is detected when time has passed. At the end of the
  input, cells of the time grid that hold no event are not opened any more.
* A window that a predicate wants empty lasts until its end: so does the detection. Of a selection without
  events, the detection has the times of the restriction window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.identity import event_hashes, fold, row_ids
from whimbrel.engine.operators.base import OperatorSetup
from whimbrel.engine.operators.buffered import BufferedOperator
from whimbrel.engine.operators.custom.state import items_of, state_of, take_up
from whimbrel.engine.operators.custom.steps import CorrelationSteps, Emitted, PartitionPlan
from whimbrel.engine.operators.custom.windows import WindowItem
from whimbrel.engine.ordered_inputs import OrderedBatch
from whimbrel.engine.row_store import Lineage, offsets_of
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import WINDOW, ExecutionContext, OperatorStream, RowsFrame
from whimbrel.engine.values import Column, Int64Array, from_arrow, to_arrow
from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.graph.custom import Event, function_name
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.graph.operators import Custom
from whimbrel.model.schema import Type
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME

RESERVED = frozenset({"id", "type", "start", "end", "geometry", "events"})
"""What every detection has anyway."""

Key = tuple[Any, ...]


def check(op: Custom) -> None:
    """Refuse a policy that does not fit the inputs of its operator."""
    for window in op.policy.windows:
        if window.input not in op.streams:
            raise UnknownNameError("input", window.input, op.streams)
    idle = [name for name in op.inputs if name not in {window.input for window in op.policy.windows}]
    if idle:
        raise QueryError(f"the input {idle[0]!r} of {op.name!r} has no selection window")
    counted = op.policy.restriction.input
    if counted is not None and counted not in op.streams:
        raise UnknownNameError("input", counted, op.streams)


class CustomRuntime(BufferedOperator[Custom]):
    """A `Custom` operator at run time."""

    def __init__(self, op: Custom, setup: OperatorSetup) -> None:
        check(op)
        if op.function not in setup.functions:
            raise UnknownNameError("operator", op.function, setup.functions)
        function = setup.functions[op.function]
        function_name(function)
        super().__init__(op, setup)
        slots = {name: slot for slot, name in enumerate(op.inputs)}
        self.plan = PartitionPlan(op, partial(function, **op.parameters), slots)
        self.partitions: dict[Key, CorrelationSteps] = {}
        self.outbox: list[tuple[Key, Emitted]] = []
        self.swept = BEGINNING_OF_TIME
        self._dues: list[tuple[int, int, Key]] = []
        self._pushed = 0

    @classmethod
    def read_by(cls, op: Custom) -> Iterable[str]:
        """Name the streams that it reads, each once: windows over one stream share its events."""
        return op.inputs

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        while self._dues and not self._is_current(*self._dues[0]):
            heappop(self._dues)
        return self._dues[0][0] if self._dues else END_OF_TIME

    def _is_current(self, due: int, _: int, key: Key) -> bool:
        partition = self.partitions.get(key)
        return partition is not None and partition.due == due

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Let every partition take in its events, and let time pass in it."""
        self.take_in(arrived)
        for key, item in self._items():
            self._feed(key, item)
        self.let_go(np.zeros(len(self.group), np.bool_))
        if watermark >= END_OF_TIME:
            self._finish()
        else:
            self._advance(watermark)
            self.stream.watermark = watermark - self.op.policy.restriction.length
        self.stream.new = self.flush()

    def _feed(self, key: Key, item: WindowItem) -> None:
        partition = self.partitions.get(key) or self._begin(key)
        partition.feed(item)
        self._wake(key, partition)

    def _begin(self, key: Key) -> CorrelationSteps:
        """Make a partition."""
        partition = self.partitions[key] = self._steps(key, lambda found: self.outbox.append((key, found)))
        return partition

    def _steps(self, key: Key, emit: Callable[[Emitted], None]) -> CorrelationSteps:
        """Make what goes through the correlation steps of a partition."""
        return CorrelationSteps(self.plan, self._values(key), emit)

    def _values(self, key: Key) -> Mapping[str, Any]:
        """Give what an operator sees of the key of its partition."""
        names = [each.name for each in self.op.partitioning.keys]
        return MappingProxyType(dict(zip(names, key, strict=True)))

    def _wake(self, key: Key, partition: CorrelationSteps) -> None:
        """Remember when to look after a partition."""
        if partition.due < END_OF_TIME:
            self._pushed += 1
            heappush(self._dues, (partition.due, self._pushed, key))

    def _advance(self, watermark: int) -> None:
        """Let time pass in the partitions in which that makes a difference."""
        while self.due <= watermark and self._dues:
            _, _, key = heappop(self._dues)
            self.partitions[key].advance(watermark)
            self._wake(key, self.partitions[key])
        if watermark - self.swept > self.op.policy.restriction.length:
            self._sweep(watermark)

    def _finish(self) -> None:
        """End the input. Before, time passes everywhere up to the last event, whatever its type."""
        self._advance_to_last()
        for partition in self.partitions.values():
            partition.finish()
        self.partitions, self._dues = {}, []

    def _advance_to_last(self) -> None:
        last = max((chunk.last for chunk in self.context.atoms.store.chunks), default=BEGINNING_OF_TIME)
        self._advance(last)

    def _sweep(self, watermark: int) -> None:
        """Forget partitions that a new one can take the place of."""
        self.swept = watermark
        for key, partition in list(self.partitions.items()):
            partition.tidy(watermark)
            if partition.is_idle:
                del self.partitions[key]

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state of the partitions, too."""
        super().save(blocks, name)
        states = [(key, state_of(partition)) for key, partition in self.partitions.items()]
        blocks.put_json(f"{name}/partitions", {"swept": self.swept, "states": states})
        known = [(owner, i) for owner, p in enumerate(self.partitions.values()) for i in items_of(p).values()]
        rows = [(owner, item.place, item.inputs, item.root, item.row) for owner, item in known]
        blocks.put_array(f"{name}/items", np.array(rows, np.int64).reshape(-1, 5))

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote; the streams that the events came from are there already."""
        super().load(blocks, name)
        about = blocks.json(f"{name}/partitions")
        self.swept = about["swept"]
        self.partitions, self._dues = {}, []
        owners, places, inputs, root, row = blocks.array(f"{name}/items").T
        items: list[dict[int, WindowItem]] = [{} for _ in about["states"]]
        made = self._made(root, row)
        for owner, place, mask, make in zip(
            owners.tolist(), places.tolist(), inputs.tolist(), made, strict=True
        ):
            items[owner][place] = make(place, mask)
        for (key, state), known in zip(about["states"], items, strict=True):
            partition = self._begin(tuple(key))
            take_up(partition, state, known)
            self._wake(tuple(key), partition)

    # -- events in -----------------------------------------------------------------------------------------

    def _items(self) -> Iterator[tuple[Key, WindowItem]]:
        """Give the events that have arrived, each with the key of its partition."""
        arrived = self.events
        if not len(arrived):
            return
        keys = self._keys_of_events()
        made = self._made(arrived.root, arrived.row)
        for key, mask, make in zip(keys, arrived.mask.tolist(), made, strict=True):
            partition = self.partitions.get(key)
            yield key, make(partition.places if partition is not None else 0, mask)

    def _keys_of_events(self) -> list[Key]:
        names = [key.name for key in self.op.partitioning.keys]
        columns = [to_arrow(self.keys.column(name, self.group)).to_pylist() for name in names]
        return list(zip(*columns, strict=True)) if columns else [()] * len(self.group)

    def _made(self, root: Int64Array, row: Int64Array) -> list[Callable[[int, int], WindowItem]]:
        """Make the events at some rows; each is complete once it has a place and the inputs it fits."""
        made: dict[int, Callable[[int, int], WindowItem]] = {}
        for at, number, rows in self.arrivals.by_root(root, row):
            stream = self.arrivals.roots[number]
            lineage = stream.store.lineage(rows)
            below = np.split(lineage.refs, lineage.offsets[1:-1])
            events = _events_of(self.context, stream, rows)
            for index, event, refs in zip(np.arange(len(row))[at].tolist(), events, below, strict=True):
                made[index] = partial(_item, number, int(row[index]), event, refs)
        return [made[index] for index in range(len(row))]

    # -- detections out ------------------------------------------------------------------------------------

    def flush(self) -> Int64Array:
        """Append what the operator has found since the last time; give the rows."""
        emitted, self.outbox[:] = list(self.outbox), []
        if not emitted:
            return np.zeros(0, np.int64)
        found = [each for _, each in emitted]
        start = np.array([each.start for each in found], np.int64)
        end = np.array([each.end for each in found], np.int64)
        columns: dict[Expr, Column] = {Attribute(None, n): c for n, c in self._attributes(found).items()}
        columns[WINDOW] = Column(Type.INT, np.array([each.number for each in found], np.int64))
        refs = [_together(each) for each in found]
        lineage = Lineage(offsets_of(np.array([len(each) for each in refs])), np.concatenate(refs))
        columns |= fold(lineage.offsets, *event_hashes(self.context.atoms.store, lineage.refs))
        columns |= self._marks(emitted)
        return self.stream.store.append(start, end, columns, lineage)

    def _marks(self, emitted: list[tuple[Key, Emitted]]) -> dict[Expr, Column]:  # noqa: ARG002 (many members do)
        """Give what else is to be known of some detections."""
        return {}

    def _attributes(self, found: list[Emitted]) -> dict[str, Column]:
        names = dict.fromkeys([*self.op.attributes, *(name for each in found for name in each.attributes)])
        columns = {}
        for name in names:
            self._check_name(name)
            try:
                columns[name] = from_arrow(pa.array([each.attributes.get(name) for each in found]))
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                raise QueryError(f"operator {self.op.function!r}: the attribute {name!r}: {error}") from error
        return columns

    def _check_name(self, name: Any) -> None:
        problem = None
        if not isinstance(name, str) or not name.isidentifier():
            problem = "is not a name"
        elif name in RESERVED:
            problem = "is something every detection has; choose another name"
        elif self.op.attributes and name not in self.op.attributes:
            problem = f"is not declared; declared: {', '.join(self.op.attributes)}"
        if problem is not None:
            raise QueryError(f"operator {self.op.function!r}: the attribute {name!r} {problem}")


def _item(root: int, row: int, event: Event, refs: Int64Array, place: int, inputs: int) -> WindowItem:
    return WindowItem(place, event.start, event.end, inputs, replace(event, place=place), refs, root, row)


def _together(emitted: Emitted) -> Int64Array:
    """List the atomic events below a detection, in the order of its events."""
    return np.concatenate([item.refs for item in emitted.items]) if emitted.items else np.zeros(0, np.int64)


def _events_of(context: ExecutionContext, stream: OperatorStream, rows: Int64Array) -> list[Event]:
    """Make the objects that operators see from rows of a stream."""
    frame = RowsFrame(context, stream, rows)
    start, end = stream.store.spans(rows)
    attributes = {name: _plain(column) for name, column in frame.attributes(None).items()}
    types, sources, x, y = (_plain(frame.column(None, name)) for name in ("type", "source", "x", "y"))
    ids = row_ids(context, stream, rows).to_pylist()
    made = []
    for at in range(len(rows)):
        known = {name: values[at] for name, values in attributes.items() if values[at] is not None}
        made.append(
            Event(
                types[at] or stream.name, ids[at], int(start[at]), int(end[at]), sources[at], x[at], y[at],
                MappingProxyType(known),
            )
        )  # fmt: skip
    return made


def _plain(column: Column) -> list[Any]:
    found: list[Any] = to_arrow(column).to_pylist()
    return found
