"""Networks from GraphML files."""

from __future__ import annotations

import math

import pytest

from whimbrel.errors import NetworkError
from whimbrel.plan.files import read_network
from whimbrel.plan.graphml import read_graphml
from whimbrel.plan.routes import Routes

TINY = """<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" attr.type="string" for="node" id="d0"/>
  <key attr.name="Longitude" attr.type="double" for="node" id="d1"/>
  <key attr.name="Latitude" attr.type="double" for="node" id="d2"/>
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d3"/>
  <graph edgedefault="undirected">
    <node id="0"><data key="d0">North</data><data key="d1">0</data><data key="d2">1</data></node>
    <node id="1"><data key="d0">South</data><data key="d1">0</data><data key="d2">0</data></node>
    <node id="2"><data key="d0">South</data></node>
    <edge source="0" target="1"><data key="d3">8000000</data></edge>
    <edge source="0" target="1"/>
    <edge source="1" target="2"/>
    <edge source="1" target="1"/>
  </graph>
</graphml>
"""


def test_coordinates_give_latencies_and_speeds_give_bandwidths(tmp_path):
    (tmp_path / "tiny.graphml").write_text(TINY, encoding="utf-8")
    network = read_network(tmp_path / "tiny.graphml")
    assert [broker.name for broker in network.brokers] == ["North", "South", "South #2"]
    one, other, third = network.links
    degree_m = 6_371_008.8 * math.pi / 180
    assert one.latency_s == other.latency_s == pytest.approx(degree_m / (299_792_458 * 2 / 3))
    assert (one.bandwidth_b_s, other.bandwidth_b_s) == (1e6, math.inf)
    assert (third.a, third.b, third.latency_s) == ("South", "South #2", 1e-3)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "bad.graphml").write_text("<graphml", encoding="utf-8")
    with pytest.raises(NetworkError, match=r"bad.graphml: this is not GraphML"):
        read_graphml(tmp_path / "bad.graphml")


@pytest.mark.needs_data
def test_the_topology_zoo_is_read(data_dir):
    files = sorted((data_dir / "topologies_zoo" / "graphml").glob("*.graphml"))
    networks = {file.stem: read_graphml(file) for file in files[:40]}
    abilene = networks["Abilene"]
    assert (len(abilene.brokers), len(abilene.links)) == (11, 14)
    ways = Routes(abilene).from_broker("New York")
    # 4,100 km by fibre at 200,000 km/s take 20 ms; the links go no straight way.
    assert 0.02 < ways.latency_s[abilene.number["Los Angeles"]] < 0.03
    assert any(link.bandwidth_b_s < math.inf for each in networks.values() for link in each.links)
