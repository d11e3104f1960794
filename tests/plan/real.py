"""Problems on networks of real operators, and on who met whom: drawn is only who sends and wants what."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.plan.drawing import draw_workload

from whimbrel.plan.graphml import read_graphml
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.pushpull.plan import PushPullPlan
from whimbrel.plan.traces import contacts_from
from whimbrel.plan.workload import Workload

HOUR_S, DAY_S = 3_600.0, 86_400.0


def zoo(data: Path) -> list[Path]:
    """Name the files of the Internet Topology Zoo."""
    return sorted((data / "topologies_zoo" / "graphml").glob("*.graphml"))


def operator_problem(file: Path, seed: int, tasks: int = 4) -> tuple[Workload, Network]:
    """Draw a workload on the largest connected part of an operator's network; brokers have limits."""
    whole, rng = read_graphml(file), random.Random(seed)
    names = _largest_part(whole)
    network = Network(
        tuple(
            replace(each, capacity=rng.choice([1.0, 2.0, 4.0]))
            for each in whole.brokers
            if each.name in names
        ),
        tuple(link for link in whole.links if link.a in names),
        name=whole.name,
    )
    return draw_workload(rng, network, tasks), network


def _largest_part(network: Network) -> set[str]:
    best: set[str] = set()
    rest = dict.fromkeys(network.number)
    while rest:
        part, waiting = set(), [next(iter(rest))]
        while waiting:
            name = waiting.pop()
            if name not in part:
                part.add(name)
                waiting += [link.other(name) for link in network.neighbours[name]]
        best = max(best, part, key=len)
        rest = {name: None for name in rest if name not in part}
    return best


def people(data: Path, first_s: float = 284 * HOUR_S, length_s: float = 3 * HOUR_S) -> Network:
    """Link people of the trace upb-hyccups2012 who met again and again in some hours of it.

    These are pairs that met three times or more and never had to wait for a quarter of the time; of them, the
    largest group. Contacts of more than a day are taken for mistakes and left out.
    """
    file = data / "contacts_upb" / "upb-hyccups2012" / "full_output.txt"
    rows = np.loadtxt(file, delimiter=",", dtype=np.int64)
    begin = rows[:, 2].min() / 1e3 + first_s
    met = contacts_from(
        (f"p{a}", f"p{b}", max(start / 1e3 - begin, 0.0), min((start + length) / 1e3 - begin, length_s))
        for a, b, start, length in rows.tolist()
        if length <= DAY_S * 1e3 and start / 1e3 < begin + length_s and (start + length) / 1e3 > begin
    )
    links = tuple(
        Link(a, b, 125_000.0, 0.1, contacts=contacts)
        for (a, b), contacts in met.items()
        if len(contacts.times) >= 3
        and max(contacts.longest_wait_s, length_s - contacts.times[-1][1]) < length_s / 4
    )
    names = dict.fromkeys(end for link in links for end in (link.a, link.b))
    everybody = Network(tuple(Broker(name) for name in names), links, name="people who met")
    group = _largest_part(everybody)
    return replace(
        everybody,
        brokers=tuple(each for each in everybody.brokers if each.name in group),
        links=tuple(link for link in links if link.a in group),
    )


def gathering(network: Network, tolerance_s: float) -> Composite:
    """Let frequent, rarer and rare events of three people come together at the one who met the most."""
    sink = max(network.number, key=lambda name: len(network.neighbours[name]))
    others = [name for name in network.number if name != sink][:3]
    rates = (1 / 10, 1 / 60, 1 / 120)
    parts = tuple(
        PrimitiveEvent(f"from {at}", at, rate, 1_000.0) for at, rate in zip(others, rates, strict=True)
    )
    return Composite("gathering", "and", parts, 30.0, sink, tolerance_s)


def last_chance_s(plan: PushPullPlan, network: Network) -> float:
    """Give until when events can occur so that all links of a plan come up once more after each wait."""
    used = {
        frozenset(pair)
        for planned in plan.root.all()
        for each in planned.junction.inputs
        for pair in zip(each.path, each.path[1:], strict=False)
    }
    ends = [link.contacts.times[-1][0] for link in network.links if frozenset((link.a, link.b)) in used]
    return min(ends) - plan.estimate.delay_s
