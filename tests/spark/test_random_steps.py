"""Random patterns of steps on Spark find what the reference finds; a query has many, to save jobs."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from tests.reference import random_steps
from tests.reference.random_steps import FULL
from tests.reference.steps import SkipMissed, TooLarge, find
from tests.shared.backends import collected, streamed
from tests.steps.engine import rows, taken

import whimbrel as wb
from whimbrel.graph.query import Query
from whimbrel.lang.steps import Pattern
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.compile import compile_tree
from whimbrel.testing import table

JOBS = int(os.environ.get("WHIMBREL_STEP_JOBS", "5"))
"""How many jobs to run on each backend."""
TOGETHER = 200
"""How many patterns a job runs."""
KEY = {"key": ["car"]}


def drawn(seed: int) -> tuple[list[dict], list[dict], list[set]]:
    """Patterns, events, and what each pattern matches."""
    rng = Random(seed)
    events = random_steps.events(rng, most=12)
    patterns, answers = [], []
    while len(patterns) < TOGETHER:
        pattern = random_steps.pattern(rng, FULL) | KEY
        try:
            matches = find(pattern, events).matches
        except (TooLarge, SkipMissed):
            continue
        patterns.append(pattern)
        answers.append({match.taken for match in matches})
    return patterns, events, answers


def as_one(patterns: list[dict]) -> Query:
    """All patterns as definitions of one query."""
    trees = [Pattern.from_dict(pattern).tree(f"P{number}") for number, pattern in enumerate(patterns)]
    statements = tuple(statement for tree in trees for statement in tree.statements)
    return compile_tree(t.WblFile(statements), forever=True, emit="all")


def timed(events: list[dict]) -> pa.Table:
    """Events with their times in microseconds."""
    return table(
        [
            {name: value for name, value in row.items() if name != "time"}
            | dict.fromkeys(("start", "end"), 1000 * row["time"])
            for row in rows(events)
        ]
    )


def by_pattern(found: list[dict], size: int) -> list[set]:
    answers: list[set] = [set() for _ in range(size)]
    for row in found:
        answers[int(row["type"][1:])].add(taken({**row, "type": "Match"}))
    return answers


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(JOBS))
def test_random_patterns_on_static_frames(spark, seed):
    patterns, events, answers = drawn(seed)
    frame = spark.createDataFrame(timed(events))
    found = wb.detect(as_one(patterns), frame, partitions=2).toArrow().to_pylist()
    assert by_pattern(found, len(patterns)) == answers


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1000 + JOBS))
def test_random_patterns_on_streams(spark, seed, tmp_path: Path):
    patterns, events, answers = drawn(seed)
    stream = streamed(timed(events), tmp_path / "events")
    found = wb.detect(as_one(patterns), stream, lateness="0 s", shards=2)
    table_ = collected(found, tmp_path / "checkpoint")
    assert by_pattern(table_.to_pylist(), len(patterns)) == answers
