"""What may watch a query run: to trace it, to measure it, or to carry on what it finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa

from whimbrel.engine.report import report
from whimbrel.engine.streams import OperatorStream
from whimbrel.engine.values import Int64Array
from whimbrel.graph.passes import PASSES, Pass

if TYPE_CHECKING:
    from whimbrel.engine.operators.base import RunningOperator
    from whimbrel.engine.pipeline import Pipeline


class Observer:
    """Sees every step of a query, and decides what is reported of it.

    A query that is observed runs by itself and shares nothing with others. Without an observer a session asks
    once for each batch whether there is one, and that is all it costs.
    """

    passes: ClassVar[Iterable[Pass]] = PASSES
    """The rewrites of the query: some observers want to see the operators as they were written."""
    sees_every_stream: ClassVar[bool] = False
    """Whether there is a stream for each operator, also for selections that only further ones read. Those are
    tested by themselves, and a query need not be looked at for events that fail them."""
    keeps_rows: ClassVar[bool] = False
    """Whether nothing is forgotten."""
    steps_always: ClassVar[bool] = False
    """Whether the query runs whenever time passes, even if it has nothing to do."""

    def started(self, pipeline: Pipeline) -> None:
        """Get to know the query, before it has seen any event."""

    def run(self, name: str, operator: RunningOperator[Any]) -> None:  # noqa: ARG002 (some count by name)
        """Let an operator process what is new."""
        operator.step()

    def stepped(self, pipeline: Pipeline) -> None:
        """Look at what is new in the streams, before it is let go of."""

    def report(self, stream: OperatorStream, rows: Int64Array, pipeline: Pipeline) -> pa.Table | None:
        """Write new events of an output as a table; None if they are not reported."""
        return report(stream, rows, pipeline.context)
