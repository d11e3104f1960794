"""The engine finds what Flink CEP found: recorded answers to random patterns, so that no Flink is needed.

tools/flink/record.py makes the recording; `make flink` compares with Flink itself.
"""

from __future__ import annotations

import pytest
from tests.steps.engine import flinks, whole
from tests.steps.recorded import recorded

PIECES = 10
"""The recording is tested in so many pieces; the quick tests take a part of the first."""
QUICK = 60


def differing(records):
    """The seeds of the patterns for which the engine finds something else."""
    seeds = []
    for each in records:
        found = whole(each["pattern"], each["events"])
        if (found.matches, found.timeouts) != flinks(each["pattern"], each["events"], each):
            seeds.append(each["seed"])
    return seeds


def test_the_recording_is_strong_evidence():
    records = recorded()
    assert len(records) >= 1_500
    assert sum(bool(each["matches"]) for each in records) >= 0.6 * len(records)
    assert sum(bool(each["timeouts"]) for each in records) >= 0.2 * len(records)


@pytest.mark.slow
def test_a_part_of_the_recording_is_found():
    assert differing(recorded()[:QUICK]) == []


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(PIECES))
def test_all_of_the_recording_is_found(piece):
    assert differing(recorded()[QUICK:][piece::PIECES]) == []
