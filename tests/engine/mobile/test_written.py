"""Mobile queries written in the language mean what the reference says, and are what is made in Python."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.engine.mobile.comparing import as_told, compiled, in_batches, is_taken, sorted_told
from tests.reference import mobile as reference
from tests.reference.mobile import deliveries
from tests.reference.mobile.strategies import mobile_queries, worlds_of_events

from whimbrel.lang.wbl import compile_text
from whimbrel.lang.wbl.format import format_text

PLAIN = """
define Pair detect A as a then B as b within 4 s
define Count over 3 s every 1 s detect A assign n = count(A)
define Alone detect A as a then not B for 2 s
"""
PLAIN_QUERY = compile_text(PLAIN, emit="all")
REPORTED = st.lists(st.sampled_from(PLAIN_QUERY.graph.outputs), min_size=1, unique=True)
CHANGES = st.fixed_dictionaries(
    {
        "of": st.sampled_from(["events", "situations"]),
        "motion": st.sampled_from(["everywhere", "within the interest"]),
        "deliver": st.sampled_from(["all", "new", "changes"]),
        "order": st.sampled_from(["arrival", "spatial", "spatio-temporal"]),
        "name": st.sampled_from(["Q", "around", "report"]),
    }
)


def written(query: reference.MobileQuery, reported: list[str]) -> str:
    """A mobile query of the reference as text; lengths of time are whole microseconds."""
    clauses = [
        f"around {query.focal.type} as {query.name}",
        _interest(query.interest) + (" of situations" if query.of == "situations" else ""),
        f"report {', '.join(reported)}",
        f"lifetime {query.lifetime} us",
        *_refresh(query.refresh),
        f"order {'by arrival' if query.order == 'arrival' else query.order}",
        f"deliver {query.deliver}",
    ]
    clauses += [] if query.snap_m is None else [f"completeness strong on a grid of {query.snap_m} m"]
    clauses += ["excluding itself"] if query.excluding_itself else []
    clauses += [] if query.silent is None else [f"until silent for {query.silent} us"]
    clauses += ["motion within the interest"] if query.motion == "within the interest" else []
    return " ".join(clauses)


def _interest(shape: reference.Shape) -> str:
    match shape:
        case reference.Circle(radius):
            return f"within {radius} m"
        case reference.Box(width, height):
            return f"box {width} m, {height} m"
        case reference.Outline(corners):
            return f"outline 'POLYGON (({', '.join(f'{x} {y}' for x, y in (*corners, corners[0]))}))'"
        case reference.Ahead(distance, degrees):
            return f"ahead {distance} m, {degrees} degrees"
    raise TypeError(shape)


def _refresh(condition: reference.Refresh) -> list[str]:
    match condition:
        case reference.Every(time):
            return [f"refresh every {time} us"]
        case reference.Moved(distance):
            return [f"refresh when moved {distance} m"]
        case reference.WhenQualityFalls(quality, over):
            shares = f"quality precision {quality.precision}, recall {quality.recall}"
            return [f"refresh when quality falls over {over} us", shares]
    return ["refresh always"]


def with_outputs(query: reference.MobileQuery, reported: list[str]) -> reference.MobileQuery:
    """The same query of definitions that are written above."""
    return replace(query, graph=compile_text(PLAIN, emit=reported).graph)


@given(mobile_queries(), REPORTED, CHANGES)
def test_what_is_written_is_what_is_made(query, reported, changes):
    assume(is_taken(query))
    query = with_outputs(replace(query, **changes), reported)
    (made,) = compiled(query).mobile
    text = f"{PLAIN}{written(query, reported)}"
    for each in (text, format_text(text)):
        (mobile,) = compile_text(each).mobile
        assert mobile.detect.graph == made.detect.graph
        assert mobile.with_detect(made.detect) == made


@given(st.sampled_from([reference.Circle(1.5), reference.Box(2.0, 2.0)]), REPORTED)
def test_a_grid_is_written_as_strong_completeness(shape, reported):
    query = reference.MobileQuery(
        PLAIN_QUERY.graph, reference.Focal("F"), shape, completeness="strong", snap_m=2.5
    )
    (made,) = compiled(with_outputs(query, reported)).mobile
    (mobile,) = compile_text(f"{PLAIN}{written(query, reported)}").mobile
    assert mobile.with_detect(made.detect) == made


@pytest.mark.slow
@given(
    mobile_queries(),
    REPORTED,
    worlds_of_events().map(lambda events: [each for each in events if each.polygon is None]),
)
def test_what_is_written_tells_what_the_reference_tells(query, reported, events):
    assume(is_taken(query))
    query = with_outputs(query, reported)
    answer = sorted_told([as_told(each) for each in deliveries(query, events, limit=5_000)])
    assert sorted_told(in_batches(compile_text(f"{PLAIN}{written(query, reported)}"), [events])) == answer
