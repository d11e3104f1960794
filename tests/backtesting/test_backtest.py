"""What a query would have found: the list, the counts, and how they are shown."""

from __future__ import annotations

import json
from datetime import date
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.backtesting.truck_trips import FORMATS, MAY_1, late, trips, written
from tests.reference.strategies import arrivals, cuts, event_lists, graphs
from tests.reference.tables import event_table

import whimbrel as wb
from whimbrel.backtesting import collected
from whimbrel.backtesting.counting import TimeZone, bin_numbers, bins_over
from whimbrel.errors import WhimbrelError
from whimbrel.graph.query import Query
from whimbrel.store import Store

SVG = "{http://www.w3.org/2000/svg}"
MIXED = """
define Left detect Leave group by truck
define Late(truck, since) detect Leave then not Arrive for 1 h assign since = Leave.timestamp group by truck
define Busy(n) every 1 d detect Arrive assign n = count(Arrive)
"""


def rows(table: pa.Table) -> list[tuple]:
    return [tuple(row.values()) for row in table.to_pylist()]


# The list ---------------------------------------------------------------------------------------------------


def test_the_list_is_that_of_detect_to_the_byte(tmp_path):
    for query in (late(), wb.compile(MIXED)):
        result = wb.backtest(query, trips())
        plain = wb.detect(query, trips())
        assert plain.equals(result.detections, check_metadata=True)
        assert written(result.detections, tmp_path) == written(plain, tmp_path)


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_the_list_is_what_a_live_session_gives_in_pieces_to_the_byte(size, tmp_path):
    query, events = wb.compile(MIXED), trips()
    session = wb.Session(query)
    pieces = [session.push(events[at : at + size]) for at in range(0, len(events), size)]
    live = collected(query, [*pieces, session.close()])
    backtested = wb.backtest(query, events).detections
    assert backtested.num_rows > 50
    assert written(live, tmp_path) == written(backtested, tmp_path)


def test_an_attribute_that_comes_later_does_not_move_the_others(tmp_path):
    query = wb.compile("define Fast detect P(speed > 3)")
    events = [
        {"id": f"e{n}", "type": "P", "time": n, "lane": n if n > 15 else None, "speed": n % 7, "km": n}
        for n in range(30)
    ]
    table = pa.Table.from_pylist(events)
    session = wb.Session(query)
    pieces = [session.push(table.slice(at, 4)) for at in range(0, 30, 4)]
    live = collected(query, [*pieces, session.close()])
    assert live.column_names[5:8] == ["lane", "speed", "km"]
    assert written(live, tmp_path) == written(wb.backtest(query, table).detections, tmp_path)


def test_attributes_stand_as_the_cases_assign_them_whichever_comes_first(tmp_path):
    query = wb.compile(
        "define X(one, type, two) case 1: detect A assign one = 1, type = 'a' case 2: detect B assign two = 2"
    )
    events = pa.Table.from_pylist([{"type": kind, "time": n} for n, kind in enumerate("BAB")])
    session = wb.Session(query, lateness=0)
    pieces = [session.push(events.slice(n, 1)) for n in range(3)]
    live = collected(query, [*pieces, session.close()])
    assert live.column_names[5:8] == ["one", "type_", "two"]
    assert written(live, tmp_path) == written(wb.backtest(query, events).detections, tmp_path)


@pytest.mark.parametrize("is_restored", [False, True])
def test_a_group_of_null_keeps_the_type_of_its_key(tmp_path, is_restored):
    query = wb.compile("""
        event A(v: int, k: string)
        define X over 1 s every 1 s detect A as a group by k assign v = sum(a.v), lane = k having v = 0
    """)
    rows = [{"type": "A", "time": 0, "v": 1, "k": "x"}, {"type": "A", "time": 1, "v": 0, "k": None}]
    events = pa.Table.from_pylist(rows)
    session = wb.Session(query, time_unit="s")
    pieces = [session.push(events)]
    if is_restored:
        snapshot, session = session.snapshot(), wb.Session(query, time_unit="s")
        session.restore(snapshot)
    live = collected(query, [*pieces, session.close()])
    assert live.schema.field("lane").type == pa.string()
    assert written(live, tmp_path) == written(wb.backtest(query, events, time_unit="s").detections, tmp_path)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data(), graphs(), event_lists(), st.sampled_from([0, 2_000_000]))
def test_whatever_the_query_live_and_backtest_write_the_same_bytes(tmp_path, data, graph, events, lateness):
    query = Query(graph)
    session = wb.Session(query, lateness=lateness)
    batches = data.draw(cuts(data.draw(arrivals(events, lateness))))
    pieces = [session.push(event_table(batch)) for batch in batches if batch]
    live = collected(query, [*pieces, session.close()])
    assert written(live, tmp_path) == written(wb.backtest(query, event_table(events)).detections, tmp_path)


def test_the_events_may_be_anything_that_can_be_detected_in(tmp_path):
    store = Store.create(tmp_path / "store", coordinates="plane", cell_m=1_000)
    store.append(trips())
    table = pa.Table.from_pylist(trips())
    ids = wb.backtest(late(), trips()).detections.column("id").to_pylist()
    for events in (store, table, table.to_pandas(), table.to_reader()):
        result = wb.backtest(late(), events, against=late(65))
        assert result.detections.column("id").to_pylist() == ids
        assert result.changes["dropped"] > 0
    only = wb.backtest(late(), store, since="2024-05-02", until="2024-05-03")
    assert 0 < only.detections.num_rows < len(ids)


# Counts -----------------------------------------------------------------------------------------------------


def leaving(*times: float) -> list[dict]:
    return [
        {"id": str(n), "type": "Leave", "time": MAY_1 + t, "truck": f"T{n % 2}"} for n, t in enumerate(times)
    ]


LEFT = "define Left detect Leave group by truck"


def test_days_without_detections_count_as_none():
    result = wb.backtest(wb.compile(LEFT), leaving(10, 20, 3 * 86_400))
    days = [(date(2024, 5, 1), 2), (date(2024, 5, 2), 0), (date(2024, 5, 3), 0), (date(2024, 5, 4), 1)]
    assert rows(result.by_day()) == days


def test_days_and_hours_are_those_of_the_time_zone():
    events = leaving(22.5 * 3_600)  # half past midnight in Berlin, where it is summer
    result = wb.backtest(wb.compile(LEFT), events, timezone="Europe/Berlin")
    assert rows(result.by_day()) == [(date(2024, 5, 2), 1)]
    assert [hour for hour, count in rows(result.by_hour()) if count] == [0]
    assert [hour for hour, count in rows(wb.backtest(wb.compile(LEFT), events).by_hour()) if count] == [22]


def test_a_time_zone_that_is_none_is_refused_before_anything_runs():
    with pytest.raises(WhimbrelError, match="'Mars' is no time zone"):
        wb.backtest(wb.compile(LEFT), "no such file", timezone="Mars")


def test_keys_are_counted_with_their_first_and_last_time():
    result = wb.backtest(wb.compile(LEFT), leaving(0, 10, 20, 30, 50))
    first, second = result.by_key().to_pylist()
    assert (first["type"], first["key"], first["detections"]) == ("Left", "truck=T0", 3)
    assert (second["key"], second["detections"]) == ("truck=T1", 2)
    assert (first["first"].second, first["last"].second) == (0, 50)


def test_other_attributes_can_be_counted_by():
    query = wb.compile(MIXED, emit=["Late"])
    by_truck, by_type = (
        wb.backtest(query, trips(), by="truck"),
        wb.backtest(query, trips(), by=["type", "truck"]),
    )
    assert by_truck.by_key().column("key")[0].as_py().startswith("truck=T")
    assert by_type.by_key().column("key")[0].as_py().startswith("type=Late, truck=T")


def test_an_attribute_that_no_detection_has_is_refused():
    with pytest.raises(WhimbrelError, match="'truk' to count by; did you mean 'truck'"):
        wb.backtest(late(), trips(), by="truk")


def test_counts_of_a_comparison_add_up():
    result = wb.backtest(late(), trips(), against=late(65))
    for table in (result.by_day(), result.by_hour(), result.by_type(), result.by_key()):
        totals = {name: sum(table.column(name).to_pylist()) for name in ("old", "new", "added", "dropped")}
        assert totals == {
            "old": result.detections.num_rows,
            "new": result.new_detections.num_rows,
            "added": result.added.num_rows,
            "dropped": result.dropped.num_rows,
        }
    changes = result.changes
    assert changes["same"] + changes["changed"] + changes["dropped"] == result.detections.num_rows
    assert changes["same"] + changes["changed"] + changes["added"] == result.new_detections.num_rows
    assert result.is_changed
    assert not wb.backtest(late(), trips(), against=late()).is_changed


def test_one_query_alone_has_no_differences():
    result = wb.backtest(late(), trips())
    with pytest.raises(WhimbrelError, match="one query only"):
        _ = result.added


def test_a_text_is_no_query_yet():
    with pytest.raises(WhimbrelError, match="compile it first"):
        wb.backtest(late(), trips(), against="late.wbl")


@pytest.mark.parametrize(
    ("days", "unit", "first", "count"),
    [
        (1, "hour", "2024-05-01 00:00", 25),
        (20, "day", "2024-05-01", 21),
        (100, "week", "2024-04-29", 15),
        (700, "month", "2024-05", 24),
        (4000, "year", "2024", 12),
    ],
)
def test_bars_stand_for_as_long_a_time_as_fits(days, unit, first, count):
    table = wb.backtest(wb.compile(LEFT), leaving(0, days * 86_400)).detections
    bins = bins_over([table], TimeZone(), 31)
    assert bins is not None
    assert (bins.unit, bins.labels[0], len(bins.labels)) == (unit, first, count)
    assert (bins.counts(table)[0], bins.counts(table)[-1], bins.counts(table).sum()) == (1, 1, 2)


def test_weeks_begin_on_monday():
    moments = pa.array([0, 3 * 86_400, 4 * 86_400]).to_numpy() * 1_000_000  # Thursday, Sunday, Monday
    assert bin_numbers(moments, "week").tolist() == [0, 0, 1]


# Shown ------------------------------------------------------------------------------------------------------


def test_the_summary_says_what_stands_out():
    result = wb.backtest(wb.compile(LEFT), leaving(0, 10, 20, 3 * 86_400 + 7_200))
    assert (
        result.summary(60)
        == """\
4 detections in 4 days, 1.0 a day
  first        2024-05-01 00:00:00 UTC
  last         2024-05-04 02:00:00 UTC
  longest gap  3 d 1 h 59 min 40 s, from 2024-05-01 00:00:20 to 2024-05-04 02:00:00
  busiest day  2024-05-01: 3

by day
  2024-05-01  ███████████████████████████████████████████  3
  2024-05-02                                               0
  2024-05-03                                               0
  2024-05-04  ██████████████▍                              1

by hour of day
  00:00  ████████████████████████████████████████████████  3
  01:00                                                    0
  02:00  ████████████████                                  1

by key
  truck=T0  2
  truck=T1  2"""
    )


def test_the_summary_of_a_comparison_says_which_is_old_and_which_new():
    events = leaving(0, 10, 20)
    new = wb.compile("define Left detect Leave(truck = 'T0') group by truck")
    result = wb.backtest(wb.compile(LEFT), events, against=new).called("a.wbl", "b.wbl")
    lines = result.summary(60).splitlines()
    assert lines[:3] == [
        "old (a.wbl): 3 detections",
        "new (b.wbl): 2 detections",
        "new against old: 2 same, 0 added, 1 dropped, 0 changed",
    ]
    assert lines[-2:] == ["dropped", "  2024-05-01 00:00:10  Left  truck=T1  1"]


def test_long_lists_are_cut_and_say_so():
    events = [{"id": str(n), "type": "Leave", "time": n, "truck": f"T{n}"} for n in range(40)]
    nothing = wb.compile("define Left detect Leave(truck = 'none') group by truck")
    text = wb.backtest(wb.compile(LEFT), events, against=nothing).summary()
    assert "  and 30 more keys" in text
    assert text.endswith("  and 30 more")


def test_nothing_found_is_said_too():
    result = wb.backtest(late(), [])
    assert result.summary() == "no detections"
    assert "no detections" in result.to_svg()
    assert json.loads(result.to_json())["queries"][0]["detections"] == 0
    both = wb.backtest(late(), [], against=late(65))
    assert both.summary().endswith("new against old: 0 same, 0 added, 0 dropped, 0 changed")
    assert "no detections" in both.to_html()


def drawn(result: wb.Backtest) -> ET.Element:
    return ET.fromstring(result.to_svg())  # noqa: S314, our own


def test_the_picture_has_a_bar_for_every_day_and_hour():
    result = wb.backtest(wb.compile(LEFT), leaving(0, 10, 20, 3 * 86_400 + 7_200))
    root = drawn(result)
    told = [title.text for title in root.iter(f"{SVG}title")]
    assert told == ["2024-05-01: 3 Left", "2024-05-04: 1 Left", "00:00: 3 Left", "02:00: 1 Left"]
    heights = [float(bar.get("height")) for bar in root.iter(f"{SVG}rect") if len(bar)]
    assert heights[0] == pytest.approx(3 * heights[1], abs=0.2)


def test_in_a_picture_of_a_comparison_what_is_dropped_hangs():
    new = wb.compile("define Left detect Leave(truck = 'T0') group by truck")
    root = drawn(wb.backtest(wb.compile(LEFT), leaving(0, 10, 20), against=new))
    bars = {bar[0].text: bar for bar in root.iter(f"{SVG}rect") if len(bar)}
    same, dropped = bars["2024-05-01 00:00: 2 same"], bars["2024-05-01 00:00: 1 dropped"]
    assert float(dropped.get("y")) == pytest.approx(float(same.get("y")) + float(same.get("height")), abs=0.2)


def test_many_types_share_a_colour():
    text = "\n".join(f"define D{n} detect Leave(truck = 'T{n % 2}')" for n in range(9))
    picture = wb.backtest(wb.compile(text), leaving(0, 10)).to_svg()
    assert "3 other types (3)" in picture


class Tags(HTMLParser):
    """The tags that are open, and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, _attrs: object) -> None:
        self.names.add(tag)
        if tag not in ("meta", "rect", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, _attrs: object) -> None:
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("rect", "path"):
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_page_is_whole_needs_nothing_else_and_runs_nothing():
    events = [*leaving(0, 10), {"id": "<script>", "type": "Leave", "time": MAY_1, "truck": "<b>&'\""}]
    for against in (None, wb.compile("define Left detect Leave(truck = 'T0') group by truck")):
        page = wb.backtest(wb.compile(LEFT), events, against=against).to_html()
        tags = Tags(page)
        assert tags.open == []
        assert not tags.names & {"script", "b", "link", "img", "iframe"}
        assert "truck=<b>&'\"" in tags.texts
        assert "src=" not in page
        assert page.count("http") == 1  # the name of SVG


def test_a_notebook_shows_the_same():
    result = wb.backtest(late(), trips())
    assert result._repr_html_() in result.to_html()
    assert repr(result) == "<backtest: 19 detections; print(result.summary()) tells more>"
    both = wb.backtest(late(), trips(), against=late(65))
    assert repr(both).startswith("<backtest: 0 same, 0 added, ")


def test_the_report_holds_every_count():
    result = wb.backtest(late(), trips(), against=late(65))
    report = json.loads(result.to_json())
    assert report["changes"] == result.changes
    assert [query["role"] for query in report["queries"]] == ["old", "new"]
    assert report["queries"][0]["events"]["received"] == len(trips())
    assert report["queries"][0]["detections"] == result.detections.num_rows
    assert [day["old"] for day in report["by_day"]] == result.by_day().column("old").to_pylist()
    assert len(report["by_key"]) == result.by_key().num_rows


def test_all_formats_hold_what_is_different(tmp_path):
    result = wb.backtest(late(), trips(), against=late(65))
    texts = written(result.comparison, tmp_path)
    assert set(texts) == set(FORMATS)
    lines = [json.loads(line) for line in texts["jsonl"].splitlines()]
    kinds = [line["attributes"]["change"] for line in lines]
    assert {kind: kinds.count(kind) for kind in result.changes} == result.changes
    assert texts["csv"].splitlines()[0].endswith(b'"truck","change","before","events"')
