"""What did not happen: told once, when its time has passed, and never before.

Engines in use get these wrong: they wait for the next event, ask the wall clock, tell it early or twice, or
tell it live and not on replay.
"""

from __future__ import annotations

import time

import pytest
from tests.shared.backends import Found, expect, named

import whimbrel as wb
from whimbrel.testing import table

FOR = "define Lost detect A then not B for 5 s"
WITHIN = "define Lost detect A then not B within 5 s"
SECOND = 1_000_000


class Live:
    """A session that is told events in one line, and gives what it detects."""

    def __init__(self, text: str = FOR, lateness: str | int = 0) -> None:
        self.session = wb.Session(wb.compile(text), lateness=lateness)

    def push(self, data: str) -> Found:
        return Found(self.session.push(table(named(data))).to_pylist())

    def advance(self, microseconds: int) -> Found:
        return Found(self.session.advance(microseconds).to_pylist())

    def close(self) -> Found:
        return Found(self.session.close().to_pylist())


@pytest.fixture(params=[FOR, WITHIN], ids=["for", "within"])
def live(request) -> Live:
    """Both ways of waiting mean the same for a point event."""
    return Live(request.param)


LOST = expect("Lost@1..6s: a1")


def test_it_is_told_when_time_has_passed_though_the_source_is_silent(live):
    live.push("A@1s#a1")
    assert live.advance(6 * SECOND) == LOST


def test_it_is_not_told_early(live):
    assert live.push("A@1s#a1") == []
    assert live.advance(6 * SECOND - 1) == []
    assert live.advance(6 * SECOND) == LOST


def test_it_is_told_once(live):
    live.push("A@1s#a1")
    assert live.advance(6 * SECOND) == LOST
    assert live.advance(6 * SECOND) == []
    assert live.advance(60 * SECOND) == []
    assert live.push("A@61s#x") == []
    assert live.close() == expect("Lost@61..66s: x")


def test_it_does_not_wait_for_the_next_event_of_its_own_kind(live):
    live.push("A@1s#a1")
    assert live.push("C@7s") == LOST


def test_an_event_of_another_kind_does_not_delay_it(live):
    live.push("A@1s#a1 C@2s C@5s")
    assert live.advance(6 * SECOND) == LOST


def test_a_heartbeat_that_goes_back_changes_nothing(live):
    live.push("A@1s#a1")
    live.advance(5 * SECOND)
    assert live.advance(2 * SECOND) == []
    assert live.advance(6 * SECOND) == LOST


def test_the_awaited_event_at_the_very_deadline_blocks(live):
    live.push("A@1s#a1 B@6s")
    assert live.close() == []


def test_the_awaited_event_just_after_the_deadline_does_not(live):
    assert live.push("A@1s#a1 B@6000001us") == LOST


def test_the_deadline_event_may_come_in_the_push_that_passes_the_deadline(live):
    live.push("A@1s#a1")
    assert live.push("B@6s C@20s") == []
    assert live.close() == []


def test_the_wall_clock_does_not_count(live, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 4e9)
    monkeypatch.setattr(time, "monotonic", lambda: 4e9)
    live.push("A@1s#a1")
    assert live.push("B@3s") == []
    assert live.close() == []


def test_history_long_gone_is_told_as_it_would_have_been_live():
    at = wb.Session(wb.compile(FOR))
    at.push([{"type": "A", "id": "a1", "time": "1969-07-20T20:17:40Z"}])
    assert at.advance("1969-07-20T20:17:44Z").num_rows == 0
    assert at.advance("1969-07-20T20:17:45Z").num_rows == 1


@pytest.mark.parametrize("data", ["A@1s#a1", "A@1s#a1 B@6s", "A@1s#a1 B@7s", "A@1s#a1 A@3s#a2 B@7s C@9s"])
@pytest.mark.parametrize("text", [FOR, WITHIN], ids=["for", "within"])
def test_replay_tells_what_was_told_live(text, data):
    replayed = Found(wb.detect(wb.compile(text), table(named(data))).to_pylist())
    live = Live(text)
    told = [row for event in data.split() for row in live.push(event)]
    for second in range(20):
        told += live.advance(second * SECOND)
    told += live.close()
    assert told == replayed


def test_events_out_of_order_within_the_lateness_still_block():
    live = Live(lateness="3 s")
    live.push("A@1s#a1")
    assert live.push("C@8s") == []  # the watermark is just before 5 s
    assert live.push("B@6s") == []
    assert live.close() == []


def test_it_waits_for_the_lateness_before_it_tells():
    live = Live(lateness="3 s")
    live.push("A@1s#a1")
    assert live.push("C@9s") == []  # just before 6 s: b at 6 s may still come
    assert live.push("C@9000001us") == LOST


def test_a_beginning_out_of_order_is_told_too():
    live = Live(lateness="3 s")
    live.push("C@4s")
    live.push("A@1s#a1")
    assert live.advance(6 * SECOND) == LOST


def test_an_awaited_event_that_comes_too_late_does_not_undo_it(live):
    live.push("A@1s#a1")
    assert live.advance(6 * SECOND) == LOST
    assert live.push("B@4s#b1") == []
    assert live.close() == []
    assert live.session.counts.late == 1
    assert live.session.take_late().column("id").to_pylist() == ["b1"]


def test_two_pending_absences_are_told_each_at_its_time(live):
    live.push("A@1s#a1 A@3s#a2")
    assert live.advance(6 * SECOND) == LOST
    assert live.advance(8 * SECOND - 1) == []
    assert live.advance(8 * SECOND) == expect("Lost@3..8s: a2")


def test_two_absences_with_one_deadline_are_both_told(live):
    live.push("A@1s#a1 A@1s#a2")
    assert live.advance(6 * SECOND) == expect("Lost@1..6s: a1 ; Lost@1..6s: a2")


def test_one_awaited_event_ends_all_that_wait_for_it(live):
    live.push("A@1s#a1 A@3s#a2 B@4s A@5s#a3")
    assert live.close() == expect("Lost@5..10s: a3")


def test_one_long_step_of_time_tells_all_of_them(live):
    live.push("A@1s#a1 A@3s#a2")
    assert live.advance(1000 * SECOND) == expect("Lost@1..6s: a1 ; Lost@3..8s: a2")


def test_closing_tells_what_is_still_open(live):
    live.push("A@1s#a1")
    assert live.close() == LOST


def test_closing_twice_tells_nothing_again(live):
    live.push("A@1s#a1")
    assert live.close() == LOST
    assert live.close() == []


def test_a_deadline_is_in_order_with_other_detections():
    live = Live(f"{FOR} define Seen detect C")
    live.push("A@1s#a1")
    found = live.push("C@6s C@7s C@9s")
    assert [(row["type"], row["end"] // SECOND) for row in found] == [("Lost", 6), ("Seen", 6), ("Seen", 7)]


def test_an_absence_on_an_absence_is_told_when_both_have_passed():
    live = Live(f"{FOR} define Gone detect Lost then not C for 5 s", lateness=0)
    live.push("A@1s#a1")
    assert live.advance(6 * SECOND) == []
    assert live.advance(11 * SECOND - 1) == []
    assert live.advance(11 * SECOND) == expect("Gone@1..11s: a1")


def test_the_absence_of_a_window_result_waits_for_the_window():
    text = """
        define Many every 10 s detect B assign n = count(B)
        define Few detect A then not Many(n > 1) for 5 s
    """
    live = Live(text)
    live.push("A@1s#a1 B@2s B@3s")
    # The window is over at 10 s only, and then it turns out that the many came in time.
    assert live.advance(6 * SECOND) == []
    assert live.advance(20 * SECOND) == []


def test_the_absence_of_a_window_result_is_told_once_the_window_is_over():
    text = """
        define Many every 10 s detect B assign n = count(B)
        define Few detect A then not Many(n > 1) for 5 s
    """
    live = Live(text)
    live.push("A@1s#a1 B@2s")
    assert live.advance(6 * SECOND) == []
    assert live.advance(10 * SECOND - 1) == expect("Few@1..6s: a1")


def test_thousands_of_pending_absences_are_told_in_order():
    live = Live("define Lost detect A as a then not B as b for 5 s where a.k = b.k")
    rows = [{"type": "A", "id": f"a{n}", "time": n / 1000, "k": n} for n in range(5000)]
    answered = [{"type": "B", "id": f"b{n}", "time": n / 1000 + 5, "k": n} for n in range(0, 5000, 2)]
    told = live.session.push(rows).to_pylist() + live.session.push(answered).to_pylist()
    told += live.session.close().to_pylist()
    assert [row["events"] for row in told] == [[f"a{n}"] for n in range(1, 5000, 2)]


def test_more_absences_than_there_was_room_for_are_all_found():
    query = wb.compile("define Lone(n) detect A as a then not B for 3 s assign n = a.n group by k")
    events = [{"type": "A", "time": n // 7, "k": str(n), "n": n, "id": str(n)} for n in range(1000)]
    found = wb.detect(query, events).column("n").to_pylist()
    assert sorted(found) == list(range(1000))
