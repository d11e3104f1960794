"""Reuse of selections between the queries of cars: the experiments of the thesis, section 5.4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.published import Published, PublishedPlot
from experiments.reuse_optimum import fewest_processed
from experiments.reuse_world import SECOND, Floats, Ints, Town, Windows, streams_of
from experiments.scenarios.registry import Progress, scenario
from whimbrel.engine.mobile.reuse import (
    Batches,
    Cover,
    Coverable,
    EventSets,
    Reach,
    Tolerance,
    batches_by_time,
    box_overlaps,
    by_area,
    coordinated_neighbours,
    coverable,
    coverable_batches,
    coverable_by,
    coverable_by_estimate,
    disparity,
    everybody,
    maximum_neighbour_cover,
    maximum_similarity_cover,
    mean_of,
    prediction,
    priorities,
    read_from,
    refined,
    similarity,
    stand_ins,
)
from whimbrel.sim.results import Results

THESIS = "thesis, section 5.4"
MOVING: dict[str, Any] = {
    "mobility": ("sumo", "sumo, or streets: trips in a grid of streets, without lanes and lights"),
    "vehicles": (800, "how many cars drive, one after another"),
    "seconds": (60, "how long it is measured"),
    "window": (30, "events in a selection"),
    "repeats": (3, "how many towns, with seeds one after the other"),
}
BATCH_S = 10


def towns(parameters: Mapping[str, Any], consumers: int, grow: int | None = None) -> Iterator[Town]:
    """Give the towns of an experiment, one for each repetition."""
    for number in range(parameters["repeats"]):
        yield Town.drive(
            parameters["mobility"], parameters["vehicles"], consumers, parameters["seconds"],
            parameters["seed"] + number, grow,
        )  # fmt: skip


def notes_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Say what a run was drawn from."""
    return {"seeds": [parameters["seed"] + number for number in range(parameters["repeats"])]}


# -- what came of decisions ----------------------------------------------------------------------------------


@dataclass
class Tally:
    """What decisions came to, added up."""

    selections: int = 0
    processed: int = 0
    covered: int = 0
    compared: int = 0
    precision: float = 0.0
    recall: float = 0.0
    unknown: int = 0
    """Decisions of which nobody knows what would be best: nothing is said of any then."""
    decisions: list[float] | None = None

    def add(self, processed: int, precision: Floats, recall: Floats, compared: int) -> None:
        """Add a decision: the similarity of each selection of that which was processed for it."""
        self.selections += len(precision)
        self.processed += processed
        self.covered += len(precision) - processed
        self.compared += compared
        self.precision += float(precision.sum())
        self.recall += float(recall.sum())
        self.decisions = [*(self.decisions or ()), float((precision + recall).mean() / 2)]

    def row(self) -> dict[str, Any]:
        """Give the figures; those who are processed themselves have a similarity of 1."""
        mean = (self.precision + self.recall) / 2
        return {
            "processed": None if self.unknown else self.processed / self.selections,
            "similarity": None if self.unknown else mean / self.selections,
            "similarity of reused": (mean - self.processed) / self.covered if self.covered else None,
            "deviation": float(np.std(self.decisions or [1.0])),
            "comparisons": self.compared / self.covered if self.covered else None,
            "selections": self.selections,
        }


def add_batches(tally: Tally, windows: Windows, batches: Batches, cover: Cover | None) -> None:
    """Add a decision about batches."""
    if cover is None:
        tally.unknown += 1
        return
    by = stand_ins(batches, windows.end, cover)
    precision, recall = similarity(windows.selections.atoms, np.arange(len(by)), by)
    processed = int(cover.may_process[batches.of_selection].sum())
    tally.add(processed, precision, recall, cover.compared)


def add_selections(tally: Tally, atoms: EventSets, cover: Cover) -> None:
    """Add a decision about selections, each for itself."""
    precision, recall = similarity(atoms, np.arange(len(cover.by)), cover.by)
    tally.add(int(cover.may_process.sum()), precision, recall, cover.compared)


def best_cover(pairs: Coverable, limit_s: float, batches: Batches | None = None) -> Cover | None:
    """Give the cover with the fewest that are processed, each reader at the most similar of them."""
    weights = None if batches is None else np.diff(batches.offsets)
    chosen = fewest_processed(pairs, weights, limit_s=limit_s)
    if chosen is None:
        return None
    return read_from(pairs, np.isin(np.arange(len(pairs.owner)), chosen), pairs.compared)


@dataclass(frozen=True)
class TimeBatch:
    """What is decided about at once: all selections that end in a window of the time grid."""

    begin_s: int
    windows: Windows
    batches: Batches
    pairs: Coverable
    """All of them, however similar."""


def time_batches(town: Town, side_m: float, window: int, slide: int = 1) -> Iterator[TimeBatch]:
    """Give batches of ten seconds, with the average similarity of all pairs of them."""
    all_windows = Windows.over(streams_of(town.held(side_m)), town.time, window, slide)
    anything = Tolerance.same(town.consumers, -1.0)
    for begin in range(0, town.seconds - BATCH_S + 1, BATCH_S):
        windows, _ = all_windows.ending(begin * SECOND, (begin + BATCH_S) * SECOND)
        if len(windows.selections):
            batches = batches_by_time(windows.selections.owner, windows.end, BATCH_S * SECOND)
            pairs = coverable_batches(windows.selections, windows.end, batches, anything)
            yield TimeBatch(begin, windows, batches, pairs)


def above(pairs: Coverable, threshold: float) -> Coverable:
    """Give the pairs that are better than a threshold, the same for all."""
    return pairs.take((pairs.precision > threshold) & (pairs.recall > threshold))


# -- thresholds and interests (figures 5.4 a, b) -------------------------------------------------------------


@scenario(
    "reuse-batches",
    "cars that ask what is around them: selections processed and how similar, by threshold and interest",
    **MOVING,
    cars=(25, "how many cars ask"),
    sides_m=((500.0, 1000.0, 2000.0, 3000.0, 5000.0), "sides of the square interests"),
    thresholds=((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), "what precision and recall have to be above"),
)
def run_batches(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare both heuristics with the fewest, over batches of ten seconds."""
    tallies: dict[tuple[Any, ...], Tally] = defaultdict(Tally)
    for town in counted(progress, parameters["repeats"], towns(parameters, parameters["cars"])):
        for side in parameters["sides_m"]:
            for batch in time_batches(town, side, parameters["window"]):
                overlaps = box_overlaps(town.boxes(batch.begin_s, side))
                priority = priorities(overlaps, batch.pairs.serves)
                for threshold in parameters["thresholds"]:
                    pairs = above(batch.pairs, threshold)
                    covers = {
                        "MSH": maximum_similarity_cover(pairs),
                        "MNH": maximum_neighbour_cover(pairs, priority),
                        "refined": refined(
                            pairs, maximum_similarity_cover(pairs), np.diff(batch.batches.offsets)
                        ),
                        "fewest": best_cover(pairs, 10.0, batch.batches),
                    }
                    for how, cover in covers.items():
                        add_batches(tallies[side, threshold, how], batch.windows, batch.batches, cover)
    rows = side_by_side(("side", "threshold"), tallies)
    plots = (
        PublishedPlot("reuse-processed", "Selections processed (MSH), as a share", "threshold", "MSH",
            by="side", published=(Published("least of all", 0.1, THESIS),)),
        PublishedPlot("reuse-similarity", "Average similarity of what is told (MSH)", "threshold",
            "similarity MSH", by="side", published=(Published("with 90 % less", 0.65, THESIS),)),
        PublishedPlot("reuse-comparisons", "Comparisons for each selection that is reused: MSH by MNH",
            "threshold", "times more comparisons", by="side", logarithmic=True,
            published=(Published("order of magnitude", 100.0, THESIS),)),
    )  # fmt: skip
    return Results(rows, plots, {**notes_of(parameters), **against(rows)})


def side_by_side(names: tuple[str, ...], tallies: Mapping[tuple[Any, ...], Tally]) -> list[dict[str, Any]]:
    """Give a row for each setting, the figures of all ways in it; the last part of a key is the way."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (*setting, how), tally in tallies.items():
        row = found.setdefault(tuple(setting), dict(zip(names, setting, strict=True)))
        figures = tally.row()
        row[how] = figures["processed"]
        row["selections"] = max(figures["selections"], row.get("selections", 0))
        for name in ("similarity", "similarity of reused", "deviation", "comparisons"):
            if how in ("MSH", "MNH") or name == "similarity":
                row[f"{name} {how}"] = figures[name]
    for row in found.values():
        one, other = row.get("comparisons MSH"), row.get("comparisons MNH")
        row["times more comparisons"] = one / other if one and other else None
    return list(found.values())


def counted(progress: Progress, total: int, items: Iterable[Any]) -> Iterator[Any]:
    """Pass items on and say how many are done."""
    for number, item in enumerate(items):
        progress(number, total)
        yield item


def against(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Say how far MNH is from MSH, and both from the fewest."""
    found: dict[str, Any] = {}
    for one, other in (("MNH", "MSH"), ("MSH", "fewest"), ("MNH", "fewest"), ("refined", "fewest")):
        gaps = [row[one] - row[other] for row in rows if None not in (row.get(one), row.get(other))]
        if gaps:
            found[f"processed more by {one} than by {other}"] = {
                "mean": float(np.mean(gaps)),
                "most": max(gaps),
            }
    times = [row["times more comparisons"] for row in rows if row["times more comparisons"]]
    if times:
        found["times more comparisons by MSH"] = {"median": float(np.median(times)), "most": max(times)}
    return found


# -- single selections (figure 5.5 a) ------------------------------------------------------------------------


@scenario(
    "reuse-single",
    "the same with a decision for each selection: how many comparisons that takes",
    **{**MOVING, "seconds": (5, "how long it is measured"), "repeats": (2, "how many towns")},
    cars=(25, "how many cars ask"),
    slide=(10, "events until the next selection"),
    sides_m=((500.0, 1000.0, 2000.0, 5000.0), "sides of the square interests"),
    thresholds=((0.3, 0.5, 0.7, 0.9), "what precision and recall have to be above"),
    limit_s=(5.0, "how long to look for the fewest of one decision"),
)
def run_single(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Decide once a second about the selections that ended since."""
    tallies: dict[tuple[Any, ...], Tally] = defaultdict(Tally)
    unproven: dict[tuple[float, float], int] = defaultdict(int)
    owners = parameters["cars"]
    for town in counted(progress, parameters["repeats"], towns(parameters, owners)):
        for side in parameters["sides_m"]:
            streams = streams_of(town.held(side))
            windows = Windows.over(streams, town.time, parameters["window"], parameters["slide"])
            for second in range(town.seconds):
                some, _ = windows.ending(second * SECOND, (second + 1) * SECOND)
                if not len(some.selections):
                    continue
                priority = priorities(box_overlaps(town.boxes(second, side)), everybody(owners))
                for threshold in parameters["thresholds"]:
                    pairs = coverable(some.selections, Tolerance.same(owners, threshold))
                    covers = {
                        "MSH": maximum_similarity_cover(pairs),
                        "MNH": maximum_neighbour_cover(pairs, priority),
                    }
                    if not unproven[side, threshold]:
                        best = best_cover(pairs, parameters["limit_s"])
                        unproven[side, threshold] += best is None
                        covers |= {"fewest": best} if best is not None else {}
                    for how, cover in covers.items():
                        add_selections(tallies[side, threshold, how], some.selections.atoms, cover)
                exact = maximum_similarity_cover(
                    coverable(some.selections, Tolerance.same(owners, 1.0, exact=True))
                )
                add_selections(tallies[side, 1.0, "exact"], some.selections.atoms, exact)
    proven = {
        key: tally for key, tally in tallies.items() if key[2] != "fewest" or not unproven[key[0], key[1]]
    }
    rows = side_by_side(("side", "threshold"), proven)
    plots = (
        PublishedPlot("reuse-single-processed", "Single selections processed (MSH), as a share", "threshold",
            "MSH", by="side"),
        PublishedPlot("reuse-single-comparisons",
            "Comparisons for each single selection that is reused: MSH by MNH", "threshold",
            "times more comparisons", by="side", logarithmic=True,
            published=(Published("order of magnitude", 100.0, THESIS),)),
    )  # fmt: skip
    return Results(rows, plots, {**notes_of(parameters), **against(rows)})


# -- how many ask (figure 5.5 b) -----------------------------------------------------------------------------


@scenario(
    "reuse-cars",
    "the more cars ask, the more selections stand for others",
    **{**MOVING, "seconds": (30, "how long it is measured")},
    cars=((5.0, 10.0, 25.0, 50.0), "how many cars ask"),
    side_m=(5000.0, "side of the square interests"),
    thresholds=((0.1, 0.3, 0.5, 0.7, 0.9), "what precision and recall have to be above"),
)
def run_cars(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Let more and more cars ask; those of a smaller number are among those of a larger one."""
    rows = []
    most = int(max(parameters["cars"]))
    for done, cars in enumerate(parameters["cars"]):
        progress(done, len(parameters["cars"]))
        tallies: dict[tuple[float, str], Tally] = defaultdict(Tally)
        for town in towns(parameters, int(cars), most):
            for batch in time_batches(town, parameters["side_m"], parameters["window"]):
                for threshold in parameters["thresholds"]:
                    pairs = above(batch.pairs, threshold)
                    for how, cover in (
                        ("MSH", maximum_similarity_cover(pairs)),
                        (
                            "refined",
                            refined(pairs, maximum_similarity_cover(pairs), np.diff(batch.batches.offsets)),
                        ),
                        ("fewest", best_cover(pairs, 20.0, batch.batches)),
                    ):
                        add_batches(tallies[threshold, how], batch.windows, batch.batches, cover)
        keyed = {(int(cars), threshold, how): tally for (threshold, how), tally in tallies.items()}
        rows += side_by_side(("cars", "threshold"), keyed)
    plots = (
        PublishedPlot("reuse-cars", "Selections processed (MSH), by how many cars ask", "threshold", "MSH",
            by="cars"),
    )  # fmt: skip
    return Results(rows, plots, notes_of(parameters))


# -- neighbours (figure 5.6) ---------------------------------------------------------------------------------


@scenario(
    "reuse-neighbours",
    "how many operators may stand for one, and from how far: selections processed, and disparity",
    **{**MOVING, "seconds": (20, "how long it is measured")},
    cars=(15, "how many cars ask"),
    side_m=(5000.0, "side of the square interests"),
    threshold=(0.5, "what precision and recall have to be above"),
    slide=(30, "events until the next selection"),
    results=(5, "results of the first operator in a selection of the second"),
    neighbours=((1.0, 2.0, 4.0, 8.0, 14.0), "how many may stand for one (k)"),
    distances_m=((500.0, 1000.0, 2500.0, 5000.0), "how far they may be (dist_n and dist_o)"),
)
def run_neighbours(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Choose neighbours anew every two seconds, for two operators one after the other; MNH."""
    tallies: dict[tuple[float, float], NeighbourTally] = defaultdict(NeighbourTally)
    for town in counted(progress, parameters["repeats"], towns(parameters, parameters["cars"])):
        for distance in parameters["distances_m"]:
            for most in parameters["neighbours"]:
                two_operators(town, parameters, distance, int(most), tallies[distance, most])
    rows = [
        {"distance": f"{distance:g} m", "neighbours": int(most), **tally.row()}
        for (distance, most), tally in tallies.items()
    ]
    plots = (
        PublishedPlot("reuse-neighbours", "Selections processed by how many may stand for one", "neighbours",
            "processed", by="distance"),
        PublishedPlot("reuse-disparity", "Disparity by how many may stand for one", "neighbours",
            "disparity", by="distance"),
    )  # fmt: skip
    return Results(rows, plots, notes_of(parameters))


@dataclass
class NeighbourTally:
    """What neighbours came to: of both operators, and of the second one."""

    selections: int = 0
    processed: int = 0
    first: int = 0
    first_processed: int = 0
    fewest: int = 0
    unproven: int = 0
    told: int = 0
    disparity: float = 0.0
    similarity: float = 0.0

    def row(self) -> dict[str, Any]:
        """Give the figures."""
        return {
            "processed": self.processed / self.selections,
            "first operator": self.first_processed / self.first,
            "fewest of it": None if self.unproven else self.fewest / self.first,
            "disparity": self.disparity / self.told if self.told else None,
            "similarity": self.similarity / self.told if self.told else None,
            "selections": self.selections,
        }


def two_operators(
    town: Town, parameters: Mapping[str, Any], distance: float, most: int, tally: NeighbourTally
) -> None:
    """Run a first operator over events and a second one over its results, both with reuse."""
    side, owners = parameters["side_m"], town.consumers
    held = town.held(side)
    leaves = Windows.over(streams_of(held), town.time, parameters["window"], parameters["slide"])
    by = np.arange(len(leaves.selections))
    may, rank = [], []
    for second in range(town.seconds):
        if second % 2 == 0:
            x, y = town.where[second].T
            overlaps = box_overlaps(town.boxes(second, side))
            chosen = coordinated_neighbours(x, y, overlaps, Reach.same(owners, distance, distance, most))
        may.append(chosen.serves)
        rank.append(priorities(overlaps, chosen.serves))
    agreed = Tolerance.same(owners, parameters["threshold"])
    for second in range(town.seconds):
        some, rows = leaves.ending(second * SECOND, (second + 1) * SECOND)
        pairs = coverable(some.selections, agreed, may[second])
        cover = maximum_neighbour_cover(pairs, rank[second])
        by[rows] = rows[cover.by]
        tally.selections += len(rows)
        tally.processed += int(cover.may_process.sum())
        tally.first += len(rows)
        tally.first_processed += int(cover.may_process.sum())
        best = fewest_processed(pairs, limit_s=10.0)
        tally.unproven += best is None
        tally.fewest += len(() if best is None else best)
    roots = Windows.over(by_owner(leaves), leaves.end, parameters["results"], parameters["results"])
    _second_operator(roots, leaves, by, held, (may, rank), agreed, tally)


def by_owner(windows: Windows) -> list[Ints]:
    """Give the places of the selections of each operator."""
    owner = windows.selections.owner
    return [np.flatnonzero(owner == each) for each in range(int(owner.max(initial=-1)) + 1)]


def _second_operator(
    roots: Windows,
    leaves: Windows,
    by: Ints,
    held: Any,
    chosen: tuple[list[Any], list[Floats]],
    agreed: Tolerance,
    tally: NeighbourTally,
) -> None:
    """Let selections of results stand for each other, by what they should depend on and what they do."""
    results = roots.selections.atoms
    actual = atoms_below(results, leaves.selections.atoms)
    used_results = EventSets.of_pairs(results.rows, by[results.ids], len(results))
    used = atoms_below(used_results, leaves.selections.atoms)
    interests = EventSets.of_pairs(used_results.rows, leaves.selections.owner[used_results.ids], len(results))
    event, owner = (each.astype(np.int64) for each in np.nonzero(held.T))
    holders = EventSets.of_pairs(event, owner, held.shape[1])
    apart = disparity(used, interests, holders)
    may, rank = chosen
    for second in range(len(may)):
        some, rows = roots.ending(second * SECOND, (second + 1) * SECOND)
        own = some.selections.owner
        pairs = coverable_by(own, actual.take(rows), used.take(rows), agreed, may[second], by_ids=True)
        cover = maximum_neighbour_cover(pairs, rank[second])
        told = rows[cover.by]
        tally.selections += len(rows)
        tally.processed += int(cover.may_process.sum())
        tally.told += len(rows)
        tally.disparity += float(apart[told].sum())
        both = EventSets(
            np.append(actual.offsets, used.offsets[1:] + actual.offsets[-1]), np.append(actual.ids, used.ids)
        )
        precision, recall = similarity(both, rows, told + len(actual))
        tally.similarity += float((precision + recall).sum() / 2)


def atoms_below(results: EventSets, atoms: EventSets) -> EventSets:
    """Give the atomic events below the results in each selection."""
    below = atoms.take(results.ids)
    return EventSets.of_pairs(results.rows[below.rows], below.ids, len(results))


# -- prediction (figure 5.7) ---------------------------------------------------------------------------------


@scenario(
    "reuse-prediction",
    "decided before all events of a batch have come: what predictors make of it",
    **{**MOVING, "seconds": (120, "how long it is measured")},
    cars=(5, "how many cars ask"),
    side_m=(5000.0, "side of the square interests"),
    known_s=((1.0, 5.0, 9.0), "seconds of a batch of ten after which it is decided"),
    before_s=(20, "seconds before that, from which the urn and places are known"),
    thresholds=((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), "what precision and recall have to be above"),
)
def run_prediction(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Decide with each predictor, and measure how similar the batches became; MSH."""
    tallies: dict[tuple[float, str, float], PredictionTally] = defaultdict(PredictionTally)
    side = parameters["side_m"]
    for town in counted(progress, parameters["repeats"], towns(parameters, parameters["cars"])):
        held = town.held(side)
        for batch in time_batches(town, side, parameters["window"]):
            if batch.begin_s < parameters["before_s"]:
                continue
            for known in parameters["known_s"]:
                seen = Seen(town, held, batch.begin_s, known, parameters["before_s"], side)
                for threshold in parameters["thresholds"]:
                    agreed = Tolerance.same(town.consumers, threshold)
                    for name, (precision, recall) in seen.predictions(threshold).items():
                        pairs = coverable_by_estimate(batch.batches.owner, precision, recall, agreed)
                        tallies[known, name, threshold].add_cover(
                            batch, maximum_similarity_cover(pairs), threshold
                        )
                    pairs = above(batch.pairs, threshold)
                    truth = maximum_similarity_cover(pairs)
                    tallies[known, "all events", threshold].add_cover(batch, truth, threshold)
                    best = best_cover(pairs, 60.0, batch.batches)
                    assert best is not None  # a handful of batches
                    tallies[known, "fewest", threshold].add_cover(batch, best, threshold)
    rows = [
        {"decided after": known, "threshold": threshold, "predictor": name, **tally.row()}
        for (known, name, threshold), tally in tallies.items()
    ]
    middle = sorted(parameters["known_s"])[len(parameters["known_s"]) // 2]
    for row in rows:
        if row["decided after"] == middle:
            row["similarity reused"], row["share processed"] = row["similarity of reused"], row["processed"]
    plots = (
        PublishedPlot("reuse-prediction", f"Average similarity of what is reused, decided after {middle:g} s",
            "threshold", "similarity reused", by="predictor"),
        PublishedPlot("reuse-prediction-processed", f"Selections processed, decided after {middle:g} s",
            "threshold", "share processed", by="predictor"),
    )  # fmt: skip
    rows.sort(key=lambda row: row["decided after"] != middle)
    return Results(rows, plots, notes_of(parameters))


@dataclass
class PredictionTally(Tally):
    """What predictions came to; with it, how many batches are as similar as they have to be."""

    reused: int = 0
    kept: int = 0

    def add_cover(self, batch: TimeBatch, cover: Cover, threshold: float) -> None:
        """Add a decision about batches, and what it led to."""
        add_batches(self, batch.windows, batch.batches, cover)
        by = stand_ins(batch.batches, batch.windows.end, cover)
        measures = similarity(batch.windows.selections.atoms, np.arange(len(by)), by)
        least = np.minimum(*(mean_of(each, batch.batches) for each in measures))
        self.reused += int((~cover.may_process).sum())
        self.kept += int((least[~cover.may_process] > threshold).sum())

    def row(self) -> dict[str, Any]:
        """Give the figures."""
        kept = self.kept / self.reused if self.reused else None
        return {**super().row(), "threshold kept": kept, "batches reused": self.reused}


class Seen:
    """What is known of a batch some seconds after it began: events in common of all pairs of consumers.

    Parameters
    ----------
    town, held, side_m
        The events, and whose interests hold them.
    begin_s, known_s
        When the batch began, and how much of it has come.
    before_s
        How far back events are remembered.
    """

    def __init__(
        self, town: Town, held: Any, begin_s: int, known_s: float, before_s: int, side_m: float
    ) -> None:
        now = round((begin_s + known_s) * SECOND)
        begin, before = np.searchsorted(town.time, [begin_s * SECOND, (begin_s - before_s) * SECOND])
        end = int(np.searchsorted(town.time, now))
        self.common, self.own = _in_common(held[:, begin:end])
        self.good, self.known = _in_common(held[:, before:end])
        self.missing = self.own * (BATCH_S - known_s) / known_s
        self.places = town.x[before:end], town.y[before:end]
        self.town, self.side_m, self.second = town, side_m, int(begin_s + known_s)
        self.ahead = np.arange(1.0, BATCH_S - known_s + 1.0)

    def predictions(self, threshold: float) -> dict[str, tuple[Floats, Floats]]:
        """Give precision and recall of all pairs, by predictor: row a, column b, of b in place of a."""
        return {
            "pessimistic": self._both(prediction.pessimistic, self.missing),
            "optimistic": self._both(prediction.optimistic, self.missing),
            "so far": self._both(prediction.so_far),
            "urn": self._both(prediction.by_urn, self.missing, self.good, self.known),
            "urn, 90 % sure": self._both(self._if_likely(threshold)),
            "location": self._by_location(),
            "area": by_area(box_overlaps(self.town.boxes(self.second - 1, self.side_m))),
        }

    def _both(self, predict: Any, *more: Floats) -> tuple[Floats, Floats]:
        """Predict recall by a consumer's own events, and precision by those of the other one."""
        recall = predict(self.common, self.own, *more)
        return recall.T, recall

    def _if_likely(self, threshold: float) -> Any:
        """Predict 1 where the threshold is passed with a chance of 90 %, else 0."""

        def predict(common: Floats, own: Floats) -> Floats:
            missing = np.round(self.missing).astype(np.int64)
            least = prediction.needed(common, own, missing.astype(np.float64), np.array(threshold))
            urn = (each.astype(np.int64).ravel() for each in (self.good, self.known))
            chance = prediction.chance_of(least.ravel(), missing.ravel(), *urn)
            return (chance.reshape(common.shape) > 0.9).astype(np.float64)

        return predict

    def _by_location(self) -> tuple[Floats, Floats]:
        """Predict from where interests will be in the rest of the batch, by dead reckoning."""
        here = self.town.where[self.second - 1]
        speed = (here - self.town.where[max(self.second - 4, 0)]) / 3.0
        steps = prediction.dead_reckoning(here[:, 0], here[:, 1], speed[:, 0], speed[:, 1], self.ahead)
        x, y = self.places
        inside = [
            np.maximum(np.abs(x - at_x[:, None]), np.abs(y - at_y[:, None])) <= self.side_m / 2
            for at_x, at_y in zip(*steps, strict=True)
        ]
        return prediction.by_location(inside)


def _in_common(held: Any) -> tuple[Floats, Floats]:
    """Count events that two consumers have in common, and those of the first: row a, column b."""
    inside = held.astype(np.float64)
    common = inside @ inside.T
    return common, np.repeat(np.diag(common)[:, None], len(common), axis=1)
