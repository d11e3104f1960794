"""When reuse of selections pays: time to decide against time saved (thesis, section 5.4, basic setup)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import thread_time
from typing import Any

import numpy as np

from experiments.published import Published, PublishedPlot
from experiments.reuse_optimum import fewest_processed
from experiments.reuse_world import Bools, Floats, Ints, Windows, streams_of
from experiments.scenarios.registry import Progress, scenario
from whimbrel.engine.mobile.reuse import (
    Batches,
    Cover,
    Selections,
    Tolerance,
    batches_by_number,
    coverable,
    coverable_batches,
    coverable_by_estimate,
    maximum_neighbour_cover_of,
    maximum_similarity_cover,
    prediction,
    similarity,
    stand_ins,
)
from whimbrel.sim.results import Results
from whimbrel.space.kernels.jit import kernel

_BASIC: dict[str, Any] = {
    "operators": ((5.0, 10.0, 25.0, 50.0), "how many operators; interests are a quarter of the area"),
    "selections": (10_000, "selections of all operators together"),
    "window": (30, "events in a selection; the next one begins an event later"),
    "threshold": (0.5, "what precision and recall have to be above"),
    "sample": (1000, "events of before from which similarities are expected"),
    "tries": (3, "how often each is timed, by the processor; the shortest time counts"),
}


@scenario(
    "reuse-complexity",
    "throughput with reuse against without, by how much there is to do for a selection",
    **_BASIC,
    complexities=((1.0, 10.0, 100.0, 1000.0, 3000.0), "how often an average is computed for a selection"),
    batches=(10, "batches of an operator"),
)
def run_complexity(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Time operators with more and more to do."""
    rows = []
    for done, operators in enumerate(parameters["operators"]):
        progress(done, len(parameters["operators"]))
        basic = Basic.draw(int(operators), parameters, parameters["batches"])
        for complexity in parameters["complexities"]:
            rows += basic.rows({"complexity": int(complexity)}, int(complexity), parameters)
    plots = (
        PublishedPlot("reuse-complexity", "Times the throughput without reuse", "complexity",
            "times, by event pattern", by="operators", x_logarithmic=True),
    )  # fmt: skip
    return Results(rows, plots)


@scenario(
    "reuse-decisions",
    "throughput with reuse against without, by the number of batches",
    **_BASIC,
    complexity=(1000, "how often an average is computed for a selection"),
    batches=((1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0), "batches of an operator"),
)
def run_decisions(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Time more and more decisions about the same selections."""
    rows = []
    for done, operators in enumerate(parameters["operators"]):
        progress(done, len(parameters["operators"]))
        for batches in parameters["batches"]:
            basic = Basic.draw(int(operators), parameters, int(batches))
            rows += basic.rows({"batches": int(batches)}, parameters["complexity"], parameters)
    plots = (
        PublishedPlot("reuse-decisions", "Times the throughput without reuse", "batches",
            "times, by event pattern", by="operators", x_logarithmic=True),
    )  # fmt: skip
    return Results(rows, plots)


@scenario(
    "reuse-heuristics",
    "both heuristics over single selections of many operators: time, comparisons, selections processed",
    operators=((25.0, 100.0, 400.0, 1000.0), "how many operators; interests are a quarter of the area"),
    selections=(20_000, "selections of all operators together"),
    window=(30, "events in a selection"),
    slide=(10, "events until the next selection"),
    thresholds=((0.5, 0.8), "what precision and recall have to be above"),
    tries=(3, "how often each is timed, by the processor; the shortest time counts"),
)
def run_heuristics(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Time a decision about all selections at once."""
    rows = []
    for done, operators in enumerate(map(int, parameters["operators"])):
        progress(done, len(parameters["operators"]))
        random = np.random.default_rng([parameters["seed"], operators])
        length, slide = parameters["window"], parameters["slide"]
        events = (-(-parameters["selections"] // operators) - 1) * slide + length
        held = _held(operators, 8 * events + 1000, random)
        streams = [stream[:events] for stream in streams_of(held)]
        selections = Windows.over(streams, np.arange(held.shape[1]), length, slide).selections
        for threshold in parameters["thresholds"]:
            agreed = Tolerance.same(operators, threshold)
            priority = np.zeros(operators)
            msh, msh_s = _timed(lambda: _by_all_pairs(selections, agreed), parameters["tries"])  # noqa: B023
            mnh, mnh_s = _timed(
                lambda: maximum_neighbour_cover_of(selections, agreed, priority),  # noqa: B023
                parameters["tries"],
            )
            rows.append(
                {
                    "operators": operators,
                    "threshold": threshold,
                    "MSH s": msh_s,
                    "MNH s": mnh_s,
                    "times faster": msh_s / mnh_s,
                    "times fewer comparisons": msh.compared / mnh.compared,
                    "MSH": float(msh.may_process.mean()),
                    "MNH": float(mnh.may_process.mean()),
                    "selections": len(selections),
                }
            )
    plots = (
        PublishedPlot("reuse-heuristics", "Comparisons of MSH by those of MNH", "operators",
            "times fewer comparisons", by="threshold", logarithmic=True, x_logarithmic=True,
            published=(Published("order of magnitude", 100.0, "thesis, section 5.4"),)),
    )  # fmt: skip
    return Results(rows, plots)


def _by_all_pairs(selections: Selections, agreed: Tolerance) -> Cover:
    return maximum_similarity_cover(coverable(selections, agreed))


def _timed(decide: Callable[[], Cover], tries: int) -> tuple[Cover, float]:
    times = []
    for _ in range(tries + 1):  # once more: the first may compile
        begin = thread_time()
        cover = decide()
        times.append(thread_time() - begin)
    return cover, min(times[1:])


def _held(operators: int, count: int, random: np.random.Generator) -> Bools:
    """Draw interests, squares of a quarter of the area, and events; tell which hold which."""
    low = random.random((operators, 2)) / 2
    events = random.random((count, 2))
    inside = (events >= low[:, None]) & (events <= low[:, None] + 0.5)
    held: Bools = inside[:, :, 0] & inside[:, :, 1]
    return held


@dataclass(frozen=True)
class Task:
    """A decision: the batches that wait, one of each operator, and the events of before."""

    windows: Windows
    batches: Batches
    before: Bools
    """For each operator, which of the last events before lie in its interest."""


@dataclass(frozen=True)
class Basic:
    """Operators that compute averages of events in interests that stay where they are."""

    operators: int
    agreed: Tolerance
    values: Floats
    tasks: list[Task]

    @staticmethod
    def draw(operators: int, parameters: Mapping[str, Any], batches: int) -> Basic:
        """Draw interests and events; the same ones for each number of batches."""
        random = np.random.default_rng([parameters["seed"], operators])
        each = -(-parameters["selections"] // operators)
        length = parameters["window"]
        count = parameters["sample"] + 8 * (each + length)
        held = _held(operators, count, random)
        time = np.arange(count)
        streams = [stream[stream >= parameters["sample"]][: each + length - 1] for stream in streams_of(held)]
        windows = Windows.over(streams, time, length, 1)
        cut = batches_by_number(windows.selections.owner, -(-each // batches))
        tasks = list(_tasks(windows, cut, held, parameters["sample"]))
        agreed = Tolerance.same(operators, parameters["threshold"])
        return Basic(operators, agreed, random.random(count), tasks)

    def rows(
        self, setting: Mapping[str, Any], complexity: int, parameters: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """Time the work without reuse, and with it by each way of comparing."""
        ways: dict[str, Callable[[Task], Cover]] = {
            "all events": lambda task: _by_all_events(task, self.agreed),
            "event pattern": lambda task: _by_pattern(task, self.agreed),
        }
        plain = self._shortest(complexity, None, parameters["tries"])
        count = sum(len(task.windows.selections) for task in self.tasks)
        found = []
        for how, decide in ways.items():
            taken = self._shortest(complexity, decide, parameters["tries"])
            processed, similar = self._outcome(decide)
            found.append(
                {
                    "operators": self.operators,
                    **setting,
                    "compared by": how,
                    "µs a selection": plain / count * 1e6,
                    "times the throughput": plain / taken,
                    "times, by event pattern": plain / taken if how == "event pattern" else None,
                    "processed": processed,
                    "fewest": self.fewest,
                    "similarity": similar,
                    "selections": count,
                }
            )
        return found

    @cached_property
    def fewest(self) -> float | None:
        """The least share of selections that have to be processed; None if that was not found in time."""
        processed, count = 0, 0
        for task in self.tasks:
            sizes = np.diff(task.batches.offsets)
            pairs = coverable_batches(task.windows.selections, task.windows.end, task.batches, self.agreed)
            chosen = fewest_processed(pairs, sizes, limit_s=5.0)
            if chosen is None:
                return None
            processed += int(sizes[chosen].sum())
            count += int(sizes.sum())
        return processed / count

    def _shortest(self, complexity: int, decide: Callable[[Task], Cover] | None, tries: int) -> float:
        times = []
        for _ in range(tries + 1):  # once more: the first may compile
            begin = thread_time()
            for task in self.tasks:
                rows = np.arange(len(task.windows.selections))
                if decide is not None:
                    rows = rows[decide(task).may_process[task.batches.of_selection]]
                atoms = task.windows.selections.atoms
                averages(self.values, atoms.offsets, atoms.ids, rows, complexity)
            times.append(thread_time() - begin)
        return min(times[1:])

    def _outcome(self, decide: Callable[[Task], Cover]) -> tuple[float, float]:
        """Tell the share of selections processed, and how similar what is told is on average."""
        processed, similar, count = 0, 0.0, 0
        for task in self.tasks:
            cover = decide(task)
            by = stand_ins(task.batches, task.windows.end, cover)
            precision, recall = similarity(task.windows.selections.atoms, np.arange(len(by)), by)
            processed += int(cover.may_process[task.batches.of_selection].sum())
            similar += float((precision + recall).sum() / 2)
            count += len(by)
        return processed / count, similar / count


def _tasks(windows: Windows, cut: Batches, held: Bools, sample: int) -> Iterator[Task]:
    """Decide about the first batches of all operators at once, then about the second ones."""
    number = np.arange(len(cut)) - np.searchsorted(cut.owner, cut.owner)
    for turn in range(int(number.max()) + 1):
        batches = np.flatnonzero(number == turn)
        rows = np.concatenate([np.arange(cut.offsets[n], cut.offsets[n + 1]) for n in batches.tolist()])
        some = Windows(windows.selections.take(rows), windows.end[rows])
        now = int(some.selections.atoms.ids.min())
        sizes = np.diff(cut.offsets)[batches]
        yield Task(
            some,
            Batches(cut.owner[batches], np.append(0, np.cumsum(sizes))),
            held[:, max(now - sample, 0) : now],
        )


def _by_all_events(task: Task, agreed: Tolerance) -> Cover:
    return maximum_similarity_cover(
        coverable_batches(task.windows.selections, task.windows.end, task.batches, agreed)
    )


def _by_pattern(task: Task, agreed: Tolerance) -> Cover:
    """Expect as many events in common as there were before: the mean of an urn."""
    expected = prediction.by_location([task.before])
    return maximum_similarity_cover(coverable_by_estimate(task.batches.owner, *expected, agreed))


@kernel
def averages(values: Floats, offsets: Ints, ids: Ints, rows: Ints, times: int) -> Floats:
    """Compute the average of some selections, as often as it is said to be complex."""
    found = np.zeros(len(rows), np.float64)
    for n in range(len(rows)):
        begin, end = offsets[rows[n]], offsets[rows[n] + 1]
        mean = 0.0
        for _ in range(times):
            total = 0.0
            for e in range(begin, end):
                total += values[ids[e]] + mean * 1e-12  # else the compiler would do it but once
            mean = total / (end - begin)
        found[n] = mean
    return found
