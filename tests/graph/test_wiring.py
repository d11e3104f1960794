"""Operators that are given other streams to read."""

from __future__ import annotations

import whimbrel as wb
from whimbrel.graph.operators.step_pattern import StepPattern


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
