"""Instructions that Numba does not know, in a module of its own: it is loaded when something is compiled."""

from __future__ import annotations

from typing import Any

import numba
from llvmlite import ir
from numba.extending import intrinsic


@intrinsic
def prefetch(_typing: Any, array: Any, place: Any) -> Any:  # noqa: ARG001 - Numba gives types by position
    """Ask for the memory at a place of an array, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, is_data = number(0), number(3), number(1)
        builder.call(ask, [builder.bitcast(builder.gep(data, [arguments[1]]), byte), to_read, keep, is_data])
        return context.get_dummy_value()

    return numba.void(array, numba.int64), generate
