"""Find the accidents in a morning's city traffic, say how many were right, and draw them on a map.

The query runs in this process first, and then on Spark twice: over the whole morning as history, and over the
same morning replayed as a live stream. All must find the same. Without Java, Spark is left out.

Then one car is followed through the same morning, in the same three ways: what it is told, when, and why.

python examples/traffic/run.py --out out/demo
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely

import whimbrel as wb
from whimbrel.cli.kernels import CompilingLine
from whimbrel.io import write_detections
from whimbrel.io.detections import sorted_detections
from whimbrel.io.map import write_map

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
NEAR_M = 150.0
"""How far from a staged accident the middle of a detection may lie."""


@dataclass(frozen=True)
class Staged:
    """An accident that the data is known to hold."""

    time: datetime
    place: shapely.Point
    road: str
    duration: timedelta

    def matches(self, found: Found) -> bool:
        in_time = self.time <= found.end <= self.time + self.duration
        return found.road == self.road and in_time and found.place.distance(self.place) <= NEAR_M


@dataclass(frozen=True)
class Found:
    """A detection, as far as this page needs it."""

    start: datetime
    end: datetime
    place: shapely.Point
    road: str
    lane: int
    swerves: int


def main() -> None:
    arguments = parse_arguments()
    show_first_result()
    query, around = wb.read(arguments.query), wb.read(arguments.around)
    events = pq.read_table(arguments.events)
    wb.warm(query, report=CompilingLine(sys.stdout))
    with running(arguments.engine) as spark:
        table = find(query, spark, arguments.events, events.num_rows)
        found, staged = detections(table), staged_accidents(HERE / "accidents.csv")
        print_table(found, staged)
        print_summary(found, staged)
        print("\naround my car: what one car is told on its way through the same town")
        wb.warm(around, report=CompilingLine(sys.stdout))
        told = find(around, spark, arguments.events, events.num_rows)
        print_told(told, events)
    for path in write_results(arguments.out, table, told, events):
        print(f"wrote {path}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for the results")
    parser.add_argument("--query", type=Path, default=HERE / "accident.wbl", help="what to detect")
    parser.add_argument(
        "--around", type=Path, default=HERE / "around.wbl", help="what to tell the car that is followed"
    )
    parser.add_argument("--events", type=Path, default=HERE / "traffic.parquet", help="the events")
    parser.add_argument("--engine", choices=["spark", "embedded"], default="spark", help="what runs it")
    return parser.parse_args()


def show_first_result() -> None:
    """Find something at once: so few events need no compiled kernels."""
    found = wb.detect(wb.read(HERE.parent / "overdue.wbl"), HERE.parent / "trips.csv")
    trucks = " and ".join(found["truck"].to_pylist())
    print(f"seven events of trucks: {trucks} left and did not arrive within the hour\n", flush=True)


# -- the three ways of running it ----------------------------------------------------------------------------


@contextmanager
def running(engine: str) -> Iterator[SparkSession | None]:
    """Start Spark, if that is asked for and there is Java, and stop it in the end."""
    if engine == "spark" and not has_java():
        print("no Java was found, so Spark is left out; the embedded engine finds the same", flush=True)
        engine = "embedded"
    if engine == "embedded":
        yield None
        return
    from whimbrel.spark import local_session

    print("starting Spark ...", flush=True)
    spark = local_session("whimbrel demo")
    try:
        yield spark
    finally:
        spark.stop()


def find(query: wb.Query, spark: SparkSession | None, path: Path, events: int) -> pa.Table:
    """Detect here, then on Spark, as history and as a stream, and compare; without Spark here only."""
    here = timed("embedded engine", events, lambda: wb.detect(query, path))
    if spark is None:
        return here
    history = timed("Spark, history", events, lambda: over_history(spark, query, path))
    stream = timed("Spark, live stream", events, lambda: over_stream(spark, query, path))
    if not ids(here) == ids(history) == ids(stream):
        numbers = f"{here.num_rows}, {history.num_rows} and {stream.num_rows}"
        sys.exit(f"this process, history and stream have {numbers} {what_in(here)}: not the same")
    print(
        f"history and live stream gave the same {here.num_rows} {what_in(here)} as this process, "
        "ids included\n"
    )
    return here


def has_java() -> bool:
    from whimbrel.spark.session import java

    return java() is not None


def over_history(spark: SparkSession, query: wb.Query, events: Path) -> pa.Table:
    """Detect in the whole file at once. One partition: cars of one lane meet, whoever they are."""
    return sorted_detections(wb.detect(query, spark.read.parquet(str(events)), partitions=1).toArrow())


def over_stream(spark: SparkSession, query: wb.Query, events: Path) -> pa.Table:
    """Detect in the same events as they come, in micro-batches of some minutes."""
    from whimbrel.spark.sinks import start
    from whimbrel.spark.sources import read_replay

    live = read_replay(spark, str(events), rows_per_batch=60_000)
    with TemporaryDirectory() as folder:
        found = wb.detect(query, live, shards=1)
        running = start(
            found,
            f"folder:{folder}/found?format=parquet",
            checkpoint=f"{folder}/checkpoint",
            available_now=True,
        )
        running.awaitTermination()
        return sorted_detections(spark.read.schema(found.schema).parquet(f"{folder}/found").toArrow())


def ids(table: pa.Table) -> list[str]:
    return sorted(table.column("delivery" if "delivery" in table.column_names else "id").to_pylist())


def what_in(table: pa.Table) -> str:
    return "deliveries" if "delivery" in table.column_names else "detections"


def timed(what: str, events: int, run: Callable[[], pa.Table]) -> pa.Table:
    """Run, and say how long it took."""
    began = perf_counter()
    table = run()
    seconds = perf_counter() - began
    rate = f"{events / seconds:,.0f} events/s"
    print(
        f"{what + ':':20} {events:,} events, {table.num_rows} {what_in(table)} in {seconds:.1f} s ({rate})",
        flush=True,
    )
    return table


# -- what was found ------------------------------------------------------------------------------------------


def detections(table: pa.Table) -> list[Found]:
    rows = table.select(["start", "end", "geometry", "road", "lane", "swerves"]).to_pylist()
    return [Found(place=shapely.from_wkb(row.pop("geometry")).centroid, **row) for row in rows]


def staged_accidents(path: Path) -> list[Staged]:
    with path.open() as file:
        return [
            Staged(
                time=datetime.fromisoformat(row["time"]),
                place=shapely.Point(float(row["x"]), float(row["y"])),
                road=row["road"],
                duration=timedelta(seconds=float(row["duration"])),
            )
            for row in csv.DictReader(file)
        ]


def print_table(found: list[Found], staged: list[Staged]) -> None:
    print(f"{'braked':9} {'detected':9} {'road':6} {'lane':>4} {'swerves':>7} {'place (m)':>13}  staged")
    for each in found:
        match = next((accident for accident in staged if accident.matches(each)), None)
        verdict = f"yes, {each.place.distance(match.place):.0f} m away" if match else "no: a false alarm"
        place = f"{each.place.x:.0f}, {each.place.y:.0f}"
        print(
            f"{each.start:%H:%M:%S}  {each.end:%H:%M:%S}  {each.road:6} {each.lane:4} {each.swerves:7} "
            f"{place:>13}  {verdict}"
        )


def print_summary(found: list[Found], staged: list[Staged]) -> None:
    right = sum(any(accident.matches(each) for accident in staged) for each in found)
    noticed = sum(any(accident.matches(each) for each in found) for accident in staged)
    print()
    print(f"precision {share(right, len(found))}, recall {share(noticed, len(staged))}")


def share(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / whole:.0%}" if whole else "-"


# -- around my car -------------------------------------------------------------------------------------------


def print_told(told: pa.Table, events: pa.Table) -> None:
    """Say in plain words what the car is told, and why."""
    car = told["focal"][0].as_py()
    way = places_of(car, events)
    print(f"{car} drives {driven_km(way):.1f} km")
    for row in told.filter(pc.field("change") != "kept").to_pylist():
        away = shapely.from_wkb(row["geometry"]).distance(way[row["told"]])
        what = "collision" if row["type"] == "Collision" else "accident"
        print(f"{row['told']:%H:%M:%S}  {what:9}  {row['road']:6} {away:4.0f} m away  {because(row)}")
    kept = told.num_rows - told.filter(pc.field("change") != "kept").num_rows
    print(f"{kept} more deliveries say that something is still so, each time the circle has moved on\n")


def places_of(car: str, events: pa.Table) -> dict[datetime, shapely.Point]:
    own = events.filter(pc.field("source") == car)
    xs, ys = own["x"].to_pylist(), own["y"].to_pylist()
    return dict(zip(own["time"].to_pylist(), map(shapely.Point, xs, ys), strict=True))


def driven_km(way: dict[datetime, shapely.Point]) -> float:
    return float(shapely.LineString(list(way.values())).length) / 1_000


def because(row: dict[str, Any]) -> str:
    """Say why a delivery comes now."""
    if row["live"]:
        return "live: it has just become one"
    ago = f"{(row['told'] - row['end']).total_seconds():.0f} s ago"
    if row["change"] == "added":
        return f"history: it became one {ago}, before the car came near"
    return "gone: the car has left it behind"


# -- files ---------------------------------------------------------------------------------------------------


def write_results(folder: Path, table: pa.Table, told: pa.Table, events: pa.Table) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    lines = folder / "accidents.jsonl"
    write_detections(table, lines)
    ground = json.loads((HERE / "roads.geojson").read_text())
    pages = {
        "map.html": (table, "Accidents in the morning traffic"),
        "around.html": (told, "Around my car"),
    }
    return [
        lines,
        *(
            write_map(
                folder / name, detections=found, events=events, roads=ground, coordinates="plane", title=title
            )
            for name, (found, title) in pages.items()
        ),
    ]


if __name__ == "__main__":
    main()
