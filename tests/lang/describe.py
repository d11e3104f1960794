"""A graph in a few lines of text, for golden files."""

from __future__ import annotations

from dataclasses import fields

from whimbrel.graph.expressions import format_expr
from whimbrel.graph.mobile import FocalObjects, MobileQuery
from whimbrel.graph.operators import (
    Absent,
    Aggregate,
    Derive,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    PatternPart,
    Repeat,
    Source,
)
from whimbrel.graph.operators.encounter import Encounter, encounter_words
from whimbrel.graph.operators.motion import Motion, motion_words
from whimbrel.graph.operators.step_pattern import StepPattern
from whimbrel.graph.policies import Assign, Context, Key, Partitioning, Select
from whimbrel.graph.query import Query
from whimbrel.model.time import END_OF_TIME, format_duration


def describe(query: Query) -> str:
    """Write every operator, the outputs, the subscriptions and the warnings."""
    lines = [line for operator in query.graph.operators for line in describe_operator(operator)]
    lines += [f"outputs: {', '.join(query.graph.outputs)}"]
    lines += [f"coordinates: {query.graph.coordinates.value}"] if query.graph.coordinates else []
    lines += [f"{s.type}: number {s.sequence} from {s.subscriber} to {s.actor}" for s in query.subscriptions]
    lines += [line for mobile in query.mobile for line in describe_mobile(mobile)]
    lines += [f"warning: {warning}" for warning in query.warnings]
    return "\n".join(lines)


def describe_mobile(mobile: MobileQuery) -> list[str]:
    """Write a mobile query: what is not said is left out."""
    focal = mobile.focal
    plain = MobileQuery(mobile.detect, FocalObjects(focal.type), "1 m")
    lines = [f"around {focal.type} as {mobile.name}, by {focal.key}"]
    lines += [] if focal.condition is None else [f"  if {format_expr(focal.condition)}"]
    lines += [f"  {each}" for each in focal.listed or ()]
    lines += [f"  {mobile.interest}", f"  reports {', '.join(mobile.detect.graph.outputs)}"]
    for name in ("lifetime", "of_situations", "motion_within", "excluding_itself", "silent"):
        value = getattr(mobile, name)
        lines += [] if value == getattr(plain, name) else [f"  {name}: {value}"]
    for field in fields(mobile.policy):
        value = getattr(mobile.policy, field.name)
        lines += [] if value == getattr(plain.policy, field.name) else [f"  {field.name}: {value}"]
    return lines


def describe_operator(operator: Operator) -> list[str]:
    """Write one operator."""
    head = f"{operator.word} {operator.name}"
    match operator:
        case Source():
            schema = operator.schema
            listed = (
                ", ".join(f"{n}: {k.value}" for n, k in schema.attributes.items()) if schema else "anything"
            )
            return [f"{head} ({listed})"]
        case Filter():
            return [f"{head}", f"  of {operator.input}", f"  if {format_expr(operator.condition)}"]
        case Merge():
            return [head, *(f"  {branch.input} as {branch.alias}" for branch in operator.branches)]
        case Repeat():
            return [head, *_repeat(operator)]
        case JoinPattern():
            return [head, *_match(operator)]
        case Aggregate():
            return [head, *_aggregate(operator)]
        case StepPattern():
            return [head, *_sequence(operator)]
        case Motion():
            return [
                head,
                f"  of {operator.input}",
                f"  {motion_words(operator)}",
                *_by(operator.partitioning.keys),
            ]
        case Encounter():
            streams = f"  of {operator.input} and {operator.other}"
            return [head, streams, f"  {encounter_words(operator)}", *_by(operator.keys)]
        case Derive():
            return [head, *(line for case in operator.cases for line in _case(case))]
    raise TypeError(operator)


def _repeat(op: Repeat) -> list[str]:
    most = "" if op.at_most is None else op.at_most
    lines = [f"  {op.input} as {op.alias} {{{op.at_least},{most}}} within {_span(op.within)}"]
    return lines + ([f"  until {op.until}"] if op.until else []) + _keys(op.partitioning)


def _match(op: JoinPattern) -> list[str]:
    lines = [f"  {index}: {_part(part)}" for index, part in enumerate(op.parts)]
    lines += [f"  absent: {_absent(absent)}" for absent in op.absent]
    for order in op.orders:
        gap = "" if order.gap is None else f" within {format_duration(order.gap)}"
        lines.append(f"  order {order.first} -> {order.second}{gap}")
    lines.append(f"  within {_span(op.within)}")
    lines += [f"  if {format_expr(condition)}" for condition in op.conditions]
    lines += [f"  joined on {', '.join(op.joins)}"] if op.joins else []
    lines += ["  goes on from its beginning"] if op.continues else []
    lines += [f"  context {op.context.value}"] if op.context is not Context.EACH else []
    lines += [f"  consuming {', '.join(map(str, op.consuming))}"] if op.consuming else []
    return lines + _keys(op.partitioning)


def _sequence(op: StepPattern) -> list[str]:
    lines = [f"  along {', '.join(op.streams)}"]
    lines += [f"  {step.contiguity or 'first'}: {step.test.input} as {step.name}" for step in op.taken()]
    lines += ["  within any time" if op.within is None else f"  within {format_duration(op.within)}"]
    return lines + _keys(op.partitioning)


def _part(part: PatternPart) -> str:
    select = "" if part.select is Select.EACH else f"{part.select.value} "
    return f"{select}{part.input} as {part.alias}"


def _absent(absent: Absent) -> str:
    lasting = "" if absent.duration is None else f" for {format_duration(absent.duration)}"
    tests = "".join(f" if {format_expr(condition)}" for condition in absent.conditions)
    return f"{absent.input} as {absent.alias} between {absent.after} and {absent.before}{lasting}{tests}"


def _aggregate(op: Aggregate) -> list[str]:
    lines = [f"  {'outer ' if part.outer else ''}{part.input} as {part.alias}" for part in op.parts]
    window = op.window
    shown = (lambda n: f"{n} events") if window.kind == "counting" else format_duration
    step = f" every {shown(window.every)}" if window.every else ""
    age = f" within {format_duration(window.within)}" if window.within else ""
    lines.append(f"  over {shown(window.length)}{step}{age}")
    lines += _assign(op.assign)
    lines += ["  post", *_assign(op.post)] if op.post else []
    lines += [f"  having {format_expr(op.having)}"] if op.having is not None else []
    return lines + _keys(op.partitioning)


def _case(case) -> list[str]:
    label = f"case {case.label}: " if case.label else ""
    return [f"  {label}{case.input} as {case.alias}", *_assign(case.assign), *_keys(case.partitioning)]


def _assign(assigns: tuple[Assign, ...]) -> list[str]:
    return [f"    {a.name}{': ' + a.type if a.type else ''} = {format_expr(a.value)}" for a in assigns]


def _keys(partitioning: Partitioning) -> list[str]:
    return [f"  by {', '.join(map(str, partitioning.keys))}"] if partitioning.keys else []


def _span(within: int) -> str:
    return "any time" if within == END_OF_TIME else format_duration(within)


def graph_text(graph: Graph) -> str:
    """Write a graph alone."""
    return describe(Query(graph))


def _by(keys: tuple[Key, ...]) -> list[str]:
    return [f"  by {', '.join(map(str, keys))}"]
