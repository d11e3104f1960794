"""Make composite events of a query, as plans that push and pull detect them.

A definition is a composite event if it combines events that come in from outside within a window: in any
order, in a given one, any of several; with or without some that must not occur. Conditions on single events
run where the events come from. All other conditions are looked at where the detection is wanted: on the way
there, events are held back only if the window says that they cannot matter.

Where several sources send one kind of events, a detection has one event of one of them: what is detected is
the union of what is detected with each source alone, so there is a composite event for each way to choose the
sources. What must not occur must not come from any of them; it is looked for near the others, and holds none
of those back, as only who knows all of them can tell whether it lies between them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise, product

from whimbrel.errors import NetworkError, NoPlanError
from whimbrel.graph.operators import (
    ANY,
    Aggregate,
    Custom,
    Derive,
    JoinPattern,
    Merge,
    Operator,
    Repeat,
    Source,
    TimePoints,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.graph.policies import Context, Select
from whimbrel.graph.scope import selection
from whimbrel.model.time import DAY, SECOND
from whimbrel.plan.network import Network
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

MOST_CHOICES = 32
"""Ways to choose a source for each part that one definition may have."""
LONGEST = 10_000 * DAY
"""A window that is longer is none."""

_WHY_NOT: dict[type[Operator], str] = {
    Aggregate: "it aggregates",
    Repeat: "it looks for repetitions",
    StepPattern: "it goes from event to event",
    TimedOut: "it goes from event to event",
    Custom: "it runs a function of its own",
    Motion: "it follows movements",
    Encounter: "it follows movements",
    TimePoints: "it waits for a time",
    JoinPattern: "it has a pattern inside of a pattern",
    Merge: "it has alternatives inside of alternatives",
}


@dataclass(frozen=True, slots=True)
class DeliveredComposites:
    """A delivery, and the composite events that make it up: each detection is one of exactly one of them."""

    delivery: Delivery
    composites: tuple[Composite, ...]
    sent: Mapping[str, EventOrigin] = field(default_factory=dict)
    """For every part of them, by name, which events it is."""

    def of(self, names: Collection[str]) -> DeliveredComposites:
        """Leave out the composite events without these names."""
        composites = tuple(each for each in self.composites if each.name in names)
        parts = {part.name for each in composites for part in each.parts}
        sent = {name: origin for name, origin in self.sent.items() if name in parts}
        return replace(self, composites=composites, sent=sent)


@dataclass(frozen=True, slots=True)
class EventOrigin:
    """The events that a part is: those of a stream of the graph that one source sends."""

    stream: str
    feed: str


@dataclass(frozen=True, slots=True)
class _Pattern:
    operator: str
    parts: tuple[tuple[str, ...], ...]
    """For every part the streams that any of its events may come from."""
    absent: tuple[tuple[int, str], ...]
    """What must not occur: the number of parts before it, and its stream."""
    window_s: float


def composites_of(workload: Workload, network: Network) -> list[DeliveredComposites]:
    """Return the composite events of all deliveries of a workload.

    Raises
    ------
    NoPlanError
        If a definition is no composite event, or movers send or want it; the error says what to use instead.
    NetworkError
        If the workload was not made of a query.
    """
    return list(_Extractor(workload, network).wanted())


class _Extractor:
    def __init__(self, workload: Workload, network: Network) -> None:
        if workload.graph is None:
            raise NetworkError(
                "the workload does not tell which events a task combines",
                "make it of a query: whimbrel.plan.demand.workload_of",
            )
        self.workload, self.network, self.graph = workload, network, workload.graph
        self._origin: dict[str, EventOrigin] = {}

    def wanted(self) -> Iterator[DeliveredComposites]:
        streams = [each.stream for each in self.workload.deliveries]
        for delivery in self.workload.deliveries:
            to = f" to {delivery.at}" if streams.count(delivery.stream) > 1 else ""
            if delivery.at in self.network.mover:
                raise _refused(delivery.stream, f"it is wanted at the mover {delivery.at}", "migrate")
            composites = tuple(self._composites(delivery, f"{delivery.stream}{to}"))
            names = [part.name for composite in composites for part in composite.parts]
            yield DeliveredComposites(delivery, composites, {name: self._origin[name] for name in names})

    def _composites(self, delivery: Delivery, name: str) -> list[Composite]:
        found = [
            (pattern.operator, parts, pattern.window_s)
            for pattern in self._patterns(delivery.stream)
            for parts in self._choices(delivery.stream, pattern)
        ]
        if len(found) > MOST_CHOICES:
            raise _refused(
                delivery.stream,
                f"there are {len(found)} ways to choose sources for it, and {MOST_CHOICES} can be planned",
            )
        return [
            Composite(
                name if len(found) == 1 else f"{name} ({number})",
                operator,
                parts,
                window_s,
                delivery.at,
                delivery.latency_s,
                is_amid=operator == "seq",
            )
            for number, (operator, parts, window_s) in enumerate(found, 1)
        ]

    # -- patterns --------------------------------------------------------------------------------------------

    def _patterns(self, definition: str) -> Iterator[_Pattern]:
        """Iterate over the patterns of a definition, one for each of its cases."""
        derive = self.graph[definition]
        assert isinstance(derive, Derive)
        for case in derive.cases:
            yield self._pattern(definition, case.input)

    def _pattern(self, definition: str, name: str) -> _Pattern:
        root, _ = selection(self.graph, name)
        operator = self.graph[name]
        if isinstance(operator, JoinPattern):
            return self._match(definition, operator)
        if isinstance(operator, Merge) or isinstance(root, Source):
            # All alternatives are parts: any of them is a detection, and the window does not matter.
            streams = self._alternatives(definition, name)
            return _Pattern("or", (streams,), (), 1.0)
        raise _refused(definition, self._why_not(root))

    def _match(self, definition: str, match: JoinPattern) -> _Pattern:
        if match.context is not Context.EACH or match.consuming:
            raise _refused(
                definition, f"which combinations count depends on others (context {match.context.value})"
            )
        if any(part.select is not Select.EACH for part in match.parts):
            raise _refused(definition, "it selects among the events of a part")
        parts = tuple(self._alternatives(definition, part.input) for part in match.parts)
        absent = tuple(
            (len(parts) if each.after is None else each.after + 1, name)
            for each in match.absent
            for name in self._alternatives(definition, each.input)
        )
        # Within a time from each other (`gap`), events may also end together.
        ordered = {(order.first, order.second) for order in match.orders if order.gap is None}
        in_order = all(pair in ordered for pair in pairwise(range(len(parts))))
        # What must not occur before or after all others, or for some time, has no place in a sequence.
        in_order = in_order and all(
            each.after is not None and each.before == each.after + 1 and each.duration is None
            for each in match.absent
        )
        return _Pattern("seq" if in_order else "and", parts, absent, self._window_s(definition, match))

    def _window_s(self, definition: str, match: JoinPattern) -> float:
        """Say how far apart events of a match can lie: those that occur, and those that must not."""
        longest = max((each.duration or 0 for each in match.absent), default=0)
        waits = any(each.duration is None for each in match.absent)
        span = match.within if len(match.parts) > 1 or waits or not longest else 0
        if span >= LONGEST:
            raise _refused(definition, "it has no window", "greedy, or say `within`")
        return max(span + longest, 1) / SECOND

    def _alternatives(self, definition: str, name: str) -> tuple[str, ...]:
        """Return the streams of single events that a part may come from."""
        operator = self.graph[name]
        names = [each.input for each in operator.branches] if isinstance(operator, Merge) else [name]
        for each in names:
            root, _ = selection(self.graph, each)
            if not isinstance(root, Source) or isinstance(root, TimePoints):
                raise _refused(definition, self._why_not(root))
        return tuple(dict.fromkeys(names))

    def _why_not(self, root: Operator) -> str:
        if isinstance(root, Derive):
            return f"it reads {root.name}, which is itself detected"
        return _WHY_NOT.get(type(root), f"it reads {root.name}")

    # -- who sends -------------------------------------------------------------------------------------------

    def _choices(self, definition: str, pattern: _Pattern) -> Iterator[tuple[PrimitiveEvent, ...]]:
        """Iterate over the parts for each way to choose who sends those that must occur."""
        sent = [[part for name in names for part in self._sent(definition, name)] for names in pattern.parts]
        absent = [
            (place, part)
            for place, name in pattern.absent
            for part in self._sent(definition, name, is_negated=True)
        ]
        if pattern.operator == "or":
            yield tuple(self._named_once(sent[0]))
            return
        if math.prod(len(each) for each in sent) > MOST_CHOICES:
            count = math.prod(len(each) for each in sent)
            raise _refused(
                definition,
                f"there are {count:,} ways to choose sources for it, and {MOST_CHOICES} can be planned",
            )
        for chosen in product(*sent):
            parts = []
            for number in range(len(chosen) + 1):
                parts += [part for place, part in absent if place == number]
                parts += chosen[number : number + 1]
            yield tuple(self._named_once(parts))

    def _sent(self, definition: str, stream: str, *, is_negated: bool = False) -> list[PrimitiveEvent]:
        """Return a stream of single events as parts: one for each source."""
        root, _ = selection(self.graph, stream)
        assert isinstance(root, Source)
        kinds = {sender.name: sender.event_type for sender in self.network.sources}
        feeds = [each for each in self.workload.feeds if root.event_type in (ANY, kinds.get(each.name))]
        carried: list[tuple[Feed, Feed | Task]] = [(feed, feed) for feed in feeds]
        if stream != root.name:
            tasks = [task for task in self.workload.tasks if task.operators[-1:] == (stream,)]
            carried = [(self._feed_of(task), task) for task in tasks]
        for feed, _ in carried:
            if feed.at in self.network.mover:
                raise _refused(definition, f"{feed.name} sends from the mover {feed.at}", "migrate")
        names = [stream if len(carried) == 1 else f"{stream} at {feed.name}" for feed, _ in carried]
        self._origin |= {
            name: EventOrigin(stream, feed.name) for name, (feed, _) in zip(names, carried, strict=True)
        }
        return [
            PrimitiveEvent(name, feed.at, made.rate_hz, made.size_b, is_negated)
            for name, (feed, made) in zip(names, carried, strict=True)
        ]

    def _feed_of(self, task: Task) -> Feed:
        """Return the feed that a condition on single events reads, through other conditions perhaps."""
        (name,) = task.inputs
        return (
            self.workload.feed[name]
            if name in self.workload.feed
            else self._feed_of(self.workload.task[name])
        )

    def _named_once(self, parts: list[PrimitiveEvent]) -> list[PrimitiveEvent]:
        """Give parts that are the same events names of their own."""
        counts: dict[str, int] = {}
        found = []
        for part in parts:
            counts[part.name] = count = counts.get(part.name, 0) + 1
            name = part.name if count == 1 else f"{part.name} ({count})"
            self._origin[name] = self._origin[part.name]
            found.append(replace(part, name=name))
        return found


def _refused(definition: str, why: str, instead: str = "greedy") -> NoPlanError:
    return NoPlanError(
        f"{definition} cannot be detected by pushing and pulling: {why}; use --planner {instead}"
    )
