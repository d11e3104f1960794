"""Write Arrow columns as text, whole columns at a time: ISO times, WKT, JSON values and objects."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.model.columns import INSTANT, decoded


def iso(column: pa.Array) -> pa.Array:
    """Write instants as ISO 8601 with microseconds and Z."""
    return pc.replace_substring(column.cast(INSTANT).cast(pa.string()), " ", "T", max_replacements=1)


def wkt(column: pa.Array) -> pa.Array:
    """Write WKB as WKT, each number in the shortest form that reads back the same."""
    from whimbrel.space.geometry import wkt_column

    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return pa.array(wkt_column(values).tolist(), pa.string())


def json_values(column: pa.Array) -> pa.Array:
    """Write each value as JSON; nulls as null."""
    column = decoded(column)
    kind = column.type
    if pa.types.is_list(kind):
        return pc.fill_null(_json_lists(column), "null")
    if pa.types.is_timestamp(kind):
        texts = _quoted(iso(column))
    elif pa.types.is_string(kind):
        texts = _json_texts(column)
    elif pa.types.is_float64(kind):
        texts = _json_floats(column)
    else:
        texts = column.cast(pa.string())
    return pc.fill_null(texts, "null")


def _quoted(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _json_texts(texts: pa.Array) -> pa.Array:
    # Few texts need escaping; for those that do, Python's json knows how.
    special = pc.fill_null(pc.match_substring_regex(texts, r'[\x00-\x1f"\\\x7f]'), False)
    quoted = _quoted(texts)
    if not pc.any(special).as_py():
        return quoted
    escaped = [json.dumps(text, ensure_ascii=False) for text in texts.filter(special).to_pylist()]
    return pc.replace_with_mask(quoted, special, pa.array(escaped, pa.string()))


def _json_floats(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    whole = pc.invert(pc.match_substring_regex(texts, "[.en]"))
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    if not pc.any(pc.invert(pc.is_finite(column))).as_py():
        return texts
    # JSON has no word for infinity, but every reader takes a number too large for a float as it.
    texts = pc.if_else(pc.equal(column, float("inf")), "1e999", texts)
    texts = pc.if_else(pc.equal(column, float("-inf")), "-1e999", texts)
    return pc.if_else(pc.is_nan(column), pa.scalar(None, pa.string()), texts)


def _json_lists(column: pa.Array) -> pa.Array:
    items = json_values(column.flatten())
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), items), ", ")
    texts = pc.binary_join_element_wise("[", joined, "]", "")
    return pc.if_else(column.is_null(), pa.scalar(None, pa.string()), texts)


def json_objects(members: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Join columns of JSON texts into one JSON object a row."""
    if not members:
        return pa.array(["{}"] * rows, pa.string())
    parts: list[pa.Array | str] = []
    for number, (name, texts) in enumerate(members.items()):
        opening = "{" if number == 0 else ", "
        parts += [f"{opening}{json.dumps(name, ensure_ascii=False)}: ", texts]
    return pc.binary_join_element_wise(*parts, "}", "")


def lines(texts: pa.Array) -> bytes:
    """Return the texts as lines of UTF-8."""
    return "".join(f"{text}\n" for text in texts.to_pylist()).encode()
