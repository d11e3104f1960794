"""A plan that pushes and pulls, and how it explains itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from whimbrel.plan.cost import Objective, room
from whimbrel.plan.formatting import (
    aligned,
    amount,
    compared,
    counted,
    fields,
    finite,
    listed,
    percent,
    rate,
)
from whimbrel.plan.network import Link, Network
from whimbrel.plan.pushpull.composite import Composite
from whimbrel.plan.pushpull.multi_query import Hop, MultiQueryPlan
from whimbrel.plan.pushpull.patterns import DeliveredComposites
from whimbrel.plan.pushpull.plan import JunctionPlan, PushPullPlan, crossing
from whimbrel.plan.pushpull.tree import Input, Junction
from whimbrel.plan.rendering import links_data, paragraphs, table_of_links
from whimbrel.plan.units import in_bytes, in_seconds
from whimbrel.plan.workload import Workload


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to do it, to compare with; no cost if it is not quick enough."""

    name: str
    words: str
    cost_s: float | None


@dataclass(frozen=True, slots=True)
class InputFlow:
    """How a broker gets one of its inputs."""

    at: str
    each: Input
    stage: int
    """0: it is pushed; else it is pulled, with the others of its stage."""
    bytes_s: float
    """What crosses its way, requests included."""
    pushed_b_s: float
    """What would cross it if it were pushed."""
    requests_b_s: float
    """How much of what crosses it are requests."""

    @property
    def name(self) -> str:
        """Say what it is."""
        return _name(self.each)


@dataclass(frozen=True)
class PushPullDeployment:
    """Which events are sent at once, which are asked for, by whom and when; what that costs and takes."""

    workload: Workload
    network: Network
    wanted: tuple[DeliveredComposites, ...]
    plans: MultiQueryPlan
    others: tuple[Alternative, ...] = ()
    notes: tuple[str, ...] = ()
    planner: str = "pushpull"

    @cached_property
    def traffic_b_s(self) -> dict[Link, float]:
        """Bytes a second on each link that carries any."""
        found: dict[Link, float] = {}
        for (hop, _), bytes_s in self.plans.load.items():
            link = self._link(hop)
            found[link] = found.get(link, 0.0) + bytes_s
        return {link: found[link] for link in self.network.links if link in found}

    def _link(self, hop: Hop) -> Link:
        return min(
            (link for link in self.network.neighbours[hop[0]] if link.other(hop[0]) == hop[1]),
            key=lambda link: link.cost,
        )

    def plan_of(self, composite: Composite) -> PushPullPlan:
        """Return the plan of a composite event."""
        return self.plans.plans[composite.name]

    def delay_s(self, wanted: DeliveredComposites) -> float:
        """Estimate the longest time until a detection is known where it is wanted."""
        return max(self.plan_of(each).estimate.delay_s for each in wanted.composites)

    # -- words -----------------------------------------------------------------------------------------------

    def words(self) -> str:
        """Explain the plan: what it costs, what is sent at once, who asks for what, how long it takes."""
        parts = [
            [self._summary()],
            *(self._told(self.plan_of(each)) for wanted in self.wanted for each in wanted.composites),
            [self._arrives(each) for each in self.wanted],
            self._fullest(),
            [f"{name} is left out: {why}." for name, why in self.plans.left_out.items()],
            [f"Note: {note}." for note in self.notes],
        ]
        return paragraphs(parts)

    def _summary(self) -> str:
        mine = self.plans.cost_s
        cost = f"{amount(mine)} a second for traffic"
        said = [
            f"The plan ({self.planner}) keeps the {Objective.COST.words} small: {cost}.",
            *(self._against(other, mine) for other in self.others),
        ]
        return " ".join(said)

    def _against(self, other: Alternative, mine: float) -> str:
        words = other.words[:1].upper() + other.words[1:]
        if other.cost_s is None:
            return f"{words} would not be quick enough."
        return f"{words} would cost {compared(other.cost_s, mine)}."

    def _told(self, plan: PushPullPlan) -> list[str]:
        """Tell one composite event: its parts, then what every broker of its tree does, the highest first."""
        composite = plan.composite
        lines = [f"{composite.name} is {_described(composite)}."]
        for planned in reversed(list(plan.root.all())):
            lines += self._junction(composite, planned)
        return lines

    def _junction(self, composite: Composite, planned: JunctionPlan) -> list[str]:
        inputs = list(input_flows(composite, planned))
        own = [each.name for each in inputs if not each.stage and not hops(each.each)]
        sent = [each.name for each in inputs if not each.stage and hops(each.each)]
        said = [f"has {listed(own)} itself"] if own else []
        said += [f"is sent {listed(sent)} at once"] if sent else []
        lines = [f"  {planned.junction.at} {listed(said)}."]
        for stage in range(1, len(planned.stages)):
            asked = [each for each in inputs if each.stage == stage]
            now, before = sum(each.bytes_s for each in asked), sum(each.pushed_b_s for each in asked)
            share = (now - sum(each.requests_b_s for each in asked)) / before if before else 0.0
            names = listed([each.name for each in asked])
            lines.append(
                f"  {planned.junction.at} then asks for {names}: {percent(share)} "
                f"still matters, {in_bytes(now)}/s with requests instead of {in_bytes(before)}/s."
            )
        return lines

    def _arrives(self, wanted: DeliveredComposites) -> str:
        delivery = wanted.delivery
        limit = "" if math.isinf(delivery.latency_s) else f", and may take {in_seconds(delivery.latency_s)}"
        return (
            f"{delivery.stream} is known at {delivery.at} within {in_seconds(self.delay_s(wanted))}{limit}."
        )

    def _fullest(self) -> list[str]:
        shares = [
            (load / room(link), number, link) for number, (link, load) in enumerate(self.traffic_b_s.items())
        ]
        share, _, link = max(shares, default=(0.0, 0, None))
        if link is None or not share:
            return []
        of_room = f"{in_bytes(self.traffic_b_s[link])}/s of {in_bytes(room(link))}/s ({percent(share)})"
        return [f"The fullest link is {link.a} - {link.b}: {of_room}."]

    # -- table, data, picture --------------------------------------------------------------------------------

    def table(self) -> str:
        """Show what every broker gets and how, deliveries and links as tables of text."""
        composites = [each for wanted in self.wanted for each in wanted.composites]
        inputs = [
            [composite.name, got.at, got.name, "pushed" if not got.stage else f"pulled ({got.stage})",
             " > ".join(got.each.path), f"{in_bytes(got.bytes_s)}/s"]
            for composite in composites
            for planned in reversed(list(self.plan_of(composite).root.all()))
            for got in input_flows(composite, planned)
        ]  # fmt: skip
        parts = [
            [composite.name, part.name, part.at, rate(part.rate_hz), in_bytes(part.size_b),
             "must not occur" if part.is_negated else ""]
            for composite in composites
            for part in composite.parts
        ]  # fmt: skip
        deliveries = [
            [each.delivery.stream, each.delivery.at, in_seconds(self.delay_s(each)),
             in_seconds(each.delivery.latency_s)]
            for each in self.wanted
        ]  # fmt: skip
        tables = [
            aligned(["composite", "broker", "gets", "how", "on the way", "bytes"], inputs),
            aligned(["composite", "part", "at", "occurs", "size", ""], parts),
            aligned(["delivery", "to", "within", "at most"], deliveries),
            table_of_links(self.traffic_b_s),
        ]
        return paragraphs(tables)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data; what has no limit is null."""
        return {
            "planner": self.planner,
            "objective": Objective.COST.value,
            "network": self.network.name,
            "costs": {"cost_s": self.plans.cost_s},
            "compared": {other.name: {"cost_s": other.cost_s} for other in self.others},
            "composites": [
                self._composite_data(wanted, each) for wanted in self.wanted for each in wanted.composites
            ],
            "deliveries": [
                {
                    "stream": each.delivery.stream,
                    "at": each.delivery.at,
                    "delay_s": finite(self.delay_s(each)),
                }
                | {"latency_s": finite(each.delivery.latency_s)}
                for each in self.wanted
            ],
            "links": links_data(self.traffic_b_s),
            "notes": list(self.notes),
        } | ({"left_out": dict(self.plans.left_out)} if self.plans.left_out else {})

    def _composite_data(self, wanted: DeliveredComposites, composite: Composite) -> dict[str, Any]:
        plan = self.plan_of(composite)
        return {
            **fields(composite, "name", "operator", "window_s", "at"),
            "stream": wanted.delivery.stream,
            "tolerance_s": finite(composite.tolerance_s),
            "parts": [
                fields(part, "name", "at", "rate_hz", "size_b", "is_negated") for part in composite.parts
            ],
            "cost_s": plan.estimate.cost_s,
            "delay_s": finite(plan.estimate.delay_s),
            "tree": _tree(plan.root),
        }

    def draw(self, path: str) -> None:
        """Draw the plan to a file, PNG or SVG: the network, with arrows for what is pushed and pulled."""
        from whimbrel.plan.pushpull.deployment_picture import draw_deployment

        draw_deployment(self, path)


def input_flows(composite: Composite, planned: JunctionPlan) -> Iterator[InputFlow]:
    """Tell how a junction gets its inputs, in the order of its stages."""
    known: frozenset[str] = frozenset()
    for place, stage in enumerate(planned.stages):
        requests_b_s = composite.request_b * composite.rate_hz(known) if place else 0.0
        for number in stage:
            each = planned.junction.inputs[number]
            bytes_s = crossing(composite, each, known, is_pulled=place > 0)
            pushed_b_s = crossing(composite, each, frozenset(), is_pulled=False)
            yield InputFlow(planned.junction.at, each, place, bytes_s, pushed_b_s, requests_b_s)
        known = known.union(*(planned.junction.inputs[number].parts for number in stage))


def _tree(planned: JunctionPlan) -> dict[str, Any]:
    """Return a junction as plain data: its stages, each a list of parts and of junctions below."""

    def one(number: int) -> dict[str, Any]:
        each = planned.junction.inputs[number]
        below = (
            {"junction": _tree(planned.below[number])}
            if isinstance(each, Junction)
            else {"part": each.part.name}
        )
        return {**below, "path": list(each.path)}

    pushed, *pulled = planned.stages
    return {
        "at": planned.junction.at,
        "pushed": [one(number) for number in pushed],
        "pulled": [[one(number) for number in stage] for stage in pulled],
    }


def _name(each: Input) -> str:
    return f"what {each.at} finds" if isinstance(each, Junction) else each.part.name


def _described(composite: Composite) -> str:
    """Say what a composite event is made of."""
    occurring = [part.name for part in composite.parts if not part.is_negated]
    absent = [part.name for part in composite.parts if part.is_negated]
    if composite.operator == "or":
        return (
            occurring[0]
            if len(occurring) == 1
            else f"any of {counted(len(occurring), 'kind')}: {listed(occurring)}"
        )
    joined = " then ".join(occurring) if composite.operator == "seq" else listed(occurring)
    without = f" without {listed(absent)}" if absent else ""
    return f"{joined}{without} within {in_seconds(composite.window_s)}"


def hops(each: Input) -> list[Hop]:
    """Return the hops on the way of an input."""
    return list(pairwise(each.path))
