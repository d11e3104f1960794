"""Show what stops mean where movers report seldom: a picture for the docs, and counts over recordings.

`--picture` draws docs/images/sparse-samples.svg: what is drawn is what the engine finds. Without it, stops in
recordings are counted, under the rule that holds (two samples) and under the one that one sample is enough.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import whimbrel as wb
from whimbrel.space.geometry import EARTH_RADIUS_M

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "sparse-samples.svg"
DATA = Path(os.environ.get("WHIMBREL_DATA") or ROOT.parent / "shared" / "data")
MINUTE_US = 60_000_000
AWAY_M = 900.0


@dataclass(frozen=True)
class Scene:
    """One line of the picture: when a truck reports, in minutes, from where, and with which `gap`."""

    title: str
    here: tuple[int, ...]
    elsewhere: tuple[int, ...] = ()
    gap_min: int | None = None

    @property
    def phrase(self) -> str:
        """What is asked."""
        return "stops for 30 min within 50 m" + ("" if self.gap_min is None else f" gap {self.gap_min} min")

    def stops(self) -> list[tuple[float, float]]:
        """Ask the engine: when each stop began, and when it was told, in minutes."""
        rows = [
            {"type": "Truck", "time": 60 * minute, "id": f"t{minute}", "source": "t", "x": x, "y": 0.0}
            for minutes, x in ((self.here, 0.0), (self.elsewhere, AWAY_M))
            for minute in minutes
        ]
        found = wb.detect(wb.compile(f"define Stop detect Truck {self.phrase}"), rows).to_pylist()
        return [(each["start"].timestamp() / 60, each["end"].timestamp() / 60) for each in found]


SCENES = (
    Scene("a report every 5 minutes", tuple(range(0, 90, 5))),
    Scene("one report, then silence", (0,)),
    Scene("two reports, 25 minutes apart, then silence", (0, 25)),
    Scene("a report every 25 minutes", (0, 25, 50, 75)),
    Scene("a report every 50 minutes", (0, 50)),
    Scene("a report every 50 minutes", (0, 50), gap_min=30),
    Scene("the next report comes from somewhere else", (0,), (50,)),
    Scene("a report every 5 minutes, then silence", (0, 5, 10, 15)),
    Scene("a report every 5 minutes, then silence", (0, 5, 10, 15), gap_min=10),
)


# The picture --------------------------------------------------------------------------------------------

LEFT, TOP, LINE, SCALE, LAST = 20, 34, 46, 6.0, 90
WIDTH, HEIGHT = LEFT + int(SCALE * LAST) + 40, TOP + LINE * len(SCENES) + 50


def picture() -> str:
    """Draw all scenes below each other."""
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        "<title>Stops of 30 minutes by when a truck reports</title>",
        '<g font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *(part for number, scene in enumerate(SCENES) for part in _scene(scene, TOP + LINE * number)),
        *_legend(TOP + LINE * len(SCENES) + 16),
        "</g></svg>",
    ]
    return "\n".join(lines) + "\n"


def _scene(scene: Scene, y: int) -> Iterator[str]:
    gap = "" if scene.gap_min is None else f", gap {scene.gap_min} min"
    stops = scene.stops()
    said = "no stop" if not stops else ", ".join(f"stop, told at {end:g} min" for _, end in stops)
    yield f'<text x="{LEFT}" y="{y - 12}">{scene.title}{gap}: <tspan font-weight="bold">{said}</tspan></text>'
    yield f'<line x1="{LEFT}" y1="{y}" x2="{_at(LAST)}" y2="{y}" stroke="#999"/>'
    for minute in range(0, LAST + 1, 30):
        yield f'<line x1="{_at(minute)}" y1="{y - 5}" x2="{_at(minute)}" y2="{y + 5}" stroke="#999"/>'
    for start, end in stops:
        yield (
            f'<rect x="{_at(start)}" y="{y - 4}" width="{SCALE * (end - start):g}" height="8" '
            'fill="#f4b183"/>'
        )
        yield f'<path d="M {_at(end)} {y - 9} l 5 9 l -5 9 l -5 -9 z" fill="#c00000"/>'
    for minute in scene.here:
        yield f'<circle cx="{_at(minute)}" cy="{y}" r="4" fill="#1f4e79"/>'
    for minute in scene.elsewhere:
        yield f'<circle cx="{_at(minute)}" cy="{y}" r="4" fill="white" stroke="#1f4e79"/>'


def _at(minute: float) -> str:
    return f"{LEFT + SCALE * minute:g}"


def _legend(y: int) -> Iterator[str]:
    yield f'<circle cx="{LEFT}" cy="{y - 4}" r="4" fill="#1f4e79"/>'
    yield f'<text x="{LEFT + 10}" y="{y}">report</text>'
    yield f'<circle cx="{LEFT + 70}" cy="{y - 4}" r="4" fill="white" stroke="#1f4e79"/>'
    yield f'<text x="{LEFT + 80}" y="{y}">report from 900 m away</text>'
    yield f'<path d="M {LEFT + 240} {y - 13} l 5 9 l -5 9 l -5 -9 z" fill="#c00000"/>'
    yield f'<text x="{LEFT + 252}" y="{y}">told; marks at 0, 30, 60 and 90 min</text>'


# Recordings ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recording:
    """Files with columns `t`, `object_id`, `lon` and `lat`."""

    name: str
    files: tuple[str, ...]
    minutes: int
    metres: int


RECORDINGS = (
    Recording("ships", ("ais_northsea_2022/positions.parquet",), 10, 100),
    Recording("ships", ("ais_northsea_2022/positions.parquet",), 30, 100),
    Recording("buses", ("bus_austin_2016/2016-11-25.parquet",), 10, 100),
    Recording("buses", ("bus_austin_2016/2016-11-25.parquet",), 30, 100),
)


def counts() -> Iterator[str]:
    """Count the stops of each recording, under both rules."""
    yield "| recording | phrase | one sample is enough | of these on one sample | two samples |"
    yield "|---|---|---|---|---|"
    for each in RECORDINGS:
        table = pa.concat_tables([pq.read_table(DATA / file) for file in each.files])
        events = pa.table(
            {
                "type": pa.array(["Mover"] * len(table)),
                "time": table["t"],
                "source": table["object_id"].cast(pa.string()),
                "lon": table["lon"],
                "lat": table["lat"],
            }
        )
        phrase = f"stops for {each.minutes} min within {each.metres} m"
        found = wb.detect(wb.compile(f"coordinates lonlat define Stop detect Mover {phrase}"), events)
        before, lone = _with_one_sample(events, each)
        yield f"| {each.name} | `{phrase}` | {before} | {lone} | {found.num_rows} |"


def _with_one_sample(events: pa.Table, asked: Recording) -> tuple[int, int]:
    """Count stops where a single sample may begin and prove one, and those of them that rest on one."""
    movers: dict[str, list[tuple[int, float, float]]] = {}
    times = events["time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    rows = zip(
        events["source"].to_pylist(), times, events["lon"].to_pylist(), events["lat"].to_pylist(), strict=True
    )
    for mover, *sample in sorted(rows):
        movers.setdefault(mover, []).append(tuple(sample))
    stops = lone = 0
    long, gap = asked.minutes * MINUTE_US, max(60, asked.minutes) * MINUTE_US
    for samples in movers.values():
        rests: list[list[tuple[int, float, float]]] = []
        for sample in samples:
            if rests and sample[0] - rests[-1][-1][0] <= gap and _apart(rests[-1][0], sample) <= asked.metres:
                rests[-1].append(sample)
            else:
                rests.append([sample])
        for number, rest in enumerate(rests):
            due = rest[0][0] + long
            after = rests[number + 1][0][0] if number + 1 < len(rests) else None
            if after is not None and after <= due and after - rest[-1][0] <= gap:
                continue
            stops += 1
            lone += not any(rest[0][0] < time <= due for time, _, _ in rest)
    return stops, lone


def _apart(one: tuple[int, float, float], other: tuple[int, float, float]) -> float:
    up = math.sin(math.radians(other[2] - one[2]) / 2)
    across = math.sin(math.radians(other[1] - one[1]) / 2)
    half = up * up + math.cos(math.radians(one[2])) * math.cos(math.radians(other[2])) * across * across
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(min(1.0, half)))


def main() -> None:
    """Draw, or count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--picture", action="store_true", help="draw docs/images/sparse-samples.svg")
    if parser.parse_args().picture:
        PICTURE.write_text(picture(), encoding="utf-8")
        return
    for line in counts():
        print(line)


if __name__ == "__main__":
    main()
