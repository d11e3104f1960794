"""Contacts that were recorded, as links."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whimbrel.errors import NetworkError
from whimbrel.plan.files import read_network
from whimbrel.plan.traces import contacts_from, read_contacts

ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(0, 30), st.integers(0, 9))
)


@given(ROWS)
def test_a_pair_is_in_contact_whenever_any_row_says_so(rows):
    found = contacts_from((a, b, start, start + length) for a, b, start, length in rows)
    for one, other in ("ab", "ac", "bc"):
        assert not ((one, other) in found and (other, one) in found)
        listed = found.get((one, other)) or found.get((other, one))
        for moment in range(40):
            expected = any({a, b} == {one, other} and s <= moment < s + d for a, b, s, d in rows)
            contact = listed.after(moment) if listed else None
            assert (contact is not None and contact[0] <= moment) == expected


def test_a_network_file_names_a_trace(tmp_path):
    (tmp_path / "met.csv").write_text("a,b,start,end\n1,2,0,60\n2,1,60,90\n2,3,1000,1010\n", encoding="utf-8")
    file = tmp_path / "people.yaml"
    file.write_text(
        "brokers: [{name: 1, capacity: 2}, base]\n"
        "links: [{between: [1, base]}]\n"
        "traces: [{file: met.csv, bandwidth: 1 Mbit/s, cost: 3}]\n",
        encoding="utf-8",
    )
    network = read_network(file)
    assert list(network.number) == ["1", "base", "2", "3"]
    assert [(link.a, link.b, link.bandwidth_b_s, link.cost) for link in network.links[1:]] == [
        ("1", "2", 125_000, 3),
        ("2", "3", 125_000, 3),
    ]
    assert network.links[1].contacts.times == ((0, 90),)


def test_timestamps_are_seconds_since_the_first(tmp_path):
    file = tmp_path / "met.csv"
    file.write_text("a,b,start,end\nx,y,2012-03-02 08:00:10,2012-03-02 08:01:00\n"
                    "x,z,2012-03-02 08:00:00,2012-03-02 08:00:05\n", encoding="utf-8")  # fmt: skip
    found = read_contacts(file)
    assert found["x", "y"].times == ((10, 60),)
    assert found["x", "z"].times == ((0, 5),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b,from,end\n1,2,0,1\n", r"traces\[0\].file: the file of contacts has no column 'start'"),
        ("a,b,start,end\n1,2,0,soon\n", "column 'end' of the file of contacts holds no numbers"),
        ("a,b,start,end\n1,2,9,3\n", "from 9 s to 3 s ends before it begins"),
        ("a,b,start,end\n1,2,-9,3\n", "begins before 0"),
        ("a,b,start,end\n1,2,,3\n", "'start' of the file of contacts has gaps"),
        ("a,b,start,end\n1,2,0,2012-03-02 08:00:10\n", "one holds timestamps and the other does not"),
    ],
)
def test_traces_that_make_no_sense_are_refused(tmp_path, text, words):
    (tmp_path / "met.csv").write_text(text, encoding="utf-8")
    (tmp_path / "people.yaml").write_text("traces: [{file: met.csv}]\n", encoding="utf-8")
    with pytest.raises(NetworkError, match=words):
        read_network(tmp_path / "people.yaml")


def test_a_trace_that_is_not_there_is_named(tmp_path):
    (tmp_path / "people.yaml").write_text("brokers: [a]\ntraces: [{file: met.csv}]\n", encoding="utf-8")
    with pytest.raises(NetworkError, match=r"traces\[0\].file: .*met.csv"):
        read_network(tmp_path / "people.yaml")
