"""Movers from SUMO, the traffic simulator, run as a program: on a grid that it makes, or on a scenario."""

from __future__ import annotations

import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
from pyarrow import csv

from experiments.mobility import Track, movers
from whimbrel.errors import MissingDependency, NetworkError
from whimbrel.plan.network import Mover


def drive_grid(
    count: int,
    *,
    until_s: float,
    blocks: tuple[int, int] = (6, 4),
    block_m: float = 200.0,
    every_s: float = 1.0,
    seed: int = 0,
) -> tuple[Mover, ...]:
    """Let cars drive through a grid of streets, from one street to another, with lights, lanes and queues."""
    random = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        net, routes, out = (Path(folder) / name for name in ("net.xml", "routes.xml", "positions.xml"))
        _run(
            "netgenerate", "--grid", "--grid.x-number", blocks[0] + 1, "--grid.y-number", blocks[1] + 1,
            "--grid.length", block_m, "--default.lanenumber", 2, "--tls.guess", "true",
            "--seed", seed, "--output-file", net,
        )  # fmt: skip
        _write_trips(routes, _streets(net), count, until_s, random)
        _run(
            "sumo", "--net-file", net, "--route-files", routes, "--end", until_s, "--seed", seed,
            "--ignore-route-errors", "true", *_positions_to(out, every_s),
        )  # fmt: skip
        return movers(_tracks(out))


def record_grid(
    count: int,
    *,
    seconds: int,
    blocks: tuple[int, int],
    block_m: float,
    depart_until_s: float,
    stops: tuple[int, float] = (0, 0.0),
    seed: int = 0,
) -> pa.Table:
    """Let cars drive through a grid of streets as `drive_grid` does; give what each reports every second.

    Columns are `time` (seconds), `vehicle`, `x`, `y`, `speed` (m/s) and `lane`, as SUMO names it.

    Parameters
    ----------
    stops
        How many of the cars break down where they start, and for how many seconds they block a lane then.
    """
    random = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        net, routes, out = (Path(folder) / name for name in ("net.xml", "routes.xml", "positions.csv"))
        _run(
            "netgenerate", "--grid", "--grid.x-number", blocks[0] + 1, "--grid.y-number", blocks[1] + 1,
            "--grid.length", block_m, "--default.lanenumber", 2, "--tls.guess", "true",
            "--seed", seed, "--output-file", net,
        )  # fmt: skip
        _write_trips(routes, _streets(net), count, 2 * depart_until_s, random, stops)
        _run(
            "sumo", "--net-file", net, "--route-files", routes, "--end", seconds, "--seed", seed,
            "--ignore-route-errors", "true", "--fcd-output", out, "--fcd-output.attributes", "x,y,speed,lane",
            "--device.fcd.period", 1, "--precision", 2, "--no-step-log", "true", "--no-warnings", "true",
        )  # fmt: skip
        table = csv.read_csv(out, parse_options=csv.ParseOptions(delimiter=";"))
    table = table.rename_columns(
        [name.removeprefix("vehicle_").removeprefix("timestep_") for name in table.column_names]
    )
    return table.rename_columns({"id": "vehicle"}).drop_null()


def drive_scenario(
    config: Path, *, until_s: float, begin_s: float = 0.0, every_s: float = 1.0, seed: int = 0
) -> tuple[Mover, ...]:
    """Run a SUMO scenario (`.sumocfg`), as far as `until_s`; give where its vehicles were since `begin_s`.

    It runs in a folder of its own, with links to the files beside the configuration: scenarios write their
    outputs there.
    """
    with TemporaryDirectory() as folder:
        for file in config.parent.iterdir():
            (Path(folder) / file.name).symlink_to(file.resolve())
        out = Path(folder) / "whimbrel-positions.xml"
        _run(
            "sumo", "--configuration-file", Path(folder) / config.name, "--end", until_s, "--seed", seed,
            *_positions_to(out, every_s), "--device.fcd.begin", begin_s,
        )  # fmt: skip
        return movers(_tracks(out, begin_s))


def _positions_to(out: Path, every_s: float) -> tuple[object, ...]:
    return (
        "--fcd-output", out, "--fcd-output.attributes", "x,y", "--device.fcd.period", every_s,
        "--precision", 2, "--no-step-log", "true", "--no-warnings", "true",
    )  # fmt: skip


def _run(program: str, *arguments: object) -> None:
    beside = Path(sys.executable).parent / program
    found = str(beside) if beside.exists() else shutil.which(program)
    if found is None:
        raise MissingDependency("eclipse-sumo", "moving cars with SUMO", "sumo")
    command = [found, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (no shell)
    if done.returncode:
        raise NetworkError(f"{program} failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}")


def _streets(net: Path) -> list[str]:
    edges = ET.parse(net).getroot().iter("edge")  # noqa: S314 (SUMO wrote it just now)
    return sorted(edge.attrib["id"] for edge in edges if edge.get("function") != "internal")


def _write_trips(
    file: Path,
    streets: list[str],
    count: int,
    until_s: float,
    random: np.random.Generator,
    stops: tuple[int, float] = (0, 0.0),
) -> None:
    """Write cars that start in the first half of the time, from street to street; some break down."""
    root = ET.Element("routes")
    departures = np.sort(random.uniform(0.0, until_s / 2, count))
    broken = set(random.choice(count, stops[0], replace=False).tolist()) if stops[0] else set()
    for number, depart in enumerate(departures.tolist()):
        start, end = random.choice(len(streets), 2, replace=False).tolist()
        trip = ET.SubElement(
            root,
            "trip",
            {"id": f"car-{number}", "depart": f"{depart:.2f}", "from": streets[start], "to": streets[end]},
        )
        if number in broken:
            about = {"lane": f"{streets[start]}_0", "endPos": "-60", "duration": f"{stops[1]:.0f}"}
            ET.SubElement(trip, "stop", about)
    ET.ElementTree(root).write(file)


def _tracks(out: Path, begin_s: float = 0.0) -> dict[str, Track]:
    found: dict[str, list[tuple[float, float, float]]] = {}
    for time, name, x, y in _positions(out):
        found.setdefault(name, []).append((time - begin_s, x, y))
    return {name: tuple(track) for name, track in sorted(found.items())}


def _positions(out: Path) -> Iterator[tuple[float, str, float, float]]:
    time = 0.0
    for moment, element in ET.iterparse(out, events=("start", "end")):  # noqa: S314 (as above)
        if moment == "start" and element.tag == "timestep":
            time = float(element.attrib["time"])
        elif moment == "end" and element.tag == "vehicle":
            yield time, element.attrib["id"], float(element.attrib["x"]), float(element.attrib["y"])
        elif moment == "end" and element.tag == "timestep":
            element.clear()
