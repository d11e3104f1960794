"""The selection policy of a pattern: windows of its parts, and how their bounds depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from whimbrel.graph.operators.base import EVENT_BY_EVENT, ONE_INSTANT, distinct
from whimbrel.graph.policies import (
    INFINITE,
    Context,
    Kappa,
    ProcessWhen,
    RestrictionWindow,
    Select,
    SelectionPolicy,
    SelectionWindow,
    Shift,
)
from whimbrel.model.time import END_OF_TIME

BY_DEPENDENCY = Shift("none", 0)
"""The window goes where its dependencies put it."""

if TYPE_CHECKING:
    from whimbrel.graph.operators.join_pattern import Absent, JoinPattern, PatternPart, TimeOrder


def window_names(op: JoinPattern) -> tuple[list[str], list[str]]:
    """Name the windows of the parts that occur, and of those that do not."""
    names = distinct([p.alias or p.input for p in op.parts] + [a.alias or a.input for a in op.absent])
    return names[: len(op.parts)], names[len(op.parts) :]


def orders_left(op: JoinPattern) -> tuple[TimeOrder, ...]:
    """Give the orders that no dependency between windows says: a window depends on one other at most."""
    names, _ = window_names(op)
    kept = {_link(kappa) for kappa in _order_dependencies(op.orders, names)}
    return tuple(
        order for order in op.orders if frozenset((names[order.first], names[order.second])) not in kept
    )


def policy_of_pattern(op: JoinPattern) -> SelectionPolicy:
    """Take one event for each part that occurs, and a stretch of time for each that does not."""
    names, absent_names = window_names(op)
    restriction = RestrictionWindow(max(op.remembered_for, ONE_INSTANT.length), EVENT_BY_EVENT)
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


def _absence_dependencies(name: str, absent: Absent, names: Sequence[str]) -> list[Kappa]:
    found = []
    if absent.after is not None:
        found.append(Kappa(name, "start", ">", names[absent.after], "end"))
    if absent.before is not None:
        found.append(Kappa(name, "end", "<", names[absent.before], "start"))
    return found


def _order_dependencies(orders: Iterable[TimeOrder], names: Sequence[str]) -> list[Kappa]:
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


def _fits(kappa: Kappa, found: Sequence[Kappa]) -> bool:
    depends = {each.window: each.other for each in found}
    if kappa.window in depends:
        return False
    reached: str | None = kappa.other
    while reached is not None and reached != kappa.window:
        reached = depends.get(reached)
    return reached is None
