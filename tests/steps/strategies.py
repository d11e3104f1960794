"""Random patterns of steps, events, batches and orders of arrival, and what to expect of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from tests.reference import random_steps
from tests.reference.random_steps import FULL, Features
from tests.reference.steps import Match, TooLarge, find
from tests.steps.engine import Taken

Json = dict[str, Any]
MOST_RUNS = 500
UNSKIPPED = replace(FULL, skips=0.0)


@st.composite
def patterns(draw: st.DrawFn, features: Features = FULL) -> Json:
    return random_steps.pattern(draw(st.randoms(use_true_random=False)), features)


@st.composite
def event_lists(draw: st.DrawFn) -> list[Json]:
    return random_steps.events(draw(st.randoms(use_true_random=False)))


@st.composite
def cuts(draw: st.DrawFn, events: Sequence[Json]) -> list[list[Json]]:
    """Cut events into batches at random places; some may be empty."""
    places = sorted(draw(st.lists(st.integers(0, len(events)), max_size=4)))
    return [list(events[first:last]) for first, last in pairwise([0, *places, len(events)])]


@st.composite
def arrivals(draw: st.DrawFn, events: Sequence[Json], lateness: int) -> list[Json]:
    """Hold events back, at most by the lateness. Those of one time stay in order: it is their order."""
    times = sorted({event["time"] for event in events})
    delays = {time: draw(st.integers(0, 4)) * lateness // 4 for time in times}
    return sorted(events, key=lambda event: (event["time"] + delays[event["time"]], event["time"]))


def found(pattern: Json, events: Sequence[Json]) -> tuple[list[Match], list[Match]]:
    """Matches and timeouts of the reference; an example with too many runs is passed over."""
    try:
        answer = find(pattern, events, limit=MOST_RUNS)
    except TooLarge:
        reject()
    return answer.matches, answer.timeouts


def expected(pattern: Json, events: Sequence[Json]) -> tuple[list[Taken], list[tuple[int, Taken]]]:
    """The same, in the form of `Found`: each once."""
    matches, timeouts = found(pattern, events)
    return sorted({match.taken for match in matches}), sorted({(late.end, late.taken) for late in timeouts})
