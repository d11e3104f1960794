"""Flink itself, the reference and the engine find the same for random patterns.

The recording in tests/steps does without Flink; this asks it anew, about other patterns on every run if
WHIMBREL_FLINK_SEED says so. `make flink` asks about 5,000.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from random import Random

import pytest
from tests.reference.random_steps import for_flink
from tests.reference.steps import TooLarge, find
from tests.steps.engine import flinks, taken_of, whole

TOOLS = Path(__file__).parents[2] / "tools" / "flink"
sys.path.append(str(TOOLS))
oracle = pytest.importorskip("oracle", reason="tools/flink is not here")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(oracle.missing() is not None, reason=str(oracle.missing())),
]

SEED = int(os.environ.get("WHIMBREL_FLINK_SEED", "1000000"))
PATTERNS = int(os.environ.get("WHIMBREL_FLINK_PATTERNS", "300"))
PIECES = 10
MOST_MATCHES = 200
FAULTS = ("no answer in", "NullPointerException")
"""How Flink fails at patterns that it accepts."""


@pytest.fixture(scope="module")
def flink():
    with oracle.Oracle() as running:
        yield running


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("piece", range(PIECES))
def test_flink_the_reference_and_the_engine_find_the_same(flink, piece):
    found = compared = 0
    for seed in range(SEED + piece, SEED + PATTERNS, PIECES):
        pattern, events = for_flink(Random(seed))
        answer = flink.answer(pattern, events)
        if answer["error"] is not None:
            assert any(fault in answer["error"] for fault in FAULTS), (seed, answer["error"])
            continue
        if len(answer["matches"]) <= MOST_MATCHES:
            compare(seed, pattern, events, answer)
            compared += 1
            found += bool(answer["matches"])
    assert compared >= 0.95 * PATTERNS / PIECES
    assert found >= 0.25 * compared


def compare(seed, pattern, events, answer):
    matches, timeouts = flinks(pattern, events, answer)
    engine = whole(pattern, events)
    assert (engine.matches, engine.timeouts) == (matches, timeouts), f"seed {seed}: {pattern}"
    try:
        reference = find(pattern, events)
    except TooLarge:
        return
    listed = [taken_of(match["steps"]) for match in answer["matches"]]
    assert [match.taken for match in reference.matches] == listed, f"seed {seed}: {pattern}"
