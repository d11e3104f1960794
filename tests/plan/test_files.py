"""Networks as files: what is read, what is written, and what is said of what makes no sense."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import ContactPlan, PeriodicContacts
from whimbrel.plan.files import network_of, read_network, to_dict, write_network
from whimbrel.plan.network import Broker, Consumer, EventSource, Link, Mover, Network
from whimbrel.plan.units import Kind, quantity

HARBOUR = """
name: harbour
notes: {owner: the port}
brokers:
  - {name: cloud, capacity: 8, storage: 2 TB}
  - name: quay
    parent: cloud
    area: [0, 0, 1000, 500]
    x: 500
    y: 250
  - name: island
    area: POLYGON ((1000 0, 2000 100, 1500 500, 1000 0))
  - buoy
links:
  - {between: [quay, cloud], bandwidth: 10 MB/s, latency: 20 ms, cost: 2, loss: 0.01}
  - {a: island, b: quay, bandwidth: 128 kbit/s, down: 5 min, up: 30 s, phase: 10}
  - {between: [buoy, quay], contacts: [[0, 60], [10 min, 11 min]]}
sources:
  - {name: radar, type: Position, at: quay, rate: 30/min, size: 1.5 KB}
  - {type: Position, at: ferry}
consumers:
  - {name: control room, at: cloud, wants: [Late], latency: 2 s}
  - {at: ferry, wants: Late}
movers:
  - {name: ferry, track: [[0, 10, 10], [5 min, 900, 20]]}
"""
READ = Network(
    (
        Broker("cloud", 8, 2e12),
        Broker("quay", parent="cloud", area=(0, 0, 1000, 500), x=500, y=250),
        Broker("island", area=(1000, 0, 2000, 500)),
        Broker("buoy"),
    ),
    (
        Link("quay", "cloud", 1e7, 0.02, 2, loss=0.01),
        Link("island", "quay", 16_000, contacts=PeriodicContacts(300, 30, 10)),
        Link("buoy", "quay", contacts=ContactPlan(((0, 60), (600, 660)))),
    ),
    (
        EventSource("radar", "Position", "quay", 0.5, 1500),
        EventSource("Position at ferry", "Position", "ferry"),
    ),
    (Consumer("control room", "cloud", ("Late",), 2), Consumer("ferry", "ferry", ("Late",))),
    (Mover("ferry", ((0, 10, 10), (300, 900, 20))),),
    "harbour",
    {"owner": "the port"},
)


@pytest.fixture
def written(tmp_path):
    """Write a network file and read it."""

    def read(text: str, name: str = "network.yaml") -> Network:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read_network(tmp_path / name)

    return read


def test_a_network_is_read_with_its_units(written):
    assert written(HARBOUR) == READ


@pytest.mark.parametrize("name", ["copy.yaml", "copy.json"])
def test_what_is_written_is_read_back(tmp_path, name):
    write_network(READ, tmp_path / name)
    assert read_network(tmp_path / name) == READ


numbers = st.floats(0.001, 1e12)


@st.composite
def networks(draw) -> Network:
    names = draw(
        st.lists(st.text(min_size=1, max_size=5).filter(str.strip), min_size=2, max_size=5, unique=True)
    )
    contacts = st.builds(PeriodicContacts, numbers, numbers, st.floats(-1e6, 1e6))
    links = st.builds(
        Link,
        st.just(names[0]),
        st.sampled_from(names[1:]),
        numbers,
        numbers,
        numbers,
        contacts,
        st.floats(0, 0.9),
    )
    brokers = tuple(
        Broker(name, draw(numbers), draw(numbers), x=draw(st.floats(-1e9, 1e9))) for name in names
    )
    return Network(brokers, tuple(draw(st.lists(links, max_size=4))))


@given(networks())
def test_any_network_survives_writing_and_reading(tmp_path_factory, network):
    folder = tmp_path_factory.mktemp("networks")
    for name in ("network.yaml", "network.json"):
        write_network(network, folder / name)
        assert read_network(folder / name) == network
    assert network_of(to_dict(network)) == network


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_movers_come_from_a_file_of_positions(written, tmp_path, kind):
    table = pa.table(
        {"object_id": ["b", "a", "a"], "t": [0, 5, 1], "x": [9.0, 2.0, 1.0], "y": [9.0, 2.0, 1.0]}
    )
    if kind == "csv":
        (tmp_path / "cars.csv").write_text("object_id,t,x,y\nb,0,9,9\na,5,2,2\na,1,1,1\n", encoding="utf-8")
    else:
        pq.write_table(table, tmp_path / "cars.parquet")
    both = written(f"brokers: [hub]\nmovers: [file: cars.{kind}]\n")
    assert both.movers == (Mover("a", ((1, 1, 1), (5, 2, 2))), Mover("b", ((0, 9, 9),)))
    one = written(f"brokers: [hub]\nmovers: [{{name: bus, file: cars.{kind}, object: b}}]\n")
    assert one.movers == (Mover("bus", ((0, 9, 9),)),)


def test_timestamps_become_seconds_since_the_first(written, tmp_path):
    start = datetime(2025, 3, 3, 8, tzinfo=UTC)
    times = [start, start + timedelta(seconds=90)]
    table = pa.table({"object_id": [7, 7], "t": times, "lon": [8.5, 8.6], "lat": [53.5, 53.6]})
    pq.write_table(table, tmp_path / "ships.parquet")
    movers = written("brokers: [hub]\nmovers: [file: ships.parquet]\n").movers
    assert movers == (Mover("7", ((0, 8.5, 53.5), (90, 8.6, 53.6))),)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1.2 Mbit/s", Kind.BANDWIDTH, 150_000),
        ("128 kbps", Kind.BANDWIDTH, 16_000),
        ("2 MBps", Kind.BANDWIDTH, 2e6),
        ("1 KiB/s", Kind.BANDWIDTH, 1024),
        ("20ms", Kind.TIME, 0.02),
        ("1e3 s", Kind.TIME, 1000),
        ("2 Hz", Kind.FREQUENCY, 2),
        ("3 events/h", Kind.FREQUENCY, 3 / 3600),
        ("1.5 MB", Kind.SIZE, 1.5e6),
        (math.inf, Kind.NUMBER, math.inf),
    ],
)
def test_units(text, kind, value):
    assert quantity(text, kind) == pytest.approx(value)


EDGE = "brokers: [edge, cloud]\n"
WRONG = [
    ("brokers: []", "a network without brokers"),
    ("- edge", "holds no mapping; begin with 'brokers:'"),
    ("brokers: edge", "brokers: this is no list"),
    ("brokers: [{name: a}, {name: a}]", "two brokers are named 'a'"),
    ("brokers: [{nama: a}]", r"brokers\[0\]: unknown key 'nama'; did you mean 'name'"),
    ("brokers: [edge]\nlinx: []", "the file: unknown key 'linx'; did you mean 'links'"),
    ("brokers: [{capacity: 2}]", r"brokers\[0\].name: is missing; write for example name: edge-1"),
    ("brokers: [{name: a, area: [0, 0, 1]}]", r"brokers\[0\].area: \[0, 0, 1\] is no list of 4 numbers"),
    ("brokers: [{name: a, area: POLYGON 1 2}]", r"brokers\[0\].area: 'POLYGON 1 2' is no WKT"),
    ("brokers: [{name: a, area: [0, 0, 0, 1]}]", r"brokers\[0\].area: \[0, 0, 0, 1\] is empty"),
    ("brokers: [{name: a, storage: 3 parsecs}]", r"brokers\[0\].storage: '3 parsecs' is not a size"),
    ("brokers: [{name: a, parent: b}]", "no broker is named 'b'"),
    (EDGE + "links: [{between: [edge, clod]}]", r"links\[0\].between: no broker is named 'clod'; did"),
    (EDGE + "links: [{between: [edge, edge]}]", r"links\[0\].between: the link leads from 'edge' to itself"),
    (EDGE + "links: [{between: edge}]", "is no pair"),
    (EDGE + "links: [{a: edge, b: cloud, bandwidth: 10 MB}]", r"links\[0\].bandwidth: '10 MB' is not"),
    (EDGE + "links: [{a: edge, b: cloud, bandwidth: 1 MB/sek}]", "did you mean 'MB/s'"),
    (EDGE + "links: [{a: edge, b: cloud, bandwidth: 0}]", "nothing can pass"),
    (EDGE + "links: [{a: edge, b: cloud, latency: -1 s}]", r"links\[0\].latency: '-1 s' is below 0"),
    (EDGE + "links: [{a: edge, b: cloud, latency: .nan}]", r"links\[0\].latency: nan is not a time"),
    (EDGE + "links: [{a: edge, b: cloud, loss: 1}]", r"links\[0\].loss: everything is lost"),
    (EDGE + "links: [{a: edge, b: cloud, down: 5 min}]", r"links\[0\].up: is missing"),
    (EDGE + "links: [{a: edge, b: cloud, down: 1, up: 0}]", r"links\[0\].up: the link is never up"),
    (EDGE + "links: [{a: edge, b: cloud, down: 1, up: 1, contacts: []}]", "both given"),
    (EDGE + "links: [{a: edge, b: cloud, contacts: [[0, 1], [5]]}]", r"links\[0\].contacts\[1\]: \[5\]"),
    (EDGE + "links: [{a: edge, b: cloud, contacts: [[0, 5], [3, 6]]}]", "without overlap"),
    (EDGE + "sources: [{type: A, at: edgy}]", r"sources\[0\].at: no broker or mover is named 'edgy'"),
    (EDGE + "sources: [{type: A, at: edge, rate: 5 s}]", r"sources\[0\].rate: '5 s' is not a rate"),
    (EDGE + "consumers: [{at: edge, wants: {Late: 1}}]", r"consumers\[0\].wants: .* is no list of types"),
    (EDGE + "movers: [{name: m}]", r"movers\[0\]: a mover has a track or a file"),
    (EDGE + "movers: [{name: m, track: [[0, 1, 1], [0, 2, 2]]}]", r"movers\[0\].track\[1\]: the time 0"),
    (EDGE + "movers: [{name: m, file: none.csv}]", r"movers\[0\].file: .*none.csv"),
    ("brokers: [edge]\nbrokers: [cloud]", "line 2: the key 'brokers' is given twice"),
    ("brokers: [edge", "line 1, col 15: this is not YAML"),
    ("brokers: !!python/object/apply:os.getcwd []", "line 1, col 10: this is not YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WRONG)
def test_what_makes_no_sense_is_refused_with_its_place(written, text, words):
    with pytest.raises(NetworkError, match=words) as raised:
        written(text)
    assert "network.yaml: " in str(raised.value)


def test_json_is_refused_with_its_place(written):
    with pytest.raises(NetworkError, match="line 1, col 13: this is not JSON"):
        written('{"brokers": x}', "network.json")
    with pytest.raises(NetworkError, match="'brokers' is given twice"):
        written('{"brokers": ["a"], "brokers": ["b"]}', "network.json")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("object,t,x,y\na,0,1,1\n", "no column 'object_id'"),
        ("object_id,t,x,y\na,0,1,1\na,0,2,2\n", "'a' has two positions at t = 0 s"),
        ("object_id,t,x,y\na,0,1,\na,0,2,2\n", "'y' of the file of positions has gaps"),
        ("object_id,t,x,y\na,0,1,far\n", "'y' of the file of positions holds no numbers"),
    ],
)
def test_files_of_positions_are_checked(written, tmp_path, text, words):
    (tmp_path / "cars.csv").write_text(text, encoding="utf-8")
    with pytest.raises(NetworkError, match=words):
        written("brokers: [hub]\nmovers: [file: cars.csv]\n")
