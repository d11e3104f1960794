"""What `calling` needs of Numba, in a module of its own: it is loaded when something is compiled."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from whimbrel.engine.kernels.shapes import related

_SIGNATURE = types.float64(
    types.int64, types.int64, types.CPointer(types.float64), types.int64,
    types.int64, types.float64, types.float64, types.int64, types.float64, types.float64,
)  # fmt: skip


def _related_at(asked, on_sphere, data, size, one, x1, y1, two, x2, y2):
    return related(asked, on_sphere == 1, numba.carray(data, (size,)), one, x1, y1, two, x2, y2)


@lru_cache(maxsize=1)
def _compiled() -> Any:
    return numba.cfunc(_SIGNATURE, cache=True, error_model="numpy")(_related_at)


def address_of_related() -> int:
    """Compile `related`, or load it, and tell where its code stands in this process."""
    return int(_compiled().address)


@intrinsic
def call_related(context, address, asked, on_sphere, data, size, one, x1, y1, two, x2, y2):  # noqa: ARG001
    """Call `related` at an address; `data` is the address of the shapes."""
    whole, real = types.int64, types.float64
    given = (whole, whole, whole, whole, whole, whole, real, real, whole, real, real)

    def make(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        i64, double = ir.IntType(64), ir.DoubleType()
        numbers = double.as_pointer()
        kinds = [i64, i64, numbers, i64, i64, double, double, i64, double, double]
        where = builder.inttoptr(arguments[0], ir.FunctionType(double, kinds).as_pointer())
        shapes = builder.inttoptr(arguments[3], numbers)
        return builder.call(where, [*arguments[1:3], shapes, *arguments[4:]])

    return real(*given), make
