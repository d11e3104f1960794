"""Networks as files: YAML or JSON, with units that people write, and errors that say where in the file.

What a file may say is described in docs/planning.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from whimbrel.errors import MissingDependency, NetworkError, did_you_mean
from whimbrel.plan.contacts import ALWAYS, ContactPlan, Contacts, PeriodicContacts
from whimbrel.plan.network import Box, Broker, Consumer, EventSource, Link, Mover, Network, unknown
from whimbrel.plan.units import Kind, quantity

KINDS = ("name", "notes", "brokers", "links", "traces", "sources", "consumers", "movers")


def read_network(path: str | PathLike[str]) -> Network:
    """Read a network from a YAML, JSON or GraphML file.

    Raises
    ------
    NetworkError
        If the file says something that makes no sense: what, where in the file, and what would work.
    """
    file = Path(path)
    if file.suffix.lower() == ".graphml":
        from whimbrel.plan.graphml import read_graphml

        return read_graphml(file)
    try:
        return network_of(_parsed(file), file.parent)
    except NetworkError as error:
        raise NetworkError(f"{file}: {error.message}", error.hint) from error


def write_network(network: Network, path: str | PathLike[str]) -> None:
    """Write a network as a YAML or JSON file that `read_network` reads back unchanged."""
    file = Path(path)
    content = to_dict(network)
    if file.suffix.lower() == ".json":
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    else:
        yaml = _yaml()
        text = yaml.dump(
            content,
            Dumper=_quick(yaml, "SafeDumper"),
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=None,
        )
    file.write_text(text, encoding="utf-8")


def _parsed(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise NetworkError(f"the file is not UTF-8 text ({error.reason})") from error
    if file.suffix.lower() == ".json":
        try:
            return json.loads(text, object_pairs_hook=_without_twins)
        except json.JSONDecodeError as error:
            raise NetworkError(
                f"line {error.lineno}, col {error.colno}: this is not JSON: {error.msg}"
            ) from error
    return _from_yaml(text)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise NetworkError(f"the key {twin!r} is given twice in one place", "leave one of them out")
    return mapping


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingDependency("pyyaml", "reading and writing YAML", "plan") from error
    return yaml


def _quick(yaml: Any, name: str) -> Any:
    """Return a loader or dumper in C, many times as fast, where PyYAML was built with it."""
    return getattr(yaml, f"C{name}", None) or getattr(yaml, name)


def _from_yaml(text: str) -> Any:
    yaml = _yaml()
    try:
        return yaml.load(text, _without_twin_keys(_quick(yaml, "SafeLoader")))
    except yaml.YAMLError:
        pass
    try:
        # Of what is wrong, the slow loader tells the place better.
        return yaml.load(text, _without_twin_keys(yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, col {mark.column + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or error
        raise NetworkError(f"{where}this is not YAML: {problem}") from error


def _without_twin_keys(base: Any) -> Any:
    class Loader(base):  # type: ignore[misc]  # it has no types
        """A safe loader, which refuses keys that are given twice instead of taking the last."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: list[Any] = []
            for at, _ in node.value:
                key = self.construct_object(at, deep=True)
                if key in seen:
                    line = at.start_mark.line + 1
                    raise NetworkError(
                        f"line {line}: the key {key!r} is given twice in one place", "leave one of them out"
                    )
                seen.append(key)
            return super().construct_mapping(node, deep)

    return Loader


# -- reading ------------------------------------------------------------------------------------------------


@dataclass
class _Item:
    """A mapping in the file, and where it stands; remembers what may be asked of it."""

    where: str
    values: Mapping[str, Any]

    def has(self, *keys: str) -> bool:
        return any(self.values.get(key) is not None for key in keys)

    def at(self, key: str) -> str:
        return f"{self.where}.{key}" if self.where else key

    def check_keys(self, known: Iterable[str]) -> None:
        for key in self.values:
            if key not in known:
                raise NetworkError(
                    f"{self.where or 'the file'}: unknown key {key!r}", did_you_mean(str(key), known)
                )

    def number(self, key: str, kind: Kind, default: float, least: float = 0.0) -> float:
        value = self.values.get(key)
        if value is None:
            return default
        try:
            number = quantity(value, kind)
        except NetworkError as error:
            raise NetworkError(f"{self.at(key)}: {error.message}", error.hint) from error
        if number < least:
            raise NetworkError(f"{self.at(key)}: {value!r} is below {least:g}", f"give {kind.value}")
        return number

    def optional(self, key: str, kind: Kind) -> float | None:
        return self.number(key, kind, 0.0) if self.has(key) else None

    def text(self, key: str, example: str) -> str:
        value = self.values.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)  # a broker may be called 7
        if not isinstance(value, str) or not value:
            missing = "is missing" if value is None else f"{value!r} is no name"
            raise NetworkError(f"{self.at(key)}: {missing}", f"write for example {key}: {example}")
        return value


def network_of(content: Any, folder: Path = Path()) -> Network:
    """Make a network of the content of a file; other files that it names are looked for in `folder`."""
    if not isinstance(content, Mapping):
        raise NetworkError("the file holds no mapping", "begin with 'brokers:' and list them below it")
    top = _Item("", content)
    top.check_keys(KINDS)
    brokers = tuple(_broker(item) for item in _items(content, "brokers"))
    met = tuple(link for item in _items(content, "traces") for link in _met(item, folder))
    brokers += _newcomers(brokers, met)
    movers = tuple(mover for item in _items(content, "movers") for mover in _movers(item, folder))
    names = {broker.name for broker in brokers}
    places = names | {mover.name for mover in movers}
    notes = content.get("notes") or {}
    if not isinstance(notes, Mapping):
        raise NetworkError("notes: this is no mapping", "write for example notes: {owner: the port}")
    return Network(
        brokers,
        (*(_link(item, names) for item in _items(content, "links")), *met),
        tuple(_source(item, places) for item in _items(content, "sources")),
        tuple(_consumer(item, places) for item in _items(content, "consumers")),
        movers,
        str(content.get("name") or ""),
        {str(key): str(value) for key, value in notes.items()},
    )


def _items(content: Mapping[str, Any], kind: str) -> Iterator[_Item]:
    listed = content.get(kind) or []
    if not isinstance(listed, list):
        raise NetworkError(f"{kind}: this is no list", f"begin each of the {kind} with '- '")
    for number, values in enumerate(listed):
        where = f"{kind}[{number}]"
        if kind == "brokers" and isinstance(values, str):
            values = {"name": values}  # noqa: PLW2901 - a broker of which nothing but the name is known
        if not isinstance(values, Mapping):
            raise NetworkError(f"{where}: {values!r} is no mapping", "write for example {name: edge-1}")
        yield _Item(where, values)


def _known(item: _Item, key: str, name: str, names: Iterable[str], what: str = "broker") -> str:
    if name not in names:
        error = unknown(what, name, names)
        raise NetworkError(f"{item.at(key)}: {error.message}", error.hint)
    return name


def _broker(item: _Item) -> Broker:
    item.check_keys(("name", "capacity", "storage", "parent", "area", "x", "y"))
    return Broker(
        item.text("name", "edge-1"),
        item.number("capacity", Kind.NUMBER, math.inf),
        item.number("storage", Kind.SIZE, math.inf),
        item.text("parent", "cloud") if item.has("parent") else None,
        _area(item) if item.has("area") else None,
        _coordinate(item, "x"),
        _coordinate(item, "y"),
    )


def _coordinate(item: _Item, key: str) -> float | None:
    return item.number(key, Kind.NUMBER, 0.0, -math.inf) if item.has(key) else None


def _area(item: _Item) -> Box:
    value = item.values["area"]
    hint = "give [smallest x, smallest y, largest x, largest y], or a polygon as WKT"
    if isinstance(value, str):
        import shapely

        try:
            box = shapely.from_wkt(value).bounds
        except shapely.errors.ShapelyError as error:
            raise NetworkError(f"{item.at('area')}: {value[:40]!r} is no WKT", hint) from error
    else:
        box = tuple(_numbers(value, 4, item.at("area"), hint))
    x0, y0, x1, y1 = box
    if not (x0 < x1 and y0 < y1):
        raise NetworkError(f"{item.at('area')}: {value!r} is empty", hint)
    return (x0, y0, x1, y1)


def _numbers(value: Any, count: int, where: str, hint: str, kind: Kind = Kind.NUMBER) -> list[float]:
    if not isinstance(value, list) or len(value) != count:
        raise NetworkError(f"{where}: {value!r} is no list of {count} numbers", hint)
    try:
        return [quantity(number, kind) for number in value]
    except NetworkError as error:
        raise NetworkError(f"{where}: {error.message}", hint) from error


LINK_KEYS = (
    "a", "b", "between", "bandwidth", "latency", "cost", "loss", "down", "up", "phase", "contacts",
)  # fmt: skip


def _link(item: _Item, names: set[str]) -> Link:
    item.check_keys(LINK_KEYS)
    a, b = _ends(item, names)
    bandwidth, latency, cost, loss = _measures(item)
    return Link(a, b, bandwidth, latency, cost, _contacts(item), loss)


def _measures(item: _Item) -> tuple[float, float, float, float]:
    """Return bandwidth, latency, cost and loss of a link."""
    bandwidth = item.number("bandwidth", Kind.BANDWIDTH, math.inf)
    if not bandwidth:
        raise NetworkError(f"{item.at('bandwidth')}: nothing can pass", "leave the link out")
    loss = item.number("loss", Kind.NUMBER, 0.0)
    if not loss < 1:
        raise NetworkError(f"{item.at('loss')}: everything is lost", "give a share below 1, such as 0.01")
    return bandwidth, item.number("latency", Kind.TIME, 0.0), item.number("cost", Kind.NUMBER, 1.0), loss


def _met(item: _Item, folder: Path) -> Iterator[Link]:
    """Make links of contacts that were recorded in a file; all else is the same for all of them."""
    item.check_keys(("file", "bandwidth", "latency", "cost", "loss"))
    from whimbrel.plan.traces import read_contacts

    try:
        contacts_by_pair = read_contacts(folder / item.text("file", "contacts.csv"))
    except (NetworkError, OSError) as error:
        raise NetworkError(f"{item.at('file')}: {error}") from error
    bandwidth, latency, cost, loss = _measures(item)
    for (a, b), contacts in contacts_by_pair.items():
        yield Link(a, b, bandwidth, latency, cost, contacts, loss)


def _newcomers(brokers: tuple[Broker, ...], links: tuple[Link, ...]) -> tuple[Broker, ...]:
    """Return the brokers that are met, and nothing else is said of."""
    known = {broker.name for broker in brokers}
    ends = dict.fromkeys(end for link in links for end in (link.a, link.b))
    return tuple(Broker(name) for name in ends if name not in known)


def _ends(item: _Item, names: set[str]) -> tuple[str, str]:
    if item.has("between"):
        ends = item.values["between"]
        if not isinstance(ends, list) or len(ends) != 2:
            raise NetworkError(
                f"{item.at('between')}: {ends!r} is no pair", "write for example between: [edge-1, cloud]"
            )
        keys = ("between", "between")
    else:
        ends, keys = [item.text("a", "edge-1"), item.text("b", "cloud")], ("a", "b")
    a, b = (_known(item, key, str(end), names) for key, end in zip(keys, ends, strict=True))
    if a == b:
        raise NetworkError(f"{item.at(keys[1])}: the link leads from {a!r} to itself", "name two brokers")
    return a, b


def _contacts(item: _Item) -> Contacts:
    if item.has("contacts"):
        if item.has("down", "up", "phase"):
            raise NetworkError(f"{item.where}: contacts and down/up are both given", "give one of them")
        listed = item.values["contacts"]
        hint = "list contacts as [start, end], such as [[0, 60], [10 min, 11 min]]"
        if not isinstance(listed, list):
            raise NetworkError(f"{item.at('contacts')}: this is no list", hint)
        pairs = [
            _numbers(pair, 2, f"{item.at('contacts')}[{number}]", hint, Kind.TIME)
            for number, pair in enumerate(listed)
        ]
        try:
            return ContactPlan(tuple((start, end) for start, end in pairs))
        except NetworkError as error:
            raise NetworkError(f"{item.at('contacts')}: {error.message}", error.hint) from error
    if not item.has("down", "up", "phase"):
        return ALWAYS
    if not item.has("down") or not item.has("up"):
        missing = "up" if item.has("down") else "down"
        raise NetworkError(
            f"{item.at(missing)}: is missing", "a link by turns has both: down: 5 min, up: 30 s"
        )
    down, up = item.number("down", Kind.TIME, 0.0), item.number("up", Kind.TIME, 0.0)
    if not 0 < up < math.inf or math.isinf(down):
        raise NetworkError(
            f"{item.at('up')}: the link is never up", "give times such as down: 5 min, up: 30 s"
        )
    return PeriodicContacts(down, up, item.number("phase", Kind.TIME, 0.0, -math.inf))


def _source(item: _Item, places: set[str]) -> EventSource:
    item.check_keys(("name", "type", "at", "rate", "size"))
    kind = item.text("type", "Position")
    at = _known(item, "at", item.text("at", "edge-1"), places, "broker or mover")
    return EventSource(
        item.text("name", "camera-1") if item.has("name") else f"{kind} at {at}",
        kind,
        at,
        item.optional("rate", Kind.FREQUENCY),
        item.optional("size", Kind.SIZE),
    )


def _consumer(item: _Item, places: set[str]) -> Consumer:
    item.check_keys(("name", "at", "wants", "latency"))
    wants = item.values.get("wants") or []
    wants = [wants] if isinstance(wants, str) else wants
    if not isinstance(wants, list) or not all(isinstance(kind, str) for kind in wants):
        raise NetworkError(f"{item.at('wants')}: {wants!r} is no list of types", "write for example [Late]")
    at = _known(item, "at", item.text("at", "cloud"), places, "broker or mover")
    name = item.text("name", "control-room") if item.has("name") else at
    return Consumer(name, at, tuple(wants), item.number("latency", Kind.TIME, math.inf))


def _movers(item: _Item, folder: Path) -> Iterator[Mover]:
    item.check_keys(("name", "track", "file", "object"))
    if item.has("track") == item.has("file"):
        raise NetworkError(
            f"{item.where}: a mover has a track or a file of positions",
            "write for example track: [[0, 10.5, 20], [60, 30, 20]] (time, x, y), or file: cars.csv",
        )
    if item.has("track"):
        yield Mover(item.text("name", "ferry-1"), _track(item))
        return
    from whimbrel.plan.tracks import read_tracks

    try:
        tracks = read_tracks(folder / item.text("file", "cars.csv"))
    except (NetworkError, OSError) as error:
        raise NetworkError(f"{item.at('file')}: {error}") from error
    if item.has("object") or item.has("name"):
        name = item.text("object" if item.has("object") else "name", "car-7")
        if name not in tracks:
            missing = unknown("object", name, tracks, "in the file of positions")
            raise NetworkError(f"{item.where}: {missing.message}", missing.hint)
        yield Mover(item.text("name", "car-7") if item.has("name") else name, tracks[name])
        return
    yield from (Mover(name, track) for name, track in tracks.items())


def _track(item: _Item) -> tuple[tuple[float, float, float], ...]:
    listed, hint = item.values["track"], "list [time, x, y] in order of time"
    if not isinstance(listed, list) or not listed:
        raise NetworkError(f"{item.at('track')}: there are no positions", hint)
    points: list[tuple[float, float, float]] = []
    for number, point in enumerate(listed):
        where = f"{item.at('track')}[{number}]"
        if not isinstance(point, list) or len(point) != 3:
            raise NetworkError(f"{where}: {point!r} is no position", hint)
        time = _numbers(point[:1], 1, where, hint, Kind.TIME)[0]
        x, y = _numbers(point[1:], 2, where, hint)
        if points and time <= points[-1][0]:
            raise NetworkError(f"{where}: the time {point[0]!r} does not come after the one before it", hint)
        points.append((time, x, y))
    return tuple(points)


# -- writing ------------------------------------------------------------------------------------------------


def to_dict(network: Network) -> dict[str, Any]:
    """Return a network as `network_of` reads it, in plain numbers and without what is as usual."""
    content: dict[str, Any] = {"name": network.name, "notes": dict(network.notes)}
    writers: tuple[tuple[str, Iterable[Any], Callable[[Any], dict[str, Any]]], ...] = (
        ("brokers", network.brokers, _broker_dict),
        ("links", network.links, _link_dict),
        ("sources", network.sources, _source_dict),
        ("consumers", network.consumers, _consumer_dict),
        ("movers", network.movers, _mover_dict),
    )
    for kind, items, write in writers:
        content[kind] = [write(item) for item in items]
    return {key: value for key, value in content.items() if value}


def _said(values: dict[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None and value != usual.get(key)}


def _broker_dict(broker: Broker) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": broker.name, "parent": broker.parent, "capacity": broker.capacity}
    fields |= {
        "storage": broker.storage_b,
        "area": broker.area and list(broker.area),
        "x": broker.x,
        "y": broker.y,
    }
    return _said(fields, {"capacity": math.inf, "storage": math.inf})


def _link_dict(link: Link) -> dict[str, Any]:
    fields: dict[str, Any] = {"between": [link.a, link.b], "bandwidth": link.bandwidth_b_s}
    fields |= {"latency": link.latency_s, "cost": link.cost, "loss": link.loss}
    fields = _said(fields, {"bandwidth": math.inf, "latency": 0.0, "cost": 1.0, "loss": 0.0})
    if isinstance(link.contacts, PeriodicContacts):
        fields |= {"down": link.contacts.down_s, "up": link.contacts.up_s, "phase": link.contacts.phase_s}
    if isinstance(link.contacts, ContactPlan):
        fields["contacts"] = [list(contact) for contact in link.contacts.times]
    return fields


def _source_dict(source: EventSource) -> dict[str, Any]:
    fields = {"name": source.name, "type": source.event_type, "at": source.at}
    return _said({**fields, "rate": source.rate_hz, "size": source.size_b}, {})


def _consumer_dict(consumer: Consumer) -> dict[str, Any]:
    fields = {"name": consumer.name, "at": consumer.at, "wants": list(consumer.wants)}
    return _said({**fields, "latency": consumer.latency_s}, {"latency": math.inf, "wants": []})


def _mover_dict(mover: Mover) -> dict[str, Any]:
    return {"name": mover.name, "track": [list(point) for point in mover.track]}
