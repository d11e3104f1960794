"""Explanations: what a query became, for people (text), for pages (mermaid) and for programs (JSON).

>>> from whimbrel.lang.wbl import compile_text
>>> print(explain(compile_text("define Warm detect Temp(val > 25)")))
Warm: the attributes of Temp; needs one event at a time
on several workers: events are partitioned in any way
<BLANKLINE>
derive Warm (one event at a time)
└─ filter Temp[val > 25] (one event at a time)
   │ where       val > 25
   └─ source Temp (any attributes)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from whimbrel.errors import QueryError
from whimbrel.graph.costs import NOTHING, rounded
from whimbrel.graph.expressions import format_expr
from whimbrel.graph.facts import GraphFacts
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.operators import Graph, Operator, Source
from whimbrel.graph.operators.base import ONE_INSTANT
from whimbrel.graph.passes import RewriteStep, rewrite
from whimbrel.graph.policies import Assign, RestrictionWindow, SelectionPolicy, SelectionWindow, Shift
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.graph.rewritten import rewritten, step_document, step_words
from whimbrel.graph.sharding import (
    ByInterests,
    ByKeys,
    ByMeetings,
    BySpace,
    Sharding,
    SinglePartition,
    sharding,
    sharding_words,
)
from whimbrel.model.time import END_OF_TIME, format_duration

__all__ = ["FORMATS", "STAGES", "explain", "summary"]

FORMATS = ("text", "mermaid", "json")
STAGES = ("before", "after", "both")

_ONE_RATE: Mapping[str, float] = MappingProxyType({})


def explain(
    query: Query | Compilable | Graph,
    format: str = "text",  # noqa: A002
    *,
    rates: Mapping[str, float] = _ONE_RATE,
    stage: str = "before",
) -> str:
    """Show the operators of a query: what each selects, uses up, remembers and makes.

    Parameters
    ----------
    format
        "text": a tree from what is reported down to what is read. "mermaid": a flowchart. "json": everything,
        for programs; see below.
    rates
        Events a second by event type (or by definition), for the estimates of memory; 1 where none is given.
    stage
        "before": the operators as the query says them. "after": as they run, once the rewrites are applied,
        with a line for each rewrite that changed something. "both": one after the other.

    Notes
    -----
    The JSON object has these members; more may be added, none of these changes within a `version`:

    - `version`: 1; `coordinates`: "plane", "lonlat" or null; `reach_us`: of the whole query;
      `state_events`: the sum over all operators. Lengths of time are microseconds; null stands for
      "without bound". `sharding`: how events can be partitioned among workers: `by` is event (in any way),
      keys (with `keys`), space (with `reach_m`), meetings (with `streams`, `keys` and `first`), interests
      (with `reach_m` and the types of `updates`, which go to all) or nothing (with `why`).
    - `outputs`: for each reported stream its `stream`, `type`, `attributes` (names; null: those of the
      events it is made from, whatever they are), `reach_us` and `sources` (event types).
    - `operators`, each after its inputs: `name`, `kind` (source, filter, merge, repeat, match, aggregate,
      custom or derive), `inputs`, `event_type` (null for composites), `attributes`, `conditions` and
      `having` (texts), `assign` (list of `step` and `values`), `partitioning` (list of `kind`, `name`,
      `cell_m`), `joins` (attributes that all parts of a match have in common), `continues` (the match that
      finds its beginning, or null), `selection`, `function` (of custom ones, else null), `consumption`
      (`kind`, `count`, and `parts`: the windows whose events are used up), `context` (null if it has none),
      `reach_us`, `rate_per_s` and `state` (`events`, `formula`).
    - `selection`: `windows` (`name`, `input`, `kind`: counting or temporal, `length`: events or
      microseconds, null for infinite, `shift`: `by` and `amount`, ...), `restriction` (`length_us`,
      `shift`, ...), `dependencies` (`window`, `bound`, `relation`, `other`, `other_bound`),
      `process_when` (`window`, `relation`, `count`), `process_all` (whether all of these must hold, or
      one).
    - `edges`: `from`, `to` and `role`: input, part, absent, until, branch or case.
    - `mobile`, where there are mobile queries: for each its `name`, `focal` (`type`, `key`, `condition`,
      `only`, and how many are `listed`), `interest` (`kind` and its measures), `of` (events or situations),
      `lifetime_us`, `refresh` (`when`, and how much), `quality`, `order`, `completeness`, `prediction`,
      `reuse`, `reused` (for each operator in Python its `name`, and why nothing is reused of it, `not_equal`,
      or no similar selection, `not_similar`, else null), `deliver`, `excluding_itself`, `silent_us`,
      `motion_within`, `reports`; which of these are `found_once` and `found_each` (for each interest), and
      what the latter is `given` by the former;
      `anchors` (operators whose results depend on where the run of an interest begins, and why);
      `additional_time_us` and `history_us` of each type.
    - after the rewrites also `rewrites`: for each that changed something its name (`rewrite`) and the names
      of the operators it `added`, `changed` and `dropped`. For both stages the object has the members
      `version`, `before` and `after`, which are such objects.

    Examples
    --------
    >>> import whimbrel as wb
    >>> query = wb.compile("define Late detect A then not B for 1 h")
    >>> print(wb.explain(query, "mermaid"))
    flowchart LR
      n0(["A"])
      n1(["B"])
      n2["match Late.match<br/>start(B) #gt; end(A)<br/>remembers about 7,200 events (1 h x 2 events/s)"]
      n3[["Late"]]
      n0 --> n2
      n1 -. not .-> n2
      n2 --> n3
      style n3 stroke-width:3px
    """
    graph, mobile = _parts_of(query)
    if format not in FORMATS:
        raise QueryError(f"there is no format {format!r}; use one of: {', '.join(FORMATS)}")
    if stage not in STAGES:
        raise QueryError(f"there is no stage {stage!r}; use one of: {', '.join(STAGES)}")
    facts = GraphFacts.of(graph, rates, mobile)
    if stage == "before":
        return _FORMS[format](facts, None)
    done = rewritten(graph, rates)
    kept = {name: rate for name, rate in rates.items() if _is_there(done[-1].after if done else graph, name)}
    after = GraphFacts.of(done[-1].after, kept, mobile) if done else facts
    return _FORMS[format](after, done) if stage == "after" else _BOTH[format](facts, after, done)


def _is_there(graph: Graph, name: str) -> bool:
    """Tell whether a rate still concerns something; a rewrite may have dropped it."""
    types = {operator.event_type for operator in graph.operators if isinstance(operator, Source)}
    return name in types or any(operator.name == name for operator in graph.operators)


def summary(query: Query | Compilable | Graph) -> str:
    """Say in a line what a query detects, from which events, and how far back it reaches.

    >>> from whimbrel.lang.wbl import compile_text
    >>> summary(compile_text("define Late detect Leave then not Arrive for 1 h"))
    'detects Late (from Leave, Arrive), reaches back 1 h'
    """
    graph, mobile = _parts_of(query)
    if mobile:
        return "; ".join(map(_mobile_summary, mobile))
    facts = GraphFacts.of(graph, _ONE_RATE)
    found = [
        f"{facts.types[name] or name} (from {', '.join(facts.sources(name))})" for name in facts.graph.outputs
    ]
    return f"detects {', '.join(found)}, {_reach_words(facts.whole_reach)}"


def _parts_of(query: Query | Compilable | Graph) -> tuple[Graph, tuple[MobileQuery, ...]]:
    if isinstance(query, Graph):
        return query, ()
    whole = compiled(query)
    return whole.graph, whole.mobile


def _mobile_summary(mobile: MobileQuery) -> str:
    from whimbrel.graph.mobile.explaining import mobile_words

    lifetime = f", lifetime {format_duration(mobile.lifetime)}" if mobile.lifetime else ""
    return f"{mobile_words(mobile)}{lifetime}: {summary(mobile.detect)}"


# What all formats say ---------------------------------------------------------------------------------


def _reach_words(length: int | None) -> str:
    if length is None:
        return "reaches back without bound"
    return f"reaches back {format_duration(length)}" if length else "needs one event at a time"


def _assigned(operator: Operator) -> list[tuple[str, list[str]]]:
    """Give the assignments of each step: of an aggregate and of combining its parts, or of each case."""
    return [(label, list(map(_assign_text, assigns))) for label, assigns in operator.assigned if assigns]


def _having(operator: Operator) -> str | None:
    return None if operator.having is None else format_expr(operator.having)


def _assign_text(assign: Assign) -> str:
    kind = f": {assign.type}" if assign.type else ""
    return f"{assign.name}{kind} = {format_expr(assign.value)}"


def _edges(graph: Graph) -> Iterator[tuple[str, str, str]]:
    """Yield every (from, to, role)."""
    for operator in graph.operators:
        plain = (link.stream for link in operator.links if link.role == "input")
        yield from ((name, operator.name, "input") for name in dict.fromkeys(plain))
        others = (link for link in operator.links if link.role != "input")
        yield from ((link.stream, operator.name, link.role) for link in others)


# JSON -----------------------------------------------------------------------------------------------


def _sharding(facts: GraphFacts, partitioned: Graph) -> Sharding:
    """Find out how events are partitioned; `partitioned` is the graph before beginnings are shared."""
    if not facts.mobile:
        return sharding(rewrite(partitioned))
    from whimbrel.graph.mobile.sharding import sharding_of_mobile

    return sharding_of_mobile(facts.mobile)


def _sharding_document(found: Sharding) -> dict[str, Any]:
    match found:
        case ByKeys(keys):
            return {"by": "keys", "keys": [str(key) for key in keys]}
        case BySpace(reach_m):
            return {"by": "space", "reach_m": reach_m}
        case ByMeetings(streams, keys, first):
            inner = _sharding_document(first)
            return {"by": "meetings", "streams": list(streams), "keys": list(keys), "first": inner}
        case ByInterests(reach_m, updates):
            return {"by": "interests", "reach_m": reach_m, "updates": list(updates)}
        case SinglePartition(why):
            return {"by": "nothing", "why": why}
    return {"by": "event"}


def _document(facts: GraphFacts, partitioned: Graph | None = None) -> dict[str, Any]:
    """Say everything. `partitioned` is the graph by which events are partitioned, if it is another one."""
    graph = facts.graph
    document = {
        "version": 1,
        "coordinates": graph.coordinates.value if graph.coordinates else None,
        "reach_us": facts.whole_reach,
        "state_events": facts.remembered(),
        "sharding": _sharding_document(_sharding(facts, partitioned or graph)),
        "outputs": [
            {
                "stream": name,
                "type": facts.types[name],
                "attributes": facts.columns[name].listed,
                "reach_us": facts.reach(name),
                "sources": facts.sources(name),
            }
            for name in graph.outputs
        ],
        "operators": [_operator_document(facts, operator) for operator in graph.operators],
        "edges": [{"from": start, "to": end, "role": role} for start, end, role in _edges(graph)],
    }
    if facts.mobile:
        from whimbrel.graph.mobile.explaining import mobile_document

        document["mobile"] = [mobile_document(query) for query in facts.mobile]
    return document


def _operator_document(facts: GraphFacts, operator: Operator) -> dict[str, Any]:
    state = facts.states[operator.name]
    own = {"joins": [], "continues": None, "function": None, "context": None} | operator.document()
    return {
        "name": operator.name,
        "kind": operator.word,
        "inputs": list(operator.inputs),
        "event_type": facts.types[operator.name],
        "attributes": facts.columns[operator.name].listed,
        "conditions": operator.words(),
        "assign": [{"step": step, "values": values} for step, values in _assigned(operator)],
        "having": _having(operator),
        "partitioning": [asdict(key) for key in operator.partitioning.keys],
        "joins": own["joins"],
        "continues": own["continues"],
        "selection": _selection_document(operator.selection_policy),
        "function": own["function"],
        "consumption": {**asdict(operator.consumption), "parts": operator.consumed},
        "context": own["context"],
        "reach_us": facts.reach(operator.name),
        "rate_per_s": facts.rates[operator.name],
        "state": {"events": state.events, "formula": state.formula},
    }


def _selection_document(policy: SelectionPolicy) -> dict[str, Any]:
    restriction = asdict(policy.restriction)
    length = restriction.pop("length")
    return {
        "windows": [asdict(window) for window in policy.windows],
        "restriction": {"length_us": None if length >= END_OF_TIME else length, **restriction},
        "dependencies": [asdict(kappa) for kappa in policy.dependencies],
        "process_when": [asdict(predicate) for predicate in policy.process_when],
        "process_all": policy.process_all,
    }


def _json(facts: GraphFacts, done: list[RewriteStep] | None) -> str:
    document = _document(facts, done[0].before if done else None)
    if done is not None:
        document["rewrites"] = [step_document(step) for step in done]
    return json.dumps(document, indent=2, ensure_ascii=False)


def _json_of_both(before: GraphFacts, after: GraphFacts, done: list[RewriteStep]) -> str:
    both = {"version": 1, "before": _document(before), "after": json.loads(_json(after, done))}
    return json.dumps(both, indent=2, ensure_ascii=False)


# Text -----------------------------------------------------------------------------------------------


def _text(facts: GraphFacts, done: list[RewriteStep] | None) -> str:
    """Write the tree, after the rewrites that led to it."""
    if not done:
        rest = _tree_text(facts, facts.graph)
        return rest if done is None else f"rewrites: none\n\n{rest}"
    lines = ["rewrites:", *(f"  {step_words(step)}" for step in done)]
    return "\n".join(lines) + f"\n\n{_tree_text(facts, done[0].before)}"


def _text_of_both(before: GraphFacts, after: GraphFacts, done: list[RewriteStep]) -> str:
    return f"before:\n\n{_text(before, None)}\n\n\nafter:\n\n{_text(after, done)}"


def _tree_text(facts: GraphFacts, partitioned: Graph) -> str:
    """Write heads and trees. Events are partitioned by `partitioned`, before beginnings are shared."""
    heads = [_head(facts, name) for name in facts.graph.outputs]
    heads.append(f"on several workers: {sharding_words(_sharding(facts, partitioned))}")
    seen: set[str] = set()
    trees = ["\n".join(_tree(facts, name, seen)) for name in facts.graph.outputs]
    return "\n\n".join([*_around(facts), "\n".join(heads), *trees])


def _around(facts: GraphFacts) -> Iterator[str]:
    """Write the mobile queries that what is found is for."""
    if facts.mobile:
        from whimbrel.graph.mobile.explaining import mobile_lines

        yield from ("\n".join(mobile_lines(query, facts.rates)) for query in facts.mobile)


def _head(facts: GraphFacts, name: str) -> str:
    attributes, total = facts.columns[name], facts.remembered(name)
    taken = [f"the attributes of {' and '.join(attributes.of)}"] if attributes.of else []
    made = ", ".join([*attributes.types, *taken]) or "no attributes"
    if total is None:
        kept = ", remembers without bound"
    else:
        kept = f", remembers about {rounded(total)} {'event' if total == 1 else 'events'}" if total else ""
    return f"{facts.types[name] or name}: {made}; {_reach_words(facts.reach(name))}{kept}"


def _tree(facts: GraphFacts, output: str, seen: set[str]) -> Iterator[str]:
    """Write a stream and what is below it; what was written before is only named."""
    todo = [(output, "", "")]
    while todo:
        name, before, margin = todo.pop()
        operator = facts.graph[name]
        if name in seen:
            yield f"{before}{operator.word} {name} (above)"
            continue
        seen.add(name)
        yield before + operator.title
        bar = "│ " if operator.inputs else "  "
        yield from (f"{margin}{bar}{label:<11} {text}" for label, text in _details(facts, operator))
        corners = [("├─ ", "│  ")] * (len(operator.inputs) - 1) + [("└─ ", "   ")]
        below = [
            (each, margin + corner, margin + side)
            for each, (corner, side) in zip(operator.inputs, corners, strict=False)
        ]
        todo += reversed(below)


def _details(facts: GraphFacts, operator: Operator) -> Iterator[tuple[str, str]]:
    if isinstance(operator, Source):
        return
    yield from _selection_lines(operator)
    yield from (("where", condition) for condition in operator.words())
    if keys := operator.partitioning.keys:
        yield "parted by", ", ".join(map(str, keys))
    yield from operator.remarks()
    yield from ((step, ", ".join(values)) for step, values in _assigned(operator))
    if having := _having(operator):
        yield "having", having
    state = facts.states[operator.name]
    if state != NOTHING:
        length = facts.reach(operator.name)
        yield "reaches", "back without bound" if length is None else f"back {format_duration(length)}"
        yield "remembers", str(state)


def _selection_lines(operator: Operator) -> Iterator[tuple[str, str]]:
    if operator.looks_at_each:
        return
    policy = operator.selection_policy
    yield from (("window", _window_text(window)) for window in policy.windows)
    yield from (("depends", str(kappa)) for kappa in policy.dependencies)
    if policy.process_when:
        joined = " and " if policy.process_all else " or "
        yield "processed", "when " + joined.join(map(str, policy.process_when))
    yield "restricted", _restriction_text(policy.restriction)


def _window_text(window: SelectionWindow) -> str:
    if window.length is None or window.length >= END_OF_TIME:
        length = "all events" if window.kind == "counting" else "all time"
    elif window.kind == "temporal":
        length = format_duration(window.length)
    else:
        length = "1 event" if window.length == 1 else f"{window.length:,} events"
    return f"{window.name}: {length} of {window.input} ({window.kind}), {_shift_text(window.shift)}"


def _restriction_text(restriction: RestrictionWindow) -> str:
    if restriction.length == ONE_INSTANT.length:
        return "to one event at a time"
    if restriction.length >= END_OF_TIME:
        return "to no time: it would have to remember for ever"
    return f"to {format_duration(restriction.length)}, {_shift_text(restriction.shift)}"


def _shift_text(shift: Shift) -> str:
    match shift.by:
        case "events":
            return "shifts by 1 event" if shift.amount == 1 else f"shifts by {shift.amount:,} events"
        case "time":
            return f"shifts by {format_duration(shift.amount)}"
        case "newest" | "oldest":
            return f"shifts to the {shift.by} event"
    return "shifts with what it depends on"


# Mermaid --------------------------------------------------------------------------------------------

_ARROWS = {"absent": "-. not .->", "until": "-. until .->"}


def _mermaid(facts: GraphFacts, done: list[RewriteStep] | None) -> str:
    return "\n".join(["flowchart LR", *_remarks(done or ()), *_chart(facts, "n")])


def _mermaid_of_both(before: GraphFacts, after: GraphFacts, done: list[RewriteStep]) -> str:
    lines = ["flowchart LR", *_remarks(done)]
    for title, facts in (("before", before), ("after", after)):
        lines += [f"  subgraph {title}", *_chart(facts, title[0]), "  end"]
    return "\n".join(lines)


def _remarks(done: Iterable[RewriteStep]) -> list[str]:
    return [f"  %% {' '.join(step_words(step).split())}" for step in done]


def _chart(facts: GraphFacts, prefix: str) -> list[str]:
    """Give the lines of a flowchart whose nodes are called `prefix` and a number."""
    numbers = {operator.name: f"{prefix}{number}" for number, operator in enumerate(facts.graph.operators)}
    lines = []
    for operator in facts.graph.operators:
        opening, closing = operator.brackets
        label = "<br/>".join(map(_escaped, _label(facts, operator)))
        lines.append(f'  {numbers[operator.name]}{opening}"{label}"{closing}')
    for start, end, role in dict.fromkeys(_edges(facts.graph)):
        lines.append(f"  {numbers[start]} {_ARROWS.get(role, '-->')} {numbers[end]}")
    if facts.mobile:
        return lines + list(_chart_of_mobile(facts, prefix, numbers))
    return lines + [f"  style {numbers[name]} stroke-width:3px" for name in facts.graph.outputs]


def _chart_of_mobile(facts: GraphFacts, prefix: str, numbers: Mapping[str, str]) -> Iterator[str]:
    """Draw whom mobile queries follow, and what is found once or for each interest."""
    from whimbrel.graph.mobile.explaining import mobile_label
    from whimbrel.graph.mobile.parts import parts

    for number, query in enumerate(facts.mobile, start=len(numbers)):
        node, focal = f"{prefix}{number}", query.focal.type
        yield f'  {node}[/"{"<br/>".join(map(_escaped, mobile_label(query)))}"/]'
        yield f"  {numbers.get(focal) or _loose_source(node, focal)} -. location .-> {node}"
        once = parts(query).reported_once
        for name in query.detect.graph.outputs:
            yield f"  {numbers[name]} -- {'once' if name in once else 'for each'} --> {node}"
        yield f"  style {node} stroke-width:3px"


def _loose_source(node: str, event_type: str) -> str:
    """Draw location updates that no operator reads."""
    return f'{node}f(["{_escaped(event_type)}"])'


def _label(facts: GraphFacts, operator: Operator) -> list[str]:
    """Say what fits into a box."""
    own = operator.box(facts.columns[operator.name])
    if own is not None:
        return own
    lines = [f"{operator.word} {operator.name}", *map(str, operator.selection_policy.dependencies)]
    lines += operator.words()
    if having := _having(operator):
        lines.append(f"having {having}")
    if keys := operator.partitioning.keys:
        lines.append(f"parted by {', '.join(map(str, keys))}")
    if operator.consumption.kind != "none":
        lines.append(f"consumes {operator.consumption.words(operator.consumed)}")
    if facts.states[operator.name] != NOTHING:
        lines.append(f"remembers {facts.states[operator.name]}")
    return lines


_FORMS = {"text": _text, "mermaid": _mermaid, "json": _json}
_BOTH = {"text": _text_of_both, "mermaid": _mermaid_of_both, "json": _json_of_both}


def _escaped(text: str) -> str:
    """Keep characters that mermaid would read as its own."""
    codes = {"#": "#35;", "&": "#amp;", "<": "#lt;", ">": "#gt;", '"': "#quot;", "`": "#96;", "\\": "#92;"}
    return "".join(codes.get(letter, letter) for letter in " ".join(text.split()))
