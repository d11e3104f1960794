"""Compare what plans promise with what the simulator measures: costs, and bounds of delays.

Random workloads on random networks with fixed hosts, links by turns, movers and tasks that move; and the plan
of the example, examples/planning. Costs: by how much the measured one differs from the estimate. Delays: the
longest measured one of each delivery, as a share of its bound, which must not be above 1.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.sim.estimating import Problem, draw_problem

import whimbrel as wb
from experiments.workloads import run_workload
from whimbrel.backtesting.measure import measure
from whimbrel.plan.cost import Objective, evaluate
from whimbrel.plan.demand import workload_of
from whimbrel.plan.files import read_network
from whimbrel.plan.planners import plan_greedy
from whimbrel.sim.settings import Settings

ROOT = Path(__file__).parents[2]
UNTIL_S = 600.0
KINDS = {
    "fixed hosts": {"turns": False, "movers": False, "moves": False},
    "links by turns": {"turns": True, "movers": False, "moves": False},
    "movers": {"turns": False, "movers": True, "moves": False},
    "tasks that move": {"turns": False, "movers": False, "moves": True},
    "all of these": {"turns": True, "movers": True, "moves": True},
}
SENT = ("data", "state", "fixed state")


@dataclass
class Seen:
    """What was found about problems of one kind."""

    problems: int = 0
    off: dict[str, list[float]] = field(default_factory=lambda: {"flow": [], "cost": [], "bdp": []})
    idle: list[float] = field(default_factory=list)
    tight: list[float] = field(default_factory=list)
    unbounded: int = 0

    def add(self, problem: Problem, until_s: float) -> None:
        """Carry a problem out and compare."""
        workload, network, objective = problem.workload, problem.network, problem.objective
        costs = evaluate(workload, network, problem.hosts_over_time, objective, until_s=until_s)
        how = Settings(weight=objective.weight, header_b=0.0)
        found = run_workload(
            workload, network, problem.hosts, until_s=until_s, moves=problem.moves, step_s=0.0, settings=how
        )
        used = [found.traffic.by_kind[kind] for kind in SENT if kind in found.traffic.by_kind]
        total = costs.total
        for what, name, estimate in (
            ("flow", "bytes", total.flow_b_s),
            ("cost", "cost", total.cost_s),
            ("bdp", "bdp", total.bdp_b),
        ):
            measured = sum(getattr(each, name) for each in used) / until_s
            # Bytes that wait for a link by turns are not counted apart from those that queue.
            if estimate > 1e-6 and not (what == "bdp" and _has_turns(problem)):
                self.off[what].append(abs(measured / estimate - 1))
        for delays, delay, bound in zip(found.delays_s.values(), costs.delays_s, costs.bounds_s, strict=True):
            if math.isinf(bound):
                self.unbounded += 1
            elif len(delays) and bound > 0:
                self.tight.append(float(delays.max()) / bound)
                self.idle.append(float(delays.max()) > delay * (1 + 1e-9) + 1e-9)
        self.problems += 1

    def row(self, name: str) -> str:
        """Give a row of the table."""
        off = " | ".join(_spread(self.off[what]) for what in ("flow", "cost", "bdp"))
        late = sum(self.idle) / max(len(self.idle), 1)
        tight = f"{statistics.median(self.tight):.2f} | {max(self.tight):.4f}"
        return f"| {name} | {self.problems} | {off} | {late:.0%} | {tight} | {self.unbounded} |"


def _has_turns(problem: Problem) -> bool:
    return any(link.contacts.share < 1 for link in problem.network.links)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1%}, {max(values):.1%}" if values else "-"


def example() -> Problem:
    """Give the plan of the example that the guide shows."""
    folder = ROOT / "examples" / "planning"
    query, network = wb.read(folder / "yard.wbl"), read_network(folder / "site.yaml")
    workload = workload_of(query, network, measure(query, folder / "recording.csv"))
    return Problem(workload, network, dict(plan_greedy(workload, network).hosts), Objective.BDP)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=40, help="of each kind")
    options = parser.parse_args()
    print("| | problems | flow off: median, worst | cost | bdp | above idle delay "
          "| measured / bound: median | largest | no bound |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for name, kind in KINDS.items():
        seen = Seen()
        for seed in range(options.problems):
            seen.add(draw_problem(seed, until_s=UNTIL_S, **kind), UNTIL_S)
        print(seen.row(name))
    seen = Seen()
    seen.add(example(), 3600.0)
    print(seen.row("the example"))


if __name__ == "__main__":
    main()
