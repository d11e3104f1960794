"""How fast the readers of event files are, and how much memory they take.

python bench/readers.py [rows]

Every format holds the same positions. Each reader runs in a process of its own, so that the peak of its
memory is its own; the peak of an empty process is taken off.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS = 300_000


def main(rows: int) -> None:
    """Write the files, read each, and print a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = write(folder, rows)
        print(f"{'file':<16} {'MB':>6} {'events':>9} {'CPU s':>7} {'events/s':>10} {'peak MB':>8}")
        base = measured(None)["peak_mb"]
        for path in made:
            found = measured(path)
            rate = found["events"] / found["cpu_s"]
            size = path.stat().st_size / 1e6
            print(
                f"{path.name:<16} {size:>6.1f} {found['events']:>9,} {found['cpu_s']:>7.2f} {rate:>10,.0f} "
                f"{found['peak_mb'] - base:>8.0f}"
            )


def write(folder: Path, rows: int) -> list[Path]:
    """Write the same positions in every format."""
    from pyais import encode_dict

    chance = np.random.default_rng(1)
    lon, lat = chance.uniform(0, 10, rows).round(6).tolist(), chance.uniform(50, 55, rows).round(6).tolist()
    stamps = [f"2024-05-01T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}Z" for n in range(rows)]
    events = [
        {"type": "Seen", "time": t, "lon": x, "lat": y, "source": f"s{n % 500}", "speed": n % 30}
        for n, (t, x, y) in enumerate(zip(stamps, lon, lat, strict=True))
    ]
    lines = [json.dumps(event) for event in events]
    features = [
        json.dumps(
            {
                "type": "Feature",
                "geometry": {"type": "Point", "coordinates": [event["lon"], event["lat"]]},
                "properties": {name: event[name] for name in ("type", "time", "source", "speed")},
            }
        )
        for event in events
    ]
    step = 1_000
    moving = [
        json.dumps(
            {
                "type": "Feature",
                "id": f"s{first}",
                "properties": {"type": "Seen"},
                "temporalGeometry": {
                    "type": "MovingPoint",
                    "datetimes": stamps[first : first + step],
                    "coordinates": [[x, y] for x, y in zip(lon, lat, strict=True)][first : first + step],
                },
            }
        )
        for first in range(0, rows, step)
    ]
    points = "".join(
        f'<trkpt lat="{y}" lon="{x}"><time>{t}</time></trkpt>\n'
        for t, x, y in zip(stamps, lon, lat, strict=True)
    )
    distinct = [
        encode_dict({"type": 1, "mmsi": 200_000_000 + n, "lon": lon[n], "lat": lat[n], "speed": n % 30})[0]
        for n in range(min(rows, 5_000))
    ]
    texts = {
        "a.csv": "type,time,lon,lat,source,speed\n"
        + "".join(",".join(str(value) for value in event.values()) + "\n" for event in events),
        "a.jsonl": "\n".join(lines) + "\n",
        "a.json": f"[{', '.join(lines)}]",
        "wrapped.json": f'{{"now": 3, "rows": [{", ".join(lines)}]}}',
        "a.geojson": f'{{"type": "FeatureCollection", "features": [{", ".join(features)}]}}',
        "a.mfjson": f'{{"type": "FeatureCollection", "features": [{", ".join(moving)}]}}',
        "a.gpx": f"<gpx><trk><trkseg>{points}</trkseg></trk></gpx>",
        "a.nmea": "".join(
            f"\\c:{1_700_000_000 + n}*00\\{distinct[n % len(distinct)]}\n" for n in range(rows)
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in texts]


def measured(path: Path | None) -> dict[str, float]:
    """Read a file in a process of its own."""
    given = [] if path is None else [str(path)]
    done = subprocess.run([sys.executable, __file__, "--one", *given], check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def peak_mb() -> float:
    """Return the peak of this process alone; getrusage would tell that of its parent, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def one(paths: list[str]) -> None:
    """Read a file and print what it took."""
    from whimbrel.io import read_events

    began = time.process_time()
    events = sum(batch.num_rows for batch in read_events(paths)) if paths else 0
    found = {
        "events": events,
        "cpu_s": max(time.process_time() - began, 1e-9),
        "peak_mb": peak_mb(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2:])
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else ROWS)
