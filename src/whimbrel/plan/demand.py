"""What a query asks of a network: its operator graph cut into tasks, with rates, sizes, work and state.

The graph is cut only at streams that can travel as events: those of sources, of definitions (`Derive`) and of
conditions on single events of either. A task is a definition with what is below it down to such streams.
What several definitions need and cannot travel, such as combinations of events, each runs for itself. A
condition on single events is a task of its own, one for each source of the network that sends such events, so
that it can run where they come from.

Rates, sizes and how many events pass come from recorded events, if there are any
(`whimbrel.backtesting.measure` makes the `Statistics`); else they are estimated from the query alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from whimbrel.errors import NetworkError, did_you_mean
from whimbrel.graph.costs import Observed, cost
from whimbrel.graph.estimate import MAKING, likely_rates
from whimbrel.graph.operators import (
    ANY,
    Aggregate,
    Custom,
    Derive,
    Filter,
    Graph,
    Merge,
    Operator,
    Source,
    TimePoints,
)
from whimbrel.graph.query import Compilable, Query, compiled, refuse_mobile_parts
from whimbrel.graph.scope import selection
from whimbrel.graph.wiring import readers
from whimbrel.model.schema import EventSchema, Type
from whimbrel.model.time import DAY, SECOND
from whimbrel.plan.network import EventSource, Network, unknown
from whimbrel.plan.statistics import (
    NO_STATISTICS,
    Bursts,
    Origin,
    SenderShares,
    SourceStatistics,
    Statistics,
    peaks,
)
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


def graph_to_plan(query: Query | Compilable) -> Graph:
    """Return the graph that is cut into tasks: the one that the engine runs."""
    plain = compiled(query)
    refuse_mobile_parts(plain, "planning")
    return plain.rewritten


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


_CLASS = re.compile(r"\b[A-Z]\w+(?=\()")
_WRITTEN_AS = {
    "JoinPattern": "Match", "StepPattern": "Sequence", "TimePoints": "Clock", "TimeOrder": "Order",
    "DeriveCase": "Case", "PatternStep": "Step", "StepTest": "Test", "StepGroup": "Group",
    "SkipPolicy": "Skip", "StepBound": "Bound", "PartRef": "Part",
}  # fmt: skip
"""What the size of a definition counts for a class that has been renamed: a name in the code is no part of a
plan, so that renaming one may change no plan."""


class _Passed(NamedTuple):
    """What a stream has: events a second, their size, and how many come at once, if that is known."""

    rate_hz: float
    size_b: float
    bursts: Bursts | None = None


class _Cutter:
    def __init__(
        self, graph: Graph, network: Network, statistics: Statistics, rates: Mapping[str, float]
    ) -> None:
        self.graph, self.network, self.statistics, self.given = graph, network, statistics, rates
        self.operators = {operator.name: operator for operator in graph.operators}
        self.sources = [operator for operator in graph.operators if isinstance(operator, Source)]
        for name in rates:
            if all(name != source.event_type for source in self.sources):
                known = [source.event_type for source in self.sources]
                raise NetworkError(f"the query reads no events of type {name!r}", did_you_mean(name, known))

    def workload(self) -> Workload:
        deliveries = self._deliveries()
        needed = self._needed({delivery.stream for delivery in deliveries})
        feeds = [feed for feed in self.feeds if feed.name in self._feeds_of(needed)]
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
        return [
            self._feed(sender, rate)
            for kind, senders in self._by_type.items()
            for sender, rate in zip(senders, self._sent_rates(kind, senders), strict=True)
        ]

    @cached_property
    def _by_type(self) -> dict[str, list[EventSource]]:
        senders: dict[str, list[EventSource]] = {}
        for sender in self.network.sources:
            senders.setdefault(sender.event_type, []).append(sender)
        return senders

    @cached_property
    def _senders_by_name(self) -> dict[str, EventSource]:
        return {sender.name: sender for sender in self.network.sources}

    @cached_property
    def _shares(self) -> dict[str, SenderShares]:
        """What of the recorded events each sender of a type has."""
        return {
            kind: SenderShares(senders, self._recorded(kind) or {}) for kind, senders in self._by_type.items()
        }

    def _recorded(self, kind: str) -> dict[Origin, SourceStatistics] | None:
        """Return the recorded events of a type by their sources; None if there is no recording of them."""
        for source in self.sources:
            if source.event_type in (kind, ANY) and source.name in self.statistics.parts:
                parts = self.statistics.parts[source.name]
                return {origin: part for origin, part in parts.items() if origin[0] == kind}
        return None

    def _sent_rates(self, kind: str, senders: list[EventSource]) -> list[float]:
        """Share out the rate of a type: as the network says, or the recording, or evenly."""
        recorded, shares = self._recorded(kind), self._shares[kind]
        sent = {sender.name: shares.part(sender.name, recorded or {}).rate_hz for sender in senders}
        known = [
            sender.rate_hz
            if sender.rate_hz is not None
            else sent[sender.name] if shares.is_named(sender.name) else None
            for sender in senders
        ]  # fmt: skip
        total = 1.0 if recorded is None else sum(part.rate_hz for part in recorded.values())
        rest = max(total - sum(rate for rate in known if rate is not None), 0.0)
        others = sum(rate is None for rate in known)
        rates = [rest / others if rate is None else rate for rate in known]
        if kind in self.given:
            whole = sum(rates)
            return [self.given[kind] * (rate / whole if whole else 1 / len(rates)) for rate in rates]
        return rates

    def _feed(self, sender: EventSource, rate_hz: float) -> Feed:
        recorded = self._recorded(sender.event_type) or {}
        part = self._shares[sender.event_type].part(sender.name, recorded)
        size = sender.size_b
        if size is None:
            size = part.size_b if part.rate_hz else self._sent_size(sender.event_type)
        if not part.rate_hz:
            return Feed(sender.name, rate_hz, size, sender.at)
        more = peaks(part.bursts, rate_hz, size)
        return Feed(sender.name, rate_hz, size, sender.at, part.bursts[0] * size, more)

    def _sent_size(self, kind: str) -> float:
        source = next((source for source in self.sources if source.event_type == kind), None)
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
        latencies: dict[tuple[str, str], float] = {}
        for consumer in self.network.consumers:
            for kind in consumer.wants or dict.fromkeys(all_types):
                if kind not in streams:
                    raise unknown("definition of the query", kind, streams, f"{consumer.name!r} wants it")
                for name in streams[kind]:
                    key = (name, consumer.at)
                    latencies[key] = min(consumer.latency_s, latencies.get(key, math.inf))
        return [Delivery(name, at, latency) for (name, at), latency in latencies.items()]

    # -- what travels ----------------------------------------------------------------------------------------

    @cached_property
    def _is_cut(self) -> set[str]:
        """The streams that travel: sources, definitions, and conditions on single events of either."""
        above = readers(self.graph)
        cut = set()
        for operator in self.graph.operators:
            root, _ = selection(self.graph, operator.name)
            if not isinstance(root, Source | Derive):
                continue
            is_read_further = any(not isinstance(reader, Filter) for reader in above[operator.name])
            if not isinstance(operator, Filter) or is_read_further or operator.name in self.graph.outputs:
                cut.add(operator.name)
        return cut

    def _below(self, operator: Operator) -> tuple[list[Operator], list[str]]:
        """Return the operators of the task that makes a stream, in order, and the streams that it reads."""
        inside, read = {operator.name}, set()
        for below in reversed(self.graph.operators):
            if below.name in inside:
                for name in below.inputs:
                    if name in self._is_cut:
                        read.add(name)
                    else:
                        inside.add(name)
        order = [operator for operator in self.graph.operators if operator.name in inside]
        return order, [operator.name for operator in self.graph.operators if operator.name in read]

    def _needed(self, wanted: set[str]) -> set[str]:
        """Name the travelling streams that others need which are wanted, and those themselves."""
        needed = set(wanted)
        for operator in reversed(self.graph.operators):
            if operator.name in needed:
                needed.update(self._below(operator)[1])
        return needed

    def _senders(self, source: Source) -> list[Feed]:
        kinds = {sender.name: sender.event_type for sender in self.network.sources}
        return [feed for feed in self.feeds if source.event_type in (ANY, kinds[feed.name])]

    def _feeds_of(self, needed: set[str]) -> set[str]:
        names: set[str] = set()
        for source in self.sources:
            if source.name not in needed or isinstance(source, TimePoints):
                continue  # nobody sends time points: they pass at every broker
            senders = self._senders(source)
            if not senders:
                kinds = {sender.event_type for sender in self.network.sources}
                raise NetworkError(
                    f"no source of the network sends {source.event_type!r} events, which the query reads",
                    did_you_mean(source.event_type, kinds)
                    or f"add one under 'sources': {{type: {source.event_type}, at: edge-1}}",
                )
            names.update(feed.name for feed in senders)
        return names

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
            inputs = tuple(name for stream in read for name in self._carriers(stream))
            yield self._task(operator.name, inputs, order, 1.0, self._made(operator.name))
            return
        # A condition on events as they come in: one for each who sends them, reading what that one sends.
        below = [self._carriers(name) for name in read]
        comes = sum(self.rates[name] for name in read)
        feeds = self._senders(root)
        for number, (feed, name) in enumerate(zip(feeds, self._carriers(operator.name), strict=True)):
            here = sum(self._passed(name, feed).rate_hz for name in read)
            inputs = tuple(stream[number] for stream in below)
            share = here / comes if comes else 1 / len(feeds)
            yield self._task(name, inputs, order, share, self._passed(operator.name, feed))

    def _task(
        self,
        name: str,
        inputs: tuple[str, ...],
        order: list[Operator],
        share: float,
        given: _Passed,
    ) -> Task:
        return Task(
            name,
            inputs,
            given.rate_hz,
            given.size_b,
            work=share * sum(self._work(operator) for operator in order),
            fixed_b=float(sum(definition_b(operator) for operator in order)),
            window_b=share * sum(self._state(operator) for operator in order),
            operators=tuple(operator.name for operator in order),
            burst_b=None if given.bursts is None else given.bursts[0] * given.size_b,
            peaks=() if given.bursts is None else peaks(given.bursts, given.rate_hz, given.size_b),
        )

    # -- rates and sizes -------------------------------------------------------------------------------------

    @cached_property
    def rates(self) -> dict[str, float]:
        """Events a second of every stream: as in the recording, for the rates that the feeds have."""
        measured = self.statistics.rates
        rates: dict[str, float] = {}
        per_type = {source.event_type: self._sent(source) for source in self.sources}
        likely = likely_rates(self.graph, Observed(per_type))
        for operator in self.graph.operators:
            name = operator.name
            root, _ = selection(self.graph, name)
            if isinstance(operator, TimePoints):
                rates[name] = measured.get(name, 0.0)
            elif isinstance(operator, Source):
                rates[name] = per_type[operator.event_type]
            elif isinstance(root, Source) and name in self.statistics.parts:
                rates[name] = sum(self._counted(name, root, feed).rate_hz for feed in self._senders(root))
            elif name in measured and all(name in measured for name in operator.inputs):
                before = sum(measured[name] for name in operator.inputs)
                now = sum(rates[name] for name in operator.inputs)
                rates[name] = measured[name] * now / before if before else 0.0
            else:
                rates[name] = likely[name]
        return rates

    def _sent(self, source: Source) -> float:
        return sum(feed.rate_hz for feed in self._senders(source))

    def _passed(self, name: str, feed: Feed) -> _Passed:
        """Return what a stream of single events has of a feed."""
        root, _ = selection(self.graph, name)
        assert isinstance(root, Source)
        if name == root.name:
            return _Passed(feed.rate_hz, feed.size_b)
        if name in self.statistics.parts:
            return self._counted(name, root, feed)
        sent = self._sent(root)
        share = feed.rate_hz / sent if sent else 1 / len(self._senders(root))
        return _Passed(self.rates[name] * share, feed.size_b)

    def _counted(self, name: str, root: Source, feed: Feed) -> _Passed:
        """Return what the recording has of a feed in a stream of single events, for the rate of the feed."""
        sender, parts = self._senders_by_name[feed.name], self.statistics.parts
        shares = self._shares[sender.event_type]
        sent, passed = (shares.part(feed.name, parts[stream]) for stream in (root.name, name))
        if not sent.rate_hz:  # nothing of it was recorded: what passes is as of all others
            recorded = self.statistics.rates[root.name]
            share = self.statistics.rates[name] / recorded if recorded else 0.0
            return _Passed(feed.rate_hz * share, feed.size_b)
        size = passed.size_b if sender.size_b is None and passed.rate_hz else feed.size_b
        return _Passed(passed.rate_hz * feed.rate_hz / sent.rate_hz, size, passed.bursts)

    def _made(self, name: str) -> _Passed:
        """Return what a definition makes, or a condition on what one makes."""
        return _Passed(self.rates[name], self.size(name), self.statistics.bursts.get(name))

    def size(self, name: str) -> float:
        """Return the bytes of an event of a stream: as in the recording, or estimated."""
        if name in self.statistics.sizes:
            return self.statistics.sizes[name]
        operator = self.operators[name]
        sizes = [self.size(name) for name in operator.inputs]
        match operator:
            case Source():
                return EVENT_B + _schema_size(operator.schema)
            case Filter() | Merge():
                return max(sizes)
            case _ if operator.constituents:
                return sum(self.size(member.stream) for member in operator.constituents)
            case Derive():
                named = [len(case.assign) for case in operator.cases]
                return EVENT_B + VALUE_B * max(named, default=0) if any(named) else max(sizes)
            case Aggregate():
                return EVENT_B + VALUE_B * len(operator.post or operator.assign)
            case Custom():
                return EVENT_B + VALUE_B * len(operator.attributes)
        return sum(sizes)

    def _work(self, operator: Operator) -> float:
        """Return the seconds of one core that an operator needs in a second."""
        before = sum(self.rates[name] for name in operator.inputs)
        if operator.name in self.statistics.work:
            seen = sum(self.statistics.rates[name] for name in operator.inputs)
            return self.statistics.work[operator.name] * before / seen if seen else 0.0
        units = sum(cost(expression) for expression in operator.expressions())
        return before * (EVENT_S + UNIT_S * units) + self.rates[operator.name] * MAKING * EVENT_S

    def _state(self, operator: Operator) -> float:
        """Return the bytes that an operator remembers: for how long, how many events, how large they are."""
        rate = sum(self.rates[name] for name in operator.inputs)
        bytes_s = sum(self.rates[name] * self.size(name) for name in operator.inputs)
        if not rate:
            return 0.0
        events = operator.state(self.rates).events
        return bytes_s * ENDLESS_S if events is None else events * bytes_s / rate


def definition_b(operator: Operator) -> int:
    """Return the bytes that the definition of an operator takes when it moves to another broker."""
    return len(_CLASS.sub(lambda found: _WRITTEN_AS.get(found[0], found[0]), repr(operator)))


def _schema_size(schema: EventSchema | None) -> float:
    """Estimate the bytes of the attributes; of an undeclared type, those of as many as a small event has."""
    if schema is None:
        return 2 * VALUE_B
    return sum(TEXT_B if kind is Type.STRING else VALUE_B for kind in schema.attributes.values())
