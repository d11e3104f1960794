"""Operators that are given other streams to read."""

from __future__ import annotations

import whimbrel as wb
from whimbrel.graph.custom import restriction, window
from whimbrel.graph.operators.step_pattern import StepPattern
from whimbrel.graph.policies import SelectionPolicy


def test_a_sequence_reads_other_streams_everywhere():
    text = (
        "define X detect (A as a next B(v > last(a.v))+ as b until C){2} followed by (A as d or D as e) "
        "within 1 h among A, B, C, D"
    )
    (sequence,) = (op for op in wb.compile(text).graph.operators if isinstance(op, StepPattern))
    names = {name: f"other {name}" for name in sequence.inputs}
    changed = sequence.reading(names)
    assert changed.inputs == tuple(f"other {name}" for name in sequence.inputs)
    assert changed.reading({new: old for old, new in names.items()}) == sequence


class Each(wb.CustomOperator):
    """Gives every event."""

    def process(self, events):
        return [{} for _ in events]


def test_the_windows_of_an_operator_in_python_follow_its_inputs():
    # The condition is always true, so that a rewrite lets the operator read the events themselves.
    policy = SelectionPolicy((window("p"),), restriction("1 s", input="p"))
    query = wb.custom_query("X", Each, {"p": ("A", "1 = 1")}, policy)
    assert wb.detect(query, [{"type": "A", "time": 0}]).num_rows == 1
