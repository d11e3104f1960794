"""Patterns of steps in Python and in JSON: what Flink CEP's Pattern API says, in its words.

>>> pattern = (
...     Pattern.begin("a", "Position", where="speed > 30")
...     .followed_by("b", where="speed < first(a.speed) / 2").one_or_more().greedy()
...     .within("1 min").by("vehicle")
... )
>>> print(pattern.text("Brake"))
define Brake
  detect Position(speed > 30) as a
      followed by *(speed < first(a.speed) / 2)+ greedy as b
      within 1 min
  assign a = ids(a), b = ids(b)
  group by vehicle
  among *
<BLANKLINE>
>>> Pattern.from_dict(pattern.to_dict()) == pattern
True

`pattern.compile("Brake")` gives a query. Each detection has an attribute for each step: the ids of the events
it took. The JSON form is `to_dict` and `from_dict`; a file `Brake.json` with it is a query file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, TypeAlias

from whimbrel.errors import QueryError
from whimbrel.graph.operators import ANY
from whimbrel.graph.query import Query
from whimbrel.lang.values import ValueBuilder
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.compile import compile_tree
from whimbrel.lang.wbl.format import format_tree
from whimbrel.lang.wbl.parse import parse
from whimbrel.model.time import duration

Condition: TypeAlias = str | ValueBuilder
"""A condition in the Whimbrel language, or as `whimbrel.lang.builder` makes it."""

FOLLOWING = {
    "next": "next",
    "followedBy": "followed by",
    "followedByAny": "followed by any",
    "notNext": "not next",
    "notFollowedBy": "not followed by",
}
STRATEGIES = {
    "skip_to_next": "to next",
    "skip_past_last_event": "past last event",
    "skip_to_first": "to first",
    "skip_to_last": "to last",
}


@dataclass(frozen=True, slots=True)
class StepQuantity:
    """How often a step or a group is taken; `max` None: any number."""

    min: int = 1
    max: int | None = 1
    optional: bool = False
    greedy: bool = False
    consecutive: bool = False
    combinations: bool = False
    until: str | None = None
    window_ms: float | None = None
    """Less than how long after the one before each further event is taken."""


@dataclass(frozen=True, slots=True)
class StepOf:
    """One step, or, where it has branches, a group of them (with several branches: one of which is taken)."""

    name: str | None = None
    type: str | None = None
    condition: str | None = None
    contiguity: str | None = None
    quantifier: StepQuantity = StepQuantity()
    within_previous_ms: float | None = None
    branches: tuple[tuple[StepOf, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Skipping:
    """Where matching goes on after a match."""

    strategy: str = "no_skip"
    step: str | None = None
    throw_on_miss: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of steps. Every method gives a new pattern; what says how often is about the last step."""

    steps: tuple[StepOf, ...]
    key: tuple[str, ...] = ()
    within_ms: float | None = None
    within_type: str = "first_to_last"
    gap_ms: float | None = None
    skip: Skipping = Skipping()
    timeouts: str | None = None
    runs: int | None = None
    drop: str = "oldest"
    counts: bool = False

    @classmethod
    def begin(
        cls, name: str | Pattern, type: str | None = None, *, where: Condition | None = None
    ) -> Pattern:
        """Begin with a step, or with a pattern as a group: `begin("a", "Position", where="speed > 30")`."""
        return cls((_step(name, type, where, None),))

    # -- steps ---------------------------------------------------------------------------------------------

    def next(
        self, name: str | Pattern, type: str | None = None, *, where: Condition | None = None
    ) -> Pattern:
        """Go on with the very next event of the key; a pattern in place of a name is a group."""
        return self._and_then("next", name, type, where)

    def followed_by(
        self, name: str | Pattern, type: str | None = None, *, where: Condition | None = None
    ) -> Pattern:
        """Go on with the next event that fits; others in between are skipped."""
        return self._and_then("followedBy", name, type, where)

    def followed_by_any(
        self, name: str | Pattern, type: str | None = None, *, where: Condition | None = None
    ) -> Pattern:
        """Go on with each event that fits, also past one that does."""
        return self._and_then("followedByAny", name, type, where)

    def not_next(self, name: str, type: str | None = None, *, where: Condition | None = None) -> Pattern:
        """Demand that the very next event does not fit."""
        return self._and_then("notNext", name, type, where)

    def not_followed_by(
        self, name: str, type: str | None = None, *, where: Condition | None = None
    ) -> Pattern:
        """Demand that no event that fits comes before the next step, or, at the end, in time."""
        return self._and_then("notFollowedBy", name, type, where)

    def _and_then(self, how: str, name: str | Pattern, type: str | None, where: Condition | None) -> Pattern:
        return replace(self, steps=(*self.steps, _step(name, type, where, how)))

    # -- how often -----------------------------------------------------------------------------------------

    def _often(self, **changes: Any) -> Pattern:
        last = self.steps[-1]
        return replace(
            self, steps=(*self.steps[:-1], replace(last, quantifier=replace(last.quantifier, **changes)))
        )

    def times(
        self, least: int, most: int | None = None, *, window: timedelta | str | int | None = None
    ) -> Pattern:
        """Take the last step so many times, or from so many to so many.

        A `window` bounds the time from each of its events to the next; the end is excluded.
        """
        return self._often(min=least, max=least if most is None else most, window_ms=_window(window))

    def times_or_more(self, least: int, *, window: timedelta | str | int | None = None) -> Pattern:
        """Take the last step at least so many times; `window` as for `times`."""
        return self._often(min=least, max=None, window_ms=_window(window))

    def one_or_more(self, *, window: timedelta | str | int | None = None) -> Pattern:
        """Take the last step once or more often; `window` as for `times`."""
        return self._often(min=1, max=None, window_ms=_window(window))

    def optional(self) -> Pattern:
        """Let the last step be missing."""
        return self._often(optional=True)

    def greedy(self) -> Pattern:
        """Take as many events for the last step as possible."""
        return self._often(greedy=True)

    def consecutive(self) -> Pattern:
        """Let nothing lie between the events of the last step."""
        return self._often(consecutive=True)

    def combinations(self) -> Pattern:
        """Let anything lie between the events of the last step, also events that fit it."""
        return self._often(combinations=True)

    def until(self, condition: Condition) -> Pattern:
        """End the loop of the last step with an event that fits; the event is not taken.

        Raises
        ------
        QueryError
            If the last step is no loop, or has an end already.
        """
        last = self.steps[-1]
        shown = "the group" if last.name is None else f"step {last.name!r}"
        wrong = no_end(last.quantifier)
        if wrong is not None:
            raise QueryError(
                f"until ends a loop, and {shown} {wrong}",
                hint="say .one_or_more() or .times_or_more(n) before .until(...)",
            )
        if last.quantifier.until is not None:
            raise QueryError(
                f"{shown} has two conditions that end its loop", hint="join them with 'or' in one"
            )
        return self._often(until=_text(condition))

    # -- the whole -----------------------------------------------------------------------------------------

    def within(self, time: timedelta | str | int) -> Pattern:
        """Bound the time from the first event to the last; the end is excluded."""
        return replace(self, within_ms=duration(time) / 1000, within_type="first_to_last")

    def within_previous(self, time: timedelta | str | int) -> Pattern:
        """Bound the time from the event taken before to that of the last step; the end is excluded."""
        last = replace(self.steps[-1], within_previous_ms=duration(time) / 1000)
        return replace(self, steps=(*self.steps[:-1], last))

    def within_gaps(self, time: timedelta | str | int) -> Pattern:
        """Bound the time from each event taken to the next, whatever the steps; the end is excluded."""
        return replace(self, gap_ms=duration(time) / 1000)

    def by(self, *key: str) -> Pattern:
        """Part the events by attributes."""
        return replace(self, key=key)

    def skip_to_next(self) -> Pattern:
        """After a match, drop the others that begin with the same event."""
        return replace(self, skip=Skipping("skip_to_next"))

    def skip_past_last_event(self) -> Pattern:
        """After a match, drop the others that begin before its end."""
        return replace(self, skip=Skipping("skip_past_last_event"))

    def skip_to_first(self, step: str, *, throw_on_miss: bool = False) -> Pattern:
        """After a match, drop the others that begin before the first event of a step."""
        return replace(self, skip=Skipping("skip_to_first", step, throw_on_miss))

    def skip_to_last(self, step: str, *, throw_on_miss: bool = False) -> Pattern:
        """After a match, drop the others that begin before the last event of a step."""
        return replace(self, skip=Skipping("skip_to_last", step, throw_on_miss))

    def timing_out_as(self, name: str) -> Pattern:
        """Also give the matches that ran out of time, as detections of another type."""
        return replace(self, timeouts=name)

    def limit(self, runs: int, *, drop: str = "oldest") -> Pattern:
        """Bound how many matches a key may have in the making; beyond, the oldest or newest are dropped."""
        return replace(self, runs=runs, drop=drop)

    def counted(self) -> Pattern:
        """Count the matches that each event completes instead of listing them."""
        return replace(self, counts=True)

    # -- JSON ----------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, object]:
        """Write the JSON form; what says nothing is left out."""
        from whimbrel.lang.steps_json import pattern_to_dict

        return pattern_to_dict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> Pattern:
        """Read the JSON form.

        Raises
        ------
        QueryError
            If it is none; says at which place.
        """
        from whimbrel.lang.steps_json import pattern_from_dict

        return pattern_from_dict(document)

    # -- queries -------------------------------------------------------------------------------------------

    def compile(self, name: str = "Match", *, horizon: timedelta | str | int | None = None) -> Query:
        """Compile the pattern; its detections have the type `name`."""
        query = compile_tree(self.tree(name), horizon=horizon, forever=True)
        return replace(query, warnings=(*query.warnings, *self._warnings()))

    def text(self, name: str = "Match") -> str:
        """Write the pattern in the Whimbrel language."""
        return format_tree(self.tree(name))

    def _warnings(self) -> Iterator[str]:
        if self.within_ms is None:
            yield "the pattern has no `within`: what it has begun to match it remembers for ever"
        for step in _every(self.steps):
            if _repeats(step) and step.within_previous_ms is not None:
                yield (
                    f"within_previous_ms says nothing for {step.name!r}, which may be taken several times "
                    f"(as in Flink); quantifier.window_ms bounds the gaps between its events, within_gaps_ms "
                    f"every gap"
                )
        last = self.steps[-1]
        if self.within_type == "previous_to_current" and (last.branches or _repeats(last)):
            yield (
                "within previous_to_current is about the last step, and says nothing where that is a group "
                "or is taken several times (as in Flink); within_gaps_ms bounds every gap"
            )

    def tree(self, name: str) -> t.WblFile:
        """Build the pattern as a tree of the Whimbrel language, with one definition."""
        steps = self.steps
        within = None if self.within_ms is None else _amount(self.within_ms)
        if self.within_type == "previous_to_current" and self.within_ms is not None:
            within = None
            if not steps[-1].branches:
                steps = (*steps[:-1], replace(steps[-1], within_previous_ms=self.within_ms))
        parts = tuple(_part(step) for step in steps)
        connective = t.STEPS if len(parts) > 1 else None
        gaps = None if self.gap_ms is None else _amount(self.gap_ms)
        taken = [step.name for step in _every(self.steps) if not (step.contiguity or "").startswith("not")]
        assign = tuple(t.Assignment(str(n), t.Apply("ids", (t.Name(str(n)),))) for n in taken)
        if self.counts:
            assign = (t.Assignment("matches", t.Name("matches")),)
        case = t.CaseNode(
            t.PatternNode(connective, parts, within, gaps),
            assign=assign,
            group_by=tuple(t.GroupKey(key) for key in self.key),
            among=(t.Name(ANY),),
            skip=self._skip(),
            counting=self.counts,
            limit=None if self.runs is None else t.LimitNode(self.runs, self.drop),
            timing_out=None if self.timeouts is None else t.Name(self.timeouts),
        )
        return t.WblFile((t.Definition(name, (case,)),))

    def _skip(self) -> t.SkipNode | None:
        if self.skip.strategy == "no_skip":
            return None
        return t.SkipNode(STRATEGIES[self.skip.strategy], self.skip.step, self.skip.throw_on_miss)


def either(*patterns: Pattern) -> Pattern:
    """Take one of several patterns: `begin("a").next(either(begin("b"), begin("c").next("d")))`."""
    return Pattern((StepOf(branches=tuple(pattern.steps for pattern in patterns)),))


# -- steps --------------------------------------------------------------------------------------------------


def _step(name: str | Pattern, type: str | None, where: Condition | None, how: str | None) -> StepOf:
    if isinstance(name, Pattern):
        if type is not None or where is not None:
            raise QueryError("a group has no type and no condition of its own", hint="give them to its steps")
        only = name.steps[0]
        if len(name.steps) == 1 and only.branches and only.quantifier == StepQuantity():
            return replace(only, contiguity=how)
        return StepOf(contiguity=how, branches=(name.steps,))
    return StepOf(name, type, None if where is None else _text(where), how)


def _text(condition: Condition) -> str:
    return condition if isinstance(condition, str) else str(condition)


def _every(steps: tuple[StepOf, ...]) -> Iterator[StepOf]:
    """Collect the single steps, also those in groups."""
    for step in steps:
        if step.branches:
            for branch in step.branches:
                yield from _every(branch)
        else:
            yield step


def _window(time: timedelta | str | int | None) -> float | None:
    return None if time is None else duration(time) / 1000


def no_end(quantity: StepQuantity) -> str | None:
    """Say how often a step is taken that is no loop, and so cannot end with `until`; None for a loop."""
    if quantity.max is None:
        return None
    if quantity.max <= 1:
        return "is taken once"
    if quantity.min == quantity.max:
        return f"is taken exactly {quantity.max} times"
    return f"is taken at most {quantity.max} times"


def _repeats(step: StepOf) -> bool:
    return step.quantifier.max is None or step.quantifier.max > 1


def _part(step: StepOf) -> t.PatternPartNode:
    """Write a step as a part of the language's tree."""
    quantity = step.quantifier
    marks = [
        mark for mark in ("optional", "greedy", "consecutive", "combinations") if getattr(quantity, mark)
    ]
    times = (
        None if (quantity.min, quantity.max) == (1, 1) else t.TimesNode(max(1, quantity.min), quantity.max)
    )
    if quantity.min == 0 and "optional" not in marks:
        marks.insert(0, "optional")
    if times is not None and times.at_most == 1:
        times = None
    until = None if quantity.until is None else t.Occurrence(ANY, (_condition(quantity.until, step),))
    follows = None if step.contiguity is None else FOLLOWING[step.contiguity]
    gaps: tuple[t.Gap, ...] = ()
    if step.within_previous_ms is not None and not _repeats(step):
        gaps = (t.Gap(_amount(step.within_previous_ms), "previous"),)
    what: t.Occurrence | t.PatternNode
    if step.branches:
        what = _group(step)
    else:
        conditions = () if step.condition is None else (_condition(step.condition, step),)
        what = t.Occurrence(step.type or ANY, conditions)
    return t.PatternPartNode(
        what,
        times=times,
        until=until,
        alias=step.name,
        gaps=gaps,
        follows=follows,
        marks=tuple(marks),
        window=None if quantity.window_ms is None else _amount(quantity.window_ms),
    )


def _group(step: StepOf) -> t.PatternNode:
    branches = [_sequence(branch) for branch in step.branches]
    if len(branches) == 1:
        return branches[0]
    return t.PatternNode("or", tuple(t.PatternPartNode(branch) for branch in branches))


def _sequence(steps: tuple[StepOf, ...]) -> t.PatternNode:
    parts = tuple(_part(step) for step in steps)
    return t.PatternNode(t.STEPS if len(parts) > 1 else None, parts)


def _condition(text: str, step: StepOf) -> t.Expression:
    """Parse the condition of a step."""
    where = f"the condition of step {step.name!r}" if step.name else "the condition of a group"
    try:
        definition = parse(f"define Lone detect Event where {text}\n").statements[0]
    except QueryError as error:
        raise QueryError(f"{where} cannot be read: {text!r}: {error.message}", hint=error.hint) from None
    assert isinstance(definition, t.Definition)
    case = definition.cases[0]
    if case.where is None or case != t.CaseNode(case.detect, where=case.where):
        raise QueryError(f"{where} is more than a condition: {text!r}", hint="give the expression alone")
    without: t.Expression = _without_places(case.where)
    return without


def _without_places(node: Any) -> Any:
    """Leave out where the parts of a condition stand: it was read out of a text that nobody has written."""
    if isinstance(node, tuple):
        return tuple(_without_places(each) for each in node)
    if not isinstance(node, t.WblNode):
        return node
    inside = {field.name: _without_places(getattr(node, field.name)) for field in fields(node)}
    return replace(node, **inside | {"at": None})


_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1_000))


def _amount(ms: float) -> t.QuantityNode:
    """Write milliseconds in the largest unit that leaves nothing over."""
    micros = round(ms * 1000)
    unit, length = next(((unit, each) for unit, each in _UNITS if micros % each == 0), ("us", 1))
    return t.QuantityNode(((micros // length, unit),))
