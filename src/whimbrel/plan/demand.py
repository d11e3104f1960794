"""What a query asks of a network: its operator graph cut into tasks, with rates, sizes, work and state.

The graph is cut only at streams that can travel as events: those of sources, of definitions (`Derive`) and of
conditions on single events of either. A task is a definition with what is below it down to such streams.
What several definitions need and cannot travel, such as combinations of events, each runs for itself. A
condition on single events is a task of its own, one for each source of the network that sends such events, so
that it can run where they come from.

Rates, sizes and how many events pass come from recorded events, if there are any (`whimbrel.trial.measure`
makes the `Statistics`); else they are estimated from the query alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from whimbrel.errors import NetworkError, did_you_mean
from whimbrel.graph.costs import cost
from whimbrel.graph.estimate import MAKING, Observed, likely_rates, state_of
from whimbrel.graph.operators import (
    ANY,
    Aggregate,
    Clock,
    Custom,
    Derive,
    Filter,
    Graph,
    Match,
    Merge,
    Operator,
    Source,
)
from whimbrel.graph.passes import rewrite
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.graph.scope import selection
from whimbrel.graph.wiring import expressions, readers
from whimbrel.model.schema import EventSchema, Type
from whimbrel.model.time import DAY, SECOND
from whimbrel.plan.network import Network, unknown
from whimbrel.plan.network import Source as Sender
from whimbrel.plan.workload import Delivery, Feed, Task, Workload

EVENT_S = 1e-6
"""Estimated seconds of one core for taking in an event in one operator."""
UNIT_S = 1e-8
"""Estimated seconds of one core for a unit of `whimbrel.graph.costs.cost`."""
EVENT_B = 48.0
"""Bytes of an event without attributes: id, type, times and a place."""
VALUE_B = 8.0
TEXT_B = 16.0
"""Bytes of an attribute: a number, a text."""
ENDLESS_S = DAY / SECOND
"""Of operators that remember without bound, the state of this time counts."""


@dataclass(frozen=True)
class Statistics:
    """What was counted in a recording of events. Streams are those of `graph_to_plan(query)`."""

    rates: Mapping[str, float] = field(default_factory=dict)
    """Events a second of every stream."""
    sizes: Mapping[str, float] = field(default_factory=dict)
    """Bytes of an event, of streams that had any and can travel."""
    by_source: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Events a second of each type from each source of events."""
    work: Mapping[str, float] = field(default_factory=dict)
    """Seconds of one core that an operator took for a second of events, where that was timed."""


NO_STATISTICS = Statistics()


def graph_to_plan(query: Query | Compilable) -> Graph:
    """Give the graph that is cut into tasks: the one that the engine runs."""
    return rewrite(compiled(query).graph)


def workload_of(
    query: Query | Compilable,
    network: Network,
    statistics: Statistics = NO_STATISTICS,
    rates: Mapping[str, float] | None = None,
) -> Workload:
    """Cut a query into tasks for the sources and consumers of a network.

    Parameters
    ----------
    statistics
        What was counted in a recording; what is not in it is estimated.
    rates
        Events a second by type, for all sources of the type together. They go before what the network and the
        statistics say, and are shared out as those say.

    Raises
    ------
    NetworkError
        If nobody sends what the query reads, or nobody wants what it detects.
    """
    return _Cutter(graph_to_plan(query), network, statistics, rates or {}).workload()


class _Cutter:
    def __init__(
        self, graph: Graph, network: Network, statistics: Statistics, rates: Mapping[str, float]
    ) -> None:
        self.graph, self.network, self.statistics, self.given = graph, network, statistics, rates
        self.operators = {operator.name: operator for operator in graph.operators}
        self.sources = [each for each in graph.operators if isinstance(each, Source)]
        for name in rates:
            if all(name != each.event_type for each in self.sources):
                known = [each.event_type for each in self.sources]
                raise NetworkError(f"the query reads no events of type {name!r}", did_you_mean(name, known))

    def workload(self) -> Workload:
        deliveries = self._deliveries()
        needed = self._needed({each.stream for each in deliveries})
        feeds = [each for each in self.feeds if each.name in self._feeds_of(needed)]
        tasks = [
            task
            for operator in self.graph.operators
            if operator.name in needed
            for task in self._tasks(operator)
        ]
        return Workload(tuple(feeds), tuple(tasks), tuple(deliveries), self.graph)

    # -- who sends, who wants --------------------------------------------------------------------------------

    @cached_property
    def feeds(self) -> list[Feed]:
        """A feed for each source of the network whose events the query may read."""
        by_type: dict[str, list[Sender]] = {}
        for sender in self.network.sources:
            by_type.setdefault(sender.event_type, []).append(sender)
        return [
            Feed(sender.name, rate, self._sent_size(sender), sender.at)
            for kind, senders in by_type.items()
            for sender, rate in zip(senders, self._sent_rates(kind, senders), strict=True)
        ]

    def _sent_rates(self, kind: str, senders: list[Sender]) -> list[float]:
        """Share out the rate of a type: as the network says, or the recording, or evenly."""
        seen = self.statistics.by_source.get(kind, {})
        known = [
            sender.rate_hz if sender.rate_hz is not None else seen.get(sender.name, seen.get(sender.at))
            for sender in senders
        ]
        total = self._measured_rate(kind)
        rest = max(total - sum(each for each in known if each is not None), 0.0)
        if all(each is None for each in known):
            rest = total
        others = sum(each is None for each in known)
        found = [rest / others if each is None else each for each in known]
        if kind in self.given:
            whole = sum(found)
            return [self.given[kind] * (each / whole if whole else 1 / len(found)) for each in found]
        return found

    def _measured_rate(self, kind: str) -> float:
        """Give the rate of a type in the recording; 1 a second where there is none."""
        for source in self.sources:
            if source.event_type == kind and source.name in self.statistics.rates:
                return self.statistics.rates[source.name]
        return sum(self.statistics.by_source[kind].values()) if kind in self.statistics.by_source else 1.0

    def _sent_size(self, sender: Sender) -> float:
        if sender.size_b is not None:
            return sender.size_b
        source = next((each for each in self.sources if each.event_type == sender.event_type), None)
        return EVENT_B if source is None else self.size(source.name)

    def _deliveries(self) -> list[Delivery]:
        if not self.network.consumers:
            raise NetworkError(
                "nobody in the network wants detections",
                "name at least one under 'consumers': {name: control room, at: cloud}",
            )
        streams: dict[str, list[str]] = {}
        for operator in self.graph.operators:
            if isinstance(operator, Derive):
                streams.setdefault(operator.event_type, []).append(operator.name)
        all_types = [getattr(self.operators[name], "event_type", name) for name in self.graph.outputs]
        found: dict[tuple[str, str], float] = {}
        for consumer in self.network.consumers:
            for kind in consumer.wants or dict.fromkeys(all_types):
                if kind not in streams:
                    raise unknown("definition of the query", kind, streams, f"{consumer.name!r} wants it")
                for name in streams[kind]:
                    key = (name, consumer.at)
                    found[key] = min(consumer.latency_s, found.get(key, math.inf))
        return [Delivery(name, at, latency) for (name, at), latency in found.items()]

    # -- what travels ----------------------------------------------------------------------------------------

    @cached_property
    def _is_cut(self) -> set[str]:
        """The streams that travel: sources, definitions, and conditions on single events of either."""
        above = readers(self.graph)
        found = set()
        for operator in self.graph.operators:
            root, _ = selection(self.graph, operator.name)
            if not isinstance(root, Source | Derive):
                continue
            is_read_further = any(not isinstance(each, Filter) for each in above[operator.name])
            if not isinstance(operator, Filter) or is_read_further or operator.name in self.graph.outputs:
                found.add(operator.name)
        return found

    def _below(self, operator: Operator) -> tuple[list[Operator], list[str]]:
        """Give the operators of the task that makes a stream, in order, and the streams that it reads."""
        inside, read = {operator.name}, set()
        for each in reversed(self.graph.operators):
            if each.name in inside:
                for name in each.inputs:
                    if name in self._is_cut:
                        read.add(name)
                    else:
                        inside.add(name)
        order = [each for each in self.graph.operators if each.name in inside]
        return order, [each.name for each in self.graph.operators if each.name in read]

    def _needed(self, wanted: set[str]) -> set[str]:
        """Name the travelling streams that others need which are wanted, and those themselves."""
        found = set(wanted)
        for operator in reversed(self.graph.operators):
            if operator.name in found:
                found.update(self._below(operator)[1])
        return found

    def _senders(self, source: Source) -> list[Feed]:
        kinds = {sender.name: sender.event_type for sender in self.network.sources}
        return [each for each in self.feeds if source.event_type in (ANY, kinds[each.name])]

    def _feeds_of(self, needed: set[str]) -> set[str]:
        found: set[str] = set()
        for source in self.sources:
            if source.name not in needed or isinstance(source, Clock):
                continue  # nobody sends time points: they pass at every broker
            senders = self._senders(source)
            if not senders:
                kinds = {sender.event_type for sender in self.network.sources}
                raise NetworkError(
                    f"no source of the network sends {source.event_type!r} events, which the query reads",
                    did_you_mean(source.event_type, kinds)
                    or f"add one under 'sources': {{type: {source.event_type}, at: edge-1}}",
                )
            found.update(feed.name for feed in senders)
        return found

    def _carriers(self, name: str) -> list[str]:
        """Name the feeds and tasks that together carry a stream of the graph."""
        operator = self.operators[name]
        root, _ = selection(self.graph, name)
        if not isinstance(root, Source):
            return [name]
        senders = [feed.name for feed in self._senders(root)]
        if isinstance(operator, Source):
            return senders
        return [name] if len(senders) == 1 else [f"{name} at {sender}" for sender in senders]

    # -- tasks -----------------------------------------------------------------------------------------------

    def _tasks(self, operator: Operator) -> Iterator[Task]:
        if isinstance(operator, Source):
            return
        order, read = self._below(operator)
        root, _ = selection(self.graph, operator.name)
        if not isinstance(root, Source):
            inputs = tuple(name for each in read for name in self._carriers(each))
            yield self._task(operator, operator.name, inputs, order, 1.0)
            return
        # A condition on events as they come in: one for each who sends them, reading what that one sends.
        feeds = self._senders(root)
        total = sum(feed.rate_hz for feed in feeds)
        below = [self._carriers(each) for each in read]
        for number, (feed, name) in enumerate(zip(feeds, self._carriers(operator.name), strict=True)):
            share = feed.rate_hz / total if total else 1 / len(feeds)
            inputs = tuple(each[number] for each in below)
            yield self._task(operator, name, inputs, order, share, feed.size_b)

    def _task(
        self,
        operator: Operator,
        name: str,
        inputs: tuple[str, ...],
        order: list[Operator],
        share: float,
        size_b: float | None = None,
    ) -> Task:
        return Task(
            name,
            inputs,
            self.rates[operator.name] * share,
            self.size(operator.name) if size_b is None else size_b,
            work=share * sum(self._work(each) for each in order),
            fixed_b=float(sum(len(repr(each)) for each in order)),
            window_b=share * sum(self._state(each) for each in order),
            operators=tuple(each.name for each in order),
        )

    # -- rates and sizes -------------------------------------------------------------------------------------

    @cached_property
    def rates(self) -> dict[str, float]:
        """Events a second of every stream: as in the recording, for the rates that the feeds have."""
        measured = self.statistics.rates
        found: dict[str, float] = {}
        per_type = {source.event_type: self._sent(source) for source in self.sources}
        likely = likely_rates(self.graph, Observed(per_type))
        for operator in self.graph.operators:
            name = operator.name
            if isinstance(operator, Source):
                found[name] = per_type[operator.event_type]
            elif name in measured and all(each in measured for each in operator.inputs):
                before = sum(measured[each] for each in operator.inputs)
                now = sum(found[each] for each in operator.inputs)
                found[name] = measured[name] * now / before if before else 0.0
            else:
                found[name] = likely[name]
        return found

    def _sent(self, source: Source) -> float:
        return sum(feed.rate_hz for feed in self._senders(source))

    def size(self, name: str) -> float:
        """Give the bytes of an event of a stream: as in the recording, or estimated."""
        if name in self.statistics.sizes:
            return self.statistics.sizes[name]
        operator = self.operators[name]
        sizes = [self.size(each) for each in operator.inputs]
        match operator:
            case Source():
                return EVENT_B + _schema_size(operator.schema)
            case Filter() | Merge():
                return max(sizes)
            case Match():
                return sum(self.size(part.input) for part in operator.parts)
            case Derive():
                named = [len(case.assign) for case in operator.cases]
                return EVENT_B + VALUE_B * max(named, default=0) if any(named) else max(sizes)
            case Aggregate():
                return EVENT_B + VALUE_B * len(operator.post or operator.assign)
            case Custom():
                return EVENT_B + VALUE_B * len(operator.attributes)
        return sum(sizes)

    def _work(self, operator: Operator) -> float:
        """Give the seconds of one core that an operator needs in a second."""
        before = sum(self.rates[each] for each in operator.inputs)
        if operator.name in self.statistics.work:
            seen = sum(self.statistics.rates[each] for each in operator.inputs)
            return self.statistics.work[operator.name] * before / seen if seen else 0.0
        units = sum(cost(each) for each in expressions(operator))
        return before * (EVENT_S + UNIT_S * units) + self.rates[operator.name] * MAKING * EVENT_S

    def _state(self, operator: Operator) -> float:
        """Give the bytes that an operator remembers: for how long, how many events, how large they are."""
        rate = sum(self.rates[each] for each in operator.inputs)
        bytes_s = sum(self.rates[each] * self.size(each) for each in operator.inputs)
        if not rate:
            return 0.0
        events = state_of(operator, self.rates).events
        return bytes_s * ENDLESS_S if events is None else events * bytes_s / rate


def _schema_size(schema: EventSchema | None) -> float:
    """Estimate the bytes of the attributes; of an undeclared type, those of as many as a small event has."""
    if schema is None:
        return 2 * VALUE_B
    return sum(TEXT_B if kind is Type.STRING else VALUE_B for kind in schema.attributes.values())
