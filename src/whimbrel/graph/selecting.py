"""The selection and consumption policies of the built-in operators, in terms of the operator model.

Kernels do not read these policies: they do the same faster. Explanations, planners and migration do.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Listed
from itertools import count
from typing import Literal as OneOf

from whimbrel.errors import UnboundedError
from whimbrel.graph.operators import (
    Absent,
    Aggregate,
    Custom,
    Derive,
    Filter,
    JoinPattern,
    Merge,
    Operator,
    PatternPart,
    Repeat,
    Source,
    TimeOrder,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.graph.policies import (
    INFINITE,
    Consumption,
    Context,
    Kappa,
    ProcessWhen,
    RestrictionWindow,
    Select,
    SelectionPolicy,
    SelectionWindow,
    Shift,
)
from whimbrel.graph.reach import match_retention, sequence_retention
from whimbrel.model.time import END_OF_TIME

EVENT_BY_EVENT = Shift("events", 1)
BY_DEPENDENCY = Shift("none", 0)
"""The window goes where its dependencies put it."""
ONE_INSTANT = RestrictionWindow(1, EVENT_BY_EVENT)
"""The least stretch of time: an event is looked at alone."""


def policy_of(operator: Operator) -> SelectionPolicy:  # noqa: C901 - one case for each kind of operator
    """Give the selection policy that a built-in operator follows, or the one a custom operator has.

    An operator that would have to remember for ever has a restriction window of `END_OF_TIME`.

    >>> from whimbrel.lang.wbl import compile_text
    >>> graph = compile_text("define S detect A as a then B as b within 5 s").graph
    >>> policy = policy_of(graph["S.match"])
    >>> [str(each) for each in (*policy.dependencies, *policy.process_when)]
    ['end(a) < start(b)', '|a| = 1', '|b| = 1']
    """
    match operator:
        case Source():
            return _one_of_each([(operator.event_type, operator.event_type)])
        case Filter():
            return _one_of_each([(operator.input, operator.input)])
        case Merge():
            return _one_of_each(
                [(branch.alias or branch.input, branch.input) for branch in operator.branches]
            )
        case Derive():
            return _one_of_each([(case.alias or case.input, case.input) for case in operator.cases])
        case Repeat():
            return _of_repeat(operator)
        case JoinPattern():
            return _of_match(operator)
        case Aggregate():
            return _of_aggregate(operator)
        case StepPattern():
            return _of_sequence(operator)
        case Motion():
            return _of_motion(operator)
        case Encounter():
            return _of_encounter(operator)
        case TimedOut():
            return _one_of_each([(operator.input, operator.input)])
        case Custom():
            return operator.policy
    raise TypeError(f"unknown operator {operator!r}")


def consumption_of(operator: Operator) -> Consumption:
    """Give the consumption policy of an operator; `named` are the events of the parts in `consuming`."""
    match operator:
        case Custom():
            return operator.consumption
        case JoinPattern() if operator.consuming:
            return Consumption("named")
        case JoinPattern() if operator.context not in (Context.EACH, Context.RECENT):
            return Consumption("selected")
    return Consumption("none")


def window_names(op: JoinPattern) -> tuple[list[str], list[str]]:
    """Name the windows of the parts that occur, and of those that do not."""
    names = _distinct([p.alias or p.input for p in op.parts] + [a.alias or a.input for a in op.absent])
    return names[: len(op.parts)], names[len(op.parts) :]


def orders_left(op: JoinPattern) -> tuple[TimeOrder, ...]:
    """Give the orders that no dependency between windows says: a window depends on one other at most."""
    names, _ = window_names(op)
    kept = {_link(kappa) for kappa in _order_dependencies(op.orders, names)}
    return tuple(
        order for order in op.orders if frozenset((names[order.first], names[order.second])) not in kept
    )


def _one_of_each(inputs: Listed[tuple[str, str]]) -> SelectionPolicy:
    """Take one event at a time, of whichever input has one."""
    names = _distinct([name for name, _ in inputs])
    windows = tuple(
        SelectionWindow(name, stream, "counting", 1, EVENT_BY_EVENT)
        for name, (_, stream) in zip(names, inputs, strict=True)
    )
    predicates = tuple(ProcessWhen(name, "=", 1) for name in names)
    return SelectionPolicy(windows, ONE_INSTANT, (), predicates, process_all=len(windows) == 1)


def _of_repeat(op: Repeat) -> SelectionPolicy:
    """Grow a window without an end up to the next closing event; count and span say which stretches count."""
    name, ending = _distinct([op.alias or op.input, op.until or "until"])
    windows = [SelectionWindow(name, op.input, "counting", INFINITE, EVENT_BY_EVENT)]
    predicates = [ProcessWhen(name, ">=", op.at_least)]
    predicates += [ProcessWhen(name, "<=", op.at_most)] if op.at_most is not None else []
    dependencies: list[Kappa] = []
    if op.until is not None:
        windows.append(SelectionWindow(ending, op.until, "counting", 1, EVENT_BY_EVENT))
        dependencies.append(Kappa(name, "end", "<=", ending, "start"))
    return SelectionPolicy(
        tuple(windows),
        RestrictionWindow(max(op.within, ONE_INSTANT.length), EVENT_BY_EVENT),
        tuple(dependencies),
        tuple(predicates),
    )


def _of_sequence(op: StepPattern) -> SelectionPolicy:
    """Look at one event after the other; what was taken before lies within the restriction window."""
    windows = tuple(
        SelectionWindow(name, name, "counting", 1, EVENT_BY_EVENT) for name in _distinct(list(op.streams))
    )
    restriction = RestrictionWindow(max(sequence_retention(op), ONE_INSTANT.length), EVENT_BY_EVENT)
    predicates = tuple(ProcessWhen(window.name, "=", 1) for window in windows)
    return SelectionPolicy(windows, restriction, (), predicates, process_all=len(windows) == 1)


def _of_motion(op: Motion) -> SelectionPolicy:
    """Look at one sample after the other; those before it lie within the restriction window."""
    window = SelectionWindow(op.alias, op.input, "counting", 1, EVENT_BY_EVENT)
    restriction = RestrictionWindow(max(op.retention, ONE_INSTANT.length), EVENT_BY_EVENT)
    return SelectionPolicy((window,), restriction, (), (ProcessWhen(op.alias, "=", 1),))


def _of_encounter(op: Encounter) -> SelectionPolicy:
    """Look at one sample after the other, of either mover; those before lie in the restriction window."""
    members = dict.fromkeys([(op.alias, op.input), (op.other_alias, op.other)])
    windows = tuple(SelectionWindow(name, stream, "counting", 1, EVENT_BY_EVENT) for name, stream in members)
    restriction = RestrictionWindow(max(op.retention, ONE_INSTANT.length), EVENT_BY_EVENT)
    predicates = tuple(ProcessWhen(window.name, "=", 1) for window in windows)
    return SelectionPolicy(windows, restriction, (), predicates)


def _of_match(op: JoinPattern) -> SelectionPolicy:
    """Take one event for each part that occurs, and a stretch of time for each that does not."""
    names, absent_names = window_names(op)
    restriction = RestrictionWindow(max(_retention(op), ONE_INSTANT.length), EVENT_BY_EVENT)
    windows = [
        _occurrence(name, part, op.context, restriction) for name, part in zip(names, op.parts, strict=True)
    ]
    dependencies = _order_dependencies(op.orders, names)
    relation: OneOf["=", ">="] = ">=" if op.context is Context.CUMULATIVE else "="
    predicates = [ProcessWhen(name, relation, 1) for name in names]
    for name, absent in zip(absent_names, op.absent, strict=True):
        windows.append(_absence(name, absent, op.within))
        dependencies += _absence_dependencies(name, absent, names)
        predicates.append(ProcessWhen(name, "=", 0))
    return SelectionPolicy(tuple(windows), restriction, tuple(dependencies), tuple(predicates))


def _occurrence(
    name: str, part: PatternPart, context: Context, restriction: RestrictionWindow
) -> SelectionWindow:
    if context is Context.CUMULATIVE:
        return SelectionWindow(name, part.input, "temporal", restriction.length, EVENT_BY_EVENT)
    return SelectionWindow(name, part.input, "counting", 1, _shift(part, context))


def _shift(part: PatternPart, context: Context) -> Shift:
    if part.select is Select.FIRST or context in (Context.CHRONICLE, Context.FIRST_MATCHING):
        return Shift("oldest")
    if part.select is Select.LAST or context is Context.RECENT:
        return Shift("newest")
    return EVENT_BY_EVENT


def _absence(name: str, absent: Absent, within: int) -> SelectionWindow:
    is_between = absent.after is not None and absent.before is not None
    bound = absent.duration if absent.duration is not None else within
    length = INFINITE if is_between or bound >= END_OF_TIME else max(bound, ONE_INSTANT.length)
    return SelectionWindow(name, absent.input, "temporal", length, BY_DEPENDENCY)


def _absence_dependencies(name: str, absent: Absent, names: Listed[str]) -> list[Kappa]:
    found = []
    if absent.after is not None:
        found.append(Kappa(name, "start", ">", names[absent.after], "end"))
    if absent.before is not None:
        found.append(Kappa(name, "end", "<", names[absent.before], "start"))
    return found


def _order_dependencies(orders: Iterable[TimeOrder], names: Listed[str]) -> list[Kappa]:
    """Say orders as dependencies, as far as each window depends on one other and none on itself."""
    found: list[Kappa] = []
    # A strict order says more than a gap between the same parts, so it comes first.
    for order in sorted(orders, key=lambda order: order.gap is not None):
        first, second = names[order.first], names[order.second]
        if order.gap is None:
            ways = (Kappa(first, "end", "<", second, "start"), Kappa(second, "start", ">", first, "end"))
        else:
            ways = (Kappa(first, "end", "<=", second, "end"), Kappa(second, "end", ">=", first, "end"))
        if _link(ways[0]) not in {_link(kappa) for kappa in found}:
            found += next(([kappa] for kappa in ways if _fits(kappa, found)), [])
    return found


def _link(kappa: Kappa) -> frozenset[str]:
    return frozenset((kappa.window, kappa.other))


def _fits(kappa: Kappa, found: Listed[Kappa]) -> bool:
    depends = {each.window: each.other for each in found}
    if kappa.window in depends:
        return False
    reached: str | None = kappa.other
    while reached is not None and reached != kappa.window:
        reached = depends.get(reached)
    return reached is None


def _retention(op: JoinPattern) -> int:
    try:
        return match_retention(op)
    except UnboundedError:
        return END_OF_TIME


def _of_aggregate(op: Aggregate) -> SelectionPolicy:
    """Take the events of the window, which moves by time or by events."""
    window = op.window
    is_timed = window.kind == "temporal" and window.every is not None
    shift = Shift("time", window.every or 0) if is_timed else Shift("events", window.every or 1)
    names = _distinct([part.alias or part.input for part in op.parts])
    windows = tuple(
        SelectionWindow(name, part.input, window.kind, max(window.length, 1), shift)
        for name, part in zip(names, op.parts, strict=True)
    )
    needed = [name for name, part in zip(names, op.parts, strict=True) if not part.outer]
    predicates = tuple(ProcessWhen(name, ">=", 1) for name in needed or names)
    length = window.length if window.kind == "temporal" else window.within
    restriction = RestrictionWindow(END_OF_TIME if length is None else max(length, ONE_INSTANT.length), shift)
    return SelectionPolicy(windows, restriction, (), predicates, process_all=bool(needed))


def _distinct(names: Listed[str]) -> list[str]:
    """Give every name once, numbering those that come again."""
    made: list[str] = []
    for name in names:
        again = (f"{name}.{number}" for number in count(2))
        made.append(name if name not in made else next(each for each in again if each not in made))
    return made
