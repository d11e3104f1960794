"""What is counted of a mobile query while it runs.

What is counted for each focal object stands in arrays, a row an object; the rest are numbers of the query.
Nothing here decides about what is told. What is dear, precision and recall at every location update, is
measured apart (`whimbrel.engine.mobile.measured`), and only where it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from whimbrel.engine.arrays import longer
from whimbrel.engine.mobile.deliveries import Told
from whimbrel.engine.mobile.interests import Interests
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.saved_state import SavedState
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.model.deliveries import CHANGES

OF_OBJECTS = (
    "switches",
    "predicted",
    "runs_kept",
    "updates",
    "late_updates",
    "streamed_historical",
    "streamed_live",
    "looked_up",
    "left_out",
    "deliveries_historical",
    "deliveries_live",
    *(f"deliveries_{change}" for change in CHANGES),
    "interest_events_historical",
    "interest_events_live",
    "duplicates_avoided",
    "measured_updates",
)
"""What is counted for each object; the names are those of the columns that `Session.monitor` gives."""
OF_QUERIES = (
    "streamed_again",
    "streamed_ahead",
    "streamed_derived",
    "steps_once",
    "steps_each",
    "cohorts_begun",
    "selections",
    "selections_reused",
    "latency",
    "latency_max",
    "processor_once",
    "processor_switch",
    "processor",
    "memory_peak",
)
"""What is counted for a query as a whole; latencies are microseconds, processor times nanoseconds."""
_PLACES = {name: place for place, name in enumerate(OF_OBJECTS)}
_HISTORICAL, _LIVE = "deliveries_historical", "deliveries_live"


@dataclass(slots=True)
class Fed:
    """What one step streamed into the runs of single interests."""

    historical: Int64Array
    """How many events of before each interest began."""
    live: Int64Array
    """How many since then."""
    is_by_interest: bool = True
    """Whether these are of the interests of the step; else of runs that several share."""
    again: int = 0
    """Events that were streamed before, to runs that others take the place of."""
    ahead: int = 0
    """Events that were streamed to runs that are prepared for predicted areas."""
    derived: int = 0
    """Events of definitions that are found once for all."""
    steps: int = 0
    """Rows that the operators of these runs took."""
    begun: int = 0
    """Runs that began."""
    processor: int = 0
    """Nanoseconds of processor time that beginning them took, history included."""
    joined: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """Places of interests that share a run which was there already: no history was streamed for them."""

    def of_first(self, interests: int) -> Fed:
        """Take what follows some interests for runs that are prepared ahead."""
        ahead = int(self.historical[interests:].sum() + self.live[interests:].sum())
        historical, live = self.historical[:interests], self.live[:interests]
        return replace(self, historical=historical, live=live, ahead=self.ahead + ahead)

    @classmethod
    def nothing(cls, interests: int = 0) -> Fed:
        """Begin to count for so many interests."""
        return cls(np.zeros(interests, np.int64), np.zeros(interests, np.int64))


class Monitor(SavedState):
    """The counters of one mobile query.

    Modes that leave something out, reuse something or let somebody wait say so here: `count` for the query,
    `count_for` for objects, `note_latency`.
    """

    state: ClassVar = ("counts", "totals", "qualities", "worst")

    def __init__(self) -> None:
        self.counts = np.zeros((0, len(OF_OBJECTS)), np.int64)
        """A row an object."""
        self.totals: dict[str, int] = dict.fromkeys((*OF_OBJECTS, *OF_QUERIES), 0)
        """What is counted for the query, and what cannot be told of single objects."""
        self.qualities = np.zeros((0, 2))
        """The sums of precision and recall over location updates, a row an object."""
        self.worst = np.zeros((0, 2))
        """The lowest precision and recall of each object."""

    # -- counting ------------------------------------------------------------------------------------------

    def count(self, name: str, amount: int = 1) -> None:
        """Count something of the query."""
        self.totals[name] += amount

    def count_for(self, name: str, objects: Int64Array, amounts: Int64Array | int = 1) -> None:
        """Count something for each of some objects, which may occur several times."""
        if len(objects):
            self._reserve(objects)
            np.add.at(self.counts[:, _PLACES[name]], objects, amounts)

    def _reserve(self, objects: Int64Array) -> None:
        size = int(objects.max()) + 1
        if size > len(self.counts):
            room = max(size, 2 * len(self.counts))
            self.counts = longer(self.counts, room)
            self.qualities, before = longer(self.qualities, room), len(self.worst)
            self.worst = longer(self.worst, room)
            self.worst[before:] = 1.0

    def note_latency(self, microseconds: Int64Array) -> None:
        """Take note of how long after some switches (event time) their history was told.

        A session tells it at once: what is prepared, or takes time in a simulation, may not.
        """
        if len(microseconds):
            self.totals["latency"] += int(microseconds.sum())
            self.totals["latency_max"] = max(self.totals["latency_max"], int(microseconds.max()))

    def note_fed(self, fed: Fed, of: Interests) -> None:
        """Count what was streamed into runs of single interests in a step."""
        for name, amounts in (("streamed_historical", fed.historical), ("streamed_live", fed.live)):
            if fed.is_by_interest:
                self.count_for(name, of.obj, amounts)
            else:
                self.totals[name] += int(amounts.sum())
        self.count_for("runs_kept", of.obj[fed.joined])
        for name in ("again", "ahead", "derived"):
            self.totals[f"streamed_{name}"] += getattr(fed, name)
        self.totals["steps_each"] += fed.steps
        self.totals["cohorts_begun"] += fed.begun
        self.totals["processor_switch"] += fed.processor

    def note_looked_up(self, had: list[Told], of: Interests) -> None:
        """Count detections of history that had not to be found again, as they are found once for all."""
        for each in had:
            old = each.interest[each.known < of.start[each.interest]]
            self.count_for("looked_up", *_grouped(of.obj[old]))

    def note_told(self, told: list[Told], of: Interests) -> None:
        """Count what is told, by the time it is of and by what changes."""
        for each in told:
            obj, is_live = of.obj[each.interest], each.known >= of.start[each.interest]
            self.count_for(_LIVE, *_grouped(obj[is_live]))
            self.count_for(_HISTORICAL, *_grouped(obj[~is_live]))
            for code in np.flatnonzero(np.bincount(each.change, minlength=len(CHANGES))).tolist():
                self.count_for(f"deliveries_{CHANGES[code]}", *_grouped(obj[each.change == code]))

    def note_quality(self, objects: Int64Array, quality: FloatArray) -> None:
        """Take note of precision and recall at location updates: a row each."""
        if len(objects):
            self.count_for("measured_updates", objects)
            np.add.at(self.qualities, objects, quality)
            np.minimum.at(self.worst, objects, quality)

    # -- what was counted ----------------------------------------------------------------------------------

    def of_objects(self, name: str) -> Int64Array:
        """Give what was counted for each object."""
        return self.counts[:, _PLACES[name]]

    def total(self, name: str) -> int:
        """Give what was counted in all."""
        found = self.totals[name]
        return found + int(self.of_objects(name).sum()) if name in _PLACES else found


def _grouped(objects: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Tell which objects there are, and how often each: many deliveries are of few objects."""
    if not len(objects):
        return objects, objects
    counts = np.bincount(objects)
    found = np.flatnonzero(counts)
    return found, counts[found]


def rows_taken(pipeline: Pipeline) -> int:
    """Tell how many rows the operators of a pipeline took in its last step: its correlation steps."""
    runtimes: Any = pipeline.runtimes.values()
    return sum(len(each.new) for runtime in runtimes for each in runtime.inputs)
