"""From the tree of a file to its operator graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path

from whimbrel.errors import QueryError, Span, UnknownNameError, did_you_mean
from whimbrel.graph.functions import Function
from whimbrel.graph.mobile import MobileQuery
from whimbrel.graph.operators import Graph, Operator, Source, clock
from whimbrel.graph.query import Query, Subscription
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.definitions import DefinitionLowering, declared_type
from whimbrel.lang.wbl.emit import Operators
from whimbrel.lang.wbl.mobile import MobileLowering, mobile_name
from whimbrel.lang.wbl.pattern import TypeInfo
from whimbrel.lang.wbl.regions import NamedRegions
from whimbrel.lang.wbl.resolve import QueryScope
from whimbrel.lang.wbl.values import Params, ParamValue
from whimbrel.model.schema import (
    MADE_OF_SEVERAL,
    RESERVED_COLUMNS,
    Columns,
    Coordinates,
    EventSchema,
    Type,
    shown,
)
from whimbrel.model.time import TIME_POINT, instant, written_time_point


@dataclass(slots=True)
class LoweredWbl:
    """What a file became."""

    graph: Graph
    schemas: dict[str, EventSchema]
    subscriptions: tuple[Subscription, ...]
    warnings: tuple[str, ...]
    mobile: tuple[MobileQuery, ...] = ()


def lower(
    file: t.WblFile,
    params: Mapping[str, ParamValue] | None,
    functions: Mapping[str, Function],
    horizon: int | None,
    emit: list[str] | str | None,
    *,
    forever: bool = False,
    folder: Path = Path(),
) -> LoweredWbl:
    """Turn a file into one graph of all its definitions that are reported or used.

    `folder` is where the files that it names are looked up.
    """
    return FileLowering(Declarations.read(file, params, folder), functions, horizon, forever).lower(emit)


@dataclass(slots=True)
class Declarations:
    """Everything a file declares, by name."""

    params: Params
    regions: NamedRegions
    coordinates: Coordinates | None = None
    events: dict[str, EventSchema] = field(default_factory=dict)
    definitions: dict[str, t.Definition | t.SubscriptionNode] = field(default_factory=dict)
    timed_out: dict[str, str] = field(default_factory=dict)
    """Types of matches that ran out of time, and the definitions they belong to."""
    mobile: dict[str, t.MobileNode] = field(default_factory=dict)

    @classmethod
    def read(
        cls, file: t.WblFile, given: Mapping[str, ParamValue] | None, folder: Path = Path()
    ) -> Declarations:
        """Collect the statements of a file; two of one name are an error."""
        params = Params.read([item for item in file.statements if isinstance(item, t.ParamNode)], given)
        coordinates = _coordinates(
            [item for item in file.statements if isinstance(item, t.CoordinatesStatement)]
        )
        declarations = cls(params, NamedRegions(params, coordinates, folder=folder), coordinates)
        for statement in file.statements:
            match statement:
                case t.EventNode():
                    declarations._add_event(statement)
                case t.RegionNode():
                    declarations.regions.declare(statement)
                case t.Definition(name):
                    declarations._add_definition(name, statement)
                case t.SubscriptionNode():
                    declarations._add_definition(subscription_name(statement), statement)
                case t.MobileNode():
                    declarations._add_mobile(statement)
        declarations._refuse_shared_names()
        return declarations

    def _add_event(self, statement: t.EventNode) -> None:
        self._refuse_known(statement.name, statement.at)
        attributes: dict[str, Type] = {}
        for declared in statement.attributes:
            if declared.name in attributes:
                raise QueryError(f"the attribute {declared.name!r} is declared twice", declared.at)
            kind = declared_type(declared)
            if kind is None:
                raise QueryError(
                    f"the attribute {declared.name!r} needs a type",
                    declared.at,
                    f"write '{declared.name}: float'",
                )
            attributes[declared.name] = kind
        columns = self._columns(statement, attributes)
        self.events[statement.name] = EventSchema(statement.name, attributes, columns)

    def _columns(self, statement: t.EventNode, attributes: Mapping[str, Type]) -> dict[str, Columns]:
        """Read which columns an event is made of; all events of an input share its columns."""
        columns: dict[str, Columns] = {}
        for item in statement.columns:
            column = item.columns if len(item.columns) > 1 else item.columns[0]
            if item.name not in RESERVED_COLUMNS and item.name not in attributes:
                raise QueryError(
                    f"{statement.name!r} declares no attribute {item.name!r} to take from a column",
                    item.at,
                    did_you_mean(item.name, [*attributes, *sorted(RESERVED_COLUMNS)]),
                )
            if len(item.columns) > 1 and item.name not in MADE_OF_SEVERAL:
                raise QueryError(
                    f"{item.name!r} cannot be made of several columns",
                    item.at,
                    f"only {', '.join(MADE_OF_SEVERAL)} may be: 'time = date + clock'",
                )
            others = [columns, *(schema.columns for schema in self.events.values())]
            known = next((other[item.name] for other in others if item.name in other), column)
            if item.name in columns or known != column:
                raise QueryError(
                    f"{item.name!r} is taken from {shown(known)} already",
                    item.at,
                    "events of all types share the columns of an input: say it once, or the same again",
                )
            columns[item.name] = column
        return columns

    def _add_definition(self, name: str, statement: t.Definition | t.SubscriptionNode) -> None:
        self._refuse_known(name, statement.at)
        self.definitions[name] = statement
        for other in timed_out_names(statement):
            self._refuse_known(other, statement.at)
            self.timed_out[other] = name

    def _add_mobile(self, statement: t.MobileNode) -> None:
        name = mobile_name(statement)
        if name in self.mobile:
            raise QueryError(
                f"{name!r} is a mobile query already", statement.at, "name this one: 'around Type as name'"
            )
        self.mobile[name] = statement

    def _refuse_shared_names(self) -> None:
        for name, statement in self.mobile.items():
            if name in self.definitions or name in self.timed_out:
                raise QueryError(
                    f"{name!r} is a definition already",
                    statement.at,
                    "give it a name of its own: 'around Type as name'",
                )

    def _refuse_known(self, name: str, at: Span | None) -> None:
        if name in self.events or name in self.definitions or name in self.timed_out:
            kind = "an event" if name in self.events else "a definition"
            raise QueryError(f"{name!r} is {kind} already", at, "choose another name")


def _coordinates(statements: list[t.CoordinatesStatement]) -> Coordinates | None:
    if not statements:
        return None
    first, *more = statements
    if more:
        raise QueryError("coordinates are given twice", more[0].at, "a query uses one kind of coordinates")
    if first.name not in tuple(Coordinates):
        raise UnknownNameError(
            "kind of coordinates", first.name, [str(kind) for kind in Coordinates], first.at
        )
    return Coordinates(first.name)


def subscription_name(statement: t.SubscriptionNode) -> str:
    """Name the detections of a subscription: as it says, or after subscriber and sequence."""
    return statement.name or f"{statement.subscriber}-{statement.sequence}"


@dataclass(slots=True)
class FileLowering:
    """Lower definitions in the order in which they use each other."""

    declared: Declarations
    functions: Mapping[str, Function]
    horizon: int | None
    forever: bool = False
    operators: Operators = field(default_factory=Operators)
    infos: dict[str, TypeInfo] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    open: list[str] = field(default_factory=list)
    """Definitions being lowered, outermost first: a name met again is a cycle."""
    scope: QueryScope = field(init=False)

    def __post_init__(self) -> None:
        self.scope = QueryScope(self.declared.params, self.declared.regions, self.functions)

    def lower(self, emit: list[str] | str | None) -> LoweredWbl:
        """Lower every definition, and keep what the outputs need."""
        for name in self.declared.definitions:
            self._definition(name)
        mobile = self._mobile(emit)
        outputs = self._outputs(emit) if not mobile else _reported(mobile)
        graph = self._graph(outputs)
        subscriptions = tuple(
            Subscription(name, statement.sequence, statement.subscriber, statement.actor)
            for name, statement in self.declared.definitions.items()
            if isinstance(statement, t.SubscriptionNode)
        )
        self.scope.warnings.extend(
            f"the query has no parameter {name!r}, so its value is not used"
            for name in self.declared.params.unused()
        )
        return LoweredWbl(
            graph, self.declared.events, subscriptions, tuple(dict.fromkeys(self.scope.warnings)), mobile
        )

    def _graph(self, outputs: tuple[str, ...]) -> Graph:
        return Graph(_needed(self.operators.made, outputs), outputs, self.declared.coordinates)

    def _mobile(self, emit: list[str] | str | None) -> tuple[MobileQuery, ...]:
        """Make the mobile queries, if they are what is reported."""
        made = {name: self._around(statement) for name, statement in self.declared.mobile.items()}
        if emit is None:
            return tuple(made.values())
        wanted = list(dict.fromkeys([emit] if isinstance(emit, str) else emit))
        chosen = tuple(made[name] for name in wanted if name in made)
        if chosen and len(chosen) < len(wanted):
            other = next(name for name in wanted if name not in made)
            raise QueryError(
                f"{chosen[0].name!r} is a mobile query, and {other!r} is none: report one or the other",
                hint="ask for definitions, or for mobile queries",
            )
        return chosen

    def _around(self, statement: t.MobileNode) -> MobileQuery:
        focal = statement.focal
        if focal.type in self.declared.definitions or focal.type in self.declared.timed_out:
            raise QueryError(
                f"{focal.type!r} is a definition, and an interest follows events as they come in",
                focal.at,
                "write the type of the location updates of what is followed",
            )
        info = self._use(focal.type, focal.at)
        lowering = MobileLowering(
            statement, self.scope, info, self.declared.regions.folder, self._plain_query
        )
        self._check_reported(statement.report)
        return lowering.lower()

    def _check_reported(self, names: tuple[t.Name, ...]) -> None:
        known = {**self.declared.definitions, **self._timed_out()}
        seen: set[str] = set()
        for item in names:
            if item.name not in known:
                raise UnknownNameError("definition", item.name, known, item.at)
            if item.name in seen:
                raise QueryError(f"{item.name!r} is reported twice", item.at, "leave out one of them")
            seen.add(item.name)

    def _plain_query(self, outputs: Sequence[str]) -> Query:
        """Give the query that reports some definitions of the file."""
        return Query(self._graph(tuple(outputs)), schemas=self.declared.events, functions=self.functions)

    def _definition(self, name: str) -> None:
        if name in self.infos:
            return
        self.open.append(name)
        lowering = DefinitionLowering(
            name,
            self.declared.definitions[name],
            self.scope,
            self.operators,
            self._use,
            self._stream,
            self.horizon,
            self.forever,
        )
        self.infos[name] = lowering.lower()
        for other in timed_out_names(self.declared.definitions[name]):
            self.infos[other] = replace(self.infos[name], name=other)
        self.open.pop()

    def _use(self, name: str, at: Span | None) -> TypeInfo:
        """Tell what is known of a type that a pattern uses; lower it first if it is a definition."""
        if name.startswith(TIME_POINT):
            return TypeInfo(written_time_point(name), is_open=False)
        owner = self.declared.timed_out.get(name, name)
        if owner in self.declared.definitions:
            self._refuse_cycle(owner, at)
            self.used.add(name)
            self._definition(owner)
            return self.infos[name]
        if name in self.declared.events:
            schema = self.declared.events[name]
            return TypeInfo(name, dict(schema.attributes), is_open=False)
        self._warn_near_miss(name, at)
        return TypeInfo(name)

    def _refuse_cycle(self, name: str, at: Span | None) -> None:
        if name in self.open:
            cycle = [*self.open[self.open.index(name) :], name]
            raise QueryError(
                f"definitions use each other in a circle: {' -> '.join(cycle)}",
                at,
                "a definition can only use events and definitions that do not need it",
            )

    def _warn_near_miss(self, name: str, at: Span | None) -> None:
        known = [*self.declared.events, *self.declared.definitions] if self.declared.events else []
        near = get_close_matches(name, known, n=1, cutoff=0.8)
        if near:
            where = f"{at}: " if at else ""
            self.scope.warnings.append(f"{where}no event is named {name!r}; did you mean {near[0]!r}?")

    def _stream(self, name: str) -> str:
        if name.startswith(TIME_POINT):
            made = clock(instant(name.removeprefix(TIME_POINT)))
            return made.name if made.name in self.operators.made else self.operators.add(made)
        if name not in self.operators.made:
            self.operators.add(Source(name, name, self.declared.events.get(name)))
        return name

    def _timed_out(self) -> dict[str, t.Definition | t.SubscriptionNode]:
        return {name: self.declared.definitions[of] for name, of in self.declared.timed_out.items()}

    def _outputs(self, emit: list[str] | str | None) -> tuple[str, ...]:
        definitions = {**self.declared.definitions, **self._timed_out()}
        if emit == "all":
            return tuple(definitions)
        if emit is not None:
            names = [emit] if isinstance(emit, str) else emit
            for name in names:
                if name not in definitions:
                    raise UnknownNameError("definition", name, definitions)
            return tuple(dict.fromkeys(names))
        subscriptions = [name for name, item in definitions.items() if isinstance(item, t.SubscriptionNode)]
        return tuple(subscriptions or [name for name in definitions if name not in self.used])


def _reported(mobile: Iterable[MobileQuery]) -> tuple[str, ...]:
    """Name what any of some mobile queries reports."""
    return tuple(dict.fromkeys(name for query in mobile for name in query.detect.graph.outputs))


def timed_out_names(statement: t.Definition | t.SubscriptionNode) -> list[str]:
    """Name the types under which a definition gives matches that ran out of time."""
    return [case.timing_out.name for case in statement.cases if case.timing_out is not None]


def _needed(made: dict[str, Operator], outputs: tuple[str, ...]) -> tuple[Operator, ...]:
    needed: set[str] = set()
    todo = list(outputs)
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.add(name)
            todo.extend(made[name].inputs)
    return tuple(operator for name, operator in made.items() if name in needed)
