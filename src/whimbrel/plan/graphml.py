"""Networks from GraphML files, such as those of the Internet Topology Zoo.

Nodes become brokers and edges links. Where both ends have coordinates (`Longitude`, `Latitude`), the latency
is that of light in fibre, 2/3 of the speed of light, along the great circle; `LinkSpeedRaw` (bits a second)
is the bandwidth. Loops are left out; parallel edges stay parallel links.
"""

from __future__ import annotations

import math
from os import PathLike
from pathlib import Path
from typing import Any

from whimbrel.errors import MissingDependency, NetworkError
from whimbrel.model.schema import Coordinates
from whimbrel.plan.network import Broker, Link, Network
from whimbrel.space.geometry import distance_m

FIBRE_M_S = 299_792_458 * 2 / 3


def read_graphml(
    path: str | PathLike[str], *, latency_s: float = 1e-3, bandwidth_b_s: float = math.inf
) -> Network:
    """Read a network from a GraphML file.

    Parameters
    ----------
    latency_s, bandwidth_b_s
        For edges where the file does not tell them.
    """
    file = Path(path)
    graph = _graph(file)
    names = _names(graph)
    brokers = tuple(
        Broker(names[node], x=_number(data, "Longitude"), y=_number(data, "Latitude"))
        for node, data in graph.nodes(data=True)
    )
    if not brokers:
        raise NetworkError(f"{file}: the graph has no nodes")
    places = {broker.name: broker for broker in brokers}
    links = []
    for a, b, data in graph.edges(data=True):
        if a != b:
            one, other = places[names[a]], places[names[b]]
            speed = _number(data, "LinkSpeedRaw")
            light = _distance_m(one, other)
            links.append(
                Link(
                    one.name,
                    other.name,
                    speed / 8 if speed else bandwidth_b_s,
                    latency_s if light is None else light / FIBRE_M_S,
                )
            )
    return Network(brokers, tuple(links), name=str(graph.graph.get("Network") or file.stem))


def _graph(file: Path) -> Any:
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependency("networkx", "reading GraphML", "plan") from error
    try:
        return nx.read_graphml(file)
    except (SyntaxError, ValueError, KeyError, nx.NetworkXError) as error:
        # Syntax errors of XML are Python's SyntaxError.
        raise NetworkError(f"{file}: this is not GraphML: {error}") from error


def _names(graph: Any) -> dict[Any, str]:
    """Take for every node its label as its name, numbered where several have the same."""
    names: dict[Any, str] = {}
    taken: set[str] = set()
    for node, data in graph.nodes(data=True):
        label = str(data.get("label") or "").strip() or str(node)
        name, number = label, 2
        while name in taken:
            name, number = f"{label} #{number}", number + 1
        names[node] = name
        taken.add(name)
    return names


def _number(data: dict[str, Any], key: str) -> float | None:
    try:
        number = float(data[key])
    except (KeyError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _distance_m(one: Broker, other: Broker) -> float | None:
    if one.x is None or one.y is None or other.x is None or other.y is None:
        return None
    return float(distance_m(one.x, one.y, other.x, other.y, Coordinates.LONLAT))
