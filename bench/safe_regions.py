"""Measure safe regions: how many reports they save, and what computing one costs.

Devices walk at random or along recorded traces, among random subscriptions. Each variant decides which of
their positions are reported; no variant may miss a match, and the program stops if one does. Nothing here
asserts a time. `--write` puts the tables into docs/safe-regions.md; `--picture` draws the picture there.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from measuring import median

import whimbrel as wb
from whimbrel.devices import SafeRegion

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "safe-regions.md"
PICTURE = ROOT / "docs" / "images" / "safe-regions.svg"
DATA = Path(os.environ.get("WHIMBREL_DATA") or ROOT.parent / "shared" / "data")
BEGIN, END = "<!-- figures: made by `bench/safe_regions.py --write` -->", "<!-- end of figures -->"
SIDE_M = 10_000.0
CELLS_M = (250.0, 500.0, 1_000.0, 2_000.0, 4_000.0)
COLUMNS = "must be reported | GLR | disc | rectangle | both | changes"
Walk = list[tuple[float, float]]


@dataclass(frozen=True)
class Variant:
    """A way to decide what is reported."""

    name: str
    mode: str = "every match"
    cell_m: float | None = None
    has_rectangle: bool = True
    has_disc: bool = True

    def server(self, shapes: dict[str, object], coordinates: str) -> wb.SafeRegions:
        method = {"method": "glr", "cell_m": self.cell_m} if self.cell_m else {}
        return wb.SafeRegions(shapes, coordinates=coordinates, mode=self.mode, **method)

    def message(self, region: SafeRegion) -> bytes:
        if not self.has_rectangle:
            region = replace(region, rectangle=None)
        if not self.has_disc:
            region = replace(region, radius_m=None)
        return region.to_bytes()


TIGHT = (
    Variant("disc", has_rectangle=False),
    Variant("rectangle", has_disc=False),
    Variant("both"),
    Variant("changes", mode="changes"),
)


@dataclass(frozen=True)
class Count:
    """Of so many positions, how many match, and how many were reported."""

    positions: int
    needed: int
    reported: int


def main() -> None:
    """Run the measurements and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=10, help="devices that walk at random")
    parser.add_argument("--steps", type=int, default=1_000, help="positions of each")
    parser.add_argument("--traces", type=int, default=20_000, help="positions of each recording")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/safe-regions.md")
    parser.add_argument(
        "--picture", action="store_true", help="draw docs/images/safe-regions.svg, and nothing else"
    )
    options = parser.parse_args()
    if options.picture:
        PICTURE.write_text(picture(), encoding="utf-8")
        return
    tables = ["\n".join(lines(options)) for lines in (random_walks, recordings, costs)]
    text = "\n\n".join(tables)
    print(text)
    if options.write:
        about = f"Python {platform.python_version()}, one core of {platform.machine()}."
        head, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        page = f"{head}{BEGIN}\n\n{about}\n\n{text}\n\n{END}{rest.split(END)[1]}"
        DOCS.write_text(page, encoding="utf-8")


# How many reports? ------------------------------------------------------------------------------------------


def random_walks(options: argparse.Namespace) -> Iterator[str]:
    """Measure random waypoints: number of subscriptions against metres a step."""
    yield f"| subscriptions in 100 km² | metres a step | {COLUMNS} |"
    yield "|---|---|---|---|---|---|---|---|"
    for number in (100, 1_000, 3_000):
        shapes = random_shapes(np.random.default_rng(number), number)
        for step_m in (1.0, 10.0, 100.0):
            rng = np.random.default_rng(7)
            walks = [waypoints(rng, options.steps, step_m) for _ in range(options.devices)]
            yield f"| {number:,} | {step_m:g} | {row(shapes, walks, 'plane')} |"


def recordings(options: argparse.Namespace) -> Iterator[str]:
    """Measure recorded traces, with 500 circles round places where somebody was."""
    yield f"| recording | median metres a step | {COLUMNS} |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, path, radius_m in (
        ("taxis, San Francisco", "taxi_sf_2008/2008-06-06.parquet", 150.0),
        ("buses, Buffalo", "bus_buffalo_2020/2020-07-30.parquet", 150.0),
        ("ships, North Sea", "ais_northsea_2022/positions.parquet", 500.0),
    ):
        if not (DATA / path).exists():
            continue
        walks, step_m = traces(DATA / path, options.traces)
        yield f"| {name} | {step_m:.0f} | {row(circles_on(walks, 500, radius_m), walks, 'lonlat')} |"


def row(shapes: dict[str, object], walks: list[Walk], coordinates: str) -> str:
    """Give the shares of all variants; GLR with the cells that suit it best."""
    greedy = [count(Variant("GLR", cell_m=cell), shapes, walks, coordinates) for cell in CELLS_M]
    best = min(greedy, key=lambda each: each.reported)
    cell_m = CELLS_M[greedy.index(best)]
    others = [count(variant, shapes, walks, coordinates) for variant in TIGHT]
    shares = " | ".join(percent(each.reported, each.positions) for each in others)
    needed = percent(best.needed, best.positions)
    return f"{needed} | {percent(best.reported, best.positions)} ({cell_m:,.0f} m) | {shares}"


def count(variant: Variant, shapes: dict[str, object], walks: list[Walk], coordinates: str) -> Count:
    """Let devices walk; stop if one stays silent where it must not."""
    server = variant.server(shapes, coordinates)
    needed = reported = 0
    for walk in walks:
        device, known = wb.SafeRegionFilter(), None
        for x, y in walk:
            now = server.matching(x, y)
            needed += bool(now)
            if device.must_report(x, y):
                reported += 1
                known = now
                device.update(variant.message(server.region_for(x, y)))
            elif now != (known if variant.mode == "changes" else ()):
                raise RuntimeError(f"{variant} missed {now} at {(x, y)}")
    return Count(sum(map(len, walks)), needed, reported)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


# What does a region cost? -----------------------------------------------------------------------------------


def costs(options: argparse.Namespace) -> Iterator[str]:
    """Measure one region among many shapes, by method."""
    del options
    yield "| subscriptions | to load | region, GLR | region, tight | to add one | client's test |"
    yield "|---|---|---|---|---|---|"
    for number in (1_000, 10_000, 100_000):
        side_m = SIDE_M * math.sqrt(number / 1_000)
        rng = np.random.default_rng(number)
        shapes = random_shapes(rng, number, side_m)
        begin = time.perf_counter()
        tight = wb.SafeRegions(shapes, mode="changes")
        load = time.perf_counter() - begin
        greedy = wb.SafeRegions(shapes, method="glr", cell_m=1_000.0)
        places = rng.uniform(0, side_m, (500, 2)).tolist()
        costs_us = [each_us(server.region_for, places) for server in (greedy, tight)]
        add_us = each_us(lambda x, y, to=tight: to.add(f"{x} {y}", ("circle", x, y, 50.0)), places)
        device = wb.SafeRegionFilter(tight.region_for(*places[0]).to_bytes())
        test_us = (
            median(lambda device=device: [device.region.contains(1.0, 1.0) for _ in range(1000)], 5) * 1e3
        )
        figures = f"{costs_us[0]:.0f} µs | {costs_us[1]:.0f} µs | {add_us:.0f} µs | {test_us:.2f} µs"
        yield f"| {number:,} | {load:.1f} s | {figures} |"


def each_us(call: Callable[[float, float], object], places: list[list[float]]) -> float:
    """Give the median time of a call, in microseconds."""
    call(*np.add(places[0], 0.5).tolist())
    spent = []
    for x, y in places:
        begin = time.perf_counter()
        call(x, y)
        spent.append(time.perf_counter() - begin)
    return float(np.median(spent)) * 1e6


# Shapes and walks -------------------------------------------------------------------------------------------


def random_shapes(rng: np.random.Generator, number: int, side_m: float = SIDE_M) -> dict[str, object]:
    """Make circles, boxes and polygons, a third each, of 20 to 100 metres from middle to rim."""
    shapes: dict[str, object] = {}
    for n in range(number):
        x, y = rng.uniform(0, side_m, 2)
        reach = rng.uniform(20, 100)
        if n % 3 == 0:
            shapes[f"s{n}"] = ("circle", x, y, reach)
        elif n % 3 == 1:
            wide, high = rng.uniform(0.5, 1.0, 2) * reach
            shapes[f"s{n}"] = ("box", x - wide, y - high, x + wide, y + high)
        else:
            angles = np.sort(rng.uniform(0, 2 * np.pi, 6))
            corners = [f"{x + reach * np.cos(a)} {y + reach * np.sin(a)}" for a in (*angles, angles[0])]
            shapes[f"s{n}"] = f"POLYGON (({', '.join(corners)}))"
    return shapes


def waypoints(rng: np.random.Generator, steps: int, step_m: float) -> Walk:
    """Walk straight to one random place after another."""
    here, goal = rng.uniform(0, SIDE_M, (2, 2))
    walk = [(float(here[0]), float(here[1]))]
    while len(walk) < steps:
        way = goal - here
        far = math.hypot(*way)
        if far < step_m:
            goal = rng.uniform(0, SIDE_M, 2)
            continue
        here = here + way * (step_m / far)
        walk.append((float(here[0]), float(here[1])))
    return walk


def traces(path: Path, most: int) -> tuple[list[Walk], float]:
    """Read the traces of some objects, and the median length of a step in metres."""
    frame = pq.read_table(path, columns=["object_id", "t", "lon", "lat"]).to_pandas()
    frame = frame[(frame["lon"].abs() <= 180) & (frame["lat"].abs() <= 90)]
    frame = frame.drop_duplicates(["object_id", "t"]).sort_values(["object_id", "t"], kind="stable")
    walks: list[Walk] = []
    for _, trace in frame.groupby("object_id"):
        walks.append(list(zip(trace["lon"].tolist(), trace["lat"].tolist(), strict=True)))
        if sum(map(len, walks)) >= most:
            break
    steps = np.concatenate(
        [np.hypot(*(np.diff(np.array(w), axis=0) * degree_m(w)).T) for w in walks if len(w) > 1]
    )
    return walks, float(np.median(steps))


def degree_m(walk: Walk) -> np.ndarray:
    return 111_195 * np.array([math.cos(math.radians(walk[0][1])), 1.0])


def circles_on(walks: list[Walk], number: int, radius_m: float) -> dict[str, object]:
    """Put circles round places where somebody was."""
    rng = np.random.default_rng(1)
    places = [place for walk in walks for place in walk]
    chosen = rng.choice(len(places), number, replace=False)
    return {f"s{n}": ("circle", *places[place], radius_m) for n, place in enumerate(chosen)}


# A picture --------------------------------------------------------------------------------------------------


def picture() -> str:
    """Draw some shapes, two devices, and where each may stay silent."""
    shapes = {
        "circle": ("circle", 120.0, 330.0, 70.0),
        "box": ("box", 330.0, 60.0, 420.0, 170.0),
        "triangle": "POLYGON ((470 400, 660 250, 660 400, 470 400))",
        "disc": ("circle", 560.0, 110.0, 60.0),
        "field": "POLYGON ((40 60, 200 30, 230 150, 120 210, 30 160, 40 60))",
    }
    safe = wb.SafeRegions(shapes, mode="changes")
    greedy = wb.SafeRegions(shapes, method="glr", cell_m=700.0)
    drawn = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 440">',
        "<title>Safe regions of two devices</title>",
        '<rect width="700" height="440" fill="#fbfaf7"/>',
        '<g fill="#d9b38c" fill-opacity="0.55" stroke="#a8743c">',
        '<circle cx="120" cy="330" r="70"/><rect x="330" y="60" width="90" height="110"/>',
        '<polygon points="470,400 660,250 660,400"/><circle cx="560" cy="110" r="60"/>',
        '<polygon points="40,60 200,30 230,150 120,210 30,160"/></g>',
    ]
    for x, y in ((440.0, 290.0), (125.0, 110.0)):
        region = safe.region_for(x, y)
        assert region.rectangle is not None
        drawn.append(drawn_rectangle(region.rectangle, 'fill="#2f6f9f" fill-opacity="0.25" stroke="#2f6f9f"'))
        drawn.append(
            f'<circle cx="{x:g}" cy="{y:g}" r="{region.radius_m:.1f}" fill="#2f6f9f" fill-opacity="0.25" '
            'stroke="#2f6f9f"/>'
        )
        baseline = greedy.region_for(x, y).rectangle
        if baseline is not None:
            drawn.append(drawn_rectangle(baseline, 'fill="none" stroke="#555" stroke-dasharray="5 4"'))
        drawn.append(f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="#111"/>')
    return "\n".join([*drawn, "</svg>", ""])


def drawn_rectangle(sides: tuple[float, float, float, float], style: str) -> str:
    left, low, right, high = (
        min(max(side, 0.0), most) for side, most in zip(sides, (700, 440) * 2, strict=True)
    )
    return (
        f'<rect x="{left:.1f}" y="{low:.1f}" width="{right - left:.1f}" height="{high - low:.1f}" {style}/>'
    )


if __name__ == "__main__":
    main()
