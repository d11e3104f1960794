"""Random graphs and events of the plane, put somewhere on the globe: one metre becomes one degree.

Distances that a condition compares with are stretched to lengths that no two corners of the lattice have, as
the reference only samples the borders of shapes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from whimbrel.graph.expressions import Binary, Call, Expr, Literal, PartRef, transform
from whimbrel.graph.operators import Absent, Filter, Graph, JoinPattern, Operator
from whimbrel.model.schema import Coordinates
from whimbrel.space.geometry import METRES_PER_DEGREE

from .data import Event

_UNIT = 1.37 * METRES_PER_DEGREE
_PAIR = re.compile(r"(-?[\d.]+) (-?[\d.]+)")


@dataclass(frozen=True)
class World:
    """Where the origin of the plane lies."""

    lon: float
    lat: float

    def place(self, x: float, y: float) -> tuple[float, float]:
        lon = self.lon + x
        return (lon - 360.0 if lon > 180.0 else lon), self.lat + y

    def events(self, events: list[Event]) -> list[Event]:
        return [self._event(event) for event in events]

    def _event(self, event: Event) -> Event:
        if event.polygon is not None:
            return replace(event, polygon=tuple(self.place(*corner) for corner in event.polygon))
        if event.x is None or event.y is None:
            return event
        x, y = self.place(event.x, event.y)
        return replace(event, x=x, y=y)

    def graph(self, graph: Graph) -> Graph:
        operators = tuple(self._operator(operator) for operator in graph.operators)
        return replace(graph, operators=operators, coordinates=Coordinates.LONLAT)

    def _operator(self, operator: Operator) -> Operator:
        changed: dict[str, Any] = {}
        if isinstance(operator, Filter):
            changed["condition"] = self._expr(operator.condition)
        if isinstance(operator, JoinPattern):
            changed["conditions"] = tuple(map(self._expr, operator.conditions))
        if hasattr(operator, "absent"):
            changed["absent"] = tuple(map(self._absent, operator.absent))
        return replace(operator, **changed)

    def _absent(self, absent: Absent) -> Absent:
        return replace(absent, conditions=tuple(map(self._expr, absent.conditions)))

    def _expr(self, expr: Expr) -> Expr:
        return transform(expr, self._moved)

    def _moved(self, node: Expr) -> Expr:
        match node:
            case Call(arguments=(PartRef() as part, Literal(str() as text) as region)):
                return replace(node, arguments=(part, replace(region, value=self._region(text))))
            case Binary(_, Call("distance"), Literal(metres) as length):
                return replace(node, right=replace(length, value=metres * _UNIT))
            case Call("same_place", (one, two, Literal(metres) as length)):
                return replace(node, arguments=(one, two, replace(length, value=metres * _UNIT)))
        return node

    def _region(self, text: str) -> str:
        def moved(found: re.Match[str]) -> str:
            x, y = self.place(float(found[1]), float(found[2]))
            return f"{x!r} {y!r}"

        if not text.startswith("CIRCLE"):
            return _PAIR.sub(moved, text)
        x, y, radius = (float(number) for number in text[len("CIRCLE (") : -1].split())
        lon, lat = self.place(x, y)
        return f"CIRCLE ({lon!r} {lat!r} {radius * _UNIT!r})"


WORLDS = (World(10.0, 0.0), World(178.0, 0.0), World(177.0, 70.0), World(-3.0, 82.0), World(179.0, -80.0))
worlds = st.sampled_from(WORLDS)
