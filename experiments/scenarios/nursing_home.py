"""A smart nursing home: three buildings, cameras, sensors, wearables, four requests (place-and-play, 6.3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.buildings import FLOORS, LEFT, PACKET_B, ROOMS, Site, nursing_home
from experiments.figures import figures, traffic_figures
from experiments.published import Published, PublishedPlot
from experiments.scenarios.registry import Progress, scenario
from experiments.workloads import compared, run_workload
from whimbrel.plan.flow.baselines import centralised, hop_based, volume_based
from whimbrel.plan.flow.model import FlowAssignment, FlowModel
from whimbrel.plan.flow.neighbourhood import flooded, plan_by_neighbourhoods
from whimbrel.plan.flow.tabu import place_by_flow
from whimbrel.plan.network import Network
from whimbrel.plan.routes import by_hops
from whimbrel.plan.workload import Workload
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.results import Results
from whimbrel.sim.settings import Settings

Planner = Callable[[Workload, Network], dict[str, str]]
PAPER = "place-and-play"
PRINTED_TIMES = 6.6
TABLE_3 = {"centralised": 84_501.0, "hop-based": 11_838.0, "flow-based": 11_833.0}
"""Packets of data that the paper prints."""

PLANNERS: Mapping[str, Planner] = {
    "centralised": lambda workload, network: centralised(workload, network, at="server"),
    "hop-based": hop_based,
    "volume-based": volume_based,
    "flow-based": place_by_flow,
}
COMPARED = ("centralised", "hop-based", "flow-based")
HOME = {
    "floors": (tuple(map(float, FLOORS)), "floors of buildings A, B1 and B2, or one number for all"),
    "rooms": (tuple(map(float, ROOMS)), "rooms of a floor of A, B1 and B2, or one number for all"),
}


def _made(parameters: Mapping[str, Any], **settings: float) -> Site:
    return nursing_home(parameters["floors"], parameters["rooms"], **settings)


@scenario(
    "nursing-home",
    "a smart nursing home: tasks in the centre, by hops, by volume or by flow; bytes a second and delays",
    **HOME,
    seconds=(60.0, "how long it runs"),
    left=(LEFT, "the share of a video that surveillance sends on"),
    planners=(tuple(PLANNERS), "which planners"),
)
def run_nursing_home(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners: what they estimate, and what is measured; the overhead of planning is a note."""
    home = _made(parameters, left=parameters["left"])
    rows = []
    for number, name in enumerate(parameters["planners"]):
        progress(number, len(parameters["planners"]))
        hosts = PLANNERS[name](home.workload, home.network)
        rows.append({"planner": name, **_measure(home.workload, home.network, hosts, parameters)})
    least = min(row["measured B/s"] for row in rows)
    for row in rows:
        row["times the least"] = row["measured B/s"] / least
    printed = tuple((name, TABLE_3[name]) for name in parameters["planners"] if name in TABLE_3)
    plots = (
        PublishedPlot("flow", "Bytes a second, counted on every link", "planner", "measured B/s", kind="bar",
             logarithmic=True),
        PublishedPlot("packets", "Packets of 1,500 bytes in a second, counted on every link", "planner",
             "packets/s", kind="bar", published=(Published("data packets", printed, f"{PAPER}, Table 3"),)),
    )  # fmt: skip
    return Results(rows, plots, {"overhead": overhead(home)})


def overhead(home: Site) -> dict[str, dict[str, float]]:
    """Tell what it takes that brokers know of each other, by how far it is told; see Table 4 of the paper.

    A flood is what every broker says once; `with updates` is all that was said until nothing changed. A
    server that pushes plans sends one message to each broker, over all hops on the way.
    """
    model = FlowModel(home.workload, home.network)
    everybody = range(len(home.network.brokers))
    server = home.network.number["server"]
    found = {}
    hops = np.array([model.hops(broker) for broker in everybody])
    for name, radius in (("cover", int(hops.max())), ("guarantee", int(hops[server].max())), ("optimal", 1)):
        settled = plan_by_neighbourhoods(home.workload, home.network, radius)
        found[name] = {
            "hops": radius,
            "packets": sum(flooded(model, broker, radius) for broker in everybody),
            "packets with updates": settled.messages,
            "bytes with updates": settled.bytes,
            "flow B/s": settled.value.volume_b_s,
        }
    found["server pushing"] = {"packets": float(hops[server].sum())}
    return found


@scenario(
    "nursing-home-clips",
    "the nursing home by what surveillance leaves of a video: how many times less flows than to the centre",
    **HOME,
    left=((0.003, 0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0), "shares of a video that are sent on"),
)
def run_clips(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Sweep what is left of videos; compare by flow and by hops with the centre."""
    rows = []
    for number, left in enumerate(parameters["left"]):
        progress(number, len(parameters["left"]))
        home = _made(parameters, left=left)
        model = FlowModel(home.workload, home.network)
        flows = {
            name: FlowAssignment(model, PLANNERS[name](home.workload, home.network)) for name in COMPARED
        }
        volumes = {name: each.value().volume_b_s for name, each in flows.items()}
        rows += [
            {
                "left": left,
                "planner": name,
                "flow B/s": volumes[name],
                "packets/s": flows[name].packets_s(PACKET_B),
                "times less": volumes["centralised"] / volumes[name],
            }
            for name in COMPARED
            if name != "centralised"
        ]
    holds = [
        row["left"] for row in rows if row["planner"] == "flow-based" and row["times less"] >= PRINTED_TIMES
    ]
    plot = PublishedPlot(
        "times", "Times less than to the centre, by what is left of a video", "left", "times less",
        by="planner", logarithmic=True, x_logarithmic=True,
        published=(Published("times less", PRINTED_TIMES, f"{PAPER}, 6.3"),),
    )  # fmt: skip
    return Results(rows, (plot,), {"at least 6.6 times less up to a share of": max(holds, default=None)})


@scenario(
    "nursing-home-loss",
    "the nursing home on radio links with limits: results that never come, by bandwidth and planner",
    **HOME,
    left=(LEFT, "the share of a video that surveillance sends on"),
    mbit_s=((54.0, 108.0, 150.0, 300.0, 600.0), "bandwidths of links"),
    loss=(0.002, "the share of packets that are lost on each link"),
    queue_b=(150_000.0, "bytes that may wait for a link: a hundred packets of 1,500"),
    packet_b=(4_500.0, "bytes that are sent together"),
    seconds=(3.0, "how long it runs"),
)
def run_loss(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Measure what is lost. Nothing is sent again: a packet that is lost is a result that does not come."""
    rows: list[dict[str, Any]] = []
    total = len(parameters["mbit_s"]) * len(COMPARED)
    for mbit_s in parameters["mbit_s"]:
        home = _made(
            parameters, left=parameters["left"], bandwidth_b_s=mbit_s * 125_000, loss=parameters["loss"]
        )
        pieces = _in_packets(home.workload, parameters["packet_b"])
        found: dict[str, dict[str, Any]] = {}
        for name in COMPARED:
            progress(len(rows) + len(found), total)
            hosts = PLANNERS[name](home.workload, home.network)
            settings = Settings(
                seed=parameters["seed"], weight=by_hops, queue_b=parameters["queue_b"], reliable=False
            )
            found[name] = _losses(
                run_workload(
                    pieces, home.network, hosts, until_s=parameters["seconds"], step_s=0.0, settings=settings
                )
            )
        worst = found["centralised"]["lost"]
        for name, each in found.items():
            times = worst / each["lost"] if each["lost"] else None
            rows.append({"Mbit/s": mbit_s, "planner": name, **each, "times less": times})
    plots = (
        PublishedPlot("lost", "Share of results that never come", "Mbit/s", "lost", by="planner"),
        PublishedPlot("times", "Times less lost than by the centre", "Mbit/s", "times less", by="planner",
             logarithmic=True, published=(Published("times less", 2.0, f"{PAPER}, abstract"),)),
    )  # fmt: skip
    return Results(rows, plots)


def _in_packets(workload: Workload, packet_b: float) -> Workload:
    """Cut the events of feeds into packets: a queue that is full parts with some of a frame."""
    feeds = []
    for feed in workload.feeds:
        parts = math.ceil(feed.size_b / packet_b)
        feeds.append(replace(feed, rate_hz=feed.rate_hz * parts, size_b=feed.size_b / parts))
    return replace(workload, feeds=tuple(feeds))


def _losses(found: Outcome) -> dict[str, Any]:
    """Count what is lost: every packet of a feed becomes one packet of each request that reads it."""
    lost = Counter(content.to.split()[0] for drop in found.traffic.drops for content in drop.message.contents)
    came: Counter[str] = Counter()
    for name, delays in found.delays_s.items():
        came[name.split()[0]] += len(delays)
    shares = {request: lost[request] / (lost[request] + came[request]) for request in sorted({*lost, *came})}
    due = lost.total() + came.total()
    reasons = traffic_figures(found.traffic)["dropped"]
    return {
        "lost": lost.total() / due,
        "due": due,
        "queue full": reasons.get("queue full", 0),
        "on the air": reasons.get("lost on a link", 0),
        **{f"{request} lost": share for request, share in shares.items()},
    }


def _measure(
    workload: Workload, network: Network, hosts: Mapping[str, str], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    seconds = parameters["seconds"]
    settings = Settings(seed=parameters["seed"], weight=by_hops)
    found: Outcome = run_workload(workload, network, hosts, until_s=seconds, step_s=1.0, settings=settings)
    flows = FlowAssignment(FlowModel(workload, network), hosts)
    estimated = flows.value().volume_b_s
    flow = compared({"flow B/s": estimated}, {"flow B/s": found.traffic.whole.bytes / seconds})[0]
    delay = figures(found)["delay_s"]
    return {
        "estimated B/s": flow.estimated,
        "measured B/s": flow.measured,
        "off by": flow.off_by,
        "packets/s": flows.packets_s(PACKET_B),
        "messages": found.traffic.whole.messages,
        "p95 delay s": delay["p95"],
        "dropped": len(found.traffic.drops),
    }
