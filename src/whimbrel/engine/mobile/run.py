"""Mobile queries at run time: they take the place of a pipeline among the queries of a session."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.mobile.followed import OwnedPlaces
from whimbrel.engine.mobile.following import Following
from whimbrel.engine.mobile.once_run import OnceRun
from whimbrel.engine.mobile.optimisations import ALL, Optimisations
from whimbrel.engine.pipeline import Pipeline, fingerprint
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.streams import ExecutionContext
from whimbrel.errors import QueryError, StateError
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import all_read
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME


class MobileRun(Pipeline):
    """The mobile queries of a query at run time.

    It has no outputs of its own: what it tells, it writes as tables of deliveries. Where other sessions have
    other places, only interests around `owned` ones are told of.
    """

    def __init__(
        self,
        query: Query,
        events: SourceEvents,
        name: str,
        optimisations: Optimisations = ALL,
        owned: OwnedPlaces | None = None,
    ) -> None:
        self.query, self.name, self.observer = query, name, None
        self.graph = query.graph
        self.atoms = events
        self.context = ExecutionContext(events.stream, query.functions, query.graph.coordinates)
        self.shared_runs: list[OnceRun] = []
        """What is found once, each for all mobile queries that find the same."""
        self.following = [
            Following(each, events, name, optimisations, self.shared_runs, owned) for each in query.mobile
        ]
        self.required = all_read(each.required for each in self.following)  # type: ignore[assignment]
        self.used = list(dict.fromkeys(selector for each in self.following for selector in each.used))
        self.selections, self.streams, self.runtimes, self.outputs = [], {}, {}, []
        self._told: list[pa.Table] = []

    @property
    def reach(self) -> int:  # type: ignore[override]
        """How long after its end an event can still matter; objects with longer lifetimes may be added."""
        return max(each.reach for each in self.following)

    @property
    def due(self) -> int:
        """When something happens even if no event comes."""
        return min(each.due for each in self.following)

    @property
    def dropped(self) -> int:
        """How many matches in the making were given up because a partition had too many of them."""
        return sum(each.dropped for each in self.following)

    def step(self) -> None:
        """Let time pass to the watermark of the events."""
        coordinates = self.context.coordinates or Coordinates.PLANE
        for once in self.shared_runs:
            once.step(coordinates)
        for each in self.following:
            table = each.step(coordinates)
            if table is not None:
                self._told.append(table)
        for once in self.shared_runs:
            once.pipeline.clear_made()
            users = [each for each in self.following if each.once_run is once]
            once.forget_found(min(each.looks_back_to for each in users))

    def begin_at(self, time: int) -> None:
        """Follow nobody before a time: what happens until then is history."""
        for each in self.following:
            each.objects.updates.begins = time

    def catch_up(self) -> None:
        """Take in the events that the session still remembers, as history of what comes from now on.

        Of events that do not have all that the queries read, nobody knows what they would have said.
        """
        store = self.atoms.stream.store
        needed = {Attribute(None, name) for name in self.required.atoms}
        whole = [chunk for chunk in store.chunks if needed <= chunk.columns.keys()]
        if not whole or self.required.all_atoms:
            return
        rows = np.concatenate([np.arange(chunk.first, chunk.first + len(chunk)) for chunk in whole])
        self.atoms.show_again(rows, self.used)
        coordinates = self.context.coordinates or Coordinates.PLANE
        for once in self.shared_runs:
            once.step(coordinates)
        for each in self.following:
            each.catch_up(coordinates)
        for once in self.shared_runs:
            once.pipeline.clear_made()
        self.atoms.clear()

    def told(self) -> Iterator[pa.Table]:
        """Give the deliveries of a step."""
        yield from self._told

    def take_interests(self) -> list[pa.Table]:
        """Take the interests that began or ended since the last time, where another one compares them."""
        return [table for each in self.following for table in each.objects.take_interests()]

    def clear_made(self) -> None:
        """Say that nothing is new."""
        self._told = []

    def warnings(self) -> list[str]:
        """Say which of the mobile queries has followed nobody: a name may be written in another way."""
        idle = [each.query for each in self.following if not each.objects.timelines.numbers.any()]
        return [f"{each.name!r} has followed nobody: {_what_is_missing(each)}" for each in idle]

    def forget_before(self, time: int) -> None:
        """Let go of what was made of events that are gone."""
        for once in self.shared_runs:
            once.pipeline.forget_before(time)

    def measure(self) -> None:
        """Measure the quality of interests from now on, before any event has come."""
        for each in self.following:
            each.measure()
        self.used = list(dict.fromkeys(selector for each in self.following for selector in each.used))

    @property
    def needs_since(self) -> int:
        """Since when atomic events have to be kept, however far back its operators reach."""
        return min(each.needs_since for each in self.following)

    def settle(self) -> None:
        """End all interests once the input has ended: nothing may have been due any more."""
        if self.atoms.stream.watermark < END_OF_TIME:
            return
        for each in self.following:
            if each.objects.before < END_OF_TIME:
                each.step(self.context.coordinates or Coordinates.PLANE)

    def note_late(self, events: pa.RecordBatch) -> None:
        """Count the location updates among events that came too late."""
        for each in self.following:
            each.note_late(events)

    def following_of(self, name: str | None) -> Following:
        """Look up one of the mobile queries by its name, or the only one.

        Raises
        ------
        QueryError
            If there is none of that name.
        """
        for each in self.following:
            if each.query.name == name or (name is None and len(self.following) == 1):
                return each
        known = ", ".join(each.query.name for each in self.following)
        raise QueryError(f"there is no mobile query {name!r} in {self.name!r}; there are: {known}")

    def save(self, blocks: Blocks, name: str) -> None:
        """Write the state of all."""
        blocks.put_json(name, {"graph": _fingerprint(self.query), "operators": []})
        for number, once in enumerate(self.shared_runs):
            once.save(blocks, f"{name}/once/{number}")
        for number, each in enumerate(self.following):
            each.save(blocks, f"{name}/{number}")

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote.

        Raises
        ------
        StateError
            If the snapshot is of another query.
        """
        if blocks.json(name)["graph"] != _fingerprint(self.query):
            raise StateError(f"the snapshot is of another version of the query {self.name!r}")
        for number, once in enumerate(self.shared_runs):
            once.load(blocks, f"{name}/once/{number}")
        for number, each in enumerate(self.following):
            each.load(blocks, f"{name}/{number}")


def _what_is_missing(query: MobileQuery) -> str:
    focal = query.focal
    if focal.listed is not None:
        return f"no {focal.type} with a place has a {focal.key} that is on its list"
    asked = "" if focal.only is None and focal.condition is None else ", and is what it asks for"
    return f"no {focal.type} has a {focal.key} and a place{asked}"


def _fingerprint(query: Query) -> str:
    """Name a query with mobile ones so that a changed one has another name; lists change while it runs."""
    marks: list[Any] = [fingerprint(query.graph)]
    for each in query.mobile:
        policy, focal = each.policy, replace(each.focal, listed=None)
        marks += [fingerprint(each.detect.graph), focal, each.interest, each.lifetime, policy, each.name]
        marks += [each.of_situations, each.motion_within, each.excluding_itself, each.silent]
    return repr(marks)
