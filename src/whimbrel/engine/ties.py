"""The order of detections that have the same times and type: by the ids of their events, then their own."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.engine.values import Int64Array

_BITS = 63
"""How many bits of a number can hold ranks without touching its sign."""


class Ties:
    """Groups of rows in a table of detections that only their events, or in the end their ids, tell apart."""

    def __init__(self, table: pa.Table) -> None:
        events = table.column("events").combine_chunks()
        self.offsets: Int64Array = events.offsets.to_numpy().astype(np.int64)
        texts = events.values.dictionary_encode()
        self.codes = texts.indices.to_numpy()
        self.ranks = _ranks(texts.dictionary)
        self.width = max(len(texts.dictionary).bit_length(), 1)
        self.ids = table.column("id")

    def settled(self, order: Int64Array, tied: np.ndarray) -> Int64Array:
        """Put the rows of an order right that are tied with the row before them.

        The events are compared a few at a time, and after that only rows that are still tied.
        """
        order = order.copy()
        group = np.cumsum(~tied)
        depth, step = 0, _BITS // self.width
        while tied.any():
            places = _with_neighbours(tied)
            rows = order[places]
            numbers = self._numbers(rows, depth, step)
            if not numbers.any():
                within = np.lexsort((self._id_ranks(rows), group[places]))
                order[places] = rows[within]
                break
            within = np.lexsort((numbers, group[places]))
            order[places], numbers = rows[within], numbers[within]
            differs = np.ones(len(order), np.bool_)
            differs[places[1:]] = numbers[1:] != numbers[:-1]
            tied = tied & ~differs
            group = np.cumsum(~tied)
            depth += step
        return order

    def _numbers(self, rows: Int64Array, depth: int, step: int) -> Int64Array:
        """Pack the ranks of some events of every row into one number; 0 stands for no event."""
        first, last = self.offsets[rows] + depth, self.offsets[rows + 1]
        numbers = np.zeros(len(rows), np.int64)
        for place in range(step):
            numbers <<= self.width
            here = np.flatnonzero(first + place < last)
            numbers[here] |= self.ranks[self.codes[first[here] + place]]
        return numbers

    def _id_ranks(self, rows: Int64Array) -> Int64Array:
        return _ranks(self.ids.take(pa.array(rows)).combine_chunks())


def _with_neighbours(tied: np.ndarray) -> Int64Array:
    """Give the places of rows that are tied with the one before or after them."""
    both = tied.copy()
    both[:-1] |= tied[1:]
    return np.flatnonzero(both)


def _ranks(texts: pa.Array) -> Int64Array:
    """Give the place of every text in their order, from 1."""
    ranks = np.empty(len(texts), np.int64)
    ranks[pc.sort_indices(texts).to_numpy()] = np.arange(1, len(texts) + 1)
    return ranks
