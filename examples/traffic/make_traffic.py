"""Make the city traffic of the accident example with SUMO: an invented town, four staged accidents.

The town is drawn here (a bent grid of streets, a river with three bridges), SUMO moves the cars, and
what they report once a second becomes `traffic.parquet`. The same seed gives the same files.

    pip install eclipse-sumo pyarrow
    python examples/traffic/make_traffic.py
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).parent
START = datetime(2025, 3, 3, 7, tzinfo=UTC)
WARM_UP_S = 240
"""Simulated before the first event, so that the streets are not empty at the start."""
LENGTH_S = 1_020

COLUMNS, ROWS = 9, 6
BLOCK_M = (360.0, 380.0)
MAIN_COLUMNS, MAIN_ROWS = (2, 6), (1, 3)
"""Three lanes a direction, 60 km/h, traffic lights where they meet anything. The rest: two lanes, 50 km/h."""
BRIDGES = (2, 4, 6)
RIVER_ROW = 2
"""The river flows between this row of junctions and the next."""
CLOSED = {"B1-B2", "E5-F5", "H4-H5", "D0-D1", "F1-F2"}
"""Streets left out, so that the town looks less like squared paper."""
PARKS = (("D0", "E0", "E1", "C1", "C0"), ("G4", "H4", "I4", "I5", "H5", "G5"), ("B3", "C3", "C4", "B4"))


@dataclass(frozen=True)
class Street:
    """A two-way street between neighbouring junctions."""

    start: str
    end: str
    lanes: int
    speed: float

    @property
    def roads(self) -> tuple[str, str]:
        return f"{self.start}-{self.end}", f"{self.end}-{self.start}"


@dataclass(frozen=True)
class Halt:
    """A car that is made to stop on the street: `at_m` from the start of `road`, on `lane`.

    With `cars`, others follow closely and stop right behind it.
    """

    kind: str
    road: str
    lane: int
    at_m: float
    leaves_s: int
    stands_s: int
    cars: int = 1


ACCIDENTS = (
    Halt("accident", "D1-E1", 1, 210, 90, 230, cars=3),
    Halt("accident", "G3-F3", 1, 190, 300, 220, cars=2),
    Halt("accident", "C3-C4", 0, 200, 490, 210, cars=2),
    Halt("accident", "G2-G1", 1, 180, 660, 220, cars=3),
)
DELIVERIES = (
    Halt("delivery", "B3-C3", 0, 150, 60, 120),
    Halt("delivery", "E1-D1", 0, 120, 220, 100),
    Halt("delivery", "F3-G3", 0, 160, 420, 130),
    Halt("delivery", "C2-C1", 0, 140, 600, 110),
    Halt("delivery", "G4-G3", 0, 150, 760, 100),
)
"""A van stops gently and stands in the way: many lane changes, but no sudden braking."""
SCARES = (
    Halt("scare", "F1-G1", 1, 150, 130, 4, cars=2),
    Halt("scare", "D3-E3", 0, 180, 260, 4),
    Halt("scare", "C4-C3", 1, 160, 380, 4, cars=2),
    Halt("scare", "H3-G3", 2, 170, 540, 4),
    Halt("scare", "E3-D3", 1, 160, 700, 4, cars=2),
    Halt("scare", "F1-E1", 1, 170, 850, 4),
)
"""Cars brake hard and drive on: sudden braking, but nothing to avoid."""

# Followers believe that the car ahead brakes no harder than `apparentDecel`: a crash surprises them.
CAR_TYPES = """
  <vTypeDistribution id="car">
    <vType id="calm" probability="0.5" accel="2.0" decel="2.6" emergencyDecel="9" sigma="0.5" length="4.5"
           speedFactor="normc(0.95,0.08,0.75,1.1)" lcSpeedGain="0.6" lcKeepRight="0.1"/>
    <vType id="brisk" probability="0.44" accel="2.6" decel="3.4" emergencyDecel="9" sigma="0.5" length="4.6"
           speedFactor="normc(1.02,0.08,0.8,1.2)" lcSpeedGain="0.9" lcKeepRight="0.1"/>
    <vType id="hasty" probability="0.06" accel="3.2" decel="6.2" emergencyDecel="9" sigma="0.3" length="4.4"
           speedFactor="normc(1.12,0.06,0.95,1.3)" lcSpeedGain="1.6" lcKeepRight="0.1" lcAssertive="1.3"/>
  </vTypeDistribution>
  <vType id="accident" accel="2.0" decel="8.5" apparentDecel="4" emergencyDecel="9" sigma="0" length="4.5"/>
  <vType id="scare" accel="2.4" decel="8.0" apparentDecel="4" emergencyDecel="9" sigma="0" length="4.5"/>
  <vType id="delivery" accel="1.6" decel="1.8" emergencyDecel="8" sigma="0.2" length="6.5"/>
"""


def main() -> None:
    arguments = parse_arguments()
    nodes, streets = junction_places(), list(town_streets())
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        build_network(work, nodes, streets)
        write_trips(work, streets, random.Random(arguments.seed), arguments.cars)
        simulate(work, arguments.seed)
        table = read_positions(work)
        write_accidents(arguments.out / "accidents.csv", table, staged_vehicles(work))
    write_events(arguments.out / "traffic.parquet", table)
    write_roads(arguments.out / "roads.geojson", nodes, streets)
    print(f"{table.num_rows:,} positions of {len(table['source'].unique()):,} vehicles in {arguments.out}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=HERE, help="folder for the files (default: beside this script)"
    )
    parser.add_argument("--seed", type=int, default=11, help="seed of trips and driving (default: 11)")
    parser.add_argument("--cars", type=int, default=1_800, help="trips drawn for other cars (default: 1800)")
    return parser.parse_args()


# The town ---------------------------------------------------------------------------------------


def junction_name(column: int, row: int) -> str:
    return f"{'ABCDEFGHI'[column]}{row}"


def junction_places() -> dict[str, tuple[float, float]]:
    """Give every junction a place: a grid, bent like a hillside and a little untidy."""
    chance = random.Random(5)
    places = {}
    for column in range(COLUMNS):
        for row in range(ROWS):
            x, y = column * BLOCK_M[0] + 60, row * BLOCK_M[1] + 80
            bend_x, bend_y = 45 * math.sin(row * 0.9), 60 * math.sin(column * 0.55 + 0.4)
            x, y = x + bend_x + chance.uniform(-28, 28), y + bend_y + chance.uniform(-28, 28)
            places[junction_name(column, row)] = round(x, 1), round(y, 1)
    return places


def town_streets() -> Iterator[Street]:
    for column in range(COLUMNS):
        for row in range(ROWS):
            here = junction_name(column, row)
            if column + 1 < COLUMNS:
                yield from open_street(here, junction_name(column + 1, row), row in MAIN_ROWS)
            if row + 1 < ROWS and (row != RIVER_ROW or column in BRIDGES):
                yield from open_street(here, junction_name(column, row + 1), column in MAIN_COLUMNS)


def open_street(start: str, end: str, is_main: bool) -> Iterator[Street]:
    if f"{start}-{end}" not in CLOSED:
        yield Street(start, end, lanes=3, speed=16.7) if is_main else Street(start, end, lanes=2, speed=13.9)


def build_network(work: Path, nodes: dict[str, tuple[float, float]], streets: Iterable[Street]) -> None:
    main_junctions = {name for street in streets if street.lanes == 3 for name in (street.start, street.end)}
    with (work / "town.nod.xml").open("w") as file:
        file.write("<nodes>\n")
        for name, (x, y) in nodes.items():
            kind = "traffic_light" if name in main_junctions else "priority"
            file.write(f'  <node id="{name}" x="{x}" y="{y}" type="{kind}"/>\n')
        file.write("</nodes>\n")
    with (work / "town.edg.xml").open("w") as file:
        file.write("<edges>\n")
        for street in streets:
            for road in street.roads:
                start, end = road.split("-")
                rank = 3 if street.lanes == 3 else 2
                file.write(
                    f'  <edge id="{road}" from="{start}" to="{end}" numLanes="{street.lanes}" '
                    f'speed="{street.speed}" priority="{rank}"/>\n'
                )
        file.write("</edges>\n")
    run("netconvert", "-n", work / "town.nod.xml", "-e", work / "town.edg.xml", "-o", work / "town.net.xml",
        "--no-turnarounds", "--tls.default-type", "actuated", "--offset.disable-normalization")  # fmt: skip


# The traffic ------------------------------------------------------------------------------------


def write_trips(work: Path, streets: list[Street], chance: random.Random, cars: int) -> None:
    trips = list(ordinary_trips(streets, chance, cars))
    trips += [trip for halt in ACCIDENTS + DELIVERIES + SCARES for trip in staged_trips(halt)]
    with (work / "town.rou.xml").open("w") as file:
        file.write(f"<routes>{CAR_TYPES}")
        for number, (leaves_s, text) in enumerate(sorted(trips)):
            file.write(text.format(id=f"veh-{number:04d}", depart=f"{leaves_s:.1f}"))
        file.write("</routes>\n")


def ordinary_trips(streets: list[Street], chance: random.Random, cars: int) -> Iterator[tuple[float, str]]:
    """Cars from one end of the town to another; main roads carry most of them."""
    roads = [road for street in streets for road in street.roads]
    lanes = {road: street.lanes for street in streets for road in street.roads}
    enter = [road for road in roads if is_on_edge(road.split("-")[0])]
    leave = [road for road in roads if is_on_edge(road.split("-")[1])]
    weight = {2: 1, 3: 9}
    for _ in range(cars):
        at = chance.uniform(0, WARM_UP_S + LENGTH_S - 30)
        origin = chance.choices(enter, [weight[lanes[road]] for road in enter])[0]
        target = chance.choices(leave, [weight[lanes[road]] for road in leave])[0]
        if far_apart(origin, target):
            yield (
                at,
                (
                    f'  <trip id="{{id}}" type="car" depart="{{depart}}" from="{origin}" to="{target}" '
                    'departLane="best" departSpeed="desired"/>\n'
                ),
            )


def is_on_edge(junction: str) -> bool:
    return junction[0] in "AI" or junction[1] in "05"


def far_apart(origin: str, target: str) -> bool:
    return abs(ord(origin[0]) - ord(target[0])) + abs(int(origin[1]) - int(target[1])) >= 4


def staged_trips(halt: Halt) -> Iterator[tuple[float, str]]:
    """Cars that come down the road before `halt.road` and stop there one behind the other.

    Those of an accident are towed away in the end, the others drive on.
    """
    start, end = halt.road.split("-")
    before, after = neighbour(start, end, -1), f"{end}-{neighbour(start, end, 2)}"
    for place in range(halt.cars):
        at_m = halt.at_m - 7.5 * place
        target = f'to="{halt.road}" arrivalPos="{at_m + 0.5}"' if halt.kind == "accident" else f'to="{after}"'
        note = f"{halt.kind} {halt.road} {halt.lane} {halt.stands_s} {place}"
        trip = (
            f'  <trip id="{{id}}" type="{halt.kind}" depart="{{depart}}" from="{before}-{start}" {target}'
            f' departLane="{halt.lane}" departPos="{60 - 10 * place}" departSpeed="desired">'
            f'<stop lane="{halt.road}_{halt.lane}" endPos="{at_m}" duration="{halt.stands_s}"/>'
            f'<param key="halt" value="{note}"/></trip>\n'
        )
        yield WARM_UP_S + halt.leaves_s + 2 * place, trip


def neighbour(start: str, end: str, steps: int) -> str:
    """Give the junction `steps` blocks from `start` in the direction of `end`."""
    column = ord(start[0]) + steps * (ord(end[0]) - ord(start[0]))
    return f"{chr(column)}{int(start[1]) + steps * (int(end[1]) - int(start[1]))}"


def simulate(work: Path, seed: int) -> None:
    run("sumo", "-n", work / "town.net.xml", "-r", work / "town.rou.xml", "--seed", str(seed),
        "--begin", "0", "--end", str(WARM_UP_S + LENGTH_S), "--step-length", "0.5",
        "--fcd-output", work / "fcd.xml", "--fcd-output.attributes", "x,y,speed,lane",
        "--device.fcd.period", "1", "--device.fcd.begin", str(WARM_UP_S), "--precision", "1",
        "--time-to-teleport", "-1", "--collision.action", "warn", "--no-step-log",
        )  # fmt: skip


def run(program: str, *arguments: object) -> None:
    """Run a program of SUMO, from the environment of this Python or from the path."""
    beside = Path(sys.executable).with_name(program)
    command = str(beside) if beside.exists() else shutil.which(program)
    if command is None:
        sys.exit(f"{program} is not installed; it comes with the package eclipse-sumo")
    subprocess.run([command, *map(str, arguments)], check=True)


# What comes out ---------------------------------------------------------------------------------


def staged_vehicles(work: Path) -> dict[str, str]:
    """Give the staged halts by vehicle, as `kind road lane seconds place`."""
    trips = ET.parse(work / "town.rou.xml").getroot().iter("trip")
    return {trip.get("id", ""): param.get("value", "") for trip in trips for param in trip.iter("param")}


def read_positions(work: Path) -> pa.Table:
    rows = sorted(positions(work / "fcd.xml"))
    seconds, sources, xs, ys, speeds, lanes, roads = zip(*rows, strict=True)
    return pa.table(
        {
            "type": pa.array(["Position"] * len(rows)).dictionary_encode(),
            "time": pa.array([START + timedelta(seconds=at) for at in seconds], pa.timestamp("us", "UTC")),
            "source": pa.array(sources).dictionary_encode(),
            "x": pa.array(xs, pa.float64()),
            "y": pa.array(ys, pa.float64()),
            "speed": pa.array(speeds, pa.float64()),
            "lane": pa.array(lanes, pa.int32()),
            "road": pa.array(roads, pa.string()).dictionary_encode(),
        }
    )


Row = tuple[int, str, float, float, float, int | None, str | None]


def positions(fcd: Path) -> Iterator[Row]:
    """Read what SUMO wrote. Inside a junction a car is on no road and no lane."""
    at = 0
    for moment, element in ET.iterparse(fcd, events=("start", "end")):
        if element.tag == "timestep":
            if moment == "start":
                at = round(float(element.get("time", "0"))) - WARM_UP_S
            else:
                element.clear()
        elif element.tag == "vehicle" and moment == "start":
            road, _, lane = element.get("lane", "").rpartition("_")
            inside = road.startswith(":")
            x, y, speed = (float(element.get(name, "nan")) for name in ("x", "y", "speed"))
            yield (
                at,
                element.get("id", ""),
                x,
                y,
                speed,
                None if inside else int(lane),
                None if inside else road,
            )


def write_accidents(path: Path, table: pa.Table, staged: dict[str, str]) -> None:
    """Write where and when the staged accidents came to a standstill: the ground truth."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["time", "x", "y", "road", "lane", "duration"])
        for source, halt in staged.items():
            kind, road, lane, stands_s, place = halt.split()
            if kind == "accident" and place == "0":
                stopped = (
                    (pc.field("source") == source) & (pc.field("road") == road) & (pc.field("speed") < 0.1)
                )
                first = table.filter(stopped).slice(0, 1).to_pylist()[0]
                out.writerow(
                    [f"{first['time']:%Y-%m-%dT%H:%M:%SZ}", first["x"], first["y"], road, lane, stands_s]
                )


def write_events(path: Path, table: pa.Table) -> None:
    pq.write_table(table.replace_schema_metadata(None), path, compression="zstd", compression_level=19,
                   dictionary_pagesize_limit=4 << 20, write_page_index=False)  # fmt: skip


def write_roads(path: Path, nodes: dict[str, tuple[float, float]], streets: Iterable[Street]) -> None:
    """Write the map below the cars: the river, then the streets from junction to junction."""
    features = [river(nodes), *(park(nodes, *corners) for corners in PARKS)]
    for street in sorted(streets, key=lambda street: street.lanes):
        line = {"type": "LineString", "coordinates": [nodes[street.start], nodes[street.end]]}
        facts = {"kind": "street", "name": f"{street.start}-{street.end}", "width": street.lanes * 2 * 3.2,
                 "lanes": street.lanes}  # fmt: skip
        features.append({"type": "Feature", "properties": facts, "geometry": line})
    lines = ",\n".join(json.dumps(feature, separators=(",", ":")) for feature in features)
    path.write_text(f'{{"type":"FeatureCollection","features":[\n{lines}\n]}}\n')


def park(nodes: dict[str, tuple[float, float]], *corners: str) -> dict[str, object]:
    """Lay a park between four junctions, a little inside the streets."""
    x, y = (sum(nodes[corner][axis] for corner in corners) / len(corners) for axis in (0, 1))
    ring = [(round(x + 0.84 * (nodes[c][0] - x), 1), round(y + 0.84 * (nodes[c][1] - y), 1)) for c in corners]
    return {"type": "Feature", "properties": {"kind": "green", "name": "park"},
            "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}}  # fmt: skip


def river(nodes: dict[str, tuple[float, float]]) -> dict[str, object]:
    """Lay the river half-way between two rows of junctions, winding a little."""
    banks = [
        (junction_name(column, RIVER_ROW), junction_name(column, RIVER_ROW + 1)) for column in range(COLUMNS)
    ]
    middle = [((nodes[a][0] + nodes[b][0]) / 2, (nodes[a][1] + nodes[b][1]) / 2) for a, b in banks]
    middle = [(-2500.0, middle[0][1] - 260), *middle, (middle[-1][0] + 2500, middle[-1][1] + 240)]
    fine = [
        (x0 + (x1 - x0) * step / 6, y0 + (y1 - y0) * (1 - math.cos(math.pi * step / 6)) / 2)
        for (x0, y0), (x1, y1) in pairwise(middle)
        for step in range(6)
    ]
    width = [42 + 12 * math.sin(index / 5) for index in range(len(fine))]
    ring = [(x, y + w) for (x, y), w in zip(fine, width, strict=True)]
    ring += [(x, y - w) for (x, y), w in reversed(list(zip(fine, width, strict=True)))]
    ring = [(round(x, 1), round(y, 1)) for x, y in ring]
    return {"type": "Feature", "properties": {"kind": "water", "name": "river"},
            "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]}}  # fmt: skip


if __name__ == "__main__":
    main()
