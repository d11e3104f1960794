"""The attributes that a query's detections have, and their types, known before any event is seen."""

from __future__ import annotations

from collections.abc import Mapping

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import GROUP, Attribute
from whimbrel.graph.functions import Function
from whimbrel.graph.operators import (
    Aggregate,
    Custom,
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    Merge,
    Operator,
    Repeat,
    Source,
)
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import MOTION, Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.graph.policies import Assign, Key, Partitioning
from whimbrel.graph.query import Query
from whimbrel.graph.scope import is_composite, scope
from whimbrel.lang.types import BUILT_IN_ATTRIBUTES, common_type, infer
from whimbrel.model.schema import TYPE_NAMES, Type

Types = dict[str, Type | None]


def output_types(query: Query, events: Mapping[str, Type]) -> dict[str, Types]:
    """Give the attributes of every type of detection, in the order in which they are reported.

    `events` are the attributes of the events and their types; what the query declares outweighs it. None is
    a type that cannot be known before: an attribute that no event has.

    >>> from whimbrel.lang.wbl.compile import compile_text
    >>> query = compile_text("define Fast(twice) detect Car(speed > 9) as c assign twice = c.speed * 2")
    >>> output_types(query, {"speed": Type.INT})
    {'Fast': {'twice': <Type.INT: 'int'>}}
    """
    found = _Outputs(query.graph, events, query.functions)
    outputs: dict[str, Types] = {}
    for name in query.graph.outputs:
        kind = str(getattr(query.graph[name], "event_type", name))
        outputs[kind] = _both(outputs.get(kind, {}), found.attributes(name))
    return outputs


def merged(outputs: Mapping[str, Types]) -> Types:
    """Give the attributes of all types of detections together, as the columns of one table."""
    together: Types = {}
    for kind, types in outputs.items():
        for name, type_ in types.items():
            known = together.get(name)
            together[name] = common_type([known, type_])
            if together[name] is None and known is not None and type_ is not None:
                raise QueryError(
                    f"attribute {name!r} is {type_.value} in {kind} and {known.value} in another detection; "
                    f"one table cannot hold both",
                    hint="rename one of them, or report the definitions one at a time (emit=...)",
                )
    return together


class _Outputs:
    def __init__(self, graph: Graph, events: Mapping[str, Type], functions: Mapping[str, Function]) -> None:
        self.graph = graph
        self.events = events
        self.functions = functions
        self._known: dict[str, Types] = {}

    def attributes(self, stream: str) -> Types:
        """Give the attributes that the rows of a stream have of their own."""
        if stream not in self._known:
            self._known[stream] = self._attributes(self.graph[stream])
        return self._known[stream]

    def _attributes(self, operator: Operator) -> Types:
        match operator:
            case Source():
                return self._of_source(operator)
            case Filter():
                return self.attributes(operator.input)
            case Derive():
                types: Types = {}
                for case in operator.cases:
                    types = _both(types, self._of_case(case))
                return types
            case Aggregate():
                return self._of_aggregate(operator)
            case Custom():
                # What Python code gives is not known before: as text it can hold anything.
                return dict.fromkeys(operator.attributes, Type.STRING)
        return {}

    def _of_source(self, source: Source) -> Types:
        if source.schema is not None:
            return dict(source.schema.attributes)
        return dict(self.events)

    def _of_case(self, case: DeriveCase) -> Types:
        if case.assign:
            return {assign.name: self._assigned(assign, case) for assign in case.assign}
        operator = self.graph[case.input]
        if not is_composite(operator) or case.alias is not None:
            return self.attributes(case.input)
        parts = scope(self.graph, case.input)
        if len(parts) == 1 and not any(parts.values()):
            return self._of_part(case.input, next(iter(parts)))
        return {key.name: self._key(case.input, key) for key in case.partitioning.keys}

    def _assigned(self, assign: Assign, case: DeriveCase) -> Type | None:
        if assign.type is not None:
            return TYPE_NAMES[assign.type.lower()]
        return infer(
            assign.value,
            lambda attribute: self._read(case.input, case.alias, case.partitioning, attribute),
            self.functions,
        )

    def _of_aggregate(self, operator: Aggregate) -> Types:
        made: Types = {}
        for assign in (*operator.assign, *operator.post):
            made[assign.name] = (
                TYPE_NAMES[assign.type.lower()]
                if assign.type is not None
                else infer(
                    assign.value,
                    lambda attribute: self._read_aggregated(operator, made, attribute),
                    self.functions,
                )
            )
        kept = [assign.name for assign in (operator.post or operator.assign)]
        return {name: made[name] for name in kept}

    def _read_aggregated(self, operator: Aggregate, made: Types, attribute: Attribute) -> Type | None:
        if attribute.part is None and attribute.name in made:
            return made[attribute.name]
        for part in operator.parts:
            in_scope = attribute.part in (None, GROUP, part.alias) or (
                attribute.part in scope(self.graph, part.input)
            )
            if in_scope:
                found = self._read(part.input, part.alias, operator.partitioning, attribute)
                if found is not None:
                    return found
        return None

    def _read(
        self, stream: str, alias: str | None, partitioning: Partitioning, attribute: Attribute
    ) -> Type | None:
        """Give the type of what an expression reads of a stream."""
        if attribute.part == GROUP and alias != GROUP:
            key = next((key for key in partitioning.keys if key.name == attribute.name), None)
            return None if key is None else self._key(stream, key)
        if attribute.part is None or attribute.part == alias:
            return self._own(stream, attribute.name)
        return self._of_part(stream, attribute.part).get(
            attribute.name, BUILT_IN_ATTRIBUTES.get(attribute.name)
        )

    def _own(self, stream: str, name: str) -> Type | None:
        found = self.attributes(stream).get(name)
        return found if found is not None else BUILT_IN_ATTRIBUTES.get(name)

    def _key(self, stream: str, key: Key) -> Type | None:
        if key.kind != "attribute":
            return Type.STRING
        operator = self.graph[stream]
        if not is_composite(operator):
            return self._own(stream, key.name)
        inner = [each for each in operator.inputs if each != getattr(operator, "until", None)]
        return common_type([self._key(each, key) for each in inner])

    def _of_part(self, stream: str, part: str) -> Types:
        """Give the attributes of the events behind a part name of a composite."""
        operator = self.graph[stream]
        if isinstance(operator, TimedOut):
            return self._of_part(operator.input, part)
        if part == MOTION and isinstance(operator, Motion | Encounter):
            return dict(operator.verb.attributes)
        types: Types = {}
        for input, alias in _members(operator):
            if alias == part:
                types = _both(types, self.attributes(input))
            elif part in scope(self.graph, input):
                types = _both(types, self._of_part(input, part))
        return types


def _members(operator: Operator) -> list[tuple[str, str | None]]:
    """Give the streams that a composite is made of, and the part names they stand for."""
    match operator:
        case JoinPattern():
            return [(each.input, each.alias) for each in operator.parts]
        case Merge():
            return [(each.input, each.alias) for each in operator.branches]
        case Repeat() | Motion():
            return [(operator.input, operator.alias)]
        case Encounter():
            return [(operator.input, operator.alias), (operator.other, operator.other_alias)]
        case StepPattern():
            return [(step.test.input, step.name) for step in operator.taken()]
    return []


def _both(one: Types, other: Types) -> Types:
    """Give the attributes of two sets of events; where both have one, the type that holds both."""
    joined = dict(one)
    for name, kind in other.items():
        joined[name] = common_type([one.get(name), kind])
    return joined
