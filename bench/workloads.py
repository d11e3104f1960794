"""The data and queries that the benchmarks run: seeded, so that every run sees the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import whimbrel as wb

OBJECTS = 5_000
RATE = 5_000
"""Events a second: each object reports once a second on average."""

SEQUENCE = "define S detect A as a then B as b then C as c within 100 s group by source"
CORRELATED = SEQUENCE.replace("group by", "where b.speed < a.speed * 0.5 group by")


def sequence_events(number: int, *, ids: bool = False) -> pa.Table:
    """Eight event types, of which A, B and C (1 %, 2 %, 2 %) take part; points in time, in order."""
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, int(number / RATE * 1e6), number)) + 1_700_000_000_000_000
    kinds = rng.choice(8, number, p=[0.01, 0.02, 0.02, 0.19, 0.19, 0.19, 0.19, 0.19]).astype(np.int32)
    columns = {
        "type": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(list("ABCDEFGH"))),
        "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "source": _sources(rng, number),
        "speed": pa.array(rng.random(number) * 40),
    }
    if ids:
        columns = {"id": pa.array(np.arange(number)).cast(pa.string()), **columns}
    return pa.table(columns)


def dense_events(number: int) -> pa.Table:
    """Only A, B and C, equally often; every object reports once in two minutes on average."""
    rng = np.random.default_rng(2)
    times = np.sort(rng.integers(0, int(number / OBJECTS * 120e6), number)) + 1_700_000_000_000_000
    kinds = rng.integers(0, 3, number).astype(np.int32)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(list("ABC"))),
            "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "source": _sources(rng, number),
            "speed": pa.array(rng.random(number) * 40),
        }
    )


def zone_events(number: int) -> pa.Table:
    """Twenty types, a thousand zones: what many different queries look at."""
    rng = np.random.default_rng(3)
    times = np.sort(rng.integers(0, int(number / RATE * 1e6), number)) + 1_700_000_000_000_000
    kinds = rng.integers(0, 20, number).astype(np.int32)
    zones = rng.integers(0, 1_000, number).astype(np.int32)
    return pa.table(
        {
            "type": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array([f"T{n}" for n in range(20)])),
            "time": pa.array(times).cast(pa.timestamp("us", "UTC")),
            "source": _sources(rng, number),
            "zone": pa.DictionaryArray.from_arrays(
                pa.array(zones), pa.array([f"z{n}" for n in range(1_000)])
            ),
            "speed": pa.array(rng.random(number) * 100),
        }
    )


def zone_query(number: int) -> wb.Query:
    """Make a query that differs from every other: its own zone, its own threshold."""
    first, second = f"T{number % 20}", f"T{(7 * number + 3) % 20}"
    fast = 99 + number % 97 / 100
    return wb.compile(
        f"define Q{number} detect {first}(zone = 'z{number % 1000}') as a then {second}(speed > {fast}) as b "
        f"within 60 s group by source"
    )


def _sources(rng: np.random.Generator, number: int) -> pa.Array:
    codes = rng.integers(0, OBJECTS, number).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([f"veh-{n}" for n in range(OBJECTS)]))


def begun_query(number: int, *, alike: bool) -> wb.Query:
    """Make a sequence of three with an end of its own, and with a beginning like all others or its own."""
    fast = 50 if alike else 50 + number / 10_000
    return wb.compile(
        f"define Q{number} detect T0(speed > {fast}) as a then T1(speed > {fast}) as b "
        f"then T{2 + number % 18}(zone = 'z{number}') as c within 60 s where a.zone = b.zone group by source"
    )
