"""One way to compile a kernel, so that all of them are cached and release the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
from llvmlite import ir
from numba.extending import intrinsic

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


@intrinsic
def prefetch(_typing: Any, array: Any, place: Any) -> Any:  # noqa: ARG001 - Numba gives types by position
    """Ask for the memory at a place of an array (as if it had one dimension), without waiting for it.

    The place may lie beyond the array: nothing is read.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, is_data = number(0), number(3), number(1)
        builder.call(ask, [builder.bitcast(builder.gep(data, [arguments[1]]), byte), to_read, keep, is_data])
        return context.get_dummy_value()

    return numba.void(array, numba.int64), generate
