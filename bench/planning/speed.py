"""Measure how long planning takes: over brokers, tasks, time steps, and junctions of delay-tolerant trees.

Times are processor time, the median of several runs, with kernels compiled before. A series ends with the
first point that takes longer than its patience. `--pictures DIR` draws the curves.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.append(str(Path(__file__).parents[1]))

import migration_speed
import simulation
from tests.plan.pushpull.drawing import draw_composite

from experiments.networks import deep_tree, hierarchy
from whimbrel.plan.areas import leaves
from whimbrel.plan.cost import Objective
from whimbrel.plan.files import write_network
from whimbrel.plan.network import Consumer, EventSource, Network
from whimbrel.plan.planners import plan_exact, plan_flow, plan_greedy
from whimbrel.plan.pushpull.best import plan_pushpull
from whimbrel.plan.pushpull.tree import detection_tree
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

REPEAT, PATIENCE_S = 3, 10.0
TIERS = {
    22: ((1, 1), (2, 2), (4, 4)),
    41: ((8, 5),),
    86: ((1, 1), (2, 2), (4, 4), (8, 8)),
    342: ((1, 1), (2, 2), (4, 4), (8, 8), (16, 16)),
    1366: ((1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32)),
    10582: ((1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (96, 96)),
}
"""Hierarchies by how many brokers they have, the cloud included."""


@dataclass(frozen=True)
class Curve:
    """Times of one planner over something that grows."""

    figure: str
    """Curves of one figure are drawn together."""
    name: str
    grows: str
    points: tuple[tuple[float, float], ...]
    """(how much there is of it, seconds)."""


def seconds(run: Callable[[], object], times: int = REPEAT) -> float:
    """Give the median processor time of several runs; what takes long is run once."""
    spent: list[float] = []
    while len(spent) < times and sum(spent) < PATIENCE_S / 2:
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return statistics.median(spent)


def curve(figure: str, name: str, grows: str, runs: Iterable[tuple[float, Callable[[], object]]]) -> Curve:
    """Measure points until one takes too long."""
    points: list[tuple[float, float]] = []
    for size, run in runs:
        points.append((size, seconds(run)))
        print(f"{figure}, {name}: {size:g} {grows}, {points[-1][1]:.4f} s", file=sys.stderr, flush=True)
        if points[-1][1] > PATIENCE_S:
            break
    return Curve(figure, name, grows, tuple(points))


# -- placements ---------------------------------------------------------------------------------------------


def detection(network: Network, feeds: int, seed: int = 1) -> Workload:
    """Make conditions at random leaves, patterns over pairs of them, and one over all; two want it."""
    rng = random.Random(seed)
    places = [broker.name for broker in leaves(network)]
    sent = tuple(Feed(f"f{n}", 10, 200, rng.choice(places)) for n in range(feeds))
    conditions = [Task(f"c{n}", (f"f{n}",), 1, 200, 0.1) for n in range(feeds)]
    pairs = [Task(f"p{n}", (f"c{n}", f"c{n + 1}"), 0.2, 100, 0.2) for n in range(0, feeds - 1, 2)]
    whole = Task("all", tuple(task.name for task in pairs), 0.1, 100, 0.3)
    wanted = (Delivery("all", "cloud", 1.0), Delivery("all", rng.choice(places), 1.0))
    return Workload(sent, (*conditions, *pairs, whole), wanted)


PLACING: dict[str, Callable[..., Any]] = {"greedy": plan_greedy, "flow": plan_flow, "exact": plan_exact}


def over_brokers() -> Iterable[Curve]:
    """Plan the same ten tasks on larger and larger hierarchies."""
    problems = {size: (hierarchy(tiers), 6) for size, tiers in TIERS.items()}
    for name, planner in PLACING.items():
        yield curve(
            "brokers", name, "brokers",
            (
                (size, partial(planner, detection(network, feeds), network, Objective.FLOW))
                for size, (network, feeds) in problems.items()
            ),
        )  # fmt: skip


def over_tasks() -> Iterable[Curve]:
    """Plan more and more tasks on a hierarchy of 342 brokers."""
    network = hierarchy(TIERS[342], capacity=4.0)
    workloads = [detection(network, feeds) for feeds in (2, 6, 12, 24, 36, 66)]
    for name, planner in PLACING.items():
        yield curve(
            "tasks", name, "tasks",
            ((len(each.tasks), partial(planner, each, network, Objective.FLOW)) for each in workloads),
        )  # fmt: skip


# -- migration ----------------------------------------------------------------------------------------------


def over_steps() -> Iterable[Curve]:
    """Plan how one operator moves: over time steps on 41 brokers, and over brokers for 500 steps."""
    runs = (
        (steps, _shortest(migration_speed.problem([(8, 5)], steps, 1)))
        for steps in (50, 100, 500, 1000, 4000)
    )
    yield curve("steps", "41 brokers", "steps", runs)
    shapes = ([(4, 2)], [(8, 5)], [(10, 10)], [(20, 10)], [(20, 20)])
    problems = [migration_speed.problem(shape, 500, 1) for shape in shapes]
    yield curve(
        "migration", "500 steps", "brokers", ((len(each.numbers), _shortest(each)) for each in problems)
    )


def _shortest(problem: Any) -> Callable[[], object]:
    def run() -> object:
        return problem.time_graph("t0", {}).shortest()

    run()  # kernels compile
    return run


# -- push and pull ------------------------------------------------------------------------------------------


def over_junctions() -> Iterable[Curve]:
    """Plan a composite event with a part at each leaf of deeper and deeper trees."""
    yield curve("junctions", "whimbrel, two inputs each", "junctions", _trees(2, range(2, 9)))
    yield curve("junctions", "whimbrel, three inputs each", "junctions", _trees(3, range(2, 6)))


def _trees(children: int, levels: Iterable[int]) -> Iterable[tuple[float, Callable[[], object]]]:
    for depth in levels:
        network = deep_tree(7, levels=depth, children=children)
        sources = [b.name for b in network.brokers if len(network.neighbours[b.name]) == 1][: children**depth]
        rng = random.Random(7)
        drawn = draw_composite(rng, network, len(sources))
        sink = network.brokers[0].name
        parts = tuple(
            replace(part, at=at)
            for part, at in zip(drawn.parts, (s for s in sources if s != sink), strict=False)
        )
        composite = replace(drawn, parts=parts, at=sink, operator="and", tolerance_s=2_000.0 * depth)
        count = 1 + sum(1 for _ in detection_tree(network, composite).below())
        yield count, partial(plan_pushpull, composite, network)


# -- tables and pictures ------------------------------------------------------------------------------------


def measure() -> list[Curve]:
    """Take all curves."""
    return [each for part in (over_brokers, over_tasks, over_steps, over_junctions) for each in part()]


TITLES = {
    "brokers": "Placing 10 tasks in a hierarchy",
    "tasks": "Placing tasks in a hierarchy of 342 brokers",
    "steps": "Moving one operator: over time steps",
    "migration": "Moving one operator: over brokers",
    "junctions": "Pushing and pulling in a delay-tolerant tree",
}


def tables(curves: list[Curve]) -> str:
    """Write a table for each figure: a row for each size, a column for each planner."""
    found = []
    for figure, title in TITLES.items():
        here = [each for each in curves if each.figure == figure]
        sizes = sorted({size for each in here for size, _ in each.points})
        lines = [
            f"| {title}: {here[0].grows} | " + " | ".join(each.name for each in here) + " |",
            "|---" * (len(here) + 1) + "|",
        ]
        for size in sizes:
            cells = [_in_words(dict(each.points).get(size)) for each in here]
            lines.append(f"| {size:,.0f} | " + " | ".join(cells) + " |")
        found.append("\n".join(lines))
    return "\n\n".join(found)


def _in_words(spent: float | None) -> str:
    if spent is None:
        return "-"
    return f"{1000 * spent:.3g} ms" if spent < 1 else f"{spent:.3g} s"


def draw(curves: list[Curve], folder: Path) -> list[Path]:
    """Draw each figure with logarithmic axes to planning-time-FIGURE.png."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    made = []
    for figure, title in TITLES.items():
        here = [each for each in curves if each.figure == figure]
        chart, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
        for each in here:
            axes.loglog(*zip(*each.points, strict=True), marker="o", markersize=4, label=each.name)
        axes.set(title=title, xlabel=here[0].grows, ylabel="seconds of one core")
        axes.grid(which="major", alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
        made.append(folder / f"planning-time-{figure}.png")
        chart.savefig(made[-1], dpi=100, metadata={"Software": None})
        plt.close(chart)
    return made


def end_to_end() -> str:
    """Run the command on a query of the examples and a hierarchy of 10,582 brokers in a file."""
    network, rng = hierarchy(TIERS[10582]), random.Random(1)
    places = [broker.name for broker in leaves(network)]
    sources = [EventSource(f"gate-{n}", "Plate", rng.choice(places), size_b=60_000) for n in range(3)]
    sources += [EventSource(f"lift-{n}", "Position", rng.choice(places)) for n in range(6)]
    consumers = (Consumer("guard", rng.choice(places), ("Danger",), 0.5), Consumer("archive", "cloud"))
    network = replace(network, sources=tuple(sources), consumers=consumers)
    lines = ["| `whimbrel plan` on 10,582 brokers, from end to end | seconds |", "|---|---|"]
    with TemporaryDirectory() as folder:
        for kind, picture in (("json", False), ("yaml", False), ("yaml", True)):
            file = f"{folder}/site.{kind}"
            write_network(network, file)
            drawn = ["--picture", f"{folder}/plan.png"] if picture else []
            spent = statistics.median(_command(file, *drawn) for _ in range(REPEAT))
            lines.append(f"| {kind.upper()}{', with a picture' if picture else ''} | {spent:.1f} |")
    return "\n".join(lines)


def _command(file: str, *options: str) -> float:
    """Run `whimbrel plan` in a process of its own; give the processor time that it took."""
    examples = Path(__file__).parents[2] / "examples" / "planning"
    command = [
        "plan",
        str(examples / "yard.wbl"),
        "--network",
        file,
        "--events",
        str(examples / "recording.csv"),
    ]
    code = "from whimbrel.cli.main import main; main()"
    before = _children_s()
    subprocess.run(
        [sys.executable, "-c", code, *command, "--quiet", *options], check=True, stdout=subprocess.DEVNULL
    )
    return _children_s() - before


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def simulator() -> str:
    """Write how much the simulator gets done in a second of one core."""
    simulation.events_of_query(20, 20.0)  # kernels compile
    rows = [
        ("links crossed by messages", simulation.hops_over_links),
        ("steps of a workload", simulation.steps_of_workload),
        ("events of a query, with the real engine", simulation.events_of_query),
    ]
    lines = ["| simulated | a second |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {simulation.rate(run):,.0f} |" for name, run in rows)])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path, help="a folder for the curves")
    options = parser.parse_args()
    curves = measure()
    print("\n\n".join([tables(curves), end_to_end(), simulator()]))
    if options.pictures:
        draw(curves, options.pictures)


if __name__ == "__main__":
    main()
