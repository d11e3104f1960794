"""Small numbers for the keys that part events: groups of an aggregate, partitions of a pattern, movers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from whimbrel.engine.interner import Interner
from whimbrel.engine.ordered_inputs import OrderedBatch, OrderedInputs
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import RowsFrame
from whimbrel.engine.values import Column, Int64Array, from_arrow, to_arrow
from whimbrel.graph.policies import Key
from whimbrel.model.schema import Type


class KeyCodes(Interner):
    """A number for every different value of some keys, and of some attributes that have to be equal too.

    Without keys, all events have the number 0.
    """

    def __init__(self, keys: Sequence[Key], attributes: Sequence[str] = ()) -> None:
        super().__init__()
        self.keys = tuple(keys)
        self.attributes = tuple(attributes)
        self._types: list[Type | None] = [None] * len(self.keys)
        """Of each key, as its events say: where a group has null for it, no value tells."""
        if not self.are_given:
            self.restore([None])

    @property
    def are_given(self) -> bool:
        """Whether there is any key."""
        return bool(self.keys or self.attributes)

    def of_batch(self, inputs: OrderedInputs, arrived: OrderedBatch) -> Int64Array:
        """Give the number of every arrived event."""
        codes = np.zeros(len(arrived), np.int64)
        if self.are_given:
            for at, frame in inputs.frames(arrived.root, arrived.row):
                codes[at] = self.of_frame(frame)
        return codes

    def of_frame(self, frame: RowsFrame) -> Int64Array:
        """Give the number of every row."""
        if not self.are_given:
            return np.zeros(len(frame), np.int64)
        columns = [frame.key(key) for key in self.keys]
        if None in self._types:
            self._types = [known or one.type for known, one in zip(self._types, columns, strict=True)]
        columns += [frame.column(None, name) for name in self.attributes]
        return self.codes_of(columns)

    def column(self, name: str, codes: Int64Array) -> Column:
        """Give the value of a key for some numbers."""
        place = [key.name for key in self.keys].index(name)
        is_single = len(self.keys) + len(self.attributes) == 1
        used, inverse = np.unique(codes, return_inverse=True)
        values = self.values()
        chosen = [values[code] if is_single else values[code][place] for code in used.tolist()]
        column = from_arrow(pa.array(chosen)).take(inverse)
        kind = self._types[place]
        return column if column.type is not None or kind is None else from_arrow(to_arrow(column, kind))

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the values in the order of their codes, and the types of the keys."""
        super().save(blocks, name)
        blocks.put_json(f"{name}/types", [kind and kind.value for kind in self._types])

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        super().load(blocks, name)
        self._types = [None if kind is None else Type(kind) for kind in blocks.json(f"{name}/types")]
