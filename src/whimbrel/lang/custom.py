"""Queries whose detections are made by an operator written in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.graph.custom import CustomOperator, function_name
from whimbrel.graph.expressions import Attribute
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import Custom, Derive, DeriveCase, Graph
from whimbrel.graph.passes.drop_unused import drop_unused
from whimbrel.graph.policies import WHOLE, Assign, Consumption, Partitioning, SelectionPolicy
from whimbrel.graph.query import Query
from whimbrel.lang.wbl.compile import compile_text
from whimbrel.model.schema import TYPE_NAMES

Inputs = Mapping[str, str | tuple[str, str]] | Sequence[str | tuple[str, str]]
_INPUT = "input_"
_PARTITION = "partition_"


def custom_query(
    name: str,
    operator: type[CustomOperator],
    inputs: Inputs,
    policy: SelectionPolicy,
    *,
    consumption: Consumption | None = None,
    partitioning: Partitioning | Sequence[str] = WHOLE,
    parameters: Mapping[str, object] | None = None,
    attributes: Mapping[str, str] | Sequence[str] = (),
    definitions: str = "",
    functions: Iterable[Function] = (),
    horizon: timedelta | str | int | None = None,
) -> Query:
    """Make a query that runs a `CustomOperator` and reports what it finds as events of type `name`.

    Parameters
    ----------
    inputs
        What the operator reads: event types, conditions as pairs (`("Position", "speed > 30")`), or any
        pattern of the language; as a mapping, under names of their own. Windows refer to these names.
    partitioning
        Keys as `group by` takes them: attributes, "source", "cell(500 m)".
    parameters
        Handed to the constructor of the operator.
    attributes
        The attributes of its detections, with types if it is a mapping; nothing: whatever it gives.
    definitions
        Statements of the language that the inputs may refer to: event types, regions, definitions. To follow
        objects with such a query, hand it to `whimbrel.follow`.

    Examples
    --------
    >>> from whimbrel.graph.custom import restriction, window
    >>> class Double(CustomOperator):
    ...     def process(self, events):
    ...         return [{"v": 2 * event["v"]} for event in events]
    >>> policy = SelectionPolicy((window("A"),), restriction("1 s"))
    >>> query = custom_query("Twice", Double, ["A"], policy)
    >>> from whimbrel import detect
    >>> detect(query, [{"type": "A", "time": 0, "v": 21}])["v"].to_pylist()
    [42]
    """
    function = function_name(operator)
    named = _named(inputs)
    _check_inputs(policy, named)
    below = _compiled(named, partitioning, definitions, functions, horizon)
    streams = {alias: _stream(below.graph, f"{_INPUT}{at}") for at, alias in enumerate(named)}
    keys = partitioning if isinstance(partitioning, Partitioning) else _keys(below.graph)
    custom = Custom(
        f"{name}.custom",
        tuple(streams.values()),
        function,
        _over(policy, streams),
        consumption or Consumption("none"),
        keys,
        dict(parameters or {}),
        tuple(attributes),
    )
    derive = Derive(name, name, (DeriveCase(custom.name, None, _assigned(attributes)),))
    graph = drop_unused(Graph((*below.graph.operators, custom, derive), (name,), below.graph.coordinates))
    return replace(below, graph=graph, text="", subscriptions=(), operators={function: operator})


def _named(inputs: Inputs) -> dict[str, str]:
    """Name every input: its own, or that of its type."""
    if not inputs:
        raise QueryError("an operator needs at least one input")
    pairs = inputs.items() if isinstance(inputs, Mapping) else [(_type_of(each), each) for each in inputs]
    named = {alias: each if isinstance(each, str) else f"{each[0]}({each[1]})" for alias, each in pairs}
    if len(named) < len(pairs):
        raise QueryError("two inputs have the same type; give them names: inputs={'a': ..., 'b': ...}")
    return named


def _type_of(given: str | tuple[str, str]) -> str:
    return given.partition("(")[0].strip() if isinstance(given, str) else given[0]


def _check_inputs(policy: SelectionPolicy, named: Mapping[str, str]) -> None:
    wanted = [window.input for window in policy.windows]
    if policy.restriction.input is not None:
        wanted.append(policy.restriction.input)
    for input in wanted:
        if input not in named:
            raise UnknownNameError("input", input, named)
    for alias in named:
        if alias not in wanted:
            raise QueryError(f"the input {alias!r} has no selection window")


def _compiled(
    named: Mapping[str, str],
    partitioning: Partitioning | Sequence[str],
    definitions: str,
    functions: Iterable[Function],
    horizon: timedelta | str | int | None,
) -> Query:
    """Compile the inputs as definitions of the language."""
    lines = [definitions]
    lines += [f"define {_INPUT}{at} detect {pattern}" for at, pattern in enumerate(named.values())]
    if not isinstance(partitioning, Partitioning) and partitioning:
        lines.append(f"define {_PARTITION} detect {_INPUT}0 group by {', '.join(partitioning)}")
    return compile_text("\n".join(lines), functions=functions, horizon=horizon, emit="all")


def _stream(graph: Graph, definition: str) -> str:
    """Name the stream of an input: single events as they are, everything else as derived events."""
    derive = graph[definition]
    assert isinstance(derive, Derive)
    case = derive.cases[0]
    return derive.name if graph[case.input].is_composite or case.assign else case.input


def _keys(graph: Graph) -> Partitioning:
    for operator in graph.operators:
        if isinstance(operator, Derive) and operator.name == _PARTITION:
            return operator.cases[0].partitioning
    return WHOLE


def _over(policy: SelectionPolicy, streams: Mapping[str, str]) -> SelectionPolicy:
    """Let the windows refer to streams of the graph."""
    windows = tuple(replace(window, input=streams[window.input]) for window in policy.windows)
    counted = policy.restriction.input
    restriction = replace(policy.restriction, input=None if counted is None else streams[counted])
    return replace(policy, windows=windows, restriction=restriction)


def _assigned(attributes: Mapping[str, str] | Sequence[str]) -> tuple[Assign, ...]:
    types = attributes if isinstance(attributes, Mapping) else {}
    for name, kind in types.items():
        if kind.lower() not in TYPE_NAMES:
            raise QueryError(f"{kind!r} is no type for {name!r}; types: {', '.join(TYPE_NAMES)}")
    return tuple(Assign(name, Attribute(None, name), types.get(name)) for name in attributes)
