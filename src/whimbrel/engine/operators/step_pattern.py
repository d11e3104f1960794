"""Runs a `StepPattern`: runs of an automaton along the events of every partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from whimbrel.engine.arrays import NO_ROWS, longer
from whimbrel.engine.evaluate import evaluate
from whimbrel.engine.kernels import all_matches, skip_matches
from whimbrel.engine.kernels import runs as k
from whimbrel.engine.kernels.match_listing import list_paths, mark_nodes
from whimbrel.engine.operators.base import CorrelatingOperator, OperatorSetup, RunningOperator
from whimbrel.engine.operators.step_automaton import (
    Automaton,
    AutomatonState,
    Lookahead,
    StateKind,
    Transition,
    holds,
    transitions,
)
from whimbrel.engine.operators.step_matches import ROOT, CountedMatches, ListedMatches, step_of, summed
from whimbrel.engine.operators.step_registers import StepMemory
from whimbrel.engine.operators.value_columns import NULLS, ValueTable, rearranged, remap_texts
from whimbrel.engine.ordered_inputs import OrderedBatch
from whimbrel.engine.row_store import RowStore, offsets_of
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import ARRIVAL, OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Call, Expr
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.model.time import BEGINNING_OF_TIME, END_OF_TIME
from whimbrel.space.kernels.jit import Kernel

FORGET_FROM = 4096
"""How many keys or texts are kept whether they are still in use or not."""
MOST_LISTED = 50_000_000
"""How many matches are listed at once, at the most; more would not fit into memory."""
_SKIPS = {"no_skip": 0, "skip_past_last_event": k.PAST_LAST, "skip_to_next": k.TO_NEXT,
          "skip_to_first": k.TO_FIRST, "skip_to_last": k.TO_LAST}  # fmt: skip


class StepPatternOperator(CorrelatingOperator[StepPattern]):
    """A `StepPattern` at run time."""

    keeps_order: ClassVar = True
    state: ClassVar = (*CorrelatingOperator.state, "count", "memory", "runs", "nodes", "head", "alive")

    def __init__(self, op: StepPattern, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        names = list(op.inputs)
        if len(names) > 63:
            raise QueryError(f"the pattern {op.name!r} has {len(names)} different tests; 63 is the most")
        self.timed_out = OperatorStream(f"{op.name}.timed_out", RowStore(), composite=True, keeps_order=True)
        self.wants_timeouts = any(
            isinstance(each, TimedOut) and each.input == op.name for each in setup.graph.operators
        )
        self.steps = {step.name: number for number, step in enumerate(op.taken())}
        self.slot_of_step = [names.index(step.test.input) for step in op.taken()]
        self.automaton = Automaton(op)
        self.moves = transitions(self.automaton)
        self.slot_of_test = [
            None if isinstance(test, Lookahead) else names.index(test.input) for test in self.automaton.tests
        ]
        self.memory = StepMemory(self.automaton.tests, self.steps, self.context.coordinates, self._totals())
        self.skips = op.skip.strategy != "no_skip"
        self.machine = self._machine()
        self.count = np.zeros(k.COUNTS, np.int64)
        self.count[k.DUE] = k.NO_END
        self.count[k.FREE] = -1
        self.columns = 2 if self.skips else len(self.automaton.states)
        self.head = np.full((0, self.columns), -1, np.int64)
        self.alive = np.zeros(0, np.int64)
        self.runs = self._no_runs()
        self.nodes = self._no_nodes()
        self.found = self._room_to_find(64)
        self.late = self._room_to_find(64)
        self.work = self._scratch(64)
        self._inert: dict[int, np.ndarray] = {}
        self._expired_at = BEGINNING_OF_TIME
        bounds = [bound for bound in (op.within, op.gap) if bound is not None]
        self._patience = min(bounds, default=2 * END_OF_TIME)
        """How long runs that are out of time may stay where no event comes for them."""

    @classmethod
    def read_by(cls, op: StepPattern) -> Iterable[str]:
        """Name the streams that it reads, each once: steps that test the same events share a bit."""
        return op.inputs

    def _totals(self) -> list[tuple[str, Expr | None]]:
        """Name what is summed up over all matches where they are counted."""
        if not self.op.counted:
            return []
        found: dict[tuple[str, Expr | None], None] = {}
        for need in self.required:
            if isinstance(need, Call) and need.arguments:
                step = step_of(need.arguments[0], self.steps)
                found.setdefault((step, summed(need.arguments[0], step)))
        return list(found)

    # -- what does not change ------------------------------------------------------------------------------

    def _machine(self) -> k.Machine:
        """Write the automaton down as the numbers the kernels read."""
        terms: list[tuple[int, int]] = []

        def listed(formula: frozenset[tuple[int, int]]) -> tuple[int, int]:
            begin = len(terms)
            terms.extend(sorted(formula))
            return begin, len(terms)

        offsets = np.cumsum([0, *(len(per_state) for per_state in self.moves)]).tolist()
        states = [
            (
                state.kind,
                offsets[number],
                offsets[number + 1],
                self._asked(own),
                self._gap_of(state),
                -1 if state.lapses is None else state.lapses,
            )
            for number, (state, own) in enumerate(zip(self.automaton.states, self.moves, strict=True))
        ]
        flat = [
            (
                move.action,
                move.target,
                self.steps.get(move.step, -1),
                *listed(move.formula),
                *listed(move.completes),
            )
            for per_state in self.moves
            for move in per_state
        ]
        return k.Machine(
            np.array(states, np.int64),
            np.array(flat, np.int64).reshape(-1, 7),
            np.array(terms, np.int64).reshape(-1, 2),
            self._spec(),
        )

    def _gap_of(self, state: AutomatonState) -> int:
        """Give how long after the last event a state may still be left; -1: for ever."""
        gaps = [gap for gap in (state.within_previous, self.op.gap) if gap is not None]
        return min(gaps, default=-1)

    def _asked(self, listed: list[Transition]) -> int:
        """Give the tests that the moves of a state depend on and that depend on what a run has taken."""
        terms = [term for move in listed for formula in (move.formula, move.completes) for term in formula]
        asked = 0
        for need, forbid in terms:
            asked |= need | forbid
        about_runs = sum(
            1 << number
            for number, test in enumerate(self.automaton.tests)
            if isinstance(test, Lookahead) or test.condition is not None
        )
        return asked & about_runs

    def _spec(self) -> np.ndarray:
        op, states = self.op, self.automaton.states
        spec = np.zeros(k.SPEC, np.int64)
        spec[k.BEGIN_STATE] = states.index(self.automaton.start)
        spec[k.FINAL_STATE] = states.index(self.automaton.final)
        spec[k.WITHIN] = -1 if op.within is None else op.within
        spec[k.KEEPS_BEGIN] = op.within is not None
        spec[k.KEEPS_LAST] = any(self._gap_of(state) >= 0 for state in states) or any(
            isinstance(test, Lookahead) for test in self.automaton.tests
        )
        spec[k.WANTS_TIMEOUTS] = self.wants_timeouts
        spec[k.LIMIT] = op.bound.runs + self.skips  # the queue also holds the beginning
        spec[k.DROPS_OLDEST] = op.bound.drop == "oldest"
        spec[k.MOST_MOVES] = max(len(per_state) for per_state in self.moves) * 2
        spec[k.SKIP] = _SKIPS[op.skip.strategy]
        spec[k.SKIP_STEP] = self.steps.get(op.skip.step or "", -1)
        spec[k.THROWS] = op.skip.throw_on_miss
        return spec

    # -- room ----------------------------------------------------------------------------------------------

    def _no_runs(self) -> k.Runs:
        ints, floats = self.memory.widths()
        return k.Runs(
            np.zeros((0, k.R_NULLS + 1), np.int64), np.zeros((0, ints), np.int64), np.zeros((0, floats))
        )

    def _no_nodes(self) -> k.Nodes:
        totals = len(self.memory.totals)
        rows = np.zeros((0, k.N_SERIAL + 1), np.int64)
        return k.Nodes(rows, np.zeros((0, 3 * totals)), np.zeros((0, totals), np.int64))

    @staticmethod
    def _room_to_find(size: int) -> np.ndarray:
        return np.zeros((size, k.F_BY + 1), np.int64)

    def _scratch(self, size: int) -> k.RunScratch:
        ints = max(self.memory.widths()[0], self.memory.column_widths()[0])
        floats = max(self.memory.widths()[1], self.memory.column_widths()[1])
        return k.scratch(size, len(self.steps), len(self.automaton.states), ints, floats)

    def _make_room(self, key: int) -> None:
        """Lengthen whatever the next event of a partition may need more of."""
        need = (int(self.alive[key]) + 2) * (int(self.machine.spec[k.MOST_MOVES]) + 2)
        if len(self.runs.rows) - self.count[k.LIVE] < need:
            self._lengthen_runs(need)
        if len(self.nodes.rows) - self.count[k.NODES] < 2 * need:
            self._compact_nodes()
            size = max(2 * len(self.nodes.rows), int(self.count[k.NODES]) + 4 * need, 256)
            self.nodes = k.Nodes(*(longer(each, size) for each in self.nodes))
        self.found = self._more_to_find(self.found, k.MATCHES, 2 * need)
        self.late = self._more_to_find(self.late, k.TIMEOUTS, need)
        if len(self.work.fresh) < need:
            self.work = self._scratch(2 * need)

    def _more_to_find(self, found: np.ndarray, which: int, need: int) -> np.ndarray:
        wanted = int(self.count[which]) + need
        return found if len(found) >= wanted else longer(found, 2 * wanted)

    def _lengthen_runs(self, need: int) -> None:
        old = len(self.runs.rows)
        size = max(2 * old, old + 2 * need, 64)
        runs = self.runs = k.Runs(*(longer(each, size) for each in self.runs))
        runs.rows[old:, k.R_STATE] = -1
        runs.rows[old:, k.R_NEXT] = np.arange(old + 1, size + 1)
        runs.rows[-1, k.R_NEXT] = self.count[k.FREE]
        self.count[k.FREE] = old

    def _compact_nodes(self) -> None:
        """Forget the nodes that no run needs any more."""
        size = int(self.count[k.NODES])
        if not size:
            return
        rows = self.runs.rows
        used = np.flatnonzero((rows[:, k.R_STATE] >= 0) & (rows[:, k.R_NODE] >= 0))
        waiting = [self.found[: self.count[k.MATCHES]], self.late[: self.count[k.TIMEOUTS]]]
        live = np.zeros(size, np.uint8)
        live[rows[used, k.R_NODE]] = 1
        for found in waiting:
            live[found[:, k.F_NODE]] = 1
        mark_nodes.at(size)(self.nodes.rows, size, live)
        kept = np.flatnonzero(live)
        table = np.cumsum(live) - 1
        self.nodes = k.Nodes(*(each[:size][kept] for each in self.nodes))
        for column in (k.N_LEFT, k.N_RIGHT):
            old = self.nodes.rows[:, column]
            self.nodes.rows[:, column] = np.where(old >= 0, table[old], -1)
        rows[used, k.R_NODE] = table[rows[used, k.R_NODE]]
        for found in waiting:
            found[:, k.F_NODE] = table[found[:, k.F_NODE]]
        self.count[k.NODES] = len(kept)

    # -- a step --------------------------------------------------------------------------------------------

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return int(min(self.count[k.DUE], END_OF_TIME))

    @property
    def dropped(self) -> int:
        """How many runs were given up because a partition had too many."""
        return int(self.count[k.DROPPED])

    def process(self, arrived: OrderedBatch, watermark: int) -> None:
        """Follow all runs along the new events, and let time pass."""
        self.timed_out.new = NO_ROWS
        if len(arrived):
            self._take_in(self._in_order_of_arrival(arrived))
        if self.due <= watermark or watermark - self._expired_at >= self._patience:
            self._expire_runs(watermark)
            self._expired_at = watermark
        self._emit()
        self._forget_keys()
        self._forget_texts()
        self.stream.watermark = min(watermark, self._held_back() - 1)
        self.timed_out.watermark = watermark

    def _held_back(self) -> int:
        """Give the earliest time of a completed match that still waits for others."""
        if not self.skips:
            return END_OF_TIME + 1
        waiting = self.head[:, skip_matches.COMPLETE]
        if not (waiting >= 0).any():
            return END_OF_TIME + 1
        return int(self.runs.rows[waiting[waiting >= 0], k.R_BEGAN].min())

    def _in_order_of_arrival(self, arrived: OrderedBatch) -> OrderedBatch:
        """Put events of the same times into the order in which they came."""
        tied = (arrived.end[1:] == arrived.end[:-1]) & (arrived.start[1:] == arrived.start[:-1])
        if not tied.any():
            return arrived
        came = np.zeros(len(arrived), np.int64)
        for at, number, rows in self.arrivals.by_root(arrived.root, arrived.row):
            column = self.arrivals.roots[number].store.column(ARRIVAL, rows)
            if column.type is not None:
                came[at] = column.values
        return arrived.take(np.lexsort((came, arrived.start, arrived.end)))

    def _take_in(self, arrived: OrderedBatch) -> None:
        keys = self.keys.of_batch(self.arrivals, arrived)
        if len(self.keys) > len(self.alive):
            size = max(2 * len(self.alive), len(self.keys), 16)
            self.head, self.alive = longer(self.head, size, -1), longer(self.alive, size)
        values = self._values(arrived)
        bits = self._bits(arrived)
        different, codes = np.unique(bits, return_inverse=True)
        rows = np.empty((len(keys), k.E_NULLS + 1), np.int64)
        rows[:, k.E_KEY], rows[:, k.E_BITS], rows[:, k.E_CODE] = keys, bits, codes
        rows[:, k.E_TIME], rows[:, k.E_START] = arrived.end, arrived.start
        rows[:, k.E_IDENT], rows[:, k.E_NULLS] = (
            (arrived.root << ROOT) | arrived.row,
            values.nulls.view(np.int64),
        )
        events = k.RunEvents(rows, values.ints, values.floats)
        inert = self._table_of_inert(different)
        done = 0
        while (done := self._advance_runs(events, done, inert)) < len(keys):
            self._make_room(int(keys[done]))
        self.count[k.SERIAL] += len(keys)
        if self.count[k.MISSED]:
            raise QueryError(
                f"a match of {self.op.name!r} cannot skip to {self.op.skip.step!r}: "
                f"it has no such event, or begins with it",
                hint="leave out 'or fail' (throw_on_miss), or skip to another step",
            )

    def _advance_runs(self, events: k.RunEvents, done: int, inert: np.ndarray) -> int:
        """Take in as many events as there is room for; give how many are done."""
        common: list[Any] = [
            *self.machine, *self.memory.programs, *events, done, inert, *self.runs, self.head, self.alive,
            *self.nodes, self.count, self.found, self.late,
        ]  # fmt: skip
        fresh, taken, table, indexed, heap, *values = self.work
        # A run may have been begun by every event before.
        live, left = int(self.count[k.LIVE]), len(events.rows) - done
        work = left * (live + left) * len(self.automaton.states)
        blank = np.int64(self.memory.blank)
        if self.skips:
            return int(
                self._run(skip_matches.advance_runs, work)(*common, fresh, taken, heap, *values, blank)
            )
        return int(
            self._run(all_matches.advance_runs, work)(*common, fresh, taken, table, indexed, *values, blank)
        )

    def _run(self, kernel: Kernel[..., Any], work: float) -> Callable[..., Any]:
        """Give how to run a kernel: plainly only what comes out the same then, to the last bit."""
        return kernel.at(work) if self.memory.is_exact else kernel

    def _expire_runs(self, watermark: int) -> None:
        work = 4 * self.head.size + 4 * int(self.count[k.LIVE])
        while True:
            states, spec, rows = self.machine.states, self.machine.spec, self.runs.rows
            if self.skips:
                fits = skip_matches.expire_runs.at(work)(
                    states, spec, rows, self.head, self.alive, self.nodes.rows, self.count,
                    self.found, self.late, self.work.heap, watermark,
                )  # fmt: skip
            else:
                fits = all_matches.expire_runs.at(work)(
                    states, spec, rows, self.head, self.alive, self.count, self.found, self.late, watermark
                )
            if fits:
                return
            self._make_room(int(self.alive.argmax()))
            self.found = self._more_to_find(self.found, k.MATCHES, len(self.runs.rows))
            self.late = self._more_to_find(self.late, k.TIMEOUTS, len(self.runs.rows))

    def _forget_keys(self) -> None:
        """Forget the partitions that have no match in the making."""
        idle = 1 if self.skips else 0  # a queue holds the beginning itself
        live = np.flatnonzero(self.alive[: len(self.keys)] > idle)
        if not self.keys.are_given or len(self.keys) < FORGET_FROM or 2 * len(live) > len(self.keys):
            return
        if self.skips:
            self._drop_beginnings(np.flatnonzero(self.alive == idle))
        table = self.keys.keep(live)
        used = self.runs.rows[:, k.R_STATE] >= 0
        self.runs.rows[used, k.R_KEY] = table[self.runs.rows[used, k.R_KEY]]
        self.head, self.alive = self.head[live], self.alive[live]

    def _drop_beginnings(self, keys: Int64Array) -> None:
        runs = self.head[keys, skip_matches.PARTIAL]
        rows = self.runs.rows
        rows[runs, k.R_STATE] = -1
        rows[runs, k.R_NEXT] = np.append(runs[1:], self.count[k.FREE])
        if len(runs):
            self.count[k.FREE] = runs[0]
        self.count[k.LIVE] -= len(runs)

    def _forget_texts(self) -> None:
        """Give the codes of texts back that no run keeps any more."""
        texts = self.memory.values.texts
        if len(texts) < FORGET_FROM or len(texts) < 4 * self.count[k.LIVE]:
            return
        places = self.memory.places_of_texts()
        used = np.flatnonzero(self.runs.rows[:, k.R_STATE] >= 0)[:, None]
        kept = self.runs.ints[used, places]
        table = texts.keep(np.union1d(kept, self.memory.codes_of_constants()))
        self.runs.ints[used, places] = table[kept]
        self.memory.compile()

    def _bits(self, arrived: OrderedBatch) -> np.ndarray:
        """Give for every event the tests that it passes by itself."""
        bits = np.zeros(len(arrived), np.int64)
        for test, slot in enumerate(self.slot_of_test):
            if slot is None:
                bits |= 1 << test  # which run is asked decides
                continue
            bits |= arrived.fits(slot).astype(np.int64) << test
        return bits

    def _table_of_inert(self, different: np.ndarray) -> np.ndarray:
        """Tell for every pattern of bits in which states nothing happens; the last column: in none at all."""
        rows = []
        for bits in different.tolist():
            if bits not in self._inert:
                self._inert[bits] = self._row_of_inert(bits)
            rows.append(self._inert[bits])
        return np.array(rows, np.bool_).reshape(len(rows), -1)

    def _row_of_inert(self, bits: int) -> np.ndarray:
        row = [self._is_inert(number, bits) for number in range(len(self.automaton.states))]
        return np.array([*row, all(row)], np.bool_)

    def _is_inert(self, number: int, bits: int) -> bool:
        state = self.automaton.states[number]
        if int(self.machine.states[number, k.S_USES]) & bits:
            return False  # it depends on what was taken before
        open_moves = [move for move in self.moves[number] if holds(move.formula, bits)]
        if state.kind is StateKind.START:
            return not any(move.action == k.TAKE for move in open_moves)
        if state.kind in (StateKind.FINAL, StateKind.STOPPED):
            return True
        return all(move.action == k.IGNORE and move.target == number for move in open_moves) and bool(
            open_moves
        )

    def _values(self, arrived: OrderedBatch) -> ValueTable:
        """Compute what programs and registers read, for the arrived events."""
        values = self.memory.values
        computed = [
            (at, number, evaluate(key.expr, frame))
            for at, frame in self.arrivals.frames(arrived.root, arrived.row)
            for key, number in values.numbers.items()
        ]
        if values.learn(computed):
            self._recompile()
        moved = values.learn_texts(computed)
        if moved is not None:
            remap_texts(self.runs.ints, self.memory.places_of_texts(), moved)
        if moved is not None or self.memory.is_behind:
            self.memory.compile()
        return values.table(len(arrived), computed)

    def _recompile(self) -> None:
        """Compile the conditions for the types that are known now, and move what runs keep."""
        memory, rows = self.memory, self.runs.rows
        old = memory.register_places
        memory.compile()
        kept = ValueTable(self.runs.ints, self.runs.floats, rows[:, k.R_NULLS].view(np.uint64))
        ints, floats, nulls = rearranged(kept, old, memory.register_places, memory.blank & NULLS)
        rows[:, k.R_NULLS] = nulls.view(np.int64)
        self.runs = k.Runs(rows, ints, floats)
        self.work = self._scratch(len(self.work.fresh))

    # -- what was found ------------------------------------------------------------------------------------

    def _emit(self) -> None:
        for found, which, stream in (
            (self.found, k.MATCHES, self.stream), (self.late, k.TIMEOUTS, self.timed_out)
        ):  # fmt: skip
            size = int(self.count[which])
            if size:
                chosen = found[:size]
                if self.op.counted:
                    stream.new = CountedMatches(self, chosen).append_to(stream)
                else:
                    self._list(chosen, stream)
                self.count[which] = 0

    def _list(self, found: np.ndarray, stream: OperatorStream) -> None:
        """List all matches one by one."""
        wanted = np.ascontiguousarray(found[:, k.F_NODE])
        paths = self.nodes.rows[wanted, k.N_PATHS]
        total = int(paths.astype(object).sum()) if paths.max(initial=0) > MOST_LISTED else int(paths.sum())
        if total > MOST_LISTED:
            raise QueryError(
                f"{self.op.name!r} has {total:,} matches at once; {MOST_LISTED:,} can be listed",
                hint="count them instead (`counting matches`), or ask for fewer: leave out `combinations`, "
                "shorten `within`",
            )
        lengths = np.zeros(total, np.int64)
        size = int(self.nodes.rows[wanted, k.N_LENGTH].sum())
        idents, steps = np.zeros(size, np.int64), np.zeros(size, np.int64)
        list_paths.at(4 * size)(self.nodes.rows, wanted, offsets_of(paths), lengths, idents, steps)
        listing = ListedMatches(
            self,
            offsets_of(lengths),
            idents,
            steps,
            np.repeat(found[:, k.F_KEY], paths),
            np.repeat(found[:, k.F_AT], paths),
        )
        listing = listing.once_each()
        stream.new = listing.append_to(stream)

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state, without nodes that no run needs."""
        self._compact_nodes()
        super().save(blocks, name)

    def in_use(self, attribute: str) -> Any:
        """Give what is saved of an attribute: of the nodes those that there are."""
        if attribute == "nodes":
            return k.Nodes(*(each[: self.count[k.NODES]] for each in self.nodes))
        return super().in_use(attribute)

    def loaded(self) -> None:
        """Make room for the values that runs keep."""
        self.work = self._scratch(64)


class TimeoutOperator(RunningOperator[TimedOut]):
    """A `TimedOut` at run time: passes on what a `StepPatternOperator` found out of time."""

    def opened(self, setup: OperatorSetup) -> OperatorStream:
        """Take the stream that the pattern fills."""
        pattern = setup.running[self.op.input]
        assert isinstance(pattern, StepPatternOperator)
        return pattern.timed_out

    def step(self) -> None:
        """Do nothing: the pattern has done it."""
