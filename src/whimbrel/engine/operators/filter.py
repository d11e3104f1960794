"""Runs a `Filter` over events that another operator made."""

from __future__ import annotations

from typing import ClassVar

from whimbrel.engine.condition_templates import rows_passing
from whimbrel.engine.operators.base import OperatorSetup, RunningOperator
from whimbrel.engine.streams import OperatorStream
from whimbrel.graph.operators import Filter


class FilterOperator(RunningOperator[Filter]):
    """A `Filter` at run time. Conditions on atomic events are tested by the index instead."""

    owns_rows: ClassVar = False

    def opened(self, setup: OperatorSetup) -> OperatorStream:  # noqa: ARG002
        """Open a selection of the rows of the input."""
        (source,) = self.inputs
        return OperatorStream(
            self.op.name,
            source.store,
            source.composite,
            source.event_type,
            branches=source.branches,
            number=source.number,
            kinds=source.kinds,
        )

    def step(self) -> None:
        """Pass on the new events for which the condition is true."""
        (source,) = self.inputs
        self.stream.watermark = source.watermark
        rows = source.new
        if len(rows):
            rows = rows_passing(self.op.condition, self.context, source, rows)
        self.stream.new = rows
