"""Feed random and damaged files to every reader: nothing but a Whimbrel error may come out, and soon.

python tests/io/fuzz_readers.py [examples] [seed]
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import shapely
from pyais import encode_dict

from whimbrel.errors import WhimbrelError
from whimbrel.io import RejectedWriter, read_events, write_events
from whimbrel.model.batch import normalise
from whimbrel.model.schema import EventSchema, Type

SCHEMAS = {
    "a": EventSchema("a", {"speed": Type.FLOAT, "count": Type.INT, "seen": Type.TIMESTAMP, "on": Type.BOOL})
}


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


ENDINGS = (
    *(".csv", ".csv.gz", ".csv.zst", ".csv.bz2", ".csv.xz", ".tsv", ".txt", ".jsonl", ".jsonl.gz", ".json"),
    *(".object.json", ".aircraft.json", ".states.json", ".geojson", ".geojsonl", ".line.geojson", ".mfjson"),
    *(".parquet", ".geoparquet", ".points.parquet", ".polygons.parquet", ".gpx", ".nmea"),
)
PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}
WORDS = r"""
, " ' { } [ ] : null NaN -1e999 \ud800 \u0000 type time start geometry 0x10 007 true 2024-13-45T99:99:99
9999-12-31T23:59:59-23:59 POLYGON((0,0,1,1)) POINT(nan,1) 9999999999999999999999999
"""
TOKENS = (
    *(word.encode() for word in WORDS.split()),
    *(b"\n", b"\r\n", b"\t", b" ", b"\0", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b'{"a":' * 300, b"[" * 300, b"POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"),
)
SLOWEST_S = 30.0


def fuzz(examples: int, seed: int = 0) -> int:
    """Try `examples` damaged files and return how many of them could be read after all."""
    chance = random.Random(seed)
    read = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        originals = _originals(folder)
        for number in range(examples):
            ending = chance.choice(ENDINGS)
            content = (
                chance.randbytes(chance.randrange(200))
                if chance.random() < 0.1
                else _damaged(chance, originals[ending])
            )
            pack = PACKERS.get(Path(ending).suffix)
            path = folder / f"fuzz{number}{ending}"
            path.write_bytes(pack(content) if pack and chance.random() < 0.7 else content)
            began = time.monotonic()
            try:
                read += _survives(path, chance)
            except WhimbrelError:
                pass
            except Exception as error:
                raise AssertionError(
                    f"seed {seed}, example {number}: {ending} {content!r}\n{traceback.format_exc()}"
                ) from error
            assert time.monotonic() - began < SLOWEST_S, f"seed {seed}, example {number} took too long"
            path.unlink()
    return read


def _survives(path: Path, chance: random.Random) -> bool:
    schemas = SCHEMAS if chance.random() < 0.5 else {}
    rejected = RejectedWriter(path.with_suffix(".rejected"))
    with rejected:
        for piece in read_events(path, schemas=schemas, batch_rows=chance.choice([1, 7, 1000])).pieces():
            if piece.rejected:
                rejected.write(piece.rejected, path)
            found = normalise(piece.batch, schemas=schemas)
            rejected.write(piece.numbered(found.rejected), path)
            assert found.events.num_rows + found.rejected.num_rows == piece.batch.num_rows
            found.events.validate(full=True)
            write_events([found.events], path.with_suffix(".again.jsonl"))
    return True


def _damaged(chance: random.Random, content: bytes) -> bytes:
    damages: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _cut, _repeat, _insert, _truncate)
    for _ in range(chance.choice([1, 1, 2, 5, 20])):
        content = chance.choice(damages)(chance, content)
    return content


def _flip(chance: random.Random, content: bytes) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]


def _cut(chance: random.Random, content: bytes) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + content[place + chance.randrange(20) :]


def _repeat(chance: random.Random, content: bytes) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + content[max(0, place - chance.randrange(100)) :]


def _insert(chance: random.Random, content: bytes) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.choice(TOKENS) + content[place:]


def _truncate(chance: random.Random, content: bytes) -> bytes:
    return content[: chance.randrange(len(content) + 1)] if chance.random() < 0.2 else content


def _originals(folder: Path) -> dict[str, bytes]:
    rows = [
        {
            "id": str(i),
            "type": "a",
            "source": f"s{i}",
            "time": i,
            "lon": i / 7,
            "lat": 2.0,
            "speed": i / 3,
            "count": i,
            "on": True,
            "note": "ü, \n",
        }
        for i in range(6)
    ]
    rows[3] |= {"lon": None, "lat": None, "geometry": shapely.to_wkb(shapely.box(0, 0, 1, 1)), "speed": None}
    events = normalise(pa.RecordBatch.from_pylist([{"geometry": None, **row} for row in rows])).events
    found = {}
    for ending in (".csv", ".jsonl", ".parquet", ".geoparquet"):
        write_events([events], folder / f"original{ending}")
        found[ending] = (folder / f"original{ending}").read_bytes()
    found[".tsv"] = found[".csv"].replace(b",", b"\t")
    plain = [json.loads(line) for line in found[".jsonl"].splitlines()]
    found[".json"] = json.dumps(plain, indent=1).encode()
    shape = {"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}
    features = [{"type": "Feature", "geometry": shape, "properties": row} for row in plain]
    found[".geojson"] = json.dumps({"type": "FeatureCollection", "features": features}).encode()
    packed = {f".csv{ending}": found[".csv"] for ending in PACKERS}
    return found | packed | {".jsonl.gz": found[".jsonl"], ".txt": found[".csv"]} | _others(plain, features)


def _others(plain: list[dict[str, Any]], features: list[dict[str, Any]]) -> dict[str, bytes]:
    times = [f"2024-05-01T08:00:0{n}Z" for n in range(6)]
    way = [[n / 7, 2.0, 400.0] for n in range(6)]
    moving = {"type": "MovingPoint", "datetimes": times, "coordinates": way, "interpolation": "Linear"}
    speeds = {"datetimes": times[::2], "speed": {"values": [1, 2.5, 3], "interpolation": "Linear"}}
    mover = {"type": "Feature", "id": "m", "properties": {"type": "a"}, "temporalGeometry": moving}
    line = {"type": "LineString", "coordinates": way}
    trip = {"type": "Feature", "geometry": line, "properties": {"datetimes": times, "state": list("abcdef")}}
    aircraft = [
        {"hex": "4b1803", "lon": 8.5, "lat": 47.0, "seen_pos": n, "alt_baro": "ground"} for n in range(6)
    ]
    state = ["4b1803", "SWR1 ", "CH", 1700000000, 1700000001, 8.5, 47.0, 1.0, False, *[None] * 8]
    points = "".join(
        f'<trkpt lat="{n}" lon="8"><ele>4</ele><time>{time}</time><extensions><a>1</a></extensions></trkpt>'
        for n, time in enumerate(times)
    )
    ship = {"type": 1, "mmsi": 244123456, "lon": 8.5, "lat": 47.0, "speed": 3.5}
    static = {"type": 5, "mmsi": 244123456, "shipname": "EVER GIVEN", "imo": 9811000}
    sentences = [*encode_dict(ship), *encode_dict(static, seq_id=3), *encode_dict(ship)]
    texts = {
        ".object.json": {"n": 3, "rows": plain, "tags": ["x"]},
        ".aircraft.json": {"now": 1700000000.5, "aircraft": aircraft},
        ".states.json": {"time": 1700000000, "states": [state] * 6},
        ".line.geojson": trip,
        ".mfjson": {
            "type": "FeatureCollection",
            "crs": {"type": "Name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}},
            "features": [{**mover, "temporalProperties": [speeds]}, *features[:1]],
        },
    }
    return {
        **{ending: json.dumps(content).encode() for ending, content in texts.items()},
        ".geojsonl": "".join(f"\x1e{json.dumps(feature)}\n" for feature in features).encode(),
        ".gpx": f"<gpx><trk><name>a</name><trkseg>{points}</trkseg></trk></gpx>".encode(),
        ".nmea": "".join(f"\\c:170000000{n}*00\\{each}\n" for n, each in enumerate(sentences)).encode(),
        ".points.parquet": _native("point", [{"x": n / 7, "y": 2.0} for n in range(6)]),
        ".polygons.parquet": _native("polygon", [[[{"x": x, "y": x * x} for x in (0.0, 1.0, 2.0, 0.0)]]] * 6),
    }


def _native(encoding: str, shapes: list[Any]) -> bytes:
    column = {"encoding": encoding, "geometry_types": []}
    geo = {"version": "1.1.0", "primary_column": "place", "columns": {"place": column}}
    table = pa.table({"type": ["a"] * 6, "time": list(range(6)), "place": shapes})
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({"geo": json.dumps(geo)}), sink)
    return sink.getvalue()


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    count, start = [*given, *(2000, 0)[len(given) :]]
    sys.stdout.write(f"{fuzz(count, start)} of {count} damaged files could be read\n")
