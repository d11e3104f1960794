"""Lower one definition: its cases, its window, its attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from whimbrel.errors import QueryError, QueryTypeError, Span, UnboundedError, UnknownNameError
from whimbrel.graph.expressions import GROUP, Attribute, Expr, conjuncts
from whimbrel.graph.operators import Aggregate, AggregateInput, Derive, DeriveCase
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut
from whimbrel.graph.policies import Assign, Context, Key, Partitioning, Window
from whimbrel.lang.types import a_kind, fits
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.bind import Binder
from whimbrel.lang.wbl.changes import CHANGES, ChangeLowering
from whimbrel.lang.wbl.conditions import place_own, place_where, top_match
from whimbrel.lang.wbl.emit import EmittedStream, Emitter, Operators
from whimbrel.lang.wbl.encounters import EncounterLowering
from whimbrel.lang.wbl.motions import MotionLowering
from whimbrel.lang.wbl.movers import MotionPhrase
from whimbrel.lang.wbl.pattern import (
    BoundPattern,
    Joined,
    Occurring,
    PartName,
    Repeated,
    RequiredPart,
    TypeInfo,
)
from whimbrel.lang.wbl.resolve import ExpressionSite, QueryScope, VisibleNames, attribute_type
from whimbrel.lang.wbl.sequences import SequenceLowering, is_walked
from whimbrel.lang.wbl.values import quantity
from whimbrel.model.schema import BUILT_IN_ATTRIBUTES, RESERVED_COLUMNS, TYPE_NAMES, Type, common_type

Typed = list[tuple[Assign, Type | None]]


@dataclass(slots=True)
class DefinitionLowering:
    """Make the operators of one definition or subscription."""

    name: str
    statement: t.Definition | t.SubscriptionNode
    scope: QueryScope
    operators: Operators
    use: Callable[[str, Span | None], TypeInfo]
    stream_of: Callable[[str], str]
    horizon: int | None
    forever: bool = False
    """Whether a sequence of steps may remember its events for ever."""

    def lower(self) -> TypeInfo:
        """Add the operators, the last of which has the definition's name, and tell its attributes."""
        window = self._window()
        if window is not None:
            return self._aggregating(window)
        return self._ordinary()

    @property
    def _declared(self) -> tuple[t.Declared, ...] | None:
        return self.statement.attributes if isinstance(self.statement, t.Definition) else None

    # Ordinary definitions

    def _ordinary(self) -> TypeInfo:
        cases: list[DeriveCase] = []
        infos: list[TypeInfo] = []
        for case in self.statement.cases:
            made, info = self._case(case)
            cases.append(made)
            infos.append(info)
        self.operators.add(Derive(self.name, self.name, tuple(cases)))
        names = dict.fromkeys(name for info in infos for name in info.attributes)
        attributes = {name: common_type([info.attributes.get(name) for info in infos]) for name in names}
        return TypeInfo(self.name, attributes, any(info.is_open for info in infos))

    def _case(self, case: t.CaseNode) -> tuple[DeriveCase, TypeInfo]:
        self._refuse_aggregate_clauses(case)
        if isinstance(case.detect, t.MotionNode):
            return self._moving(case, case.detect)
        if is_walked(case):
            return self._walked(case, case.detect)
        bound = self._bind(case, aggregate=False)
        keys = self._keys(case, bound)
        context = _context(case)
        self._place_conditions(case, bound, keys, push=context is not Context.CHRONICLE)
        consuming = self._consuming(case, bound, context)
        emitter = self._emitter(case, keys, context, consuming)
        stream = emitter.emit(bound.root)
        typed, info = self._outcome(case, bound, keys)
        assign = tuple(assignment for assignment, _ in typed)
        return DeriveCase(stream.name, stream.alias, assign, emitter.partitioning, case.label or ""), info

    def _walked(self, case: t.CaseNode, pattern: t.PatternNode) -> tuple[DeriveCase, TypeInfo]:
        """Lower a sequence of steps."""
        base = self.name if case.label is None else f"{self.name}.case{case.label}"
        lowering = SequenceLowering(
            base, case, pattern, self.scope, self.operators, self.use, self.stream_of, self.horizon
        )
        lowering.bind()
        bound = BoundPattern(lowering.leaves[0], lowering.parts, lowering.leaves)
        keys = self._keys(case, bound)
        made = lowering.lower(keys)
        self._refuse_unbounded(made, case)
        names = replace(
            self._names(bound, keys), assigning=True, walked=lowering.repeated, counted=case.counting
        )
        assigned = self._assigned(case.assign, names)
        if self._declared is not None:
            typed = self._fill_declared(case, assigned, names, None)
        else:
            typed = assigned or [self._from_key(key, names, None) for key in keys.values()]
        info = TypeInfo(self.name, {item.name: kind for item, kind in typed}, is_open=False)
        assign = tuple(assignment for assignment, _ in typed)
        result = DeriveCase(made.name, None, assign, made.partitioning, case.label or "")
        if case.timing_out is not None:
            self._add_timed_out(made, case.timing_out.name, result)
        return result, info

    def _moving(self, case: t.CaseNode, motion: t.MotionNode) -> tuple[DeriveCase, TypeInfo]:
        """Lower a phrase of motion."""
        base = self.name if case.label is None else f"{self.name}.case{case.label}"
        mover = MotionPhrase(base, case, motion, self.scope, self.operators, self.use, self.stream_of)
        if mover.is_encounter:
            return self._meeting(case, EncounterLowering(mover))
        is_change = motion.verb == CHANGES
        lowering = ChangeLowering(mover, self.horizon) if is_change else MotionLowering(mover)
        bound = BoundPattern(lowering.leaf, lowering.parts, [lowering.leaf])
        keys = self._movers_keys(case, bound)
        stream = lowering.lower(keys)
        names = replace(self._names(bound, keys), assigning=True)
        said = [self._from_key(key, names, None) for key in keys.values()]
        typed = self._motion_outcome(case, mover, names, said, lowering.known())
        assign, info = self._with_info(typed)
        return DeriveCase(stream, None, assign, Partitioning(tuple(keys.values())), case.label or ""), info

    def _meeting(self, case: t.CaseNode, lowering: EncounterLowering) -> tuple[DeriveCase, TypeInfo]:
        """Lower a phrase about two movers."""
        bound = BoundPattern(lowering.leaves[0], lowering.parts, list(lowering.leaves))
        keys = self._movers_keys(case, bound)
        stream = lowering.lower(keys)
        names = replace(lowering.names(keys), assigning=True)
        said: Typed = []
        for leaf in lowering.leaves:
            for key in keys.values():
                value = Attribute(leaf.name, key.name)
                name = leaf.name if len(keys) == 1 else f"{leaf.name}_{key.name}"
                said.append((Assign(name, value), names.type_of(value)))
        typed = self._motion_outcome(case, lowering.mover, names, said, lowering.known())
        assign, info = self._with_info(typed)
        return DeriveCase(stream, None, assign, label=case.label or ""), info

    def _movers_keys(self, case: t.CaseNode, bound: BoundPattern) -> dict[str, Key]:
        """Name what tells one mover from another: its source, if nothing else is said."""
        keys = self._keys(case, bound) or {"source": Key("source", "source")}
        cell = next((item for item in case.group_by if item.size is not None), None)
        if cell is not None:
            raise QueryError(
                "a cell tells no mover from another", cell.at, "group by what a mover keeps wherever it goes"
            )
        return keys

    def _motion_outcome(
        self,
        case: t.CaseNode,
        mover: MotionPhrase,
        names: VisibleNames,
        said: Typed,
        known: Sequence[t.Assignment],
    ) -> Typed:
        """List the attributes of a motion; without assignments, who moved and what is known of it."""
        typed = self._assigned(case.assign, names)
        for item, _ in typed:
            mover.check_reads(item.value, names)
        if self._declared is not None:
            return self._fill_declared(case, typed, names, None)
        if typed:
            return typed
        # An attribute called x would be read as the place of the event.
        taken = {item.name for item, _ in said} | RESERVED_COLUMNS
        return said + [(item, kind) for item, kind in self._assigned(known, names) if item.name not in taken]

    def _with_info(self, typed: Typed) -> tuple[tuple[Assign, ...], TypeInfo]:
        info = TypeInfo(self.name, {item.name: kind for item, kind in typed}, is_open=False)
        return tuple(assignment for assignment, _ in typed), info

    def _refuse_unbounded(self, made: StepPattern, case: t.CaseNode) -> None:
        if made.within is None and not self.forever:
            raise UnboundedError(
                "this sequence would have to remember events for ever",
                case.detect.at,
                "add 'within 1 h' (or what fits) behind the last step, or give a horizon: --horizon 1h",
            )

    def _add_timed_out(self, made: StepPattern, name: str, result: DeriveCase) -> None:
        timed_out = self.operators.add(TimedOut(f"{made.name}.timed_out", made.name))
        self.operators.add(Derive(name, name, (replace(result, input=timed_out),)))

    def _refuse_aggregate_clauses(self, case: t.CaseNode) -> None:
        wrong = (
            "<post>" if case.post else "<pre>" if case.pre else "having" if case.having is not None else None
        )
        if wrong:
            at = case.having.at if case.having is not None else case.at
            raise QueryError(
                f"`{wrong}` belongs to an aggregating definition",
                at,
                f"write 'define {self.name} every 5 min ...'",
            )

    def _bind(self, case: t.CaseNode, *, aggregate: bool) -> BoundPattern:
        if isinstance(case.detect, t.MotionNode):
            raise QueryError(
                f"`{case.detect.verb}` cannot be aggregated at once",
                case.detect.at,
                "define it without a window, and aggregate that definition",
            )
        return Binder(self.use, self.scope.params.duration, aggregate).bind(case.detect)

    def _emitter(
        self,
        case: t.CaseNode,
        keys: dict[str, Key],
        context: Context = Context.EACH,
        consuming: tuple[int, ...] = (),
    ) -> Emitter:
        base = self.name if case.label is None else f"{self.name}.case{case.label}"
        partitioning = Partitioning(tuple(keys.values()))
        return Emitter(self.operators, base, self.stream_of, self.horizon, partitioning, context, consuming)

    def _names(
        self, bound: BoundPattern, keys: dict[str, Key], place: ExpressionSite = ExpressionSite.PLAIN
    ) -> VisibleNames:
        lenient = isinstance(self.statement, t.SubscriptionNode)
        return VisibleNames(self.scope, bound.parts, keys, place, lenient=lenient)

    def _place_conditions(
        self, case: t.CaseNode, bound: BoundPattern, keys: dict[str, Key], *, push: bool
    ) -> None:
        for leaf in bound.leaves:
            names = self._names(bound, keys)
            names.own = leaf
            for condition in leaf.occurrence.conditions:
                for part in conjuncts(names.condition(condition)):
                    place_own(bound, leaf, part, keys)
        if case.where is not None:
            for part in conjuncts(self._names(bound, keys).condition(case.where)):
                place_where(bound, part, keys, push=push)

    def _consuming(self, case: t.CaseNode, bound: BoundPattern, context: Context) -> tuple[int, ...]:
        if not case.consuming:
            if context is not Context.EACH and isinstance(bound.root, Repeated):
                top_match(bound)
            return ()
        if context is not Context.EACH:
            raise QueryError(
                f"the context {context.value!r} says already what is consumed",
                case.consuming[0].at,
                "leave out 'consuming' or 'context'",
            )
        if isinstance(bound.root, Repeated):
            top_match(bound)
        return _consumed_parts(case.consuming, bound)

    # Attributes of the result

    def _outcome(self, case: t.CaseNode, bound: BoundPattern, keys: dict[str, Key]) -> tuple[Typed, TypeInfo]:
        names = self._names(bound, keys)
        names.assigning = True
        assigned = self._assigned(case.assign, names)
        only = _only_part(bound)
        if self._declared is not None:
            typed = self._fill_declared(case, assigned, names, only)
            return typed, TypeInfo(self.name, {item.name: kind for item, kind in typed}, is_open=False)
        if assigned:
            return assigned, TypeInfo(self.name, {item.name: kind for item, kind in assigned}, is_open=False)
        if only is not None:
            return [], TypeInfo(self.name, dict(only.info.attributes), only.info.is_open)
        typed = [self._from_key(key, names, None) for key in keys.values()]
        return typed, TypeInfo(self.name, {item.name: kind for item, kind in typed}, is_open=False)

    def _assigned(self, assignments: Sequence[t.Assignment], names: VisibleNames) -> Typed:
        seen: set[str] = set()
        typed: Typed = []
        for assignment in assignments:
            if assignment.name in seen:
                raise QueryError(f"{assignment.name!r} is assigned twice", assignment.at)
            seen.add(assignment.name)
            value, kind = names.value(assignment.value)
            typed.append((Assign(assignment.name, value), kind))
        return typed

    def _fill_declared(
        self, case: t.CaseNode, assigned: Typed, names: VisibleNames, only: PartName | None
    ) -> Typed:
        declared = {item.name: item for item in self._declared or ()}
        if len(declared) != len(self._declared or ()):
            raise QueryError(f"{self.name!r} declares an attribute twice", self.statement.at)
        given = {item.name: (item, kind) for item, kind in assigned}
        for assignment in case.post or case.assign:
            if assignment.name not in declared:
                raise UnknownNameError(
                    f"declared attribute of {self.name}", assignment.name, declared, assignment.at
                )
        return [
            self._declared_value(item, given.get(item.name), names, only, case) for item in declared.values()
        ]

    def _declared_value(
        self,
        item: t.Declared,
        given: tuple[Assign, Type | None] | None,
        names: VisibleNames,
        only: PartName | None,
        case: t.CaseNode,
    ) -> tuple[Assign, Type | None]:
        declared = declared_type(item)
        if given is None:
            given = self._default(item, names, only)
        assign, kind = given
        if declared is not None and not fits(kind, declared):
            at = next((a.at for a in (*case.post, *case.assign) if a.name == item.name), item.at)
            raise QueryTypeError(
                f"{item.name!r} is declared {declared.value}, but its value is {a_kind(kind)}",
                at,
                f"declare it '{item.name}: {kind}', or assign another value",
            )
        kept = None if declared is None else declared.value
        return Assign(assign.name, assign.value, kept), declared or kind

    def _default(
        self, item: t.Declared, names: VisibleNames, only: PartName | None
    ) -> tuple[Assign, Type | None]:
        if item.name in names.keys:
            return self._from_key(names.keys[item.name], names, None)
        if only is not None and names.place is ExpressionSite.PLAIN and _has(only.info, item.name):
            value = Attribute(only.name, item.name, at=item.at)
            return Assign(item.name, value), attribute_type(only.info, item.name)
        raise QueryError(
            f"{self.name!r} declares {item.name!r}, but assigns no value to it",
            item.at,
            f"write 'assign {item.name} = ...'",
        )

    def _from_key(self, key: Key, names: VisibleNames, at: Span | None) -> tuple[Assign, Type | None]:
        value = Attribute(GROUP, key.name, at=at)
        return Assign(key.name, value), names.type_of(value)

    # Aggregating definitions

    def _window(self) -> Window | None:
        if not isinstance(self.statement, t.Definition):
            return None
        if self.statement.window is None:
            if self.statement.aggr:
                raise QueryError(
                    "an aggregating definition needs a window",
                    self.statement.at,
                    "write for example 'aggr every 2 min' or 'aggr over 10 min every 1 min'",
                )
            return None
        return self._read_window(self.statement.window)

    def _read_window(self, clause: t.WindowClause) -> Window:
        over = None if clause.over is None else self.scope.params.window(clause.over)
        every = None if clause.every is None else self.scope.params.window(clause.every)
        kind, length = over or every or ("temporal", 0)
        if over and every and over[0] != every[0]:
            raise QueryError(
                "the window and its step count different things",
                clause.at,
                "use time for both, or events for both",
            )
        step = every[1] if every else None
        if kind == "counting":
            return Window("counting", length, step, self._age(clause))
        if clause.within is not None:
            raise QueryError(
                "`within` belongs to a window that counts events",
                clause.within.at,
                "the window gives the time already",
            )
        return Window("temporal", length, step)

    def _age(self, clause: t.WindowClause) -> int:
        """Tell how old a counted event may be."""
        if clause.within is not None:
            return self.scope.params.duration(clause.within)
        if self.horizon is not None:
            return self.horizon
        raise UnboundedError(
            "a window that counts events would have to remember them for ever",
            clause.at,
            "add 'within 1 h' (or what fits) behind it, or give a horizon: --horizon 1h",
        )

    def _aggregating(self, window: Window) -> TypeInfo:
        if len(self.statement.cases) > 1:
            raise QueryError(
                "an aggregating definition has one case",
                self.statement.cases[1].at,
                "define each case by itself, and aggregate 'A or B'",
            )
        case = self.statement.cases[0]
        self._check_aggregating(case)
        bound = self._bind(case, aggregate=True)
        _refuse_time_points(bound, "has nothing to aggregate", "define a pattern with it, and aggregate that")
        keys = self._keys(case, bound)
        self._place_conditions(case, bound, keys, push=True)
        inputs = self._inputs(case, bound, keys)
        assign, post, typed = self._results(case, bound, keys)
        partitioning = Partitioning(tuple(keys.values()))
        having = self._having(case, bound, keys, typed)
        aggregate = Aggregate(f"{self.name}.aggregate", inputs, window, assign, post, having, partitioning)
        self.operators.add(aggregate)
        self.operators.add(
            Derive(
                self.name, self.name, (DeriveCase(aggregate.name, None, (), partitioning, case.label or ""),)
            )
        )
        return TypeInfo(self.name, {item.name: kind for item, kind in typed}, is_open=False)

    def _check_aggregating(self, case: t.CaseNode) -> None:
        if case.consuming:
            raise QueryError("an aggregate consumes nothing", case.consuming[0].at, "leave out 'consuming'")
        if case.context is not None:
            raise QueryError("an aggregate has no context", case.context.at, "leave out 'context'")
        if not case.assign:
            raise QueryError(
                "an aggregating definition needs `assign`", case.at, "write for example 'assign n = count(A)'"
            )

    def _inputs(
        self, case: t.CaseNode, bound: BoundPattern, keys: dict[str, Key]
    ) -> tuple[AggregateInput, ...]:
        emitter = self._emitter(case, keys)
        root = bound.root
        if not isinstance(root, Joined) or root.is_sequence:
            stream = emitter.emit(root)
            return (AggregateInput(stream.name, stream.alias),)
        if root.conditions or root.gaps:
            at = root.conditions[0].at if root.conditions else root.at
            raise QueryError(
                "each side of this `and` is aggregated for itself",
                at,
                "to aggregate combinations, define them first and aggregate that definition",
            )
        return tuple(self._input(emitter, slot) for slot in root.slots)

    def _input(self, emitter: Emitter, slot: RequiredPart) -> AggregateInput:
        if isinstance(slot.node, Joined):
            name = emitter.match(slot.node, emitter.group_name(), Context.EACH, ())
            return AggregateInput(name, None, slot.outer)
        stream: EmittedStream = emitter.emit(slot.node)
        return AggregateInput(stream.name, stream.alias, slot.outer)

    def _results(
        self, case: t.CaseNode, bound: BoundPattern, keys: dict[str, Key]
    ) -> tuple[tuple[Assign, ...], tuple[Assign, ...], Typed]:
        names = self._names(bound, keys, ExpressionSite.AGGREGATE)
        names.assigning = True
        first = self._assigned(case.assign, names)
        last = first
        if case.post:
            names.place, names.results = ExpressionSite.POST, {item.name: kind for item, kind in first}
            last = self._assigned(case.post, names)
        typed = last if self._declared is None else self._fill_declared(case, last, names, None)
        final = tuple(item for item, _ in typed)
        if case.post:
            return tuple(item for item, _ in first), final, typed
        return final, (), typed

    def _having(
        self, case: t.CaseNode, bound: BoundPattern, keys: dict[str, Key], typed: Typed
    ) -> Expr | None:
        if case.having is None:
            return None
        names = self._names(bound, keys, ExpressionSite.HAVING)
        names.results = {item.name: kind for item, kind in typed}
        return names.condition(case.having)

    # Group keys

    def _keys(self, case: t.CaseNode, bound: BoundPattern) -> dict[str, Key]:
        keys: dict[str, Key] = {}
        if case.group_by:
            _refuse_time_points(
                bound, "belongs to no group", "leave out 'group by', or begin with an event of each group"
            )
        for item in case.group_by:
            key = self._key(item, bound)
            if key.name in keys:
                raise QueryError(f"{key.name!r} is a group key already", item.at)
            keys[key.name] = key
        return keys

    def _key(self, item: t.GroupKey, bound: BoundPattern) -> Key:
        if item.size is not None:
            return self._cell(item)
        if item.name in ("source", "srcid"):
            return Key("source", item.name)
        if item.name == "cell":
            raise QueryError("a cell needs its size", item.at, "write for example 'group by cell(500 m)'")
        for leaf in bound.leaves:
            if not _has(leaf.info, item.name):
                raise UnknownNameError(
                    f"attribute of {leaf.info.name}", item.name, leaf.info.attributes, item.at
                )
        return Key("attribute", item.name)

    def _cell(self, item: t.GroupKey) -> Key:
        if item.name != "cell":
            raise UnknownNameError("kind of group key", item.name, ["cell"], item.at)
        size = item.size
        metres = quantity(size) if isinstance(size, t.QuantityNode) else None
        if metres is None or metres.type is not Type.FLOAT or not metres.value:
            raise QueryError("the size of a cell is a length", item.at, "write for example 'cell(500 m)'")
        return Key("cell", "cell", float(metres.value))


def _refuse_time_points(bound: BoundPattern, why: str, hint: str) -> None:
    for leaf in bound.leaves:
        if isinstance(leaf.occurrence, t.TimePoint):
            raise QueryError(f"`{leaf.info.name}` {why}", leaf.occurrence.at, hint)


def declared_type(item: t.Declared) -> Type | None:
    """Read the type behind an attribute, if there is one."""
    if item.type is None:
        return None
    if item.type not in TYPE_NAMES:
        raise UnknownNameError("type", item.type, TYPE_NAMES, item.at)
    return TYPE_NAMES[item.type]


def _has(info: TypeInfo, name: str) -> bool:
    return info.is_open or name in info.attributes or name in BUILT_IN_ATTRIBUTES


def _context(case: t.CaseNode) -> Context:
    if case.context is None:
        return Context.EACH
    if case.context.name not in tuple(Context):
        raise UnknownNameError("context", case.context.name, [str(c) for c in Context], case.context.at)
    return Context(case.context.name)


def _only_part(bound: BoundPattern) -> PartName | None:
    """Find the only part that occurs, if it is a single event."""
    occurring = [
        part for part in bound.parts.values() if not any(b.kind == "absent" for b in part.scope.barriers)
    ]
    if len(occurring) == 1 and not occurring[0].scope.barriers:
        return occurring[0]
    return None


def _consumed_parts(consuming: Sequence[t.Consuming], bound: BoundPattern) -> tuple[int, ...]:
    slots = _slots_by_name(bound)
    if any(item.name == "all" and "all" not in bound.parts for item in consuming):
        return tuple(range(len(bound.root.slots))) if isinstance(bound.root, Joined) else ()
    numbers: list[int] = []
    for item in consuming:
        if item.name not in bound.parts:
            raise UnknownNameError("part", item.name, bound.parts, item.at)
        if item.name not in slots:
            raise QueryError(
                f"{item.name!r} cannot be consumed by itself",
                item.at,
                "only whole parts that occur are consumed; write 'consuming all' for every one",
            )
        numbers.append(slots[item.name])
    return tuple(dict.fromkeys(numbers)) if isinstance(bound.root, Joined) else ()


def _slots_by_name(bound: BoundPattern) -> dict[str, int]:
    root = bound.root
    nodes = [slot.node for slot in root.slots] if isinstance(root, Joined) else [root]
    slots: dict[str, int] = {}
    for index, node in enumerate(nodes):
        if not isinstance(node, Joined) and node.name is not None:
            slots[node.name] = index
        elif not isinstance(node, Joined | Occurring | Repeated):
            # Whichever branch came is the event of this part.
            slots.update((branch.name, index) for branch in node.branches if isinstance(branch, Occurring))
    return slots
