"""Why there is no event at all for a part: a type that never came, a definition without detections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whimbrel.errors import did_you_mean
from whimbrel.graph.operators import ANY, Derive, Filter, Graph, Merge, Operator, Repeat, Source, TimePoints
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.model.words import many
from whimbrel.whynot.asking import EngineView
from whimbrel.whynot.explanation import Miss, Reason, key_text

COST = 3.0
"""What a part without any event counts, where one broken condition counts at most 1."""


def nothing_came(view: EngineView, input: str, part: str, group: Mapping[str, Any]) -> Reason:
    """Say why nothing could even be tried for a part that reads stream `input`."""
    roots = roots_of(view.graph, input)
    texts = [_said(view, root, group) for root in roots]
    return Reason("nothing", "; ".join(dict.fromkeys(texts)), part)


def nothing_at_all(
    view: EngineView, definition: str, operator: str, parts: Sequence[tuple[str, str]]
) -> Miss:
    """Say that there was not even an event to begin with; `parts` are names and the streams they read."""
    lacking = [(name, input) for name, input in parts if not len(view.stream(input).new)]
    reasons = [nothing_came(view, input, name, {}) for name, input in lacking]
    reasons = reasons or [
        Reason("nothing", "no event is of the key and time that were asked for", parts[0][0])
    ]
    cost = COST * max(1, len(lacking))
    return Miss(definition, operator, {}, tuple((name, None) for name, _ in parts), tuple(reasons), cost)


def roots_of(graph: Graph, name: str) -> list[Operator]:
    """List the operators whose events a stream selects from."""
    operator = graph[name]
    while isinstance(operator, Filter):
        operator = graph[operator.input]
    if isinstance(operator, Merge):
        return [root for branch in operator.branches for root in roots_of(graph, branch.input)]
    return [operator]


def _said(view: EngineView, root: Operator, group: Mapping[str, Any]) -> str:
    count = len(view.stream(root.name).new)
    if isinstance(root, TimePoints):
        what = root.name
        if not count:
            return f"{what} has not come yet"
    elif isinstance(root, Source):
        what = "event" if root.event_type == ANY else root.event_type
        if root.event_type != ANY and not view.types.get(root.event_type):
            return no_such_type(view, root.event_type)
    elif isinstance(root, Derive):
        what = root.event_type
        if not count:
            return f"nothing was detected as {what}, see there"
    elif isinstance(root, Motion | Encounter):
        what = f"motion `{root.verb}`"
        if not count:
            return f"no {what} was found, see {root.name}"
    elif isinstance(root, Repeat):
        what = f"repetition of {root.alias or root.input}"
        if not count:
            return f"no {what} was long enough, see {root.name}"
    else:
        what = f"combination of {root.name}"
    if group:
        return f"no {what} with {key_text(group)} came; {many(count, 'other')} came"
    return f"no {what} came"


def no_such_type(view: EngineView, event_type: str) -> str:
    """Say that no event of a type came, and which types did."""
    known = [name for name, count in view.types.items() if count]
    hint = did_you_mean(event_type, known)
    seen = f"; {hint}" if hint and hint.startswith("did you mean") else ""
    return f"no event of type {event_type} came at all{seen}"
