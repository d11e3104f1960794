"""Mobile queries in Python: whom to follow by conditions as text, by keys or by a table.

`whimbrel.MobileQuery` and its interests and policy are plain data; this makes those parts of them that take
the language or files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import Expr
from whimbrel.graph.functions import Function
from whimbrel.graph.mobile import FocalObjects, Interest, MobilePolicy, MobileQuery
from whimbrel.graph.operators import ANY, Derive, Source
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.graph.scope import selection
from whimbrel.lang.listed import FocalTable, checked_key, listed_objects
from whimbrel.lang.values import ValueBuilder
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.compile import compile_tree
from whimbrel.lang.wbl.parse import parse
from whimbrel.model.length import Length
from whimbrel.model.schema import EventSchema, Type, Value
from whimbrel.model.time import Duration

Condition = str | ValueBuilder
"""A condition in the language, or one made with the builder."""


def focal(
    type: str,
    *,
    key: str = "source",
    where: Condition | None = None,
    only: Value | Iterable[Value] | None = None,
    listed: FocalTable | None = None,
    functions: Iterable[Function] = (),
) -> FocalObjects:
    """Say whom a mobile query follows: objects that report where they are by events of one type.

    Parameters
    ----------
    type
        The type of the location updates.
    key
        The attribute that tells objects apart.
    where
        A condition in the language that location updates have to fulfil: "kind = 'ambulance'".
    only
        The keys of those that are followed.
    listed
        A table with the objects that are followed, in memory or in a CSV or Parquet file. It has a column
        `key`, and perhaps `radius` and `lifetime`, for objects that have one of their own.
    functions
        Python functions that the condition calls.

    Examples
    --------
    >>> focal("Position", key="vehicle", only=["ambulance-7"]).only
    frozenset({'ambulance-7'})
    >>> rows = [{"key": 7, "radius": "1 km"}, {"key": 8, "lifetime": "1 h"}]
    >>> focal("Position", key="vehicle", listed=rows).listed[0]
    ListedObject(key=7, radius_m=1000.0, lifetime=None)
    """
    return _focal(type, key, where, only, listed, {}, functions)


def follow(
    query: Query | Compilable,
    objects: Value | Iterable[Value] | None = None,
    *,
    within: Length | None = None,
    interest: Interest | None = None,
    type: str | None = None,
    key: str = "source",
    where: Condition | None = None,
    listed: FocalTable | None = None,
    lifetime: Duration = 0,
    policy: MobilePolicy | None = None,
    name: str | None = None,
    of_situations: bool = False,
    motion_within: bool = False,
    excluding_itself: bool = False,
    silent: Duration | None = None,
) -> MobileQuery:
    """Let a query follow objects: one, several, all that meet a condition, or those of a table.

    Parameters
    ----------
    query
        What is looked for around them.
    objects
        The key of the object, or keys of several; None: all.
    within
        How far around an object things count; or any other region as `interest`.
    type
        The type of the location updates; without it, the only type that the query reads.
    name
        What deliveries call it; without one, the type of the location updates.
    key, where, listed
        As for `focal`.
    lifetime, policy, of_situations, motion_within, excluding_itself, silent
        As for `MobileQuery`.

    Examples
    --------
    >>> import whimbrel as wb
    >>> slow = wb.compile("define Slow detect Car(speed < 3)")
    >>> around = wb.follow(slow, "ambulance-7", within="500 m", lifetime="10 min")
    >>> around.focal.only, around.interest
    (frozenset({'ambulance-7'}), CircleInterest(radius_m=500.0))
    """
    plain = compiled(query)
    of = type if type is not None else _only_type(plain)
    if (within is None) == (interest is None):
        raise QueryError(
            "give the interest, once", hint="write within='500 m', or interest=BoxInterest('400 m', '200 m')"
        )
    followed = _focal(of, key, where, objects, listed, plain.schemas, plain.functions.values())
    region = interest if interest is not None else within
    assert region is not None
    return MobileQuery(
        plain,
        followed,
        region,
        lifetime,
        policy,
        name if name is not None else of,
        of_situations,
        motion_within,
        excluding_itself,
        silent,
    )


def _only_type(query: Query) -> str:
    """Name the only type of events that a query reads by its name."""
    sources = [each for each in query.graph.operators if isinstance(each, Source) and each.at is None]
    types = {each.event_type for each in sources} - {ANY}
    if len(types) != 1:
        shown = ", ".join(sorted(types)) or "none"
        raise QueryError(
            f"whom to follow cannot be told from what the query reads: {shown}",
            hint="say which events are location updates: type='Position'",
        )
    return types.pop()


def _focal(
    event_type: str,
    key: str,
    where: Condition | None,
    only: Value | Iterable[Value] | None,
    listed: FocalTable | None,
    schemas: Mapping[str, EventSchema],
    functions: Iterable[Function],
) -> FocalObjects:
    if only is not None and listed is not None:
        raise QueryError("objects are named or listed in a table, not both", hint="leave out one of them")
    schema = schemas.get(event_type)
    kind = Type.STRING if key == "source" else None if schema is None else schema.attributes.get(key)
    several = [only] if only is None or isinstance(only, bool | int | float | str | datetime) else only
    return FocalObjects(
        event_type,
        key,
        None if only is None else [checked_key(each, kind, f"following {event_type}") for each in several],
        None if where is None else _condition(event_type, where, schema, functions),
        None if listed is None else listed_objects(listed, kind),
    )


def _condition(
    event_type: str, where: Condition, schema: EventSchema | None, functions: Iterable[Function]
) -> Expr | None:
    """Read a condition on single events of a type as the language does."""
    node = where.node if isinstance(where, ValueBuilder) else _read(where)
    name = f"{event_type} followed"  # no name of the language
    pattern = t.PatternNode(None, (t.PatternPartNode(t.Occurrence(event_type, (node,))),))
    declared = [] if schema is None else [_declaration(schema)]
    tree = t.WblFile((*declared, t.Definition(name, (t.CaseNode(pattern),))))
    try:
        graph = compile_tree(tree, functions=functions).graph
    except QueryError as error:
        raise _about(where, error) from None
    made = graph[name]
    assert isinstance(made, Derive)
    return selection(graph, made.cases[0].input)[1]


def _declaration(schema: EventSchema) -> t.EventNode:
    attributes = (t.Declared(name, kind.value) for name, kind in schema.attributes.items())
    return t.EventNode(schema.name, tuple(attributes))


def _read(where: str) -> t.Expression:
    try:
        statements = parse(f"param p = {where}").statements
    except QueryError as error:
        raise _about(where, error) from None
    match statements:
        case (t.ParamNode(_, value),):
            return value
    raise QueryError(f"{where!r} is more than a condition", hint="write for example \"kind = 'ambulance'\"")


def _about(where: Condition, error: QueryError) -> QueryError:
    return QueryError(f"the condition {where!r}: {error.message}", hint=error.hint)
