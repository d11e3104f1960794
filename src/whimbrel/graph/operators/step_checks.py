"""What a sequence of steps may not say, and what to write instead."""

from __future__ import annotations

from itertools import pairwise

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import parts_of
from whimbrel.graph.operators.step_pattern import (
    ONCE,
    Contiguity,
    Element,
    Inner,
    PatternStep,
    StepGroup,
    StepPattern,
    every,
    is_absent,
)


def check_sequence(op: StepPattern) -> None:
    """Refuse what has no meaning, or none that could be relied on.

    Raises
    ------
    QueryError
        With what is wrong and what to write instead.
    """
    _check_names(op)
    _check_elements(op.steps, is_group=False)
    for element in every(op.steps):
        _check_quantifier(element)
    _check_reading(op)
    _check_end(op)
    _check_times(op)
    _check_skip(op)


def shown(element: Element) -> str:
    """Name a step or a group in a message."""
    return f"step {element.name!r}" if isinstance(element, PatternStep) else "the group"


def _check_names(op: StepPattern) -> None:
    seen: set[str] = set()
    for element in every(op.steps):
        if isinstance(element, PatternStep):
            if element.name in seen:
                raise QueryError(
                    f"two steps are named {element.name!r}", element.at, "give each step a name of its own"
                )
            seen.add(element.name)


def _check_elements(elements: tuple[Element, ...], *, is_group: bool) -> None:
    if not elements:
        raise QueryError("a group needs a step" if is_group else "a pattern needs a step")
    first = elements[0]
    if first.contiguity is not None:
        raise QueryError(
            f"{shown(first)} comes first and says {first.contiguity.value!r}, but nothing stands before it",
            first.at,
            "the first step says nothing about what comes before (contiguity: null)",
        )
    for before, element in pairwise(elements):
        if element.contiguity is None:
            raise QueryError(
                f"{shown(element)} does not say how it follows the one before",
                element.at,
                "write one of next, followedBy, followedByAny, notNext, notFollowedBy",
            )
        _check_neighbours(before, element)
    if is_group and is_absent(elements[-1], Contiguity.NOT_FOLLOWED_BY):
        raise QueryError(
            "a group cannot end with notFollowedBy: what comes after the group would not heed it",
            elements[-1].at,
            "write the notFollowedBy behind the group",
        )
    for element in elements:
        if isinstance(element, StepGroup):
            for branch in element.branches:
                _check_elements(branch, is_group=True)


def _check_neighbours(before: Element, element: Element) -> None:
    if is_absent(element):
        if isinstance(element, StepGroup):
            raise QueryError(
                "a group cannot be absent as a whole", element.at, "write the absence of a single step"
            )
        if before.quantifier.optional:
            raise QueryError(
                f"{shown(element)} must not occur after {shown(before)}, which may be missing itself",
                element.at,
                "put a step between them that always occurs",
            )
        if is_absent(before, Contiguity.NOT_FOLLOWED_BY) and is_absent(element, Contiguity.NOT_NEXT):
            raise QueryError(
                f"notNext directly behind notFollowedBy leaves {shown(before)} without an end",
                element.at,
                "write the notNext first",
            )
    if before.quantifier.greedy and element.quantifier.optional:
        raise QueryError(
            f"{shown(element)} may be missing and follows {shown(before)}, which is greedy",
            element.at,
            "leave out one of optional and greedy",
        )


def _check_quantifier(element: Element) -> None:
    quantifier, what = element.quantifier, shown(element)
    if is_absent(element) and quantifier != ONCE:
        raise QueryError(
            f"{what} must not occur, so it cannot be repeated, optional or greedy",
            element.at,
            "leave its quantifier out",
        )
    least, most = quantifier.at_least, quantifier.at_most
    if least < 1 or (most is not None and most < least):
        raise QueryError(
            f"{what} cannot be taken {least} to {'any number of' if most is None else most} times",
            element.at,
            "write a range such as {2,5}; what may be missing is optional",
        )
    if quantifier.until is not None and not quantifier.is_loop:
        raise QueryError(
            f"{what} says until, but does not go on without end", element.at, "write {1,} until, or + until"
        )
    if quantifier.inner is not Inner.RELAXED and not quantifier.repeats:
        raise QueryError(
            f"{what} is taken once, so {quantifier.inner.value} says nothing",
            element.at,
            "leave it out, or repeat the step",
        )
    _check_greedy(element)
    _check_window(element)
    if isinstance(element, StepGroup) and quantifier.repeats and _may_be_empty(element):
        raise QueryError(
            "a group that may be empty cannot be repeated",
            element.at,
            "let one of its steps always occur, or make the group optional instead of repeating it",
        )


def _check_greedy(element: Element) -> None:
    quantifier, what = element.quantifier, shown(element)
    if not quantifier.greedy:
        return
    if isinstance(element, StepGroup):
        raise QueryError("a group cannot be greedy", element.at, "make the steps inside it greedy")
    if not quantifier.repeats:
        raise QueryError(
            f"{what} is taken once, so greedy says nothing", element.at, "leave it out, or repeat the step"
        )
    if quantifier.inner is Inner.COMBINATIONS:
        raise QueryError(
            f"{what} cannot be greedy and in combinations: combinations leave events out",
            element.at,
            "leave out one of them",
        )


def _check_window(element: Element) -> None:
    quantifier, what = element.quantifier, shown(element)
    if quantifier.window is None:
        return
    if isinstance(element, StepGroup):
        raise QueryError(
            "a group has no time between its own events",
            element.at,
            "bound the steps inside it, or every gap: 'within 5 s between events' behind the whole pattern",
        )
    if not quantifier.repeats:
        raise QueryError(
            f"{what} is taken once, so nothing lies between its events",
            element.at,
            "repeat the step, or write 'within 5 s from previous' to bound the gap before it",
        )
    if quantifier.greedy and quantifier.optional:
        raise QueryError(
            f"{what} cannot be greedy, optional and bounded between its events all at once: where it is left "
            f"out, nothing says until when it would have taken an event",
            element.at,
            "leave out one of them, or write the pattern without the step as an alternative",
        )


def _may_be_empty(group: StepGroup) -> bool:
    return any(all(_may_be_missing(element) for element in branch) for branch in group.branches)


def _may_be_missing(element: Element) -> bool:
    inside = isinstance(element, StepGroup) and _may_be_empty(element)
    return element.quantifier.optional or is_absent(element) or inside


def _check_reading(op: StepPattern) -> None:
    """Conditions can read steps that take events, and no others."""
    absent = {e.name for e in every(op.steps) if isinstance(e, PatternStep) and is_absent(e)}
    for test in op.tests():
        if test.condition is None:
            continue
        for name in parts_of(test.condition) & absent:
            raise QueryError(
                f"step {name!r} must not occur, so it has no events to read",
                test.condition.at,
                f"read a step that occurs: {', '.join(step.name for step in op.taken())}",
            )


def _check_end(op: StepPattern) -> None:
    last = op.steps[-1]
    if not is_absent(last, Contiguity.NOT_FOLLOWED_BY):
        return
    assert isinstance(last, PatternStep)
    if op.within is None and last.within_previous is None and op.gap is None:
        raise QueryError(
            f"the pattern ends with the absence of {last.name!r} and never knows when to stop waiting",
            last.at,
            "say within which time: within 10 min",
        )
    if len(op.steps) > 1 and is_absent(op.steps[-2], Contiguity.NOT_FOLLOWED_BY):
        raise QueryError(
            "only one absence can end a pattern",
            last.at,
            "join the two conditions with 'or' in one step",
        )


def _check_times(op: StepPattern) -> None:
    for step in every(op.steps):
        gap = step.within_previous if isinstance(step, PatternStep) else None
        if gap is not None and op.within is not None and gap > op.within:
            raise QueryError(
                f"{shown(step)} may come later after the event before it than the whole pattern may take",
                step.at,
                "shorten one, or lengthen the other",
            )
        window = step.quantifier.window
        if window is not None and op.within is not None and window > op.within:
            raise QueryError(
                f"the events of {shown(step)} may lie further apart than the whole pattern may take",
                step.at,
                "shorten one, or lengthen the other",
            )


def _check_skip(op: StepPattern) -> None:
    names = [step.name for step in op.taken()]
    if op.skip.strategy in ("skip_to_first", "skip_to_last"):
        if op.skip.step not in names:
            raise QueryError(
                f"{op.skip.strategy} names the step {op.skip.step!r}, which the pattern does not take",
                hint=f"it has {', '.join(names)}",
            )
    elif op.skip.step is not None:
        raise QueryError(f"{op.skip.strategy} takes no step", hint="leave the step out")
    if op.counted and any(isinstance(e, StepGroup) and e.quantifier.repeats for e in every(op.steps)):
        raise QueryError(
            "matches of a repeated group cannot be counted: the same events may match in several ways",
            hint="leave out `counting matches`; listed matches are told once each",
        )
    if op.counted and op.skip.strategy != "no_skip":
        raise QueryError(
            "matches that are counted are not looked at one by one, so none can be skipped",
            hint="leave out either the counting or the skipping",
        )
