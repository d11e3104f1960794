"""Which branches of a query that follows something the tests reach: who was followed, and what was told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from whimbrel.graph.expressions import conjunction, conjuncts
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.mobile.parts import is_found_once
from whimbrel.graph.operators import Filter, Source
from whimbrel.graph.query import Query
from whimbrel.model.deliveries import has_deliveries
from whimbrel.testing.coverage import PREFIX, Counts, Goal, Probe, condition_text, span_of


def goals_of_mobile(query: Query, probe: Probe) -> Iterator[Goal]:
    """List the branches of all mobile queries of a query."""
    for mobile in query.mobile:
        goals = _Goals(mobile, probe)
        yield from goals.of_updates()
        yield from goals.of_deliveries()


def counts_of_deliveries(table: pa.Table) -> Counter[str]:
    """Count what was told, by the names that the goals ask for."""
    if not has_deliveries(table.schema):
        return Counter()
    counts: Counter[str] = Counter()
    different = set()
    for row in table.select(["query", "type", "live", "change", "interest", "id"]).to_pylist():
        name, kind = row["query"], row["type"]
        counts[_stream(name, kind, "live" if row["live"] else "history")] += row["change"] == "added"
        counts[_stream(name, row["change"])] += 1
        counts[_stream(name, "later")] += row["interest"] > 1
        different.add((name, kind, row["id"]))
    return counts + Counter(_stream(name, kind) for name, kind, _ in different)


def _stream(*names: str) -> str:
    return f"{PREFIX}told {' '.join(names)}"


@dataclass
class _Goals:
    """The branches of one mobile query."""

    query: MobileQuery
    probe: Probe

    def of_updates(self) -> Iterable[Goal]:
        """Ask whether anybody was followed, and whether the condition refused anybody."""
        focal, at = self.query.focal, self.probe.positions.mobile.get(self.query.name)
        every = self._source()
        if focal.condition is None:
            yield Goal(self._text("a location update came"), at, self.probe.some(every))
            return
        passed = self.probe.add(Filter("", every, focal.condition))
        yield Goal(self._text("a location update came"), at, self.probe.some(passed))
        conditions = tuple(conjuncts(focal.condition))
        for condition in conditions:
            others = conjunction(tuple(each for each in conditions if each is not condition))
            without = every if others is None else self.probe.add(Filter("", every, others))
            text = f"a location update was refused by the condition {condition_text(condition)}"
            yield Goal(self._text(text), span_of(condition) or at, self.probe.more(without, passed))

    def of_deliveries(self) -> Iterable[Goal]:
        """Ask what was told of each definition, and whether interests moved and left anything out."""
        at, query = self.probe.positions.mobile.get(self.query.name), self.query
        focal_lifetimes = (each.lifetime or 0 for each in query.focal.listed or ())
        has_history = query.lifetime > 0 or any(focal_lifetimes)
        for stream, kind in zip(query.detect.graph.outputs, query.detect.types, strict=True):
            yield Goal(self._text(f"{kind} was told live"), at, self._told(kind, "live"))
            if has_history:
                yield Goal(self._text(f"{kind} was told of history"), at, self._told(kind, "history"))
            if query.of_situations or is_found_once(query, query.detect.graph, stream):
                yield Goal(self._text(f"{kind} was told to nobody"), at, self._outside(stream, kind))
        yield Goal(self._text("something was told in a later interest"), at, self._told("later"))
        if query.policy.deliver == "changes":
            for change in ("kept", "removed"):
                yield Goal(self._text(f"something was {change}"), at, self._told(change))

    def _outside(self, stream: str, kind: str) -> Callable[[Counts], bool]:
        """Ask whether more was found than anybody was told of."""
        self.probe.some(stream)
        wanted = _stream(self.query.name, kind)
        return lambda counts: counts.get(stream, 0) > counts.get(wanted, 0)

    def _told(self, *names: str) -> Callable[[Counts], bool]:
        wanted = _stream(self.query.name, *names)
        return lambda counts: counts.get(wanted, 0) > 0

    def _text(self, text: str) -> str:
        return f"around {self.query.name}: {text}"

    def _source(self) -> str:
        """Name the stream of all events of the type of location updates."""
        event_type = self.query.focal.type
        for operator in self.probe.graph.operators:
            if type(operator) is Source and operator.event_type == event_type:
                return operator.name
        return self.probe.add(Source("", event_type, self.query.detect.schemas.get(event_type)))
