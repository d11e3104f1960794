"""Random problems on which estimates are compared with what the simulator measures."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

from whimbrel.plan.contacts import ALWAYS, Contacts, PeriodicContacts
from whimbrel.plan.cost import Objective, evaluate
from whimbrel.plan.network import Broker, Link, Mover, Network
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

UNTIL_S = 60.0


@dataclass(frozen=True)
class Problem:
    """A workload on a network, with hosts that stay, and moves of tasks."""

    workload: Workload
    network: Network
    hosts: dict[str, str]
    objective: Objective
    moves: tuple[tuple[float, str, str], ...] = ()

    @property
    def hosts_over_time(self) -> dict[str, list[tuple[float, str]]]:
        """The brokers of each task with the time of each change."""
        return {
            name: [(0.0, first), *((time, broker) for time, task, broker in self.moves if task == name)]
            for name, first in self.hosts.items()
        }


def draw_problem(
    seed: int,
    *,
    turns: bool = True,
    movers: bool = True,
    moves: bool = False,
    wide: bool = False,
    until_s: float = UNTIL_S,
) -> Problem:
    """Draw links of all bandwidths, of which none has more to carry than it can; or all of any bandwidth."""
    rng = random.Random(seed)
    objective = rng.choice(list(Objective))
    count = rng.randrange(2, 6)
    names = [f"b{n}" for n in range(count)]
    tracks = [
        Mover(f"m{n}", tuple((time, rng.uniform(0, count), 0.5) for time in (0.0, 0.4 * until_s, until_s)))
        for n in range(rng.randrange(1, 3) if movers else 0)
    ]
    places = [*names, *(mover.name for mover in tracks)]
    workload = _workload(rng, places)
    pairs = [(names[n], names[rng.randrange(n)]) for n in range(1, count)]
    pairs += [tuple(rng.sample(names, 2)) for _ in range(rng.randrange(3) if count > 2 else 0)]
    links = tuple(_link(rng, a, b, turns) for a, b in pairs)
    brokers = tuple(Broker(name, area=(n, 0, n + 1, 1)) for n, name in enumerate(names))
    hosts = {task.name: rng.choice(names) for task in workload.tasks}
    moved = [
        (rng.uniform(0.1, 0.8) * until_s, task, rng.choice(names))
        for task in hosts
        if moves and rng.random() < 0.7
    ]
    problem = Problem(
        workload, Network(brokers, links, movers=tuple(tracks)), hosts, objective, tuple(sorted(moved))
    )
    return problem if wide else _narrowed(rng, problem, until_s)


def _link(rng: random.Random, a: str, b: str, turns: bool) -> Link:
    contacts: Contacts = ALWAYS
    if turns and rng.random() < 0.4:
        contacts = PeriodicContacts(rng.uniform(0.5, 5), rng.uniform(0.5, 5), rng.uniform(0, 5))
    return Link(a, b, latency_s=rng.choice([0.0, 0.02, 0.3]), cost=rng.randrange(1, 4), contacts=contacts)


def _narrowed(rng: random.Random, problem: Problem, until_s: float) -> Problem:
    """Give links and brokers so much room that some are nearly full when most has to be done."""
    costs = evaluate(
        problem.workload, problem.network, problem.hosts_over_time, problem.objective, until_s=until_s
    )
    links = tuple(
        replace(
            link,
            bandwidth_b_s=(costs.traffic_b_s.get(link, 0.0) + 50)
            * rng.choice([1.05, 1.5, 4, math.inf])
            / link.contacts.share,
        )
        for link in problem.network.links
    )
    brokers = tuple(
        replace(broker, capacity=(costs.work.get(broker.name, 0.0) + 0.01) * rng.choice([1.1, 3, math.inf]))
        for broker in problem.network.brokers
    )
    return replace(problem, network=replace(problem.network, brokers=brokers, links=links))


def _workload(rng: random.Random, places: list[str]) -> Workload:
    feeds = tuple(
        Feed(f"f{n}", rng.choice([0.5, 2, 3.3, 10]), rng.choice([10, 200, 3000]), rng.choice(places))
        for n in range(rng.randrange(1, 4))
    )
    rates = {feed.name: feed.bytes_s for feed in feeds}
    tasks: list[Task] = []
    for n in range(rng.randrange(4)):
        inputs = tuple(rng.sample(list(rates), rng.randrange(1, min(3, len(rates)) + 1)))
        made, size = (
            sum(rates[name] for name in inputs) * rng.choice([0.1, 0.5, 1.0]),
            rng.choice([10.0, 300.0]),
        )
        tasks.append(
            Task(
                f"t{n}",
                inputs,
                made / size,
                size,
                work=rng.choice([0.1, 1.0]),
                fixed_b=rng.choice([0, 900]),
                window_b=rng.choice([0, 300]),
            )
        )
        rates[f"t{n}"] = made
    wanted = rng.sample(list(rates), rng.randrange(1, min(3, len(rates)) + 1))
    return Workload(feeds, tuple(tasks), tuple(Delivery(name, rng.choice(places)) for name in wanted))
