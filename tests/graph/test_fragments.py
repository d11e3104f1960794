"""Queries are cut between definitions, and what cannot be cut is refused."""

from __future__ import annotations

import pytest

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import format_expr
from whimbrel.graph.fragments import condition_at_source, cut
from whimbrel.graph.operators import Derive
from whimbrel.lang.wbl import compile_text

CHAIN = """
define Fast(v) detect Pos(speed > 20) as p assign v = p.speed
define Pair(n) detect Fast as a then Fast as b within 10 s assign n = a.v + b.v
define Jam detect Pair as p then Stop as s within 20 s
"""


def test_each_definition_is_a_piece_that_reads_the_others():
    fast, pair, jam = cut(compile_text(CHAIN))
    assert (fast.reads, fast.takes, fast.gives, fast.reports) == (("Pos",), (), ("Fast",), ())
    assert (pair.reads, pair.takes, pair.gives, pair.reports) == ((), ("Fast",), ("Pair",), ())
    assert (jam.reads, jam.takes, jam.gives, jam.reports) == (("Stop",), ("Pair",), ("Jam",), ("Jam",))
    assert pair.query.graph["Fast"] == Derive("Fast", "Fast", ())


def test_definitions_that_stay_together_are_one_piece():
    first, second = cut(compile_text(CHAIN), [("Fast", "Pair")])
    assert (first.name, first.gives, second.takes) == ("Pair", ("Pair",), ("Pair",))


def test_pieces_never_wait_for_each_other():
    with pytest.raises(QueryError, match="wait for each other"):
        cut(compile_text(CHAIN), [("Fast", "Jam")])


@pytest.mark.parametrize(
    ("tasks", "message"),
    [([("Slow",)], "Slow"), ([("Fast",), ("Fast",)], "in two tasks")],
)
def test_tasks_name_each_definition_once(tasks, message):
    with pytest.raises(QueryError, match=message):
        cut(compile_text(CHAIN), tasks)


def test_what_a_piece_can_use_of_a_source_is_the_union_of_its_filters():
    (piece,) = cut(
        compile_text("define Both detect Pos(speed > 20) as a then Pos(speed < 5) as b within 1 min")
    )
    found, condition = condition_at_source(piece, "Pos")
    assert found
    assert format_expr(condition) == "speed > 20 or speed < 5"


def test_a_source_that_is_read_whole_is_not_filtered():
    (piece,) = cut(compile_text("define Both detect Pos(speed > 20) as a then Pos as b within 1 min"))
    assert condition_at_source(piece, "Pos") == (False, None)
