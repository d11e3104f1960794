"""What a pattern of steps finds, run by run: the naive way, with the meaning of Flink CEP.

A run is a match in the making: the state of the machine it is in, and what it has taken. Every event is shown
to every run; a run may do several things with it, and so become several runs, or none. Nothing is merged,
nothing is clever. Matches come in Flink's order, which counts where one match makes others be skipped: runs
lie in binary heaps, as in Java's PriorityQueue, by the event they begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .matches import TooLarge
from .step_machine import FINAL, GO_ON, IGNORE, STOPPED, TAKE, WAITING, Move, State, machine

Json = Mapping[str, Any]
Taken = tuple[tuple[str, tuple[str, ...]], ...]
"""Which events each step took, by name."""

FOR_EVER = float("inf")


class SkipMissed(Exception):
    """A match has no event to skip to, or begins with it, and the pattern says that this is an error."""


@dataclass(frozen=True)
class Match:
    """What a match took; `end` is when it was complete, `by` the place of the event that completed it."""

    key: tuple[Any, ...]
    taken: Taken
    end: int
    by: int | None = None


@dataclass
class Found:
    """All that a pattern finds. What was found in several ways is listed as often."""

    matches: list[Match] = field(default_factory=list)
    timeouts: list[Match] = field(default_factory=list)


def find(pattern: Json, events: Sequence[Json], *, limit: int = 3_000) -> Found:
    """Find the matches of a pattern, and what ran out of time.

    Events are put in order of their times; where these are the same, they keep their order.

    Raises
    ------
    TooLarge
        If there are more than `limit` runs at once.
    SkipMissed
        As `throw_on_miss` says.
    """
    found = Found()
    begin, runners = machine(pattern), dict[tuple[Any, ...], _Runner]()
    for place, event in enumerate(sorted(events, key=lambda event: event["time"])):
        key = tuple(event["attributes"].get(name) for name in pattern.get("key", ()))
        runner = runners.setdefault(key, _Runner(pattern, begin, key, found, limit))
        runner.let_time_pass(event["time"])
        runner.show(place, event)
    for runner in runners.values():
        runner.let_time_pass(FOR_EVER)
    return found


# -- runs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Run:
    """A match in the making; one that has taken nothing stands at the beginning."""

    state: State
    events: tuple[tuple[str, int, Json], ...] = ()
    """Step, place and event of all that was taken."""

    @property
    def is_begun(self) -> bool:
        return bool(self.events)

    @property
    def first(self) -> float:
        """The place of the event it begins with; a run that has not begun is the last of all."""
        return self.events[0][1] if self.events else FOR_EVER

    def steps(self) -> dict[str, list[Json]]:
        made: dict[str, list[Json]] = {}
        for step, _, event in self.events:
            made.setdefault(step, []).append(event)
        return made

    def places(self, step: str) -> list[int]:
        return [place for name, place, _ in self.events if name == step]

    def taken(self) -> Taken:
        return tuple(
            sorted((step, tuple(event["id"] for event in events)) for step, events in self.steps().items())
        )


class Heap:
    """Runs by the event they begin with, in the very order in which Java's PriorityQueue holds them.

    The one at `n` is never later than those at `2n + 1` and `2n + 2`. Going through it goes by place.
    """

    def __init__(self) -> None:
        self.items: list[Run] = []

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self.items))

    def least(self) -> Run:
        return self.items[0]

    def add(self, run: Run) -> None:
        self.items.append(run)
        at = len(self.items) - 1
        while at > 0:
            parent = (at - 1) // 2
            if run.first >= self.items[parent].first:
                break
            self.items[at] = self.items[parent]
            at = parent
        self.items[at] = run

    def add_all(self, runs: list[Run]) -> None:
        for run in runs:
            self.add(run)

    def pop(self) -> Run:
        least, last = self.items[0], self.items.pop()
        if self.items:
            self._sink(0, last)
        return least

    def remove(self, is_gone: Callable[[Run], bool]) -> None:
        kept = [run for run in self.items if not is_gone(run)]
        if len(kept) == len(self.items):
            return
        self.items = kept
        for at in reversed(range(len(kept) // 2)):
            self._sink(at, self.items[at])

    def _sink(self, at: int, run: Run) -> None:
        half = len(self.items) // 2
        while at < half:
            child = 2 * at + 1
            if child + 1 < len(self.items) and self.items[child].first > self.items[child + 1].first:
                child += 1
            if run.first <= self.items[child].first:
                break
            self.items[at] = self.items[child]
            at = child
        self.items[at] = run


@dataclass
class _Runner:
    """All runs of one key."""

    pattern: Json
    begin: State
    key: tuple[Any, ...]
    found: Found
    limit: int
    runs: Heap = field(default_factory=Heap)
    complete: Heap = field(default_factory=Heap)
    """Matches that others may still make superfluous."""

    def __post_init__(self) -> None:
        self.runs.add(Run(self.begin))

    # -- events ------------------------------------------------------------------------------------------

    def show(self, place: int, event: Json) -> None:
        going_on, completed = Heap(), Heap()
        for run in self.runs:
            made = list(self._after(run, place, event))
            completed.add_all([each for each in made if each.state.kind == FINAL])
            if not any(each.state.kind == STOPPED for each in made):
                going_on.add_all([each for each in made if each.state.kind != FINAL])
        if len(going_on) > self.limit:
            raise TooLarge(f"there are more than {self.limit} runs")
        self.runs = going_on
        self._settle(completed, place)

    def _after(self, run: Run, place: int, event: Json) -> Iterator[Run]:
        """Give what becomes of a run with an event."""
        steps = run.steps()
        for move in self._open(run.state, event, steps):
            if move.action == IGNORE and run.is_begun:
                yield Run(move.target, run.events)
            elif move.action == TAKE:
                taken = (*run.events, (str(move.source.step), place, event))
                yield Run(move.target, taken)
                end = self._end_without_event(move.target, event, steps)
                if end is not None:
                    yield Run(end, taken)
        if not run.is_begun:
            yield run

    def _open(self, state: State, event: Json, steps: Mapping[str, list[Json]]) -> list[Move]:
        """Give all that can be done with an event, also in the states that are gone on to."""
        moves, states = [], [state]
        while states:
            for move in states.pop().moves:
                if move.test(event, steps):
                    if move.action == GO_ON:
                        states.append(move.target)
                    else:
                        moves.append(move)
        return moves

    def _end_without_event(self, state: State, event: Json, steps: Mapping[str, list[Json]]) -> State | None:
        """Give the final state if one can go on to it from where an event was just taken to."""
        states = [state]
        while states:
            for move in states.pop().moves:
                if move.action == GO_ON and move.test(event, steps):
                    if move.target.kind == FINAL:
                        return move.target
                    states.append(move.target)
        return None

    # -- time --------------------------------------------------------------------------------------------

    def let_time_pass(self, to: float) -> None:
        going_on, completed = Heap(), Heap()
        for run in self.runs:
            deadline = self._deadline(run)
            if run.state.lapses is not None:
                lapse = run.events[-1][2]["time"] + run.state.lapses
                if lapse <= min(to, deadline):
                    continue
            if to < deadline or deadline == FOR_EVER:
                going_on.add(run)
            elif run.state.kind == WAITING:
                completed.add(run)
            else:
                self.found.timeouts.append(Match(self.key, run.taken(), int(deadline)))
        self.runs = going_on
        self._settle(completed)

    def _deadline(self, run: Run) -> float:
        """Give when a run is out of time: the earliest of all that bounds it."""
        if not run.is_begun:
            return FOR_EVER
        within = self.pattern.get("within") or {}
        first, last = run.events[0][2]["time"], run.events[-1][2]["time"]
        bounds = [FOR_EVER]
        if within.get("type", "first_to_last") == "first_to_last" and within:
            bounds.append(first + within["ms"])
        if run.state.within_previous is not None:
            bounds.append(last + run.state.within_previous)
        if self.pattern.get("within_gaps_ms") is not None:
            bounds.append(last + self.pattern["within_gaps_ms"])
        return min(bounds)

    # -- skipping ----------------------------------------------------------------------------------------

    def _settle(self, completed: Heap, by: int | None = None) -> None:
        """Tell the matches, each as soon as no run that began before can make it superfluous."""
        skip = self.pattern.get("after_match_skip") or {"strategy": "no_skip"}
        self.complete.add_all(list(completed))
        while len(self.complete) and (
            skip["strategy"] == "no_skip" or self.complete.least().first <= self._first_of_all()
        ):
            match = self.complete.pop()
            self._prune(match, skip)
            self._tell(match, by)

    def _first_of_all(self) -> float:
        return self.runs.least().first if len(self.runs) else FOR_EVER

    def _prune(self, match: Run, skip: Json) -> None:
        to = _skipped_to(match, skip)
        includes = skip["strategy"] in ("skip_to_next", "skip_past_last_event")

        def is_skipped(run: Run) -> bool:
            return run.is_begun and (run.first <= to if includes else run.first < to)

        self.runs.remove(is_skipped)
        self.complete.remove(is_skipped)

    def _tell(self, run: Run, by: int | None) -> None:
        end = int(self._deadline(run)) if run.state.kind == WAITING else run.events[-1][2]["time"]
        self.found.matches.append(Match(self.key, run.taken(), end, by))


def _skipped_to(match: Run, skip: Json) -> float:
    """Give the place up to which runs are skipped."""
    if skip["strategy"] == "no_skip":
        return -1
    if skip["strategy"] == "skip_to_next":
        return match.first
    if skip["strategy"] == "skip_past_last_event":
        return match.events[-1][1]
    places = match.places(skip["step"])
    to = None if not places else places[0] if skip["strategy"] == "skip_to_first" else places[-1]
    if skip.get("throw_on_miss") and to in (None, match.first):
        raise SkipMissed(skip["step"])
    return -1 if to is None else to
