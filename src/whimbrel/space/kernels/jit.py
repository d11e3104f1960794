"""One way to compile a kernel, so that all of them are cached and release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` on its first call and keep the machine code on disk."""
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` into every kernel that calls it: for small ones with many arguments."""
    compiled: Callable[P, R] = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(
        function
    )
    return compiled
