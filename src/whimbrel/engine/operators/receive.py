"""Runs a `Derive` without cases: events of a definition that another session finds."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.arrays import NO_ROWS
from whimbrel.engine.derived_batch import DerivedBatch, bring_along
from whimbrel.engine.operators.base import OperatorSetup, RunningOperator
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.streams import OperatorStream
from whimbrel.graph.operators import Derive
from whimbrel.model.time import END_OF_TIME


class ReceiveOperator(RunningOperator[Derive]):
    """A definition whose events come from elsewhere, at run time.

    They wait until the watermark reaches them, as atomic events do.
    """

    def __init__(self, op: Derive, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self.waiting: list[DerivedBatch] = []

    def opened(self, setup: OperatorSetup) -> OperatorStream:  # noqa: ARG002
        """Open the stream of the events that come."""
        return OperatorStream(self.op.name, RowStore(), event_type=self.op.event_type)

    @property
    def due(self) -> int:
        """When the first of the waiting events may be used."""
        return min((int(derived.end.min()) for derived in self.waiting), default=END_OF_TIME)

    def accept(self, derived: DerivedBatch) -> None:
        """Take events in."""
        if len(derived):
            self.waiting.append(derived)
            self.stream.keeps_order = derived.in_order

    def step(self) -> None:
        """Pass on the events that the watermark has reached."""
        self.stream.watermark = self.context.atoms.watermark
        made, waiting = [], []
        for derived in self.waiting:
            is_ready = derived.end <= self.stream.watermark
            if is_ready.any():
                made.append(self._append(derived.taken(np.flatnonzero(is_ready))))
            if not is_ready.all():
                waiting.append(derived.taken(np.flatnonzero(~is_ready)))
        self.waiting = waiting
        self.stream.new = np.concatenate(made) if made else NO_ROWS

    def _append(self, derived: DerivedBatch) -> np.ndarray:
        lineage = bring_along(self.context.atoms.store, derived)
        start = derived.events.column("start").to_numpy()
        return self.stream.store.append(start, derived.end, derived.columns(), lineage)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the events that wait, too."""
        super().save(blocks, name)
        blocks.put_json(f"{name}/in_order", self.stream.keeps_order)
        blocks.put_batches(f"{name}/events", [derived.events for derived in self.waiting])
        blocks.put_batches(f"{name}/atoms", [derived.atoms for derived in self.waiting])

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        super().load(blocks, name)
        self.stream.keeps_order = blocks.json(f"{name}/in_order")
        events, atoms = blocks.batches(f"{name}/events"), blocks.batches(f"{name}/atoms")
        self.waiting = [DerivedBatch(*pair) for pair in zip(events, atoms, strict=True)]
