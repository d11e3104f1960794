"""Read a plan that pushes and pulls, as `whimbrel plan --planner pushpull --out` wrote it.

What is detected follows from the query and the network; the plan says how often events come, how large they
are, and who is sent or asks for what. So a plan that was made for something else is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.graph.query import Compilable, Query
from whimbrel.plan.demand import workload_of
from whimbrel.plan.network import Network, unknown
from whimbrel.plan.plan import Plan
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.pushpull.deployment import PushPullDeployment
from whimbrel.plan.pushpull.multi_query import MultiQueryPlan, priced
from whimbrel.plan.pushpull.patterns import DeliveredComposites, composites_of
from whimbrel.plan.pushpull.plan import Estimate, JunctionPlan, PushPullPlan
from whimbrel.plan.pushpull.tree import Input, Junction, Leaf, leaves_of
from whimbrel.plan.reading import WANTED, content_of, is_deployment, naming, plan_of

_AGAIN = "plan again, with this query and this network"


def read_any(file: str | Path, query: Query | Compilable, network: Network) -> Plan | PushPullDeployment:
    """Read a plan of any planner, and work out what it costs on a network.

    Raises
    ------
    NetworkError
        If the file is no plan, or was made for another query or network.
    """
    content = content_of(file)
    with naming(file):
        return deployment_of(content, query, network) if is_deployment(content) else plan_of(content, network)


def deployment_of(content: Any, query: Query | Compilable, network: Network) -> PushPullDeployment:
    """Make a plan of what `PushPullDeployment.to_dict` gives."""
    workload = workload_of(query, network)
    try:
        wanted = composites_of(workload, network)
    except NoPlanError as error:
        raise NetworkError(f"the plan is for another query or network: {error}") from error
    try:
        said = {str(each["name"]): each for each in content["composites"]}
        left_out = {str(name): str(why) for name, why in content.get("left_out", {}).items()}
        planned = {each.name for each in _composites(wanted)} - left_out.keys()
        wanted = [each for each in (each.of(planned) for each in wanted) if each.composites]
        plans = dict(_plans(wanted, said, network))
    except NetworkError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NetworkError(f"something of the plan is missing or damaged: {error!r}", WANTED) from error
    made = [
        replace(each, composites=tuple(plans[composite.name].composite for composite in each.composites))
        for each in wanted
    ]
    return PushPullDeployment(
        workload,
        network,
        tuple(made),
        MultiQueryPlan(network, plans, left_out),
        planner=str(content.get("planner", "")),
    )


def _composites(wanted: Iterable[DeliveredComposites]) -> Iterator[Composite]:
    return (composite for each in wanted for composite in each.composites)


def _plans(
    wanted: list[DeliveredComposites], said: Mapping[str, Mapping[str, Any]], network: Network
) -> Iterator[tuple[str, PushPullPlan]]:
    """Read the plan of each composite event that the query has on the network."""
    known = {composite.name: composite for composite in _composites(wanted)}
    for name in said:
        if name not in known:
            raise unknown("composite event of the query", name, known, "the plan detects it")
    for name, composite in known.items():
        if name not in said:
            raise NetworkError(f"the plan does not tell how {name!r} is detected", _AGAIN)
        yield name, _Reader(composite, said[name], network).plan()


class _Reader:
    """Reads the plan of one composite event."""

    def __init__(self, expected: Composite, said: Mapping[str, Any], network: Network) -> None:
        self.network, self.name, self.tree = network, expected.name, said["tree"]
        for what in ("operator", "window_s", "at"):
            if said[what] != getattr(expected, what):
                raise NetworkError(
                    f"the plan is for another query or network: the {what.removesuffix('_s')} of "
                    f"{self.name!r} is {said[what]!r}, and should be {getattr(expected, what)!r}",
                    _AGAIN,
                )
        parts = {str(each["name"]): each for each in said["parts"]}
        for name in parts:
            if name not in expected.part:
                raise unknown("part", name, expected.part, f"of {self.name!r} in the plan")
        self.composite = replace(
            expected, parts=tuple(self._part(part, parts.get(part.name)) for part in expected.parts)
        )

    def _part(self, expected: PrimitiveEvent, said: Mapping[str, Any] | None) -> PrimitiveEvent:
        """Return a part as the query has it, as often and as large as the plan says."""
        if said is None:
            raise NetworkError(f"the plan has no part {expected.name!r} of {self.name!r}", _AGAIN)
        for what in ("at", "is_negated"):
            if said[what] != getattr(expected, what):
                raise NetworkError(
                    f"the plan is for another query or network: {what} of {expected.name!r} is "
                    f"{said[what]!r}, and should be {getattr(expected, what)!r}",
                    _AGAIN,
                )
        return replace(expected, rate_hz=float(said["rate_hz"]), size_b=float(said["size_b"]))

    def plan(self) -> PushPullPlan:
        """Read the tree, and work out what it costs and takes on the network."""
        root = self._planned(self.tree, ())
        if root.junction.at != self.composite.at:
            raise NetworkError(
                f"{self.name!r} is detected at {root.junction.at!r}, and wanted at {self.composite.at!r}",
                _AGAIN,
            )
        names = [leaf.part.name for leaf in leaves_of(root.junction)]
        for name in self.composite.part:
            if names.count(name) != 1:
                raise NetworkError(
                    f"{name!r} is in the tree of {self.name!r} {names.count(name)} times", WANTED
                )
        plan = priced(PushPullPlan(self.composite, root, Estimate(0.0, 0.0)), self.network)
        plan.check()
        return plan

    def _planned(self, said: Mapping[str, Any], path: tuple[str, ...]) -> JunctionPlan:
        inputs: list[Input] = []
        below: dict[int, JunctionPlan] = {}
        stages = []
        at = self._broker(said["at"])
        for stage in (said["pushed"], *said["pulled"]):
            stages.append(tuple(range(len(inputs), len(inputs) + len(stage))))
            for each in stage:
                way = tuple(self._broker(broker) for broker in each["path"])
                if "junction" in each:
                    below[len(inputs)] = under = self._planned(each["junction"], way)
                    inputs.append(under.junction)
                    start = under.junction.at
                else:
                    part = self._named(str(each["part"]))
                    inputs.append(Leaf(part, path=way))
                    start = part.at
                if not way or (way[0], way[-1]) != (start, at):
                    raise NetworkError(f"no way leads from {start!r} to {at!r} along {list(way)}", WANTED)
        return JunctionPlan(Junction(at, tuple(inputs), path=path), tuple(stages), below)

    def _broker(self, name: Any) -> str:
        if name not in self.network.number:
            raise unknown("broker", str(name), self.network.number, f"the plan of {self.name!r} needs it")
        return str(name)

    def _named(self, name: str) -> PrimitiveEvent:
        if name not in self.composite.part:
            raise unknown("part", name, self.composite.part, f"of {self.name!r} in the plan")
        return self.composite.part[name]
