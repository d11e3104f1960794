"""Draw the pictures of docs/mobile.md, each of a run of the engine: over the demo's traffic, or made roads.

python tools/mobile_pictures.py [NAME...]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely

import whimbrel as wb

mpl.use("agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

Floats = npt.NDArray[np.float64]

ROOT = Path(__file__).parents[1]
TRAFFIC = ROOT / "examples" / "traffic" / "traffic.parquet"
BLUE, RED, GREEN, GREY, INK = "#0b6bcb", "#c8321f", "#0a7d5a", "#9aa5b1", "#16202c"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "legend.frameon": False,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="folder for the pictures")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PICTURES)}; else all")
    arguments = parser.parse_args()
    out = arguments.out
    with mpl.rc_context(STYLE):
        for name in arguments.names or PICTURES:
            figure = PICTURES[name]()
            figure.savefig(out / f"mobile-{name}.png", dpi=110, metadata={"Software": None})
            plt.close(figure)
            print(f"wrote {out / f'mobile-{name}.png'}")


# -- one car on a road: what an interest is ------------------------------------------------------------------

RADIUS_M, LIFETIME_S, MOVED_M = 300, 60, 500
ROAD = f"""
coordinates plane
define Slippery detect Skid as s
around Car
  within {RADIUS_M} m
  report Slippery
  lifetime {LIFETIME_S} s
  refresh when moved {MOVED_M} m
  deliver new
"""


def on_the_road() -> list[dict[str, Any]]:
    """Let a car drive along a road of 2.2 km, and others skid here and there."""
    chance = Random(12)
    car = [{"type": "Car", "time": t, "source": "car", "x": road_x(t), "y": 0} for t in range(60, 241, 2)]
    skids = [
        {"type": "Skid", "time": chance.uniform(0, 240), "x": chance.uniform(0, 2_200), "y": 0}
        for _ in range(46)
    ]
    return sorted(car + skids, key=lambda event: event["time"])


def road_x(second: float) -> float:
    """Where the car is: it drives, is held up for half a minute, and drives on."""
    held = min(max(second - 130, 0), 30)
    return 300 + 11 * (second - 60 - held)


def timeline() -> Any:
    events = on_the_road()
    told = wb.detect(wb.compile(ROAD), events).table
    starts = switches(
        wb.compile(ROAD.replace("deliver new", "deliver all").replace("Skid as s", "* as s")), events
    )
    figure, axes = plt.subplots(figsize=(8.4, 4.8), layout="constrained")
    ends = [*starts[1:], 240.0]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        y = road_x(start)
        box = {"height": 2 * RADIUS_M, "lw": 1.1}
        axes.add_patch(Rectangle((start - LIFETIME_S, y - RADIUS_M), LIFETIME_S, fc=BLUE, alpha=0.10, **box))
        axes.add_patch(Rectangle((start, y - RADIUS_M), end - start, fc=BLUE, alpha=0.30, **box))
        axes.text(start - 3, y - RADIUS_M + 25, f"interest {number + 1}", color=BLUE, ha="right")
        axes.plot([start, start], [y - RADIUS_M, y + RADIUS_M], color=BLUE, lw=1.6)
        axes.plot([start], [y], "o", color=BLUE, ms=5, zorder=4)
    seconds = np.arange(60, 241)
    axes.plot(seconds, [road_x(t) for t in seconds], color=INK, lw=1.6, zorder=3)
    draw_told(axes, events, told)
    axes.set(xlim=(0, 240), ylim=(0, 2_200), xlabel="time (s)", ylabel="place on the road (m)")
    axes.legend(
        handles=[
            Line2D([], [], color=INK, label="the focal object, a car"),
            Patch(fc=BLUE, alpha=0.30, label="interest, while it lasts"),
            Patch(fc=BLUE, alpha=0.10, label="its lifetime: 60 s before it"),
            dot(RED, RED, "told live, at once"),
            dot(RED, "white", "told as history, at the switch"),
            Line2D([], [], ls="", marker="x", color=GREY, label="never told"),
        ],
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        fontsize=8,
    )
    return figure


def dot(edge: str, face: str, label: str) -> Line2D:
    return Line2D([], [], ls="", marker="o", ms=6, mec=edge, mfc=face, label=label)


def draw_told(axes: Axes, events: list[dict[str, Any]], told: pa.Table) -> None:
    """Draw skids where and when they happened, and when they were told."""
    rows = {round(row["end"].timestamp(), 3): row for row in told.to_pylist()}
    for event in events:
        if event["type"] == "Skid":
            row = rows.get(round(event["time"], 3))
            if row is None:
                axes.plot(event["time"], event["x"], "x", color=GREY, ms=5)
                continue
            at = row["told"].timestamp()
            if not row["live"]:
                axes.annotate(
                    "",
                    (at, event["x"]),
                    (event["time"], event["x"]),
                    arrowprops={"arrowstyle": "->", "color": RED, "lw": 0.8, "ls": ":"},
                )
            axes.plot(
                event["time"], event["x"], "o", mec=RED, mfc=RED if row["live"] else "white", ms=6, zorder=5
            )


def switches(query: wb.Query, events: Any) -> list[float]:
    """Give when interests begin: the object is there itself, so each has something to tell."""
    told = wb.detect(query, events).table
    return sorted(at.timestamp() for at in set(told["interest_start"].to_pylist()))


# -- events and situations -----------------------------------------------------------------------------------

NEAR_M = 300
JAMS = """
coordinates plane
define Jam(road, cars) every 1 min
  detect Car(speed < 2)
  assign road = group.road, cars = distinct(Car.source)
  group by road
  having cars > 3

around Me
  within {near} m{of}
  report Jam
  lifetime 2 min
"""
ROADS = {
    # Cars that stand, one every so many metres from one place to another.
    "inside": ((-180, 60), (-40, 170), 6),
    "half": ((90, -60), (560, -190), 12),
    "hardly": ((-110, -230), (-330, -430), 9),
    "outside": ((270, 270), (450, 430), 7),
}


def cars_that_stand() -> list[dict[str, Any]]:
    cars = []
    for road, ((x0, y0), (x1, y1), count) in ROADS.items():
        for number in range(count):
            part = number / (count - 1)
            lane = 12 * (number % 2)
            place = {"x": x0 + part * (x1 - x0), "y": y0 + part * (y1 - y0) + lane}
            cars.append(
                {"type": "Car", "time": 30, "source": f"{road}-{number}", "road": road, "speed": 0, **place}
            )
    return cars


def events_and_situations() -> Any:
    cars = cars_that_stand()
    events = [*cars, {"type": "Me", "time": 90, "source": "me", "x": 0, "y": 0}]
    figure, both = plt.subplots(1, 2, figsize=(8.4, 4.6), layout="constrained", sharex=True, sharey=True)
    for axes, of in zip(both, ("", " of situations"), strict=True):
        told = wb.detect(wb.compile(JAMS.format(near=NEAR_M, of=of)), events).table
        draw_jams(axes, told, cars)
        axes.set_title(f"within {NEAR_M} m{of}", family="monospace", fontsize=9)
    return figure


def draw_jams(axes: Axes, told: pa.Table, cars: list[dict[str, Any]]) -> None:
    """Draw the cars, the circle, and the jams that are told: each from its first to its last car."""
    axes.plot([car["x"] for car in cars], [car["y"] for car in cars], "s", color=GREY, ms=4)
    axes.add_patch(plt.Circle((0, 0), NEAR_M, fc=BLUE, alpha=0.12))
    axes.add_patch(plt.Circle((0, 0), NEAR_M, fill=False, ec=BLUE, lw=1.4))
    axes.plot(0, 0, "o", color=INK, ms=7)
    for row in told.to_pylist():
        shape = shapely.from_wkb(row["geometry"])
        axes.fill(*shapely.get_coordinates(shape.buffer(16)).T, color=RED, alpha=0.25, lw=0)
        axes.annotate(
            f"{row['cars']} cars",
            (shape.centroid.x, shape.centroid.y),
            (14, 16),
            textcoords="offset points",
            color=RED,
            fontweight="bold",
        )
    axes.set(aspect="equal", xlim=(-480, 620), ylim=(-480, 480), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_visible(False)


# -- quality -------------------------------------------------------------------------------------------------

FOLLOWED = ("veh-0372", "veh-0650", "veh-0676", "veh-0414", "veh-0821", "veh-0919")
AROUND_M, OVER_S = 200.0, 30
CONDITIONS = {
    "always": ["refresh always"],
    "every T": [f"refresh every {s} s" for s in (2, 5, 10, 20, 40)],
    "when moved D": [f"refresh when moved {m} m" for m in (10, 20, 40, 80, 120)],
    "when quality falls": [
        f"refresh when quality falls over {OVER_S} s quality {q}" for q in (0.95, 0.9, 0.8, 0.7, 0.6)
    ],
}
ITSELF = """
coordinates plane
define Seen detect Position as p
around Position(source = '{car}') within {near} m report Seen {refresh}
"""


@dataclass(frozen=True)
class Traffic:
    """Positions as arrays, in order of time; times are whole seconds."""

    time: Floats
    x: Floats
    y: Floats

    def between(self, since: float, until: float) -> Traffic:
        a, b = np.searchsorted(self.time, [since, until])
        return Traffic(self.time[a:b], self.x[a:b], self.y[a:b])

    def near(self, x: float, y: float) -> npt.NDArray[np.bool_]:
        return np.hypot(self.x - x, self.y - y) <= AROUND_M


def quality_of(
    traffic: Traffic, time: float, used: tuple[float, float], wanted: tuple[float, float]
) -> tuple[float, float]:
    """Count precision and recall over the last half minute."""
    recent = traffic.between(time - OVER_S, time + 1)
    in_used, in_wanted = recent.near(*used), recent.near(*wanted)
    common = (in_used & in_wanted).sum()
    return share(common, in_used.sum()), share(common, in_wanted.sum())


def share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 1.0


def quality() -> Any:
    table = pq.read_table(TRAFFIC).sort_by("time")
    traffic = Traffic(seconds(table), np.asarray(table["x"]), np.asarray(table["y"]))
    ways = {car: way_of(table, car) for car in FOLLOWED}
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.7), layout="constrained")
    draw_falling(left, traffic, ways)
    for (name, refreshes), mark in zip(CONDITIONS.items(), "s^oD", strict=True):
        points = [compared(traffic, ways, refresh) for refresh in refreshes]
        right.plot(*zip(*points, strict=True), marker=mark, ms=5, lw=1.2, label=name)
        for refresh, point in zip(refreshes, points, strict=True):
            print(f"  {refresh:48} {point[0]:5.1f} switches a minute, quality {point[1]:.3f}")
    right.set(xlabel="interests a minute", ylabel="mean of precision and recall", xscale="log")
    right.set_xticks([2, 5, 10, 20, 60], ["2", "5", "10", "20", "60"])
    right.minorticks_off()
    right.legend(fontsize=8)
    return figure


def seconds(table: pa.Table) -> Floats:
    return np.asarray(table["time"].cast(pa.int64())) / 1e6


def way_of(table: pa.Table, car: str) -> list[tuple[float, float, float]]:
    own = table.filter(pc.field("source") == car)
    return list(zip(seconds(own).tolist(), own["x"].to_pylist(), own["y"].to_pylist(), strict=True))


def draw_falling(axes: Axes, traffic: Traffic, ways: dict[str, list[tuple[float, float, float]]]) -> None:
    """Draw how well a circle stands for that around the car, by how far the car has moved."""
    moved, precision, recall = [], [], []
    for way in ways.values():
        for first in range(OVER_S, len(way), 30):
            _, x0, y0 = way[first]
            for time, x, y in way[first : first + 60 : 3]:
                found = quality_of(traffic, time, (x0, y0), (x, y))
                moved.append(np.hypot(x - x0, y - y0))
                precision.append(found[0])
                recall.append(found[1])
    bins = np.arange(0, 2 * AROUND_M + 1, 25)
    which = np.digitize(moved, bins)
    middle = (bins[:-1] + bins[1:]) / 2
    for values, colour, name in ((precision, BLUE, "precision"), (recall, RED, "recall")):
        by_bin = [np.asarray(values)[which == number] for number in range(1, len(bins))]
        axes.plot(middle, [each.mean() for each in by_bin], color=colour, label=name)
        low, high = zip(*(np.quantile(each, [0.1, 0.9]) for each in by_bin), strict=True)
        axes.fill_between(middle, low, high, color=colour, alpha=0.12, lw=0)
    distance = np.linspace(0, 2 * AROUND_M, 100)
    half = distance / 2 / AROUND_M
    lens = 2 / np.pi * (np.arccos(half) - half * np.sqrt(1 - half**2))
    axes.plot(distance, lens, color=INK, ls=":", label="if events lay evenly")
    axes.set(xlabel="moved since the switch (m)", ylabel="share of events", ylim=(0, 1.02))
    axes.legend(fontsize=8)


def compared(
    traffic: Traffic, ways: dict[str, list[tuple[float, float, float]]], refresh: str
) -> tuple[float, float]:
    """Run a condition for each car; give its switches a minute, and its mean quality at all updates."""
    count, found, lasted = 0, [], 0.0
    for car, way in ways.items():
        starts = switches(wb.compile(ITSELF.format(car=car, near=AROUND_M, refresh=refresh)), TRAFFIC)
        places = {time: (x, y) for time, x, y in way}
        count += len(starts)
        lasted += way[-1][0] - way[0][0]
        for time, x, y in way[::5]:
            start = starts[np.searchsorted(starts, time, side="right") - 1]
            found.append(np.mean(quality_of(traffic, time, places[start], (x, y))))
    return count / lasted * 60, float(np.mean(found))


PICTURES = {"timeline": timeline, "situations": events_and_situations, "quality": quality}

if __name__ == "__main__":
    main()
