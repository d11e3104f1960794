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

import whimbrel as wb
from whimbrel.safe_regions import SafeRegion

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "safe-regions.md"
PICTURE = ROOT / "docs" / "images" / "safe-regions.svg"
DATA = Path(os.environ.get("WHIMBREL_DATA") or ROOT.parent / "shared" / "data")
BEGIN, END = "<!-- figures: made by `bench/safe_regions.py --write` -->", "<!-- end of figures -->"
SIDE_M = 10_000.0
CELLS_M = (250.0, 500.0, 1_000.0, 2_000.0, 4_000.0)
COLUMNS = "must be reported | GLR | disc | rectangle | both | ahead | changes"
RULE = "|---|---|---|---|---|---|---|---|---|"
Walk = list[tuple[float, float]]


@dataclass(frozen=True)
class Variant:
    """A way to decide what is reported."""

    name: str
    mode: str = "every match"
    cell_m: float | None = None
    has_rectangle: bool = True
    has_disc: bool = True
    knows_direction: bool = False

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
    Variant("ahead", knows_direction=True),
    Variant("changes", mode="changes", knows_direction=True),
)


@dataclass(frozen=True)
class Count:
    """Of so many positions, how many match, how many were reported, and how many were read at all."""

    positions: int
    needed: int
    reported: int
    read: int


def main() -> None:
    """Run the measurements and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=10, help="devices that walk at random")
    parser.add_argument("--steps", type=int, default=500, help="positions of each")
    parser.add_argument("--traces", type=int, default=10_000, help="positions of each recording")
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
    yield f"| subscriptions in 100 km² | metres a step | {COLUMNS} | read |"
    yield f"{RULE}---|"
    for number in (100, 1_000, 3_000):
        shapes = random_shapes(np.random.default_rng(number), number)
        for step_m in (1.0, 10.0, 100.0):
            rng = np.random.default_rng(7)
            walks = [waypoints(rng, options.steps, step_m) for _ in range(options.devices)]
            yield f"| {number:,} | {step_m:g} | {row(shapes, walks, 'plane', step_m)} |"


def recordings(options: argparse.Namespace) -> Iterator[str]:
    """Measure recorded traces, with 300 circles near places where somebody was."""
    yield f"| recording | median metres a step | {COLUMNS} |"
    yield RULE
    for name, path, radius_m, spread_m in (
        ("taxis, San Francisco", "taxi_sf_2008/2008-06-06.parquet", 100.0, 2_000.0),
        ("buses, Buffalo", "bus_buffalo_2020/2020-07-30.parquet", 100.0, 2_000.0),
        ("ships, North Sea", "ais_northsea_2022/positions.parquet", 300.0, 5_000.0),
    ):
        if (DATA / path).exists():
            walks, step_m = traces(DATA / path, options.traces)
            shapes = circles_near(walks, radius_m, spread_m)
            yield f"| {name} | {step_m:.0f} | {row(shapes, walks, 'lonlat')} |"


def row(shapes: dict[str, object], walks: list[Walk], coordinates: str, speed: float | None = None) -> str:
    """Give the shares of all variants, GLR with the cells that suit it best."""
    greedy = [count(Variant("GLR", cell_m=cell), shapes, walks, coordinates) for cell in CELLS_M]
    best = min(greedy, key=lambda each: each.reported)
    cell_m = CELLS_M[greedy.index(best)]
    others = [count(variant, shapes, walks, coordinates, speed) for variant in TIGHT]
    shares = " | ".join(percent(each.reported, each.positions) for each in others)
    if speed is not None:
        shares += f" | {percent(others[-1].read, others[-1].positions)}"
    needed = percent(best.needed, best.positions)
    return f"{needed} | {percent(best.reported, best.positions)} ({cell_m:,.0f} m) | {shares}"


def count(
    variant: Variant,
    shapes: dict[str, object],
    walks: list[Walk],
    coordinates: str,
    speed: float | None = None,
) -> Count:
    """Let devices walk, a step a second; stop if one sleeps or stays silent where it must not."""
    server = variant.server(shapes, coordinates)
    needed = reported = read = 0
    for number, walk in enumerate(walks):
        device, known, wakes = wb.SafeRegionFilter(), (), 0
        name = str(number) if variant.knows_direction else None
        for second, (x, y) in enumerate(walk):
            now = server.matching(x, y)
            needed += bool(now)
            is_awake = second >= wakes
            read += is_awake
            if is_awake and device.must_report(x, y):
                reported += 1
                known = now if variant.mode == "changes" else ()
                device.update(variant.message(server.region_for(x, y, device=name)))
            elif now != known:
                raise RuntimeError(f"{variant} missed {now} at {(x, y)}")
            elif is_awake and speed is not None:
                wakes = second + 1 + math.floor(device.check_again_after(speed))
    return Count(sum(map(len, walks)), needed, reported, read)


def percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


# What does a region cost? -----------------------------------------------------------------------------------


def costs(options: argparse.Namespace) -> Iterator[str]:
    """Measure one region among many shapes, by method."""
    del options
    wb.SafeRegions(random_shapes(np.random.default_rng(1), 9)).region_for(0.0, 0.0)  # load and compile
    yield "| subscriptions | to load (CPU) | a region, GLR | a region | to add one | to test a position |"
    yield "|---|---|---|---|---|---|"
    for number in (1_000, 10_000, 100_000):
        side_m = SIDE_M * math.sqrt(number / 1_000)
        rng = np.random.default_rng(number)
        shapes = random_shapes(rng, number, side_m)
        begin = time.process_time()
        tight = wb.SafeRegions(shapes, mode="changes")
        load_s = time.process_time() - begin
        greedy = wb.SafeRegions(shapes, method="glr", cell_m=1_000.0)
        places = rng.uniform(0, side_m, (1_000, 2)).tolist()
        figures = [each_us(server.region_for, places) for server in (greedy, tight)]
        figures.append(each_us(lambda x, y, to=tight: to.add(f"{x} {y}", ("circle", x, y, 50.0)), places))
        device = wb.SafeRegionFilter(greedy.region_for(*places[0]).to_bytes())
        figures.append(each_us(device.region.contains, places))
        yield f"| {number:,} | {load_s:.1f} s | " + " | ".join(f"{us:,.1f} µs" for us in figures) + " |"


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


def circles_near(walks: list[Walk], radius_m: float, spread_m: float, number: int = 300) -> dict[str, object]:
    """Put circles near places where somebody was."""
    rng = np.random.default_rng(1)
    places = [place for walk in walks for place in walk]
    shapes: dict[str, object] = {}
    for n, chosen in enumerate(rng.choice(len(places), number, replace=False)):
        lon, lat = np.array(places[chosen]) + rng.uniform(-spread_m, spread_m, 2) / degree_m([places[chosen]])
        shapes[f"s{n}"] = ("circle", lon, lat, radius_m)
    return shapes


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
