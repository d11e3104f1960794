"""Feed random and damaged files to every reader: nothing but a Whimbrel error may come out, and soon.

python tests/io/fuzz_readers.py [examples] [seed]
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import shapely

from whimbrel.errors import WhimbrelError
from whimbrel.io import RejectedWriter, read_events, write_events
from whimbrel.model.batch import conform
from whimbrel.model.schema import EventSchema, Type

SCHEMAS = {
    "a": EventSchema("a", {"speed": Type.FLOAT, "count": Type.INT, "seen": Type.TIMESTAMP, "on": Type.BOOL})
}
ENDINGS = (".csv", ".csv.gz", ".tsv", ".jsonl", ".jsonl.gz", ".json", ".geojson", ".parquet", ".geoparquet")
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
            packed = ending.endswith(".gz") and chance.random() < 0.5
            path = folder / f"fuzz{number}{ending}"
            path.write_bytes(gzip.compress(content) if packed else content)
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
            found = conform(piece.batch, schemas=schemas)
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
    events = conform(pa.RecordBatch.from_pylist([{"geometry": None, **row} for row in rows])).events
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
    return found | {".csv.gz": found[".csv"], ".jsonl.gz": found[".jsonl"]}


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    count, start = [*given, *(2000, 0)[len(given) :]]
    sys.stdout.write(f"{fuzz(count, start)} of {count} damaged files could be read\n")
