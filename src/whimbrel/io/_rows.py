"""Rows as Python objects, for the few places where JSON has to be read value by value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from whimbrel.io import _kinds
from whimbrel.io._pieces import ReadPlan
from whimbrel.model.schema import Type

Row = dict[str, Any]


def kinds_of_rows(rows: Iterable[Row], plan: ReadPlan) -> dict[str, Type | None]:
    """Return what each wanted column holds over all rows."""
    found: dict[str, Type | None] = {}
    for row in rows:
        _kinds.join_all(found, {name: _kind(value) for name, value in row.items() if plan.wants(name)})
    return found


def _kind(value: Any) -> Type | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return Type.BOOL
    if isinstance(value, int):
        return Type.INT if -(2**63) <= value < 2**63 else Type.STRING
    return Type.FLOAT if isinstance(value, float) else Type.STRING


def batch_of_rows(rows: Sequence[Row], kinds: Mapping[str, Type | None]) -> pa.RecordBatch:
    """Build a batch with the columns of `kinds`; objects and lists become their JSON text."""
    arrays = [_column([row.get(name) for row in rows], kind) for name, kind in kinds.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(kinds))


def _column(values: list[Any], kind: Type | None) -> pa.Array:
    try:
        return pa.array(values, _kinds.ARROW_TYPES[kind])
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Some values are of a narrower kind than the column.
        return pa.array([_value(value, kind) for value in values], _kinds.ARROW_TYPES[kind])


def _value(value: Any, kind: Type | None) -> Any:
    if value is None or kind in (Type.BOOL, Type.INT, Type.TIMESTAMP):
        return value
    if kind is Type.FLOAT:
        return float(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def row_from(text: bytes, what: str = "line") -> Row | str:
    """Parse one JSON object; return the reason as text if there is none. `what` names it there."""
    try:
        value = json.loads(text.decode())
        # Half of a surrogate pair can be written in JSON, but is no character and has no UTF-8 form.
        if b"\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError:
        return f"the {what} is not UTF-8 text"
    except UnicodeEncodeError:
        return f"the {what} holds half a character (a lone surrogate)"
    except (ValueError, RecursionError) as error:
        return f"the {what} is not JSON: {error}"
    return value if isinstance(value, dict) else f"the {what} is not a JSON object"
