"""What is new or changes for an object whose interests were told of in different sessions.

Each of these knows some of the places, and tells everything of the interests there, and which they are. Who
has all of an object, wherever it was, compares them here, as one session does by itself.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.identity import hashes
from whimbrel.engine.mobile.areas import NO_RINGS, NOWHERE, AreaSet
from whimbrel.engine.mobile.cohorts import NOBODY
from whimbrel.engine.mobile.deliveries import ADDED, Told, delivery_table
from whimbrel.engine.mobile.interests import AROUND_OBJECT, Interests
from whimbrel.engine.mobile.telling import telling
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.report import ATTRIBUTES_KEY
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Int64Array, decoded, from_arrow
from whimbrel.graph.mobile import MobileQuery
from whimbrel.model.deliveries import DELIVERY_COLUMNS
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME


class Retelling:
    """A mobile query, once more: from all that its interests have to what is new, or changes."""

    def __init__(self, query: MobileQuery) -> None:
        self.query = query
        self.keys = FocalKeys(query.focal)
        self.telling = telling(query.policy)
        self.current = _interests(np.zeros((5, 0), np.int64))
        """The interests that have not ended."""
        self._shown = pa.array([], pa.binary())
        """How their areas are shown."""

    def step(self, told: pa.Table, interests: pa.Table, watermark: int) -> pa.Table | None:
        """Take in what was told up to a watermark, and interests that began or ended; give what is told."""
        of, shown = self._with_new(interests)
        had = [self._had(told, of)] if told.num_rows else []
        found, shown_of = self.telling.tell(had, of, watermark)
        stays = np.flatnonzero(of.end > watermark)
        self.current, self._shown = of.take(stays), shown.take(pa.array(stays))
        found = [each for each in found if len(each)]
        if not found:
            return None
        table = delivery_table(found, shown_of, self.query.name, self.keys.values())
        return self._with_areas(table, of, shown)

    def _with_new(self, rows: pa.Table) -> tuple[Interests, pa.Array]:
        """Put interests that begin behind those that are there, and say of all when they end."""
        obj = self._objects(rows)
        number, start, since = (_numbers(rows.column(name)) for name in ("interest", "start", "told"))
        end = _numbers(rows.column("end").cast(pa.int64()).fill_null(END_OF_TIME))
        had = self.current
        codes = _codes(np.append(had.obj, obj), np.append(had.number, number))
        ends = np.append(had.end, end)
        different, first, place = np.unique(codes, return_index=True, return_inverse=True)
        earliest = np.full(len(different), END_OF_TIME)
        np.minimum.at(earliest, place, ends)
        pairs = (
            (had.obj, obj), (had.number, number), (had.start, start), (had.lifetime, start - since),
        )  # fmt: skip
        arrays = [np.append(one, other)[first] for one, other in pairs]
        shown = pa.concat_arrays([self._shown, _whole(rows.column("interest_area"))])
        return _interests(np.stack([*arrays, earliest])), shown.take(pa.array(first))

    def _had(self, told: pa.Table, of: Interests) -> Told:
        """Read what interests have; how old history is exactly does not matter any more."""
        interest, begun = (_numbers(told.column(name)) for name in ("interest", "interest_start"))
        time = _numbers(told.column("told"))
        live = _whole(told.column("live")).to_numpy(zero_copy_only=False)
        place = np.searchsorted(_codes(of.obj, of.number), _codes(self._objects(told), interest))
        table = told.select([name for name in told.column_names if name not in DELIVERY_COLUMNS])
        return Told(
            table.replace_schema_metadata({ATTRIBUTES_KEY: b"{}"}),
            np.arange(told.num_rows),
            hashes(_whole(told.column("id")))[0],
            place,
            np.where(live, time, begun - 1),
            np.full(told.num_rows, ADDED),
            time,
        )

    def _objects(self, rows: pa.Table) -> Int64Array:
        return self.keys.codes_of(from_arrow(_whole(rows.column("focal"))))

    def _with_areas(self, table: pa.Table, of: Interests, shown: pa.Array) -> pa.Table:
        """Show the areas, which are known here only as they are shown."""
        codes = _codes(self._objects(table), _numbers(table.column("interest")))
        place = np.searchsorted(_codes(of.obj, of.number), codes)
        at = table.column_names.index("interest_area")
        return table.set_column(at, "interest_area", shown.take(pa.array(place)))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        self.keys.save(blocks, f"{name}/keys")
        self.telling.save(blocks, f"{name}/telling")
        self.current.save(blocks, f"{name}/current")
        areas = pa.RecordBatch.from_arrays([self._shown], ["area"])
        blocks.put_batches(f"{name}/areas", [areas])

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.keys.load(blocks, f"{name}/keys")
        self.telling.load(blocks, f"{name}/telling")
        self.current = Interests.load(blocks, f"{name}/current")
        (areas,) = blocks.batches(f"{name}/areas")
        self._shown = areas.column("area")


def _interests(rows: Int64Array) -> Interests:
    """Make interests of object, number, start, lifetime and end, in the order of object and number."""
    count = rows.shape[1]
    nowhere = AreaSet(
        Coordinates.PLANE,
        np.full(count, NOWHERE, np.int8),
        np.zeros((count, 4)),
        np.full(count, NO_RINGS, np.int64),
        np.zeros(0),
    )
    obj, number, start, lifetime, end = rows
    member, candidate = np.full(count, NOBODY, np.int64), np.full(count, AROUND_OBJECT, np.int64)
    return Interests(obj, number, start, end, lifetime, member, candidate, nowhere)


def _codes(obj: Int64Array, number: Int64Array) -> Int64Array:
    """Give each interest one number by its object and its own number."""
    codes: Int64Array = (obj << 32) | number
    return codes


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return decoded(array) if pa.types.is_dictionary(array.type) else array


def _numbers(column: pa.ChunkedArray) -> Int64Array:
    numbers: Int64Array = _whole(pc.cast(column, pa.int64())).to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
