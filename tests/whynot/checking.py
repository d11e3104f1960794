# ruff: noqa: ARG002 (the rules of one table share one signature)
"""Try every reason of an explanation with the reference: its streams, its expressions, its rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.reference.data import Event, Item
from tests.reference.expressions import Bound, Env, World, evaluate, read
from tests.reference.matches import Combination, _in_order, fits, violates
from tests.reference.reference import run_operator
from tests.reference.streams import aggregated, bind, group_of, names_of

from whimbrel.graph.expressions import Expr, conjuncts
from whimbrel.graph.operators import Aggregate, Graph, JoinPattern, Merge, Operator, Repeat
from whimbrel.graph.operators.change import Change
from whimbrel.graph.policies import Context, Select
from whimbrel.model.schema import Coordinates
from whimbrel.whynot import Explanation, Miss, Reason
from whimbrel.whynot.events import Seen

WORLD = World({}, Coordinates.PLANE)


class Checker:
    """What the reference makes of a graph and events, stream by stream."""

    def __init__(
        self, graph: Graph, events: Sequence[Event], *, since: int = -(2**62), until: int = 2**62
    ) -> None:
        self.graph = graph
        self.since, self.until = since, until
        self.streams: dict[str, list[Item]] = {}
        for operator in graph.operators:
            self.streams[operator.name] = run_operator(operator, self.streams, events, graph, WORLD)

    def check(self, explanation: Explanation) -> None:
        """Assert that everything the explanation says is true."""
        for finding in explanation.findings:
            if all(finding.operator != case.input for case in self._cases()):
                continue
            there = [item for item in self.streams[finding.operator] if self._is_around(item)]
            assert finding.detections == len(there), finding.operator
        for miss in explanation.misses:
            operator = self.graph[miss.operator]
            assert miss.reasons, miss
            for reason in miss.reasons:
                assert self.is_true(operator, miss, reason), f"{reason.kind}: {reason}\n{miss}"

    def _is_around(self, item: Item) -> bool:
        return item.start <= self.until and item.end >= self.since

    def _is_silent(self, stream: str) -> bool:
        return not any(self._is_around(item) for item in self.streams[stream])

    def _cases(self) -> Iterator:
        for operator in self.graph.operators:
            yield from getattr(operator, "cases", ())

    def is_true(self, operator: Operator, miss: Miss, reason: Reason) -> bool:
        """Tell whether a reason is one, as the reference sees it."""
        match operator:
            case JoinPattern():
                return getattr(self, f"_{reason.kind}")(operator, miss, reason)
            case Repeat():
                return self._stretch(operator, miss, reason)
            case Aggregate():
                return self._window(operator, miss, reason)
            case Change() if reason.kind != "nothing":
                pair = {name: self.item(seen) for name, seen in miss.parts}
                return self._is_false(reason.condition, Env(WORLD, pair, dict(miss.key)))
        if reason.kind == "nothing":
            return self._is_silent(operator.name)
        item = self.item(miss.parts[0][1])
        assert all(read(item, name) == value for name, value in miss.key.items() if name in ("k", "source"))
        return self._is_false(reason.condition, Env(WORLD, {None: item}, item.group))

    # -- events --------------------------------------------------------------------------------------------

    def item(self, seen: Seen | None) -> Item:
        """Give the event of the reference that an explanation speaks of."""
        assert seen is not None
        found = self.items(seen)
        assert found, f"{seen} is no event of {seen.stream}"
        return found[0]

    def items(self, seen: Seen) -> list[Item]:
        return [
            item
            for item in self.streams[seen.stream]
            if {atom.id for atom in item.atoms} == set(seen.events)
            and (item.start, item.end) == (seen.start, seen.end)
        ]

    def binding(self, miss: Miss) -> dict[int, Item]:
        return {n: self.item(seen) for n, (_, seen) in enumerate(miss.parts) if seen is not None}

    def part(self, match: JoinPattern, miss: Miss, reason: Reason) -> int:
        return [name for name, _ in miss.parts].index(reason.part or "")

    def aliases(self, match: JoinPattern, number: int, seen: Seen) -> list[str | None]:
        """Give the names that an event may have as a part: one, or those of several alternatives."""
        part = match.parts[number]
        operator = self.graph[part.input]
        if seen.stream == part.input or not isinstance(operator, Merge):
            return [part.alias]
        return [branch.alias for branch in operator.branches]

    def envs(self, match: JoinPattern, miss: Miss) -> list[Env]:
        """Bind the names of the parts, in every way that an event of an alternative may have come by."""
        choices: list[dict[str | None, Bound]] = [{}]
        for number, (_, seen) in enumerate(miss.parts):
            if seen is None:
                continue
            item = self.item(seen)
            nothing = dict.fromkeys(names_of(self.graph, match.parts[number].input) or ())
            names = self.aliases(match, number, seen)
            choices = [{**known, **nothing, **bind(item, name)} for known in choices for name in names]
            choices = [{**known, None: item} if len(miss.parts) == 1 else known for known in choices]
        return [Env(WORLD, parts, dict(miss.key)) for parts in choices]

    @staticmethod
    def _is_false(condition: Expr | None, env: Env) -> bool:
        return condition is not None and evaluate(condition, env) is not True

    # -- patterns ------------------------------------------------------------------------------------------

    def _condition(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        every = [part for condition in match.conditions for part in conjuncts(condition)]
        if any(reason.condition == condition for condition in every):
            return any(self._is_false(reason.condition, env) for env in self.envs(match, miss))
        item = self.item(miss.parts[self.part(match, miss, reason)][1])
        return self._is_false(reason.condition, Env(WORLD, {None: item}, item.group))

    _null = _condition

    def _order(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        binding = self.binding(miss)
        return any(
            not _in_order(binding[rule.first], binding[rule.second], None if rule.gap is None else 2**62)
            for rule in match.orders
            if rule.first in binding and rule.second in binding
        )

    def _time(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        binding = self.binding(miss)
        took = max(i.end for i in binding.values()) - min(i.start for i in binding.values())
        return took > match.within or any(
            rule.gap is not None and binding[rule.second].end - binding[rule.first].end > rule.gap
            for rule in match.orders
            if rule.first in binding and rule.second in binding
        )

    def _same(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        binding = list(self.binding(miss).values())
        return any(a.identity is b.identity for n, a in enumerate(binding) for b in binding[:n])

    def _group(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        binding = self.binding(miss)
        own = binding[self.part(match, miss, reason)]
        return group_of(own, match.partitioning) != dict(miss.key)

    def _nothing(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        number = self.part(match, miss, reason)
        there = [item for item in self.streams[match.parts[number].input] if self._is_around(item)]
        return not there or not [
            item for item in there if group_of(item, match.partitioning) == dict(miss.key)
        ]

    def _present(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        combination = Combination(match, tuple(self.binding(miss).values()))
        return any(
            violates(item, absent, combination) and fits(item, absent, env)
            for env in self.envs(match, miss)
            for absent in match.absent
            if absent.alias == reason.part
            for item in self.items(reason.events[0])
        )

    def _selected(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        number = self.part(match, miss, reason)
        own, rival = self.binding(miss)[number], self.item(reason.events[0])
        is_first = match.parts[number].select is Select.FIRST
        return rival is not own and ((rival.end <= own.end) if is_first else (rival.end >= own.end))

    def _consumed(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        event, by = reason.events
        if not match.consuming and match.context in (Context.EACH, Context.RECENT):
            return False
        return bool(self.items(by)) and set(event.events) <= set(by.events)

    def _context(self, match: JoinPattern, miss: Miss, reason: Reason) -> bool:
        return match.context in (Context.RECENT, Context.CHRONICLE)

    # -- repetitions and windows ---------------------------------------------------------------------------

    def _stretch(self, op: Repeat, miss: Miss, reason: Reason) -> bool:
        if reason.kind == "nothing":
            return self._is_silent(op.input)
        had = [self.item(seen) for _, seen in miss.parts if seen is not None]
        assert len(had) < op.at_least or reason.kind == "time"
        same = [i for i in self.streams[op.input] if group_of(i, op.partitioning) == dict(miss.key)]
        first = next(n for n, item in enumerate(same) if item is had[0])
        more = same[first : first + len(had) + 1]
        if reason.kind == "few":
            return len(more) == len(had)
        if reason.kind == "time":
            more = more if len(had) < op.at_least else had
            return max(i.end for i in more) - min(i.start for i in more) > op.within
        return reason.kind == "ended" and bool(self.items(reason.events[0]))

    def _window(self, op: Aggregate, miss: Miss, reason: Reason) -> bool:
        if reason.kind == "nothing":
            return any(self._is_silent(part.input) for part in op.parts)
        if reason.kind == "few":
            return self._is_silent(op.name) and (op.window.every or 1) > 1
        every = replace(op, having=None, parts=tuple(replace(part, outer=True) for part in op.parts))
        results = aggregated(every, self.streams, self.graph, WORLD)
        if miss.parts[0][1] is None:
            return reason.kind == "empty" and not any(self._is_around(item) for item in results)
        ids = set(miss.parts[0][1].events)
        mine = [
            item
            for item in results
            if {a.id for a in item.atoms} == ids and dict(item.group) == dict(miss.key)
        ]
        if reason.kind == "empty":
            return bool(mine) and any(not part.outer for part in op.parts)
        return any(self._is_false(reason.condition, Env(WORLD, {None: item}, item.group)) for item in mine)
