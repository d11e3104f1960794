"""What is found once for all interests: of one mobile query, or of several that find the same things."""

from __future__ import annotations

from time import thread_time_ns

from whimbrel.engine.mobile.found_once import FoundOnce
from whimbrel.engine.mobile.monitor import Monitor, rows_taken
from whimbrel.engine.mobile.once import OncePipeline
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.mobile.parts import MobileParts
from whimbrel.model.schema import Coordinates


class OnceRun:
    """The run of what is found once, and what it found lately.

    Parameters
    ----------
    excluding
        The keys of the objects, where an object's own events do not count; then no other query can use it.
    monitor
        What counts what it does: that of the first query that uses it.
    """

    def __init__(
        self,
        query: MobileQuery,
        parts: MobileParts,
        events: SourceEvents,
        name: str,
        excluding: FocalKeys | None,
        monitor: Monitor,
    ) -> None:
        self.query = query
        self.parts = parts
        self.excluding = excluding
        self.monitor = monitor
        self.pipeline = OncePipeline(query.detect, parts, events, name)
        self.found: FoundOnce | None = None

    def serves(self, query: MobileQuery, parts: MobileParts, excluding: FocalKeys | None) -> bool:
        """Tell whether another mobile query would find the same."""
        own, other = self.query, query
        return (
            self.excluding is excluding is None
            and own.of_situations == other.of_situations
            and self.parts == parts
            and own.detect.functions == other.detect.functions
            and own.detect.operators == other.detect.operators
        )

    def begin(self, coordinates: Coordinates) -> None:
        """Make what needs to know how locations are given."""
        if self.pipeline.context.coordinates is not coordinates or self.found is None:
            self.pipeline.context.coordinates = coordinates
            self.found = FoundOnce(coordinates, by_own_location=self.query.of_situations)

    def step(self, coordinates: Coordinates) -> None:
        """Let time pass to the watermark of the events; what is new stands in its streams then."""
        began = thread_time_ns()
        self.begin(coordinates)
        assert self.found is not None
        self.pipeline.step()
        self.monitor.count("steps_once", rows_taken(self.pipeline))
        self.pipeline.collect(self.found, self.excluding)
        for name in ("processor_once", "processor"):
            self.monitor.count(name, thread_time_ns() - began)

    def forget_found(self, time: int) -> None:
        """Let go of what was known before a time."""
        if self.found is not None:
            self.found.forget_before(time)

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state."""
        self.pipeline.save(blocks, f"{name}/run")
        known = None if self.found is None else self.pipeline.context.coordinates
        blocks.put_json(name, None if known is None else known.value)
        if self.found is not None:
            self.found.save(blocks, f"{name}/found")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        known = blocks.json(name)
        if known is not None:
            self.begin(Coordinates(known))
        self.pipeline.load(blocks, f"{name}/run")
        if self.found is not None:
            self.found.load(blocks, f"{name}/found")
