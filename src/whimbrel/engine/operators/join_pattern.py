"""Runs a `JoinPattern`: sequences, conjunctions, absences, with their conditions and contexts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from whimbrel.engine.evaluate import evaluate, true_rows
from whimbrel.engine.identity import fold, fold_on, row_hashes
from whimbrel.engine.kernels import match as k
from whimbrel.engine.kernels import pattern as p
from whimbrel.engine.key_codes import KeyCodes
from whimbrel.engine.operators.base import CorrelatingOperator, OperatorSetup
from whimbrel.engine.operators.join_state import MatchOutput, MatchScratch, MatchState
from whimbrel.engine.operators.value_columns import ColumnKey, ValueColumns, ValueTable, own, remap_texts
from whimbrel.engine.ordered_inputs import OrderedBatch, Places
from whimbrel.engine.parts import PartsFrame
from whimbrel.engine.programs import BeyondTheMachine, Operand, Programs, spell_out_relations
from whimbrel.engine.row_store import Lineage
from whimbrel.engine.shapes import ShapeLayout
from whimbrel.engine.streams import RowsFrame
from whimbrel.engine.values import Column
from whimbrel.errors import QueryError
from whimbrel.graph.binding import IN_ORDER, Tie, binding_order, usual_order
from whimbrel.graph.costs import passing
from whimbrel.graph.expressions import (
    GROUP,
    Attribute,
    Expr,
    conjunction,
    format_expr,
    parts_of,
)
from whimbrel.graph.operators import Absent, Graph, JoinPattern, PatternPart
from whimbrel.graph.policies import Context, Select
from whimbrel.graph.scope import scope
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME

_CONTEXTS = {
    Context.EACH: p.EACH,
    Context.RECENT: p.RECENT,
    Context.CHRONICLE: p.CHRONICLE,
    Context.FIRST_MATCHING: p.FIRST_MATCHING,
    Context.CONTINUOUS: p.CONTINUOUS,
    Context.CUMULATIVE: p.CUMULATIVE,
}
_SELECTS = {Select.EACH: p.TAKE_EACH, Select.FIRST: p.TAKE_FIRST, Select.LAST: p.TAKE_LAST}
MOST_COLUMNS = 32


def _selects(op: JoinPattern) -> bool:
    return len(op.parts) > 1 and any(part.select is not Select.EACH for part in op.parts)


def _chooses(op: JoinPattern) -> bool:
    """Tell whether not every combination that holds is a detection, or events are used up."""
    return op.context is not Context.EACH or bool(op.consuming) or _selects(op)


def _writable(array: np.ndarray) -> np.ndarray:
    flags = array.flags
    if flags.writeable and flags.c_contiguous:
        return array
    return array if array.flags.carray else np.require(array, requirements=["C", "W"])


class JoinPatternOperator(CorrelatingOperator[JoinPattern]):
    """A `JoinPattern` at run time."""

    is_worth_sharing: ClassVar = True
    state: ClassVar = (*CorrelatingOperator.state, "values", "pool")

    def __init__(self, op: JoinPattern, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        if len(self.inputs) > 63:
            raise QueryError(f"the pattern {op.name!r} has {len(self.inputs)} parts; 63 is the most")
        self.keys = KeyCodes(op.partitioning.keys, op.joins)
        self.root_of = [
            next(n for n, root in enumerate(self.arrivals.roots) if root.store is s.store)
            for s in self.inputs
        ]
        self.retain = op.retention
        self._names(setup.graph)
        # What one pattern of a query needs compiled, the others use too.
        patterns = [operator for operator in setup.graph.operators if isinstance(operator, JoinPattern)]
        self.chooses = any(map(_chooses, patterns))
        self.has_absences = any(pattern.absent for pattern in patterns)
        self._describe()
        self.values = ValueColumns(MOST_COLUMNS, repr(op.name))
        self._layout = ShapeLayout(self.context.coordinates)
        self.residual: tuple[Expr, ...] = ()
        self.pool = MatchState(len(op.parts), len(self.inputs), self.keys)
        self.scratch = MatchScratch(len(op.parts), 64)
        self.room = 64
        self._compile()

    # -- what does not change ----------------------------------------------------------------------

    def _names(self, graph: Graph) -> None:
        """Find out which slot every part name belongs to."""
        self.owner: dict[str, int] = {}
        self.alias: list[str | None] = []
        members: list[PatternPart | Absent] = [*self.op.parts, *self.op.absent]
        for slot, part in enumerate(members):
            self.alias.append(part.alias)
            for name in [*scope(graph, part.input), *([part.alias] if part.alias else [])]:
                self.owner.setdefault(name, slot)

    def _describe(self) -> None:
        """Write the pattern down as the numbers the kernel reads."""
        op, parts = self.op, len(self.op.parts)
        spec = np.zeros(p.SPEC, np.int64)
        spec[p.PARTS], spec[p.ABSENT] = parts, len(op.absent)
        spec[p.WITHIN], spec[p.RETAIN] = op.within, self.retain
        spec[p.CONTEXT] = _CONTEXTS[op.context]
        spec[p.CONSUMING] = bool(op.consuming)
        spec[p.SELECTING] = _selects(op)
        spec[p.CONDITIONS_LATE] = op.context is Context.CHRONICLE
        spec[p.WAITS] = any(absent.before is None for absent in op.absent)
        firsts = {order.first for order in op.orders}
        self.triggers = np.array([part not in firsts for part in range(parts)], np.uint8)
        spec[p.KEEP_TRIGGER] = (
            int(self.triggers.sum()) > 1
            or op.context is not Context.EACH
            or bool(spec[p.CONSUMING] or spec[p.SELECTING] or spec[p.WAITS])
        )
        spec[p.CONSUMES] = op.context is not Context.EACH or bool(op.consuming)
        # A chain of `then` cannot meet the same event twice.
        spec[p.DISTINCT] = {(n, n + 1) for n in range(parts - 1)} <= {
            (o.first, o.second) for o in op.orders if o.gap is None
        }
        self.spec = spec
        self.orders = np.array(
            [(o.first, o.second, -1 if o.gap is None else o.gap) for o in op.orders], np.int64
        ).reshape(-1, 3)
        self.absents = np.array(
            [tuple(-1 if n is None else n for n in (a.after, a.before, a.duration)) for a in op.absent],
            np.int64,
        ).reshape(-1, 3)
        self.select = np.array([_SELECTS[part.select] for part in op.parts], np.int64)
        self.consume = np.array([part in op.consuming for part in range(parts)], np.uint8)
        self._plan()

    def _plan(self) -> None:
        """Decide in which order the parts are bound, from each part that can complete the pattern."""
        parts = len(self.op.parts)
        self.before_part = np.full(parts, -1, np.int64)
        for order in sorted(self.op.orders, key=lambda o: o.first):
            self.before_part[order.second] = order.first
        before = self.before_part.tolist()
        self._bind([usual_order(trigger, before) for trigger in range(parts)])
        self._usual = self.plan
        self._seen = np.zeros(parts, np.int64)
        self._seen_from: int | None = None
        self._look_again = 1

    def _bind(self, orders: list[list[int]]) -> None:
        """Take an order of binding for each part that can complete the pattern."""
        parts = len(self.op.parts)
        self.plan = np.array(orders, np.int64).reshape(parts, parts)
        self.link = np.full((parts, parts), -1, np.int64)
        for trigger, order in enumerate(orders):
            for depth in range(1, parts):
                linked = (b for b in order[:depth] if self.before_part[b] == order[depth])
                self.link[trigger, depth] = next(linked, -1)
        self.order_at, self.order_list = self._schedule([{o.first, o.second} for o in self.op.orders])

    def _observe(self, arrived: OrderedBatch) -> None:
        """Count the events of each part, and bind the parts in another order where that is less work.

        Which combinations are found does not depend on it, so that it may change at any time.
        """
        parts = len(self.op.parts)
        if parts < 3 or not len(arrived):
            return
        self._seen += [np.count_nonzero(arrived.mask & np.uint64(1 << part)) for part in range(parts)]
        self._seen_from = int(arrived.end[0]) if self._seen_from is None else self._seen_from
        if self._seen.sum() < self._look_again:
            return
        self._look_again = 4 * int(self._seen.sum())
        span = max(int(arrived.end[-1]) - self._seen_from, 1)
        share = min(self.op.within / span, 1.0) / max(len(self.pool.keys), 1)
        expected = (self._seen * share).tolist()
        before = self.before_part.tolist()
        orders = [binding_order(trigger, before, expected, self._ties()) for trigger in range(parts)]
        if orders != self.plan.tolist():
            self._bind(orders)
            self.condition_at, self.condition_list = self._schedule(self._condition_parts)

    def _ties(self) -> list[Tie]:
        ties = [Tie(frozenset((order.first, order.second)), IN_ORDER) for order in self.op.orders]
        tested = zip(self._condition_parts, self._conditions, strict=True)
        return ties + [Tie(frozenset(parts), passing(condition)) for parts, condition in tested]

    def _in_usual_order(self, bound: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Give the order in which combinations are found if the parts are bound as usual."""
        trigger = bound.argmax(axis=1)
        tried = np.take_along_axis(bound, self._usual[trigger], axis=1)
        return np.lexsort((*(-tried[:, depth] for depth in range(tried.shape[1] - 1, 0, -1)), trigger,
                           tried[:, 0], ends))  # fmt: skip

    def _schedule(self, required: list[set[int]]) -> tuple[np.ndarray, np.ndarray]:
        """For each trigger and depth, list the tests whose parts are all bound there and not before."""
        parts = len(self.op.parts)
        at = np.zeros((parts, parts, 2), np.int64)
        listed: list[int] = []
        for trigger in range(parts):
            for depth in range(parts):
                before, now = set(self.plan[trigger, :depth]), set(self.plan[trigger, : depth + 1])
                at[trigger, depth, 0] = len(listed)
                listed += [n for n, wanted in enumerate(required) if wanted <= now and not wanted <= before]
                at[trigger, depth, 1] = len(listed)
        return at, np.array(listed, np.int64)

    # -- conditions ---------------------------------------------------------------------------------

    def _compile(self) -> None:
        """Compile the conditions for the column types known so far."""
        programs = Programs(self._operand, self.owner | {GROUP: 0}, self.context.coordinates)
        codes, required, tested, residual = [], [], [], []
        for condition in map(spell_out_relations, self.op.conditions):
            try:
                codes.append(programs.add(condition))
                required.append({self.owner.get(name or "", 0) for name in parts_of(condition)})
                tested.append(condition)
            except BeyondTheMachine:
                residual.append(condition)
        self._refuse_unsuited(residual)
        self.residual = tuple(residual)
        self.condition_code = np.array(codes, np.int64).reshape(-1, 2)
        self._condition_parts, self._conditions = required, tested
        self.condition_at, self.condition_list = self._schedule(required)
        self.absent_code = np.array(
            [self._absent_program(programs, absent.conditions) for absent in self.op.absent], np.int64
        ).reshape(-1, 2)
        self.values.texts.in_order |= programs.orders_texts
        self.code = np.array(programs.code, np.int64)
        self._programs = programs
        self._lay_out_constants()

    def _lay_out_constants(self) -> None:
        """Give the kernel the constants of the programs, and the shapes that texts stand for."""
        texts = self.values.texts.values() if self._programs.reads_shapes else []
        self.int_constants, self.float_constants = self._programs.constants(self._layout, texts)
        self._laid_out = len(self.values.texts)

    def _absent_program(self, programs: Programs, conditions: tuple[Expr, ...]) -> tuple[int, int]:
        joined = conjunction(conditions)
        if joined is None:
            return 0, 0
        try:
            return programs.add(spell_out_relations(joined))
        except BeyondTheMachine:
            raise QueryError(
                f"the condition {format_expr(joined)!r} of an absent part is too complex",
                joined.at,
                "compute what it needs in a definition of its own, one event at a time",
            ) from None

    def _refuse_unsuited(self, residual: list[Expr]) -> None:
        """Conditions tested on finished combinations cannot steer selection or consumption."""
        op = self.op
        plain = op.context is Context.EACH and not op.consuming and not self.spec[p.SELECTING]
        if residual and not plain:
            raise QueryError(
                f"the condition {format_expr(residual[0])!r} cannot be combined with first, last, consuming "
                f"or the context {op.context.value!r}",
                residual[0].at,
                "compute what it needs in a definition of its own, one event at a time",
            )

    def _operand(self, slot: int, expr: Expr) -> Operand:
        """Give the pool column for an expression over one slot; -1 for the event's own start or end."""
        value = self._own(slot, expr)
        if isinstance(value, Attribute) and value.part is None and value.name in ("start", "end"):
            return Operand(Type.TIMESTAMP, -1)
        # Names of alternatives mean something in their own slot only.
        key = ColumnKey(value, self.root_of[slot], slot if self.inputs[slot].branches else -1)
        return self.values.operand(key)

    def _own(self, slot: int, expr: Expr) -> Expr:
        """Rewrite an expression over a part as one over the event itself."""
        alias = self.alias[slot]
        return expr if alias is None else own(expr, alias)

    def loaded(self) -> None:
        """Compile the conditions for the types that columns have."""
        self._compile()

    # -- a step ----------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        deadline = self.pool.next_deadline
        return END_OF_TIME if deadline is None else deadline

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Look for combinations that the new events complete, and let time pass."""
        if not len(arrived) and self.due > watermark:
            return
        if self.op.joins:
            arrived = self._without_null_joins(arrived)
        found = self._feed(arrived, watermark)
        if len(found[1]):
            self._emit(*found)
        self.pool.forget_before(watermark - self.retain)
        self._forget_texts()

    def _forget_texts(self) -> None:
        """Give the codes of texts back that no event in the pool has any more."""
        texts = self.values.texts
        if len(texts) < 4096 or len(texts) < 4 * self.pool.entries:
            return
        places, used = self.values.places_of_texts(), self.pool.ints[: self.pool.entries]
        remap_texts(used, places, texts.keep(np.unique(used[:, places])))
        self._layout = ShapeLayout(self.context.coordinates)
        self._lay_out_constants()

    def _without_null_joins(self, arrived: OrderedBatch) -> OrderedBatch:
        gone = np.zeros(len(arrived), np.bool_)
        for at, frame in self.arrivals.frames(arrived.root, arrived.row):
            for name in self.op.joins:
                gone[at] |= frame.column(None, name).nulls
        return arrived.take(~gone) if gone.any() else arrived

    def _values(self, arrived: OrderedBatch) -> ValueTable:
        """Compute the columns that conditions read, for the arrived events."""
        values, pool = self.values, self.pool
        computed = list(self._computed(arrived))
        before = values.places
        if values.learn(computed):
            pool.rearrange(before, values.places)
            self._compile()
        moved = values.learn_texts(computed)
        if moved is not None:
            remap_texts(pool.ints[: pool.entries], values.places_of_texts(), moved)
        if self._programs.reads_shapes and (moved is not None or len(values.texts) != self._laid_out):
            self._lay_out_constants()
        return values.table(len(arrived), computed)

    def _computed(self, arrived: OrderedBatch) -> Iterator[tuple[Places, int, Column]]:
        for at, root, rows in self.arrivals.by_root(arrived.root, arrived.row):
            for key, number in self.values.numbers.items():
                if key.root == root:
                    stream = self.arrivals.roots[root] if key.slot < 0 else self.inputs[key.slot]
                    frame = RowsFrame(self.context, stream, rows, None, self.op.partitioning)
                    yield at, number, evaluate(key.expr, frame)

    def _feed(
        self, arrived: OrderedBatch, watermark: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        pool = self.pool
        keys = self.keys.of_batch(self.arrivals, arrived)
        values = self._values(arrived)
        self._observe(arrived)
        pool.reserve(len(arrived))
        entry_of = np.full(len(arrived), -1, np.int64)
        out = MatchOutput(len(self.op.parts), self.room)
        pool.count[[p.NEXT, p.PHASE, p.FOUND]] = 0
        # Arrays that cannot be written to would be compiled for once more.
        start, end, mask = (_writable(array) for array in (arrived.start, arrived.end, arrived.mask))
        keys, idents = _writable(keys), _writable(self.arrivals.identities(arrived.root, arrived.row))
        # In the worst case every event is tried with every other, once for every further part.
        work = (pool.entries + len(arrived)) ** (len(self.op.parts) + len(self.op.absent))
        step = k.match_step.at(work) if self._programs.is_exact else k.match_step
        consume = self.consume if self.chooses else None
        absents = self.absents if self.chooses or self.has_absences else None
        while True:
            status = step(
                self.spec, pool.count, self.plan, self.link, self.before_part,
                self.orders, self.order_at, self.order_list,
                self.condition_code, self.condition_at, self.condition_list,
                absents, self.absent_code, self.select, consume, self.triggers,
                self.code, self.int_constants, self.float_constants,
                start, end, keys, idents, mask, *values,
                pool.hot, pool.key, pool.ident, pool.ints, pool.floats, pool.nulls, pool.consumed, pool.tail,
                pool.deadline, pool.serial, pool.trigger, pool.fine, pool.bound, watermark, entry_of,
                self.scratch.rows, self.scratch.fine, self.scratch.chosen,
                out.bound, out.end, out.offset, out.member,
            )  # fmt: skip
            if status == k.DONE:
                break
            self._make_room(status, out)
        self.room = max(64, min(len(out.end), 2 * int(pool.count[p.FOUND])))
        kept = entry_of >= 0
        pool.row[entry_of[kept]] = arrived.row[kept]
        pool.root[entry_of[kept]] = arrived.root[kept]
        found = int(pool.count[p.FOUND])
        return out.bound[:found], out.end[:found], out.offset[: found + 1], out.member

    def _make_room(self, status: int, out: MatchOutput) -> None:
        """Lengthen the arrays that were too short for the kernel."""
        if status == k.MORE_OUTPUT:
            out.lengthen(max(self.pool.waiting, len(self.scratch.fine)))
        elif status == k.MORE_SCRATCH:
            self.scratch = MatchScratch(
                len(self.op.parts), 2 * max(len(self.scratch.fine), self.pool.waiting)
            )
        else:
            self.pool.reserve_waiting(len(self.scratch.fine))

    # -- detections ------------------------------------------------------------------------------------

    def _emit(self, bound: np.ndarray, ends: np.ndarray, offsets: np.ndarray, members: np.ndarray) -> None:
        if self.plan is not self._usual and self.op.context is Context.EACH and not self.op.consuming:
            order = self._in_usual_order(bound, ends)
            bound, ends = bound[order], ends[order]
        rows = self.pool.row[bound]
        frame = self._frame(rows)
        if self.residual:
            keep = np.ones(len(ends), np.bool_)
            for condition in self.residual:
                keep &= true_rows(condition, frame)
            bound, ends, rows = bound[keep], ends[keep], rows[keep]
            frame = self._frame(rows)
        starts = self.pool.start[bound].min(axis=1) if len(bound) else np.zeros(0, np.int64)
        if self.op.context is Context.CUMULATIVE:
            members = members[: offsets[-1]]
            below = self.arrivals.lineage(self.pool.root[members], self.pool.row[members])
            lineage = Lineage(below.offsets[offsets], below.refs)
            starts = np.minimum.reduceat(self.pool.start[members], offsets[:-1])
        else:
            lineage = Lineage.zip([f.stream.store.lineage(f.rows) for f in frame.frames])
        columns: dict[Expr, Column] = self._hashes(frame, offsets, members)
        for need in self.required:
            columns |= self._needed(need, frame)
        self.stream.new = self.stream.store.append(starts, ends, columns, lineage)

    def _frame(self, rows: np.ndarray) -> PartsFrame:
        frames = tuple(
            RowsFrame(self.context, self.inputs[slot], rows[:, slot], self.alias[slot], self.op.partitioning)
            for slot in range(len(self.op.parts))
        )
        return PartsFrame(self.context, frames, self.owner)

    def _needed(self, need: Expr, frame: PartsFrame) -> dict[Expr, Column]:
        """Compute a column that a later operator reads; `a.*` stands for all attributes of a part."""
        if isinstance(need, Attribute) and need.part == GROUP:
            key = next(key for key in self.op.partitioning.keys if key.name == need.name)
            return {need: frame.frames[0].key(key)}
        if isinstance(need, Attribute) and need.name == "*":
            return {Attribute(need.part, name): c for name, c in frame.attributes(need.part).items()}
        return {need: evaluate(need, frame)}

    def _hashes(self, frame: PartsFrame, offsets: np.ndarray, members: np.ndarray) -> dict[Expr, Column]:
        """Hash what each detection is made of: the events of its parts, or all members if cumulative."""
        if self.op.context is not Context.CUMULATIVE:
            each = np.arange(len(frame) + 1)
            if self.op.continues:
                begun = row_hashes(self.context, frame.frames[0].stream, frame.frames[0].rows)
                return fold_on(begun, each * (len(frame.frames) - 1), *self._part_hashes(frame.frames[1:]))
            return fold(each * len(frame.frames), *self._part_hashes(frame.frames))
        members = members[: offsets[-1]]
        return fold(offsets, *self.arrivals.hashes(self.pool.root[members], self.pool.row[members]))

    def _part_hashes(self, frames: tuple[RowsFrame, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Hash the events of some parts, detection by detection."""
        streams = [part.stream for part in frames]
        if all(stream.store is streams[0].store for stream in streams):
            rows = np.stack([part.rows for part in frames], axis=1).reshape(-1)
            return row_hashes(self.context, streams[0], rows)
        pairs = [row_hashes(self.context, part.stream, part.rows) for part in frames]
        high, low = (np.stack(column, axis=1).reshape(-1) for column in zip(*pairs, strict=True))
        return high, low
