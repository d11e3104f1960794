"""Kernels that other kernels call are compiled once, as a part of them."""

from __future__ import annotations

import numba
import numpy as np

from whimbrel.space.kernels.compiler import PartLibrary
from whimbrel.space.kernels.jit import Kernel, inlined, kernel


@inlined
def twice(number):
    return 2 * number


@kernel
def total(values, most):
    found = 0
    for value in values:
        found += twice(min(value, most))
    return found


@kernel
def totals(values, most):
    return total(values, 0) + total(values, 3) + total(values, most)


VALUES = np.arange(5)


def test_both_ways_and_called_by_another_or_not_it_gives_the_same():
    assert totals(VALUES, 2) == totals.plainly(VALUES, 2) == 0 + 18 + 14
    assert total(VALUES, 9) == total.plainly(VALUES, 9) == 20


def test_a_kernel_that_is_called_with_constants_is_compiled_once_and_not_to_machine_code():
    totals._part.compile((numba.typeof(VALUES), numba.int64))  # parts are never taken from the disk
    for part in (totals._part, total._part, twice._part):
        (compiled,) = part.overloads.values()
        assert isinstance(compiled.library, PartLibrary)


def test_machine_code_that_calls_for_a_module_that_is_gone_is_made_anew(monkeypatch):
    assert total(VALUES, 2) == 14  # from here on it is on disk

    def load(*_):
        raise ModuleNotFoundError("No module named 'whimbrel.engine.kernels.former'")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.load", load)
    again = Kernel(total.function)
    assert again(VALUES, 2) == 14
