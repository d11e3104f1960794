"""How many bytes objects of the engine hold, whatever they are made of."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.graph.custom import CustomOperator

_ARROW = pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray
_OURS = "whimbrel.engine."


def nbytes_of(held: Iterable[Any], seen: set[int]) -> int:
    """Add up what some objects hold, each thing once.

    Views count as the array that they are a part of, since that stays as long as they do. What is asked and
    what runs it (queries, functions, classes) is no state, and is left out.

    Parameters
    ----------
    seen
        The ids of what is counted elsewhere; what is counted here is added.
    """
    total = 0
    waiting = deque(held)
    while waiting:
        each = waiting.popleft()
        if isinstance(each, np.ndarray):
            while isinstance(each.base, np.ndarray):
                each = each.base
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            total += each.nbytes
        elif isinstance(each, _ARROW):
            total += _arrow_bytes(each, seen)
        else:
            total += _own_bytes(each)
            waiting.extend(_parts(each))
    return total


def _arrow_bytes(held: Any, seen: set[int]) -> int:
    """Add up the buffers of Arrow data, which may be shared, by where they lie."""
    arrays = [held] if isinstance(held, pa.Array) else _arrays(held)
    total = 0
    for buffer in (buffer for array in arrays for buffer in array.buffers()):
        if buffer is not None and buffer.address not in seen:
            seen.add(buffer.address)
            total += buffer.size
    return total


def _arrays(held: Any) -> Iterator[pa.Array]:
    columns = [held] if isinstance(held, pa.ChunkedArray) else held.columns
    for column in columns:
        yield from column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _own_bytes(held: Any) -> int:
    plain = isinstance(held, str | bytes | int | float | list | tuple | dict | set | frozenset | deque)
    return sys.getsizeof(held) if plain else 0


def _parts(held: Any) -> Iterator[Any]:
    """Give what an object is made of."""
    if isinstance(held, Mapping):
        yield from held.keys()
        yield from held.values()
    elif isinstance(held, list | tuple | set | frozenset | deque):
        yield from held
    elif type(held).__module__.startswith(_OURS) or isinstance(held, CustomOperator):
        yield from getattr(held, "__dict__", {}).values()
        for kind in type(held).__mro__:
            names = kind.__dict__.get("__slots__", ())
            for name in (names,) if isinstance(names, str) else names:
                yield getattr(held, name, None)
