"""Deliveries: what is told to whoever follows an object, as a table.

A delivery is a detection in one interest: it has the columns of the detection, and with them the query, the
focal object, the interest, when it is told, whether it is live, what changes by it, and an id of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import fold, hashes, hexadecimal, HASH
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.report import ATTRIBUTES_KEY, DELIVERIES_KEY, KNOWN, UTC, owned_attributes
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array, UInt64Array

REMOVED, KEPT, ADDED = 0, 1, 2
CHANGES = ("removed", "kept", "added")
"""What a delivery changes in what its consumer sees of the object, in the order in which it is told."""

COLUMNS = (
    "query",
    "focal",
    "interest",
    "interest_start",
    "told",
    "live",
    "change",
    "delivery",
    "interest_area",
)
"""The columns that a delivery has besides those of the detection."""


@dataclass(frozen=True, slots=True)
class Told:
    """Detections that are told of interests: rows of a table, and for each the interest and the change."""

    table: pa.Table
    key: UInt64Array
    """What tells the detections apart."""
    interest: Int64Array
    """Places among the interests of the step."""
    known: Int64Array
    """By which watermark each is known."""
    change: Int64Array
    time: Int64Array
    """When it is told."""

    def __len__(self) -> int:
        return len(self.interest)

    def take(self, rows: Int64Array) -> Told:
        """Give some of them."""
        return Told(
            self.table.take(pa.array(rows)), self.key[rows], self.interest[rows], self.known[rows],
            self.change[rows], self.time[rows],
        )  # fmt: skip

    def save(self, blocks: Blocks, name: str) -> None:
        """Write them."""
        blocks.put_arrays(name, {each: getattr(self, each) for each in _ARRAYS})
        blocks.put_batches(f"{name}/table", self.table.combine_chunks().to_batches())

    @classmethod
    def load(cls, blocks: Blocks, name: str) -> Told:
        """Read what `save` wrote."""
        batches = blocks.batches(f"{name}/table")
        table = pa.Table.from_batches(batches) if batches else pa.table({})
        return cls(table, **blocks.arrays(name))

    @staticmethod
    def added(
        table: pa.Table, key: UInt64Array, interest: Int64Array, known: Int64Array, of: Interests
    ) -> Told:
        """Tell detections for the first time in an interest: at its start, or when they are known."""
        change = np.full(len(interest), ADDED)
        return Told(table, key, interest, known, change, np.maximum(of.start[interest], known))


_ARRAYS = ("key", "interest", "known", "change", "time")


def concat_detections(tables: Sequence[pa.Table]) -> pa.Table:
    """Put tables of detections one after the other, each with what it says of the attributes of types."""
    if len(tables) == 1:
        return tables[0]
    owned: dict[str, list[str]] = {}
    for table in tables:
        for kind, names in owned_attributes(table).items():
            owned[kind] = list(dict.fromkeys([*owned.get(kind, ()), *names]))
    joined = pa.concat_tables(
        [table.replace_schema_metadata(None) for table in tables], promote_options="permissive"
    )
    about = {key: value for table in tables for key, value in (table.schema.metadata or {}).items()}
    return joined.replace_schema_metadata({**about, ATTRIBUTES_KEY: json.dumps(owned).encode()})


def delivery_table(told: Told, of: Interests, query: str, keys: Sequence[object]) -> pa.Table:
    """Write deliveries as a table; `keys` are those of the objects by their numbers."""
    used, place = np.unique(told.interest, return_inverse=True)
    interests = of.take(used)
    focal = pa.array([keys[obj] for obj in interests.obj.tolist()])
    table = told.table
    columns = {
        "query": pa.repeat(pa.scalar(query), len(told)),
        "focal": focal.take(pa.array(place)),
        "interest": pa.array(interests.number[place]),
        "interest_start": pa.array(interests.start[place]).cast(UTC),
        "told": pa.array(told.time).cast(UTC),
        "live": pa.array(told.known >= interests.start[place]),
        "change": pa.DictionaryArray.from_arrays(pa.array(told.change.astype(np.int8)), list(CHANGES)).cast(
            pa.string()
        ),
        "delivery": _ids(told, query, focal, interests, place),
        "interest_area": interests.areas.texts().take(pa.array(place)),
        KNOWN: pa.array(told.known).cast(UTC),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), DELIVERIES_KEY: b"1"})


def _ids(told: Told, query: str, focal: pa.Array, interests: Interests, place: Int64Array) -> pa.Array:
    """Make an id of the query, the object, the interest, the change and the detection's own id."""
    starts = pa.array(interests.start).cast(pa.string())
    texts = pc.binary_join_element_wise(query, focal.cast(pa.string()), starts, "\x1f")
    by_change = np.stack(hashes(pc.binary_join_element_wise(*_crossed(texts), "\x1f")))
    own = by_change[:, place * len(CHANGES) + told.change]
    detection = np.stack(hashes(told.table.column("id")))
    pairs = np.stack([own, detection], axis=2).reshape(2, -1)
    folded = fold(np.arange(0, 2 * len(told) + 1, 2), pairs[0], pairs[1])
    return hexadecimal(*(folded[key].values.view(np.uint64) for key in HASH))


def _crossed(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Pair every text with every change."""
    rows = np.repeat(np.arange(len(texts)), len(CHANGES))
    return texts.take(pa.array(rows)), pa.array(list(CHANGES) * len(texts))
