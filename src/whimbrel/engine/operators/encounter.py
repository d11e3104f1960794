"""Runs an `Encounter`: compares movers with each other, and gives what is found as composites."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from whimbrel.engine.arrays import longer
from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.kernels import encounters as k
from whimbrel.engine.kernels.border_crossings import Samples
from whimbrel.engine.operators.base import CorrelatingOperator, OperatorSetup
from whimbrel.engine.operators.motion import floats, inaccuracy, time_column
from whimbrel.engine.operators.step_matches import ROOT, StepEvents
from whimbrel.engine.ordered_inputs import OrderedBatch
from whimbrel.engine.shapes import NO_SHAPE, SHAPE, ShapeLayout
from whimbrel.engine.streams import RowsFrame
from whimbrel.engine.values import Column, FloatArray, Int64Array, nothing
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.graph.operators.encounter import Encounter, Meeting
from whimbrel.graph.operators.motion import MOTION
from whimbrel.graph.policies import Partitioning
from whimbrel.model.schema import Coordinates, Type
from whimbrel.model.time import END_OF_TIME
from whimbrel.space.geometry import EARTH_RADIUS_M, METRES_PER_DEGREE

TIDY_FROM = 4096
"""How many movers, or encounters, are remembered whether they still matter or not."""
_WHAT = {
    Meeting.COMES_WITHIN: k.COMING,
    Meeting.REACHES: k.COMING,
    Meeting.LEAVES: k.LEAVING,
    Meeting.CROSSES: k.CROSSING,
    Meeting.APPROACHES: k.NEARING,
    Meeting.MEETS: k.STAYING,
    Meeting.TRAVELS_WITH: k.TRAVELLING,
    Meeting.STAYS_IN: k.STAYING,
    Meeting.STAYS_OUTSIDE: k.STAYING,
    Meeting.STAYS_BEYOND: k.STAYING,
}
_LEAST_CELL_M = 1e-3
"""How wide a cell of the grid is at least."""
_NO_SHAPES: FloatArray = np.zeros(0)


class EncounterOperator(CorrelatingOperator[Encounter]):
    """An `Encounter` at run time."""

    state: ClassVar = (*CorrelatingOperator.state, "nodes", "node_f", "count", "place", "spot")

    def __init__(self, op: Encounter, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.spec = self._spec()
        self.count = np.zeros(k.COUNTS, np.int64)
        self.count[k.DUE] = k.NO_END
        self.count[k.FREE] = -1
        self.place = np.zeros((2, 0, k.P_COLUMNS), np.int64)
        self.spot = np.zeros((2, 0, k.S_COLUMNS))
        self.heads = np.full((2, 64), -1, np.int64)
        self.lists = np.zeros((0, 2), np.int64)
        self.seen = np.zeros(0, np.int64)
        self.nodes = np.zeros((0, k.E_COLUMNS), np.int64)
        self.node_f = np.zeros((0, k.N_FLOATS))
        self.found = np.zeros((0, k.F_COLUMNS), np.int64)
        self.found_m = np.zeros(0)
        self._ranks = np.zeros(0, np.int64)
        """The place of each mover among all, by their keys."""

    @classmethod
    def read_by(cls, op: Encounter) -> Iterable[str]:
        """Name the streams of the two kinds of movers; one stream where each two of it count."""
        return (op.input,) if op.is_among_one else (op.input, op.other)

    @classmethod
    def parted_by(cls, op: Encounter) -> Partitioning:
        """Give the keys that tell movers apart."""
        return Partitioning(op.keys)

    def _spec(self) -> Int64Array:
        op, spec = self.op, np.zeros(k.SPEC, np.int64)
        spec[k.WHAT] = _WHAT[op.verb]
        spec[k.FRESH] = op.fresh
        spec[k.DURATION] = op.duration
        spec[k.SAME] = op.is_among_one
        spec[k.SETTLE_EVENTS] = op.settling.events
        spec[k.SETTLE_TIME] = op.settling.duration
        spec[k.BETWEEN] = op.between
        spec[k.TURNED] = op.verb.is_outside
        spec[k.SHAPED] = op.verb.reads_shapes
        # Only those that are near are looked for in the grid; it does not tell who is far, or how large.
        spec[k.ALL] = op.verb.is_outside or op.verb.reads_shapes or op.verb is Meeting.APPROACHES
        return spec

    @property
    def _lengths(self) -> FloatArray:
        op, lengths = self.op, np.zeros(k.LENGTHS)
        lengths[k.NEAR], lengths[k.MARGIN], lengths[k.BY] = op.near_m, op.margin_m, op.by_m
        lengths[k.CELL] = max(1.000001 * (op.near_m + op.margin_m), _LEAST_CELL_M)
        if self.context.coordinates is Coordinates.LONLAT:
            lengths[k.EARTH], lengths[k.DEGREE] = EARTH_RADIUS_M, METRES_PER_DEGREE
        return lengths

    def _tables(self, shapes: FloatArray = _NO_SHAPES) -> k.MoverTables:
        widest = self.spot[:, :, [k.S_WRONG, k.S_WAY]].max(axis=1, initial=0.0)
        return k.MoverTables(
            self.spec, self._lengths, self.place, self.spot, widest, shapes, self.heads, self.lists,
            self.nodes, self.node_f, self.count, self.found, self.found_m, self.seen,
        )  # fmt: skip

    # -- a step --------------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return int(min(self.count[k.DUE], END_OF_TIME))

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Follow the movers along their new samples, and let time pass."""
        if len(arrived):
            self._take_in(arrived)
        if self.due <= watermark:
            self._expire(watermark)
        if self.count[k.FOUND]:
            self._emit()
        self._tidy(watermark)

    def _take_in(self, arrived: OrderedBatch) -> None:
        size = len(arrived)
        key, shape = np.zeros(size, np.int64), np.full(size, NO_SHAPE, np.int64)
        x, y, wrong = np.empty(size), np.empty(size), np.zeros(size)
        layout = ShapeLayout(self.context.coordinates)
        for at, frame in self.arrivals.frames(arrived.root, arrived.row):
            key[at] = self.keys.of_frame(frame)
            x[at], y[at] = floats(frame.column(None, "@x")), floats(frame.column(None, "@y"))
            wrong[at] = inaccuracy(self.op.accuracy, frame)
            if self.op.verb.reads_shapes:
                shape[at] = layout.of_column(frame.column(None, SHAPE.name))
        self._make_room_for(len(self.keys))
        if self.op.verb.reads_shapes:
            self._lay_out_known(layout, int(arrived.end[0]) - self.op.fresh)
        seen = ~(np.isnan(x) | np.isnan(y))
        ident = (arrived.root << ROOT) | arrived.row
        samples = Samples(key[seen], arrived.end[seen], ident[seen], x[seen], y[seen])
        rest = (wrong[seen], shape[seen], arrived.mask.astype(np.int64)[seen])
        done, shapes = 0, layout.data
        while True:
            done = k.process_samples(self._tables(shapes), *samples, *rest, done, len(self.keys))
            if done == len(samples.key):
                break
            self._make_room()
        self.count[k.SERIAL] += 2 * len(samples.key)

    def _lay_out_known(self, layout: ShapeLayout, fresh: int) -> None:
        """Lay out the shapes of movers that are still known; samples that are older may be gone."""
        known = np.flatnonzero(self.place[1, :, k.P_TIME] >= fresh)
        idents = self.place[1, known, k.P_IDENT]
        for number, root in enumerate(self.arrivals.roots):
            at = np.flatnonzero(idents >> ROOT == number)
            frame = RowsFrame(self.context, root, idents[at] & ((1 << ROOT) - 1))
            self.place[1, known[at], k.P_SHAPE] = layout.of_column(frame.column(None, SHAPE.name))

    def _expire(self, watermark: int) -> None:
        while not k.expire(self._tables(), watermark):
            self._make_room()

    # -- room ----------------------------------------------------------------------------------------------

    def _make_room_for(self, movers: int) -> None:
        old = self.place.shape[1]
        if movers <= old:
            return
        size = max(2 * old, movers, 16)
        place = np.zeros((2, size, k.P_COLUMNS), np.int64)
        place[:, :, k.P_TIME] = k.NO_TIME
        place[:, :old] = self.place
        spot = np.zeros((2, size, k.S_COLUMNS))
        spot[:, :old] = self.spot
        lists = np.full((size, 2), -1, np.int64)
        lists[:old] = self.lists
        self.place, self.spot, self.lists, self.seen = place, spot, lists, longer(self.seen, size)
        if self.heads.shape[1] < size:
            self._link_places(2 * _power_of_two(size))

    def _link_places(self, buckets: int) -> None:
        """Put all movers into the grid again."""
        self.heads = np.full((2, buckets), -1, np.int64)
        for role in range(2):
            for mover in np.flatnonzero(self.place[role, :, k.P_TIME] != k.NO_TIME):
                k.put_in(self.place, self.heads, role, mover)

    def _make_room(self) -> None:
        need = 4 * len(self.keys) + 64
        wanted = int(self.count[k.FOUND]) + need
        if len(self.found) < wanted:
            self.found, self.found_m = longer(self.found, 2 * wanted), longer(self.found_m, 2 * wanted)
        old = len(self.nodes)
        if old - int(self.count[k.LIVE]) < need:
            size = old + max(old, need)
            self.nodes, self.node_f = longer(self.nodes, size), longer(self.node_f, size)
            self._chain_unused(old)

    def _chain_unused(self, begin: int) -> None:
        """Let the nodes from `begin` on be used before all others that are free."""
        size = len(self.nodes)
        self.nodes[begin:, k.E_NEXT_A] = np.arange(begin + 1, size + 1)
        if size > begin:
            self.nodes[-1, k.E_NEXT_A] = self.count[k.FREE]
            self.count[k.FREE] = begin

    def _tidy(self, watermark: int) -> None:
        """Forget movers that were not seen, and encounters of those that were not compared, for too long."""
        used = self.nodes[:, k.E_SIDE] != k.UNUSED
        fresh = watermark - self.op.fresh
        over = int(self.count[k.LIVE]) >= TIDY_FROM
        if over and 2 * int((used & (self.nodes[:, k.E_LAST] >= fresh)).sum()) <= self.count[k.LIVE]:
            self._keep(np.arange(len(self.keys)), fresh)
        if len(self.keys) >= TIDY_FROM:
            last = self.place[:, : len(self.keys), k.P_TIME].max(axis=0)
            # Another one that is still known may have been compared with it when that one was seen.
            live = np.flatnonzero(last >= fresh - self.op.fresh)
            if 2 * len(live) <= len(self.keys):
                self._keep(live, fresh)

    def _keep(self, live: Int64Array, fresh: int) -> None:
        """Forget all movers but these, and what was not compared since `fresh`."""
        table = np.full(len(self.keys), -1, np.int64)
        table[live] = np.arange(len(live))
        kept = np.flatnonzero((self.nodes[:, k.E_SIDE] != k.UNUSED) & (self.nodes[:, k.E_LAST] >= fresh))
        self.nodes, self.node_f = self.nodes[kept], self.node_f[kept]
        self.nodes[:, [k.E_A, k.E_B]] = table[self.nodes[:, [k.E_A, k.E_B]]]
        self.place, self.spot = self.place[:, live], self.spot[:, live]
        self.seen = np.zeros(len(live), np.int64)
        self.keys.keep(live)
        self._ranks = np.zeros(0, np.int64)
        self._relink()

    def _relink(self) -> None:
        """Make the grid and all lists anew."""
        self.count[k.LIVE], self.count[k.FREE] = len(self.nodes), -1
        self.lists = np.full((self.place.shape[1], 2), -1, np.int64)
        for node in range(len(self.nodes)):
            k.link(self.lists, self.nodes, node)
        self._link_places(2 * _power_of_two(max(self.place.shape[1], 32)))

    # -- what was found ------------------------------------------------------------------------------------

    def _emit(self) -> None:
        size = int(self.count[k.FOUND])
        self.count[k.FOUND] = 0
        found, metres = self._in_order(self.found[:size].copy()), self.found_m[:size].copy()
        idents = np.ascontiguousarray(found[:, [k.F_IDENT_A, k.F_IDENT_B]]).reshape(-1)
        events = StepEvents(self, np.arange(0, 2 * size + 1, 2), idents)
        until = np.where(found[:, k.F_UNTIL] == k.NO_TIME, -1, found[:, k.F_UNTIL])
        columns = events.identity(np.tile([0, 1], size), until)
        known = {"distance": Column(Type.FLOAT, metres), "since": time_column(found[:, k.F_SINCE])}
        for need in self.required:
            columns |= self._needed(need, found, known)
        self.stream.new = self.stream.store.append(*events.spans(until), columns, events.lineage())

    def _in_order(self, found: Int64Array) -> Int64Array:
        """Of two movers of one stream, let the one come first whose key does."""
        if not self.op.is_among_one:
            return found
        if len(self._ranks) != len(self.keys):
            self._ranks = _ranks(self.keys.values())
        turned = self._ranks[found[:, k.F_A]] > self._ranks[found[:, k.F_B]]
        for one, other in ((k.F_A, k.F_B), (k.F_IDENT_A, k.F_IDENT_B)):
            kept = found[turned, one]
            found[turned, one] = found[turned, other]
            found[turned, other] = kept
        return found

    def _needed(self, need: Expr, found: Int64Array, known: dict[str, Column]) -> dict[Expr, Column]:
        assert isinstance(need, Attribute)
        if need.part == MOTION:
            return {need: known.get(need.name, nothing(len(found)))}
        is_a = need.part == self.op.alias
        idents = found[:, k.F_IDENT_A if is_a else k.F_IDENT_B]
        stream = self.inputs[0 if is_a else -1]
        frame = RowsFrame(self.context, stream, idents & ((1 << ROOT) - 1), need.part)
        if need.name == "*":
            return {Attribute(need.part, n): column for n, column in frame.attributes(need.part).items()}
        return {need: evaluate(need, frame)}

    # -- snapshots -----------------------------------------------------------------------------------------

    def in_use(self, attribute: str) -> Any:
        """Give what is saved of an attribute: of the encounters those that are going on."""
        value = super().in_use(attribute)
        return value[self.nodes[:, k.E_SIDE] != k.UNUSED] if attribute in ("nodes", "node_f") else value

    def loaded(self) -> None:
        """Make the grid and the lists anew."""
        self._ranks = np.zeros(0, np.int64)
        self.seen = np.zeros(self.place.shape[1], np.int64)
        self._relink()


def _power_of_two(size: int) -> int:
    return 1 << max(5, (size - 1).bit_length())


def _ranks(values: list[Any]) -> Int64Array:
    """Give the place of each value among all of them in order."""
    ranks = np.empty(len(values), np.int64)
    ranks[sorted(range(len(values)), key=lambda number: _sortable(values[number]))] = np.arange(len(values))
    return ranks


def _sortable(value: Any) -> tuple[Any, ...]:
    """Let keys be compared; nothing comes before anything."""
    parts = value if isinstance(value, tuple) else (value,)
    return tuple((part is not None, part) for part in parts)
