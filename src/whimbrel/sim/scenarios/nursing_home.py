"""A smart nursing home: three buildings, cameras, sensors, wearables, four requests (place-and-play, 6.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from whimbrel.plan.flow.baselines import centralised, hop_based, volume_based
from whimbrel.plan.flow.tabu import place_by_flow
from whimbrel.plan.flow.vicinity import settle
from whimbrel.plan.flow.volume import Flows, Ground
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.plan.routes import by_hops
from whimbrel.plan.workload import Delivery, Feed, Task, Workload
from whimbrel.sim.estimates import compared
from whimbrel.sim.outcome import Outcome
from whimbrel.sim.running import Settings, run_workload
from whimbrel.sim.scenarios.registry import Plot, Progress, Results, scenario

BUILDINGS = ("A", "B1", "B2")
ENVIRONMENT_B_S = 1500.0 / 60
WEARABLE_B_S = 1500.0
VIDEO_B_S = 6.75e6
CLIP_B = 500_000.0
"""What a second of motion leaves of a video, sent twice a second: it decides how much the centre costs."""
WIRE_B_S, RADIO_B_S = 125e6, 12.5e6
"""A gigabit a second on wires, a tenth of it on the air."""

Planner = Callable[[Workload, Network], dict[str, str]]


def nursing_home(floors: int, rooms: int, clip_b: float = CLIP_B) -> tuple[Network, Workload]:
    """Make the home: server and gateway; in each building a switch; on each floor an access point and rooms.

    Requests: what moves in front of any camera, to the server; faces in building A, to the gateway; the mean
    climate of each floor, to its air flow controller; heart rates that look wrong, to a nurse on the floor.
    """
    brokers = [Broker("server"), Broker("gateway")]
    links = [Link("server", "gateway", WIRE_B_S, 0.001)]
    feeds: list[Feed] = []
    tasks: list[Task] = []
    deliveries: list[Delivery] = []
    for building in BUILDINGS:
        brokers.append(Broker(building))
        links.append(Link(building, "server", WIRE_B_S, 0.001))
        for floor in range(floors):
            _add_floor(
                f"{building}.{floor}", building, rooms, clip_b, brokers, links, feeds, tasks, deliveries
            )
    return Network(tuple(brokers), tuple(links)), Workload(tuple(feeds), tuple(tasks), tuple(deliveries))


def _add_floor(
    floor: str,
    building: str,
    rooms: int,
    clip_b: float,
    brokers: list[Broker],
    links: list[Link],
    feeds: list[Feed],
    tasks: list[Task],
    deliveries: list[Delivery],
) -> None:
    brokers += [Broker(floor), Broker(f"{floor}.air"), Broker(f"{floor}.nurse"), Broker(f"{floor}.camera")]
    links += [
        Link(floor, building, WIRE_B_S, 0.001),
        Link(f"{floor}.air", floor, WIRE_B_S, 0.001),
        Link(f"{floor}.nurse", floor, RADIO_B_S, 0.003),
        Link(f"{floor}.camera", floor, RADIO_B_S, 0.003),
    ]
    feeds.append(Feed(f"{floor} video", 25.0, VIDEO_B_S / 25, f"{floor}.camera"))
    climate = []
    for room in range(rooms):
        name = f"{floor}.{room}"
        brokers.append(Broker(name))
        links.append(Link(name, floor, RADIO_B_S, 0.003))
        feeds.append(Feed(f"{name} climate", 1 / 60, ENVIRONMENT_B_S * 60, name))
        feeds.append(Feed(f"{name} heart", 1.0, WEARABLE_B_S, name))
        tasks.append(Task(f"{name} alarm", (f"{name} heart",), 0.01, 200.0))
        deliveries.append(Delivery(f"{name} alarm", f"{floor}.nurse"))
        climate.append(f"{name} climate")
    tasks.append(Task(f"{floor} mean", tuple(climate), 1 / 60, 300.0))
    deliveries.append(Delivery(f"{floor} mean", f"{floor}.air"))
    tasks.append(Task(f"{floor} motion", (f"{floor} video",), 2.0, clip_b, work=1.0))
    deliveries.append(Delivery(f"{floor} motion", "server"))
    if building == "A":
        tasks.append(Task(f"{floor} faces", (f"{floor} motion",), 0.2, 4_000.0, work=1.0))
        deliveries.append(Delivery(f"{floor} faces", "gateway"))


PLANNERS: Mapping[str, Planner] = {
    "centralised": lambda workload, network: centralised(workload, network, at="server"),
    "hop-based": hop_based,
    "volume-based": volume_based,
    "flow-based": place_by_flow,
}


@scenario(
    "nursing-home",
    "a smart nursing home: tasks in the centre, by hops, by volume or by flow; bytes a second and delays",
    floors=(2, "floors of each of the three buildings"),
    rooms=(4, "rooms of each floor"),
    seconds=(60.0, "how long it runs"),
    clip_b=(CLIP_B, "bytes of a clip of motion, two a second from each camera"),
    planners=(tuple(PLANNERS), "which planners"),
)
def run_nursing_home(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare the planners: what they estimate, and what is measured."""
    network, workload = nursing_home(parameters["floors"], parameters["rooms"], parameters["clip_b"])
    rows = []
    for number, name in enumerate(parameters["planners"]):
        progress(number, len(parameters["planners"]))
        hosts = PLANNERS[name](workload, network)
        rows.append({"planner": name, **_measure(workload, network, hosts, parameters)})
    least = min(row["measured B/s"] for row in rows)
    for row in rows:
        row["times the least"] = row["measured B/s"] / least
    plot = Plot(
        "flow",
        "Bytes a second, counted on every link",
        "planner",
        "measured B/s",
        kind="bar",
        logarithmic=True,
    )
    return Results(rows, (plot,))


@scenario(
    "radius",
    "the nursing home planned with local knowledge: brokers know what is within a radius of hops",
    floors=(2, "floors of each of the three buildings"),
    rooms=(3, "rooms of each floor"),
    seconds=(30.0, "how long it runs"),
    radii=((1.0, 2.0, 3.0, 4.0, 5.0), "hops that a broker sees"),
)
def run_radius(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare what brokers settle on, by how far they see."""
    network, workload = nursing_home(parameters["floors"], parameters["rooms"])
    rows = []
    for number, radius in enumerate(parameters["radii"]):
        progress(number, len(parameters["radii"]))
        settled = settle(workload, network, int(radius))
        measured = _measure(workload, network, settled.hosts, parameters)
        rows.append(
            {"radius": int(radius), "steps": len(settled.history), "messages": settled.messages, **measured}
        )
    best = _measure(workload, network, place_by_flow(workload, network), parameters)
    return Results(
        rows,
        (
            Plot("flow", "Flow by radius of knowledge", "radius", "measured B/s"),
            Plot("messages", "Messages about plans by radius of knowledge", "radius", "messages"),
        ),
        {"measured B/s with all knowledge": best["measured B/s"]},
    )


def _measure(
    workload: Workload, network: Network, hosts: Mapping[str, str], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    seconds = parameters["seconds"]
    settings = Settings(seed=parameters["seed"], weight=by_hops)
    found: Outcome = run_workload(workload, network, hosts, until_s=seconds, step_s=1.0, settings=settings)
    estimated = Flows(Ground(workload, network), hosts).value().volume_b_s
    flow = compared({"flow B/s": estimated}, {"flow B/s": found.traffic.whole.bytes / seconds})[0]
    delay = found.summary()["delay_s"]
    return {
        "estimated B/s": flow.estimated,
        "measured B/s": flow.measured,
        "off by": flow.off_by,
        "p95 delay s": delay["p95"],
        "dropped": len(found.traffic.drops),
    }
