"""The state of a partition of a custom operator as plain data.

Events are named by their places and rebuilt from the streams they came from. What an operator keeps during
a selection is not written: it follows from the calls since `open`, and these are made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Any

from whimbrel.engine.operators.custom.selection import OpenWindow
from whimbrel.engine.operators.custom.steps import CorrelationSteps, Phase
from whimbrel.engine.operators.custom.windows import WindowItem, WindowLimit, WindowSpan

State = dict[str, Any]
_STEPS = ("clock", "places", "step", "emitted", "is_touched")
_WINDOW = ("anchor", "is_placed", "is_initial", "is_complete", "deadline")


def items_of(steps: CorrelationSteps) -> dict[int, WindowItem]:
    """Give every event that a partition still knows, by place."""
    lists = [
        steps.buffer,
        *(part for window in steps.selection.windows for part in (window.found, window.before)),
    ]
    return {item.place: item for part in lists for item in part}


def state_of(steps: CorrelationSteps) -> State:
    """Write a partition as data that JSON can hold."""
    return {
        **{name: getattr(steps, name) for name in _STEPS},
        "phase": steps.phase.value,
        "stretch": None if steps.stretch is None else astuple(steps.stretch),
        "after": steps.restriction.after,
        "to_pass": steps.restriction.to_pass,
        "buffer": [item.place for item in steps.buffer],
        "windows": {window.name: _window_state(window) for window in steps.selection.windows},
        "handed": [[(event.place, event.window) for event in events] for events in steps.handed],
        "pending": [(event.place, event.window) for event in steps.pending],
    }


def _window_state(window: OpenWindow) -> State:
    return {
        **{name: getattr(window, name) for name in _WINDOW},
        "limits": [astuple(limit) for limit in window.limits],
        "found": [item.place for item in window.found],
        "before": [item.place for item in window.before],
    }


def take_up(steps: CorrelationSteps, state: State, items: Mapping[int, WindowItem]) -> None:
    """Bring a new partition to where `state_of` was taken."""
    for name in _STEPS:
        setattr(steps, name, state[name])
    steps.phase = Phase(state["phase"])
    steps.stretch = None if state["stretch"] is None else WindowSpan(*state["stretch"])
    steps.restriction.after, steps.restriction.to_pass = state["after"], state["to_pass"]
    steps.buffer = [items[place] for place in state["buffer"]]
    for window in steps.selection.windows:
        _take_up_window(window, state["windows"][window.name], items)
    steps.selected = {window.name: [] for window in steps.plan.op.policy.windows}
    if steps.phase is Phase.OPEN:
        _replay(steps, state, items)


def _take_up_window(window: OpenWindow, state: State, items: Mapping[int, WindowItem]) -> None:
    for name in _WINDOW:
        setattr(window, name, state[name])
    window.limits = [WindowLimit(*limit) for limit in state["limits"]]
    window.found = [items[place] for place in state["found"]]
    window.before = [items[place] for place in state["before"]]


def _replay(steps: CorrelationSteps, state: State, items: Mapping[int, WindowItem]) -> None:
    """Let the operator see the open selection again; what it found was reported before."""
    steps.announce()
    for number, group in enumerate([*state["handed"], state["pending"]]):
        events = tuple(replace(items[place].event, window=window) for place, window in group)
        for event in events:
            steps.selected[event.window].append(event)
        if number < len(state["handed"]):
            steps.handed.append(events)
            steps.hand_over(events)
        else:
            steps.pending = list(events)
