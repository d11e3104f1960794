"""How far brokers have to see: the logical test of place-and-play, section 6.2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.buildings import logical_test
from experiments.published import Published, PublishedPlot
from experiments.scenarios.registry import Progress, scenario
from whimbrel.plan.flow.baselines import hop_based
from whimbrel.plan.flow.model import FlowAssignment, FlowModel
from whimbrel.plan.flow.neighbourhood import plan_by_neighbourhoods
from whimbrel.plan.flow.tabu import place_by_flow
from whimbrel.sim.results import Results

TABLE_2: Mapping[int, tuple[float, ...]] = {
    100: (73_440, 41_280, 41_280, 41_280, 41_280, 41_280),
    150: (27_623, 27_515, 26_555, 26_555, 26_555, 26_555),
    200: (16_670, 16_670, 16_950, 16_670, 16_670, 16_670),
    250: (10_824,) * 6,
    300: (5_650,) * 6,
}
"""What the paper prints: the total volume by producing rate, for each radius from 1 on."""


@scenario(
    "radius",
    "four sources, a server four hops away, and brokers that see so many hops: volume, steps, packets",
    every=((100.0, 150.0, 200.0, 250.0, 300.0), "times between events, as the paper's producing rates"),
    radii=((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), "hops that a broker sees"),
)
def run_radius(parameters: Mapping[str, Any], progress: Progress) -> Results:
    """Compare what brokers settle on, by how far they see and how much there is to do."""
    rows: list[dict[str, Any]] = []
    series = {}
    for every in parameters["every"]:
        test = logical_test(every)
        model = FlowModel(test.workload, test.network)
        best = FlowAssignment(model, place_by_flow(test.workload, test.network)).value().volume_b_s
        by_hops = FlowAssignment(model, hop_based(test.workload, test.network)).value()
        for radius in parameters["radii"]:
            progress(len(rows), len(parameters["every"]) * len(parameters["radii"]))
            settled = plan_by_neighbourhoods(test.workload, test.network, int(radius))
            volume = settled.value.volume_b_s
            rows.append(
                {
                    "every": every,
                    "radius": int(radius),
                    "volume": volume,
                    "of the best": volume / best,
                    "overload": settled.value.overload,
                    "steps": len(settled.history),
                    "packets": settled.messages,
                    "bytes": settled.bytes,
                    "by hops": by_hops.volume_b_s,
                    "overload by hops": by_hops.overload,
                    "printed of the best": _printed(every, int(radius)),
                }
            )
            series[f"every {every:g}, radius {radius:g}"] = settled.history
    shown = [100, 150]
    published = tuple(
        Published(
            f"every {every}",
            tuple((n, _printed(every, n) or 0.0) for n in range(1, 7)),
            "place-and-play, Table 2",
        )
        for every in shown
    )
    plots = (
        PublishedPlot("volume", "Volume by radius, as a share of the best", "radius", "of the best",
             by="every", published=published),
        PublishedPlot("packets", "Packets about plans by radius", "radius", "packets", by="every"),
        PublishedPlot("steps", "Steps until nothing changes, by radius", "radius", "steps", by="every"),
    )  # fmt: skip
    return Results(rows, plots, {"volume after each step": series})


def _printed(every: float, radius: int) -> float | None:
    values = TABLE_2.get(round(every), ())
    return values[radius - 1] / min(values) if radius <= len(values) else None
