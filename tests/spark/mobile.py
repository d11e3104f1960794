"""Random mobile queries and movements on a plane, many queries at once, to save jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

import whimbrel as wb
from whimbrel.graph.mobile import (
    BoxInterest,
    CircleInterest,
    CorridorInterest,
    FocalObjects,
    Interest,
    ListedObject,
    MobilePolicy,
    MobileQuery,
    OutlineInterest,
    Quality,
    Refresh,
    RefreshAlways,
    RefreshEvery,
    RefreshWhenMoved,
    RefreshWhenQualityFalls,
    SectorInterest,
)
from whimbrel.graph.query import Query
from whimbrel.model.time import SECOND

SCHEMA = (
    "id string, type string, time double, source string, make string, speed double, "
    "x double, y double, route string"
)
DEFINITIONS = """
define Fast(v) detect Car(speed > 20) as c assign v = c.speed
define Brakes(who) detect Car(speed > 20) as a then Car(speed < 10) as b within 9 s
  group by source assign who = group.source
define Pair detect Car(speed > 24) as a and Car(speed < 6) as b within 3 s
define Silent detect Car(speed > 22) as a then not Car(speed < 15) for 4 s
define Count(n) over 6 s every 2 s detect Car assign n = count(Car) having n > 2
define Calm(n) over 8 s detect Car(speed < 12) assign n = count(Car) group by make having n > 3
define Slowed detect Brakes then Count within 5 s
define Near detect Car as a and Car as b within 2 s where distance(a, b) < 60 m and a.source < b.source
define Stopped detect Car stops for 3 s within 40 m group by source
define Once detect Car(speed > 18) as a then Car(speed < 14) as b within 6 s consuming a
"""
BY_PLACE = ("Fast", "Brakes", "Pair", "Silent", "Count", "Calm", "Slowed", "Once")


def world(rng: Random, seconds: int = 40, cars: int = 8) -> list[dict[str, Any]]:
    """Cars and ambulances that drive around the origin, a report each now and then."""
    rows = []
    for number in range(cars):
        make = rng.choice("abc")
        x, y = rng.uniform(-400, 400), rng.uniform(-400, 400)
        dx, dy = rng.uniform(-40, 40), rng.uniform(-40, 40)
        name = f"car{number}"
        for second in range(seconds):
            x, y = x + dx + rng.uniform(-10, 10), y + dy + rng.uniform(-10, 10)
            if abs(x) > 500 or abs(y) > 500:
                dx, dy = -dx, -dy
            if rng.random() < 0.6:
                row = {
                    "type": "Car", "time": second + rng.choice((0.0, 0.0, 0.25, 0.5)), "source": name,
                    "make": make, "speed": float(rng.randrange(30)), "x": round(x, 1), "y": round(y, 1),
                }  # fmt: skip
                route = f"LINESTRING ({x:.0f} {y:.0f}, {x + 9 * dx:.0f} {y + 9 * dy:.0f})"
                rows.append({"id": f"{name}-{second}", "route": route, **row})
    return sorted(rows, key=lambda row: row["time"])


def query_with(mobile: Sequence[MobileQuery]) -> Query:
    """Put mobile queries into one query."""
    whole = wb.compile(DEFINITIONS)
    outputs = dict.fromkeys(name for each in mobile for name in each.detect.graph.outputs)
    return replace(whole, graph=replace(whole.graph, outputs=tuple(outputs)), mobile=tuple(mobile))


def reporting(*names: str) -> Query:
    """A plain query that reports some of the definitions."""
    whole = wb.compile(DEFINITIONS)
    return replace(whole, graph=replace(whole.graph, outputs=names))


def drawn(rng: Random, name: str) -> MobileQuery:
    """A mobile query whose interests can be parted by place."""
    strong = rng.random() < 0.2
    deliver: Any = rng.choice(("all", "all", "new", "changes"))
    interest: Interest = rng.choice(
        (CircleInterest(rng.choice((60.0, 150.0, 300.0))), BoxInterest(200.0, 120.0))
        + (() if strong else (SectorInterest(250.0, 90.0),))
        + (OutlineInterest(((-50.0, -80.0), (150.0, -40.0), (0.0, 200.0))),)
    )
    refresh: Refresh = rng.choice((RefreshAlways(), RefreshEvery(3 * SECOND), RefreshWhenMoved(90.0)))
    focal = rng.choice(
        (
            FocalObjects("Car", only=frozenset(("car1", "car2"))),
            FocalObjects("Car"),
            FocalObjects("Car", key="make"),
            FocalObjects("Car", listed=(ListedObject("car3", 100.0, 4 * SECOND), ListedObject("car0"))),
        )
    )
    if focal.listed is not None and not isinstance(interest, CircleInterest):
        focal = FocalObjects("Car", only=frozenset(("car3",)))
    situations = rng.random() < 0.25
    return MobileQuery(
        reporting(*(("Fast", "Near") if situations else rng.sample(BY_PLACE, rng.choice((1, 1, 2))))),
        focal,
        interest,
        lifetime=rng.choice((0, 3, 10)) * SECOND,
        policy=MobilePolicy(
            refresh=refresh,
            completeness="strong" if strong else "weak",
            deliver=deliver,
            grid_m=100.0 if strong else None,
        ),
        name=name,
        of_situations=situations,
        excluding_itself=not strong and rng.random() < 0.3,
        silent=rng.choice((None, 2 * SECOND)),
    )


def together(rng: Random) -> list[MobileQuery]:
    """Mobile queries of which each needs all events in one place, and what the reason says."""
    plain = drawn(rng, "plain")
    weak = MobileQuery(reporting("Fast", "Silent"), FocalObjects("Car"), CircleInterest(150.0), 4 * SECOND)
    quality = MobilePolicy(RefreshWhenQualityFalls(5 * SECOND), Quality(0.8, 0.8))
    return [
        plain,
        replace(weak, name="route", interest=CorridorInterest("route", 30.0)),
        replace(weak, name="situations", of_situations=True),
        replace(weak, name="quality", policy=quality),
        replace(weak, name="similar", policy=MobilePolicy(quality=Quality(0.8, 0.8), reuse="similar")),
        replace(weak, name="movers", detect=reporting("Stopped")),
    ]


def told(found: Any) -> list[dict[str, Any]]:
    """Deliveries as rows, in an order that does not depend on who told them."""
    rows = (found.toArrow() if hasattr(found, "toArrow") else pa.table(found)).to_pylist()
    kept = [{name: value for name, value in row.items() if value is not None} for row in rows]
    return sorted(kept, key=lambda row: row["delivery"])
