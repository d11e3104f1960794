"""How near estimates of similarity are to the truth, and what they need to know (thesis, section 5.3.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from experiments.reuse_world import SECOND, Floats, Ints, Town, Windows, streams_of
from experiments.scenarios.registry import Progress, scenario
from experiments.scenarios.reuse import MOVING, atoms_below, by_owner, counted, notes_of, towns
from whimbrel.engine.mobile.reuse import (
    Coverable,
    EventSets,
    SpaceTimeGrid,
    Tolerance,
    box_overlaps,
    by_area,
    coverable,
    coverable_by,
    everybody,
    maximum_neighbour_cover,
    per_neighbour,
    priorities,
    similarity,
)
from whimbrel.sim.results import Plot, Results


@scenario(
    "reuse-estimates",
    "selections of results, some of them reused: how far estimates of similarity are from the truth",
    **{**MOVING, "seconds": (10, "how long it is measured")},
    cars=(15, "how many cars ask"),
    side_m=(3000.0, "side of the square interests"),
    threshold=(0.5, "what the results that are reused have to be above"),
    slide=(30, "events until the next selection"),
    results=(5, "results of the first operator in a selection of the second"),
    cells_m=((100.0, 250.0, 500.0, 1000.0, 2000.0), "sides of the cells of grids"),
    spans_s=((1.0, 10.0), "how long cells last"),
)
def run_estimates(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare estimates for all pairs that share an event with precision and recall by ids."""
    errors: dict[str, list[Floats]] = defaultdict(list)
    carried: dict[str, list[float]] = defaultdict(list)
    for town in counted(progress, parameters["repeats"], towns(parameters, parameters["cars"])):
        second = SecondOperator(town, parameters)
        for name, (found, numbers) in second.estimates(parameters):
            errors[name].append(found)
            carried[name].append(numbers)
    rows = []
    for name, each in errors.items():
        off = np.abs(np.concatenate(each))
        rows.append(
            {
                "estimate": name,
                "kind": f"cells of {name.split(', ')[1]}" if ", " in name else name,
                "mean error": float(off.mean()),
                "95 % are within": float(np.quantile(off, 0.95)),
                "too high by": float(np.concatenate(each).mean()),
                "numbers carried": float(np.mean(carried[name])),
                "pairs": len(off) // 2,
            }
        )
    plots = (
        Plot("reuse-estimates", "Mean error of precision and recall, by numbers that selections carry",
             "numbers carried", "mean error", by="kind", x_logarithmic=True),
    )  # fmt: skip
    return Results(rows, plots, notes_of(parameters))


class SecondOperator:
    """Selections of results of a first operator, some of which were made for others.

    `actual` are the events that each should depend on, `used` those that it does.
    """

    def __init__(self, town: Town, parameters: Mapping[str, Any]) -> None:
        self.town, self.owners = town, town.consumers
        streams = streams_of(town.held(parameters["side_m"]))
        leaves = Windows.over(streams, town.time, parameters["window"], parameters["slide"])
        self.overlaps = box_overlaps(town.boxes(town.seconds // 2, parameters["side_m"]))
        by = self._reuse(leaves, Tolerance.same(self.owners, parameters["threshold"]))
        roots = Windows.over(by_owner(leaves), leaves.end, parameters["results"], parameters["results"])
        self.owner, self.end = roots.selections.owner, roots.end
        results = roots.selections.atoms
        self.read = EventSets.of_pairs(results.rows, by[results.ids], len(results))
        self.actual = atoms_below(results, leaves.selections.atoms)
        self.used = atoms_below(self.read, leaves.selections.atoms)
        self.atoms = np.diff(leaves.selections.atoms.offsets)[self.read.ids].astype(np.float64)
        self.annotated = self._annotated(results, by, leaves)

    def _reuse(self, leaves: Windows, agreed: Tolerance) -> Ints:
        by = np.arange(len(leaves.selections))
        for second in range(self.town.seconds):
            some, rows = leaves.ending(second * SECOND, (second + 1) * SECOND)
            pairs = coverable(some.selections, agreed)
            by[rows] = rows[
                maximum_neighbour_cover(pairs, priorities(self.overlaps, everybody(self.owners))).by
            ]
        return by

    def _annotated(self, results: EventSets, by: Ints, leaves: Windows) -> tuple[Floats, Floats]:
        """Give the similarity that each result has for each reader; if it came several times, the mean."""
        precision, recall = similarity(leaves.selections.atoms, results.ids, by[results.ids])
        key = results.rows * np.int64(len(by)) + by[results.ids]
        wanted = self.read.rows * np.int64(len(by)) + self.read.ids
        place = np.searchsorted(wanted, key)
        count = np.bincount(place, minlength=len(wanted))
        means = (
            np.bincount(place, weights=each, minlength=len(wanted)) / count for each in (precision, recall)
        )
        first, second = means
        return first, second

    def estimates(self, parameters: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Floats, float]]]:
        """Give for each estimate its errors, and how many numbers a selection carries for it."""
        anything = Tolerance.same(self.owners, -1.0)
        truth = coverable_by(self.owner, self.actual, self.used, anything)
        mine, others = self.owner[truth.covered], self.owner[truth.covering]
        precision, recall = by_area(self.overlaps)
        area = np.append(precision[mine, others], recall[mine, others])
        right = np.append(truth.precision, truth.recall)
        yield "ids of events", (right - right, len(self.actual.ids) / len(self.owner) * 2)
        yield "area", (area - right, 4.0)
        found = per_neighbour(self.owner, self.read, self.atoms, *self.annotated, anything)
        carried = 4 * len(self.read.ids) / len(self.owner)
        yield "per neighbour", (_matched(truth, found) - right, carried)
        events = EventSets.of_pairs(self.actual.rows, self.actual.ids, len(self.actual))
        for span in parameters["spans_s"]:
            for side in parameters["cells_m"]:
                grid = SpaceTimeGrid(side, round(span * SECOND))
                cells = grid.cells(self.town.x, self.town.y, self.town.time)
                actual, used = grid.counts(events, cells), grid.counts(self.used, cells)
                found = coverable_by(self.owner, actual, used, anything)
                carried = 2 * (len(actual.ids) + len(used.ids)) / len(self.owner)
                yield f"{side:g} m, {span:g} s", (_matched(truth, found) - right, carried)


def _matched(truth: Coverable, found: Coverable) -> Floats:
    """Give precision and recall that were found for some pairs, 0 where a pair was not found."""
    size = np.int64(len(truth.owner))
    wanted, known = (each.covered * size + each.covering for each in (truth, found))
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    there = known[place] == wanted
    return np.append(np.where(there, found.precision[place], 0.0), np.where(there, found.recall[place], 0.0))
