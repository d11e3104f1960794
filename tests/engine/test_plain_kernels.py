"""Kernels give the same whether they are compiled or run as plain Python, and few events need no compiler."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whimbrel as wb
from whimbrel.engine.kernels import machine
from whimbrel.engine.kernels.contents import hash_bytes, mix_in_numbers, sizes_of_ids, write_ids
from whimbrel.engine.kernels.hull import hulls
from whimbrel.engine.kernels.ordering import hash_lists, hash_texts
from whimbrel.engine.programs import Programs
from whimbrel.graph.expressions import Attribute, Binary, Call, Literal
from whimbrel.model.schema import Type
from whimbrel.space.kernels.jit import ALLOWANCE, ALLOWED, Allowance, kernel

PLAIN = float("inf")
WHOLE = st.integers(-(2**63), 2**63 - 1)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)

QUERY = """
define Pairs(n, m)
  detect A as a then B as b within 20 s where b.v - a.v > a.w * 2 or b.v * 3 < a.v assign n = b.v, m = a.w
define Lone detect A as a then not B as b for 3 s where b.w > a.w
define Kept(n) detect last A as a then B as b within 20 s where b.v != a.v assign n = b.v consuming a
define Runs(s, t) detect A{1,3} as a within 10 s assign s = sum(a.v), t = sum(a.w)
define Walked(n) detect A as a followed by any B(v > a.v)+ as b within 20 s assign n = count(b)
"""

rows = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from("AB"),
            "time": st.integers(0, 30),
            "v": st.integers(-(2**62), 2**62),
            "w": NUMBER,
            "x": st.integers(0, 3).map(float),
            "y": st.integers(0, 3).map(float),
        }
    ),
    max_size=12,
)


def found(events: list[dict[str, object]], allowed: float) -> list[dict[str, object]]:
    with ALLOWED.set_to(allowed):
        return wb.detect(wb.compile(QUERY, emit="all"), events).to_pylist()


@pytest.mark.slow
@given(rows)
def test_patterns_give_the_same_to_the_last_bit(compiled_kernels, events):
    assert found(events, PLAIN) == found(events, -1)


@pytest.mark.parametrize("allowed", [0, 40, 200, 1000])
def test_machine_code_goes_on_where_plain_kernels_have_used_their_allowance_up(compiled_kernels, allowed):
    events = [
        {"type": "AAB"[n % 3], "time": n % 17, "v": n * 7 % 5, "w": n / 3, "x": 1.0 * n, "y": 2.0}
        for n in range(24)
    ]
    assert found(events, allowed) == found(events, PLAIN)


@given(st.lists(st.text(max_size=6), max_size=6))
def test_texts_hash_to_the_same(texts):
    data = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    content = np.frombuffer(b"".join(data), np.uint8)
    each = []
    for run in (hash_texts.plainly, hash_texts):
        high, low = np.zeros(len(texts), np.uint64), np.zeros(len(texts), np.uint64)
        run(offsets, content, high, low)
        folded = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
        fold = hash_lists.plainly if run is hash_texts.plainly else hash_lists
        fold(folded[0].copy(), folded[1].copy(), np.array([0, len(texts)]), high, low, *folded)
        each.append([high.tolist(), low.tolist(), *(part.tolist() for part in folded)])
    assert each[0] == each[1]


@given(st.lists(st.tuples(st.floats(-180, 180), st.floats(-90, 90)), max_size=9), st.booleans())
def test_points_have_the_same_hull(points, lonlat):
    x, y = (np.array([point[axis] for point in points], np.float64) for axis in (0, 1))
    offsets = np.array([0, len(points) // 2, len(points)])
    plain, fast = (run(offsets, x, y, lonlat) for run in (hulls.plainly, hulls))
    assert [part.tolist() for part in plain] == [part.tolist() for part in fast]


def test_what_libraries_may_round_in_their_own_ways_is_compiled():
    a, b = Attribute("a", "v"), Attribute("b", "v")

    def is_exact(condition):
        from whimbrel.engine.programs import Operand

        programs = Programs(lambda slot, _: Operand(Type.FLOAT, slot), {"a": 0, "b": 1}, None)
        programs.add(condition)
        return programs.is_exact

    total = Binary("+", a, b)
    assert is_exact(Binary(">", total, Literal(1.0, Type.FLOAT)))
    assert not is_exact(Binary(">", Call("exp", (total,)), Literal(1.0, Type.FLOAT)))
    assert machine.SPHERE in machine.INEXACT


def test_an_allowance_is_used_up_by_what_it_covers():
    allowance = Allowance(10)
    assert [allowance.covers(work) for work in (4, 7, 6, 1)] == [True, False, True, False]


def test_the_environment_chooses(monkeypatch):
    for said, left in (("plain", PLAIN), ("compiled", -1.0), ("", ALLOWANCE)):
        monkeypatch.setenv("WHIMBREL_KERNELS", said)
        assert Allowance.from_environment().left == left


@kernel
def doubled(n):
    return n + n


@kernel
def fourfold(n):
    return doubled(doubled(n))


def test_a_plain_kernel_calls_plain_kernels():
    assert fourfold.plain(3) == 12
    assert not doubled.is_loaded
    assert fourfold.__doc__ is None
    assert fourfold.name.endswith("test_plain_kernels.fourfold")


@pytest.mark.slow
def test_few_events_are_detected_without_loading_a_compiler():
    program = """
import sys
import whimbrel as wb

query = wb.compile("define Late detect Leave as a then not Arrive for 1 h group by source")
found = wb.detect(query, [{"type": "Leave", "time": 0, "source": "t", "x": 1.0, "y": 2.0}])
print(found.num_rows, "numba" in sys.modules)
"""
    environment = {name: value for name, value in os.environ.items() if name != "WHIMBREL_KERNELS"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "False"]


@given(st.lists(WHOLE, max_size=8), st.lists(NUMBER, max_size=8), st.lists(st.text(max_size=80), max_size=8))
def test_what_events_say_hashes_to_the_same(whole, floats, texts):
    data = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.cumsum([0, *map(len, data)]).astype(np.int32)
    seed, nothing = np.uint64(42), np.zeros(0, np.bool_)
    each = []
    for numbers_into, bytes_into in (
        (mix_in_numbers.plainly, hash_bytes.plainly),
        (mix_in_numbers, hash_bytes),
    ):
        found = [np.zeros(len(values), np.uint64) for values in (whole, floats, texts)]
        numbers_into(np.array(whole, np.int64), False, nothing, seed, found[0])
        numbers_into(np.array(floats, np.float64).view(np.int64), True, nothing, seed, found[1])
        bytes_into(offsets, np.frombuffer(b"".join(data) or b"\0", np.uint8), seed, found[2])
        each.append([part.tolist() for part in found])
    assert each[0] == each[1]


@given(st.lists(st.tuples(WHOLE, WHOLE, WHOLE, st.integers(0, 2**40)), max_size=5))
def test_ids_are_written_the_same(events):
    start, end, content, number = (np.array([e[n] for e in events], np.int64) for n in range(4))
    codes, bounds, text = np.zeros(len(events), np.int64), np.array([0, 3]), np.frombuffer(b"bus", np.uint8)
    each = []
    for sizes, write in ((sizes_of_ids.plainly, write_ids.plainly), (sizes_of_ids, write_ids)):
        offsets = np.zeros(len(events) + 1, np.int64)
        sizes(codes, bounds, codes, bounds, start, end, number, offsets)
        out = np.zeros(int(offsets[-1]), np.uint8)
        write(codes, bounds, text, codes, bounds, text, start, end, content, number, offsets, out)
        each.append([offsets.tolist(), out.tobytes()])
    assert each[0] == each[1]
