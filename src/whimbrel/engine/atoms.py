"""The atomic events, and which of them each deployed query asked for.

Everything that reads a single event (its type and the conditions on it) is tested here, once for all
queries: equal tests are shared, and queries only see the rows that passed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from whimbrel.engine.evaluate import true_rows
from whimbrel.engine.identity import NUMBER
from whimbrel.engine.intake import Released
from whimbrel.engine.store import Store
from whimbrel.engine.streams import RowsFrame, Stream, Surroundings
from whimbrel.engine.values import Column, Int64Array, decoded, from_arrow
from whimbrel.graph.expressions import Attribute, Expr
from whimbrel.model.schema import Type

Atom = tuple[str, Expr | None]
"""A type, and a condition on one event of it."""

_NONE = np.zeros(0, np.int64)


class Atoms:
    """The stream of all atomic events, and its selections."""

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.stream = around.atoms
        self._selections: dict[Atom, Stream] = {}
        self._uses: dict[Atom, int] = {}

    def select(self, atom: Atom) -> Stream:
        """Give the stream of the events that pass a test; equal tests share one."""
        self._uses[atom] = self._uses.get(atom, 0) + 1
        if atom not in self._selections:
            selection = Stream(atom[0], self.stream.store, event_type=atom[0])
            selection.watermark = self.stream.watermark
            self._selections[atom] = selection
        return self._selections[atom]

    def release(self, atom: Atom) -> None:
        """Say that one user of a test is gone."""
        self._uses[atom] -= 1
        if not self._uses[atom]:
            del self._uses[atom], self._selections[atom]

    def feed(self, released: Released, columns: Iterable[str] | None) -> None:
        """Append released events and find out which tests they pass."""
        rows = self.stream.store.append(released.start, released.end, _columns(released, columns), None)
        by_type = self._by_type(released.batch, rows)
        for atom, selection in self._selections.items():
            of_type = by_type.get(atom[0], _NONE)
            selection.new = of_type if atom[1] is None or not len(of_type) else self._passing(atom[1], of_type)

    def advance(self, watermark: int) -> None:
        """Let time pass for all selections."""
        self.stream.watermark = watermark
        for selection in self._selections.values():
            selection.watermark = watermark

    def clear(self) -> None:
        """Say that nothing is new."""
        for selection in self._selections.values():
            selection.new = _NONE

    def _passing(self, condition: Expr, rows: Int64Array) -> Int64Array:
        found: Int64Array = rows[true_rows(condition, RowsFrame(self.around, self.stream, rows))]
        return found

    def _by_type(self, batch: pa.RecordBatch, rows: Int64Array) -> dict[str, Int64Array]:
        types = batch.column("type")
        if not pa.types.is_dictionary(types.type):
            types = types.dictionary_encode()
        codes = types.indices.to_numpy(zero_copy_only=False)
        names = decoded(types.dictionary).to_pylist()
        wanted = {atom[0] for atom in self._selections}
        return {name: rows[codes == code] for code, name in enumerate(names) if name in wanted}


def _columns(released: Released, wanted: Iterable[str] | None) -> dict[Expr, Column]:
    """Read the columns of a batch that any query needs."""
    batch = released.batch
    always = ("id", "type", "source", "x", "y")
    names = batch.schema.names if wanted is None else [n for n in batch.schema.names if n in always or n in wanted]
    columns: dict[Expr, Column] = {}
    for name in names:
        if name not in ("start", "end", "geometry"):
            columns[Attribute(None, name)] = from_arrow(batch.column(name))
    if released.number is not None:
        columns[NUMBER] = Column(Type.INT, released.number)
    if "geometry" in batch.schema.names:
        columns |= _polygons(batch.column("geometry"))
    return columns


def _polygons(geometry: pa.Array) -> dict[Expr, Column]:
    """Keep the bounding boxes of polygons as columns, and the polygons themselves as text (hex WKB)."""
    import shapely

    values = geometry.to_numpy(zero_copy_only=False)
    shapes = shapely.from_wkb(values)
    null = shapely.is_missing(shapes)
    boxes = shapely.bounds(shapes)
    found: dict[Expr, Column] = {
        Attribute(None, name): Column(Type.FLOAT, np.ascontiguousarray(boxes[:, axis]), null)
        for axis, name in enumerate(("@x0", "@y0", "@x1", "@y1"))
    }
    found[Attribute(None, "@wkb")] = from_arrow(pa.array(shapely.to_wkb(shapes, hex=True), pa.string()))
    return found
