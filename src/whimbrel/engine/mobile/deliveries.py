"""Deliveries: what is told to whoever follows an object, as a table.

A delivery is a detection in one interest: it has the columns of the detection, and with them the query, the
focal object, the interest, when it is told, whether it is live, what changes by it, and an id of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import HASH, fold, hashes, hexadecimal
from whimbrel.engine.mobile.borrowed import named_by, split_borrowed
from whimbrel.engine.mobile.interests import AROUND_OBJECT, Interests
from whimbrel.engine.report import ATTRIBUTES_KEY, UTC, order_of_detections, owned_attributes
from whimbrel.engine.row_store import different, offsets_of
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array, UInt64Array
from whimbrel.model.deliveries import CHANGES, DELIVERIES_KEY
from whimbrel.model.time import END_OF_TIME

REMOVED, KEPT, ADDED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Told:
    """Detections that are told of interests: rows of a table, and for each the interest and the change.

    One detection may be told of many interests; it stands in the table once.
    """

    table: pa.Table
    row: Int64Array
    """Which row of the table each is."""
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
        return len(self.row)

    def take(self, rows: Int64Array) -> Told:
        """Give some of them."""
        return Told(self.table, **{each: getattr(self, each)[rows] for each in _ARRAYS})

    def compact(self) -> Told:
        """Leave the rows of the table out that none of them is."""
        used, row = different(self.row)
        if len(used) == len(self.table):
            return self
        return replace(self, table=self.table.take(pa.array(used)), row=row)

    @staticmethod
    def concat(parts: Sequence[Told]) -> Told:
        """Put several lots one after the other."""
        parts = [part.compact() for part in parts]
        if len(parts) == 1:
            return parts[0]
        begins = offsets_of(np.array([len(part.table) for part in parts]))
        arrays = {each: np.concatenate([getattr(part, each) for part in parts]) for each in _ARRAYS}
        arrays["row"] += np.repeat(begins[:-1], [len(part) for part in parts])
        return Told(concat_detections([part.table for part in parts]), **arrays)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write them."""
        compact = self.compact()
        blocks.put_arrays(name, {each: getattr(compact, each) for each in _ARRAYS})
        blocks.put_batches(f"{name}/table", compact.table.combine_chunks().to_batches())

    @classmethod
    def load(cls, blocks: Blocks, name: str) -> Told:
        """Read what `save` wrote."""
        return cls(pa.Table.from_batches(blocks.batches(f"{name}/table")), **blocks.arrays(name))

    @staticmethod
    def added(
        table: pa.Table,
        row: Int64Array,
        key: UInt64Array,
        interest: Int64Array,
        known: Int64Array,
        of: Interests,
    ) -> Told:
        """Tell detections for the first time in an interest: at its start, or when they are known."""
        change = np.full(len(interest), ADDED)
        return Told(table, row, key, interest, known, change, np.maximum(of.start[interest], known))


_ARRAYS = ("row", "key", "interest", "known", "change", "time")


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
    return joined.replace_schema_metadata({ATTRIBUTES_KEY: json.dumps(owned).encode()})


def delivery_table(
    told: Sequence[Told],
    of: Interests,
    query: str,
    keys: Sequence[object],
    *,
    says_predicted: bool = False,
    says_reused: bool = False,
) -> pa.Table:
    """Write deliveries as a table, in the order in which they are told; `keys` are those of the objects.

    At one time, what is gone of an interest comes before what stays, and that before what is new; then what
    was known first, and then the order of detections. So all of an interest comes before all of the next one.
    """
    joined = Told.concat(told)
    table, reused = split_borrowed(joined.table)
    joined = replace(joined, table=table)
    used, place = different(joined.interest)
    interests = of.take(used)
    focal = pa.array([keys[obj] for obj in interests.obj.tolist()])
    rank = _ranks_of(focal.cast(pa.string()))
    keys_of_order = (
        order_of_detections(joined.table)[joined.row],
        joined.known,
        joined.change,
        interests.number[place],
        rank[place],
        joined.time,
    )
    order = np.lexsort(keys_of_order)
    joined, place = joined.take(order), place[order]
    at = pa.array(place.astype(np.int32))
    table = joined.table.take(pa.array(joined.row))
    columns = {
        "query": pa.repeat(pa.scalar(query), len(joined)),
        "focal": focal.take(at),
        "interest": pa.array(interests.number[place]),
        "interest_start": pa.array(interests.start[place]).cast(UTC),
        "told": pa.array(joined.time).cast(UTC),
        "live": pa.array(joined.known >= interests.start[place]),
        "change": pa.array(CHANGES).take(pa.array(joined.change)),
        "delivery": _ids(joined, query, focal, interests, place),
        "interest_area": pa.DictionaryArray.from_arrays(at, interests.areas.wkb()),
    }
    if says_predicted:
        columns["predicted"] = pa.array(interests.candidate[place] != AROUND_OBJECT)
    if says_reused:
        columns |= {name: column.take(pa.array(joined.row)) for name, column in reused.items()}
        columns["by"] = named_by(columns["by"], keys)
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table.replace_schema_metadata({**(table.schema.metadata or {}), DELIVERIES_KEY: b"1"})


INTERESTS = pa.schema(
    [("query", pa.string()), ("interest", pa.int64()), ("start", UTC), ("end", UTC), ("told", UTC),
     ("interest_area", pa.binary())]
)  # fmt: skip
"""The columns of a table of interests, besides `focal`: `end` is null while nobody knows it, and `told` is
from when on what is known is told."""


def interest_table(interests: Interests, query: str, keys: Sequence[object]) -> pa.Table:
    """Write interests as a table; `keys` are those of the objects by their numbers."""
    ends = pa.array(interests.end, mask=interests.end >= END_OF_TIME)
    columns = [
        pa.repeat(pa.scalar(query), len(interests)),
        pa.array(interests.number),
        pa.array(interests.start).cast(UTC),
        ends.cast(UTC),
        pa.array(interests.start - interests.lifetime).cast(UTC),
        interests.areas.wkb(),
    ]
    focal = pa.array([keys[obj] for obj in interests.obj.tolist()])
    return pa.table(columns, schema=INTERESTS).append_column("focal", focal)


def _ranks_of(texts: pa.Array) -> Int64Array:
    """Rank texts in their order; equal ones are one."""
    ranks: Int64Array = pc.rank(texts, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _ids(told: Told, query: str, focal: pa.Array, interests: Interests, place: Int64Array) -> pa.Array:
    """Make an id of the query, the object, the interest, the change and the detection's own id."""
    starts = pa.array(interests.start).cast(pa.string())
    texts = pc.binary_join_element_wise(query, focal.cast(pa.string()), starts, "\x1f")
    by_change = np.stack(hashes(pc.binary_join_element_wise(*_crossed(texts), "\x1f")))
    own = by_change[:, place * len(CHANGES) + told.change]
    detection = np.stack(hashes(told.table.column("id")))[:, told.row]
    pairs = np.stack([own, detection], axis=2).reshape(2, -1)
    folded = fold(np.arange(0, 2 * len(told) + 1, 2), pairs[0], pairs[1])
    return hexadecimal(*(folded[key].values.view(np.uint64) for key in HASH))


def _crossed(texts: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Pair every text with every change."""
    rows = np.repeat(np.arange(len(texts)), len(CHANGES))
    return texts.take(pa.array(rows)), pa.array(list(CHANGES) * len(texts))
