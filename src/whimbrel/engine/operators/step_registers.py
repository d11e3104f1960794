"""What conditions of a `Sequence` read of the steps taken before: sums, counts, first and last values.

Every run keeps these values in *registers* and updates them with each event it takes, so that a condition is
tested without looking back. Which kinds of values they are is known only when events come; registers move
when that changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from whimbrel.engine.kernels import runs as k
from whimbrel.engine.operators.step_automaton import Lookahead
from whimbrel.engine.operators.value_columns import (
    ColumnKey,
    Place,
    ValueColumns,
    own,
    places_of,
    places_of_texts,
    widths,
)
from whimbrel.engine.programs import (
    BeyondTheMachine,
    Operand,
    Programs,
    spell_out_relations,
)
from whimbrel.engine.shapes import ShapeLayout
from whimbrel.engine.snapshot import Blocks
from whimbrel.engine.values import Column, FloatArray, Int64Array
from whimbrel.errors import QueryError, QueryTypeError
from whimbrel.graph.expressions import (
    AGGREGATES,
    PLACE,
    PLACE_RELATIONS,
    Attribute,
    Binary,
    Call,
    Expr,
    Literal,
    PartRef,
    format_expr,
    transform,
    walk,
)
from whimbrel.graph.operators.step_pattern import StepTest
from whimbrel.model.schema import Coordinates, Type

EVENT = "@event"
"""The part name under which programs read the event under test."""
MOST_VALUES = 31
_KINDS = {"first": k.FIRST, "last": k.LAST, "count": k.COUNT, "sum": k.SUM, "min": k.MIN, "max": k.MAX}


@dataclass(frozen=True, slots=True)
class Register:
    """A value kept for each run: an aggregate of what a step took; `values` is None where events count."""

    step: str
    function: str
    values: Expr | None

    @property
    def kind(self) -> int:
        """What it does with another value."""
        return _KINDS[self.function]


@dataclass
class StepMemory:
    """The registers of one pattern, the event values they are made from, and the programs that read them."""

    tests: list[StepTest | Lookahead]
    steps: dict[str, int]
    coordinates: Coordinates | None = None
    totals: list[tuple[str, Expr | None]] = field(default_factory=list)
    """What is summed up over all matches where these are counted: steps and values (None: events)."""
    registers: list[Register] = field(default_factory=list)
    values: ValueColumns = field(default_factory=lambda: ValueColumns(MOST_VALUES, "a pattern"))
    """Expressions over one event that programs or registers read."""

    def __post_init__(self) -> None:
        self._conditions = [
            None if test.condition is None else self._prepared(test.condition) for test in self.tests
        ]
        for condition in self._conditions:
            if condition is not None:
                self._collect(condition)
        for _, values in self.totals:
            if values is not None:
                self._key(values)
        self.compile()

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what is known of the values; where they lie follows from that."""
        self.values.save(blocks, name)

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        self.values.load(blocks, name)
        self.compile()

    # -- what there is -------------------------------------------------------------------------------------

    def _prepared(self, condition: Expr) -> Expr:
        """Write averages as sums by counts, relations as comparisons, and name the event under test."""

        def change(node: Expr) -> Expr:
            if isinstance(node, Attribute) and node.part is None:
                return Attribute(EVENT, node.name, at=node.at)
            if isinstance(node, PartRef) and node.name is None:
                return PartRef(EVENT, at=node.at)
            if isinstance(node, Call) and node.function == "avg":
                return Binary("/", Call("sum", node.arguments), Call("count", node.arguments), at=node.at)
            return node

        return transform(spell_out_relations(condition), change)

    def _collect(self, condition: Expr) -> None:
        for node in walk(condition):
            for register in self._registers_of(node):
                if register not in self.registers:
                    self.registers.append(register)
                    if register.values is not None:
                        self._key(register.values)

    def _registers_of(self, node: Expr) -> list[Register]:
        if isinstance(node, Call) and node.function in PLACE_RELATIONS:
            steps = [part.name for part in node.arguments if isinstance(part, PartRef)]
            if len(steps) == 1:  # and a region: what is asked is kept itself
                return [Register(step, "last", own(node, step)) for step in steps if step in self.steps]
            place = [Attribute(None, each) for each in PLACE]
            return [Register(step, "last", each) for step in steps if step in self.steps for each in place]
        found = self._register_of(node)
        return [] if found is None else [found]

    def _register_of(self, node: Expr) -> Register | None:
        """Give the register that an expression reads; None if it reads none itself."""
        match node:
            case Call(function, (PartRef(str() as step),)) if function == "count" and step in self.steps:
                return Register(step, function, None)
            case Call(function, (argument,)) if function in AGGREGATES:
                name = next((p.part for p in walk(argument) if isinstance(p, Attribute)), None)
                if function not in _KINDS:
                    raise QueryError(
                        f"{format_expr(node)!r} cannot be read while a pattern is being matched",
                        node.at,
                        "use count, sum, avg, min, max, first or last",
                    )
                if name in self.steps:
                    return Register(str(name), function, own(argument, str(name)))
            case Attribute(str() as step, _) if step in self.steps:
                return Register(step, "last", own(node, step))
        return None

    def _key(self, expr: Expr) -> ColumnKey:
        key = ColumnKey(expr)
        self.values.number(key)
        return key

    def _place(self, expr: Expr) -> Place:
        """Give where the value of an expression over the event under test lies."""
        return self.values.places[self.values.number(ColumnKey(expr))]

    # -- where values lie ----------------------------------------------------------------------------------

    def _register_kind(self, register: Register) -> Type | None:
        if register.function == "count":
            return Type.INT
        assert register.values is not None
        kind = self.values.type_of(self._key(register.values))
        if register.function != "sum":
            return kind
        if kind not in (None, Type.INT, Type.FLOAT, Type.DURATION):
            raise QueryTypeError(f"sum needs numbers, not a {kind.value}")
        return kind or Type.INT  # nothing adds up to 0, whatever it is

    def compile(self) -> None:
        """Compile the conditions for the kinds of values known so far."""
        self.register_kinds = [self._register_kind(register) for register in self.registers]
        self.register_places = places_of(self.register_kinds, MOST_VALUES, "a pattern")
        for value in self._constant_texts():
            self.values.texts.codes(Column(Type.STRING, pa.array([value])))
        programs = self._programs()
        bounds = [
            (*self._program(programs, condition), test.window if isinstance(test, Lookahead) else -1)
            for test, condition in zip(self.tests, self._conditions, strict=True)
        ]
        if programs.orders_texts and not self.values.texts.in_order:
            self.values.texts.in_order = True
            self.values.texts.learn([])
            return self.compile()
        table = [
            (
                self.steps[register.step], register.kind, int(place[0]), place[1],
                self._source(register),
                0 if register.values is None else int(self._place(register.values)[0]),
            )
            for register, place in zip(self.registers, self.register_places, strict=True)
            if place[1] >= 0
        ]  # fmt: skip
        self.programs = k.RunTests(
            np.array(bounds, np.int64).reshape(-1, 3),
            np.array(programs.code, np.int64),
            *self._constants(programs),
            np.array(table, np.int64).reshape(-1, 6),
            np.array([self._total(*total) for total in self.totals], np.int64).reshape(-1, 3),
        )
        self.is_exact = programs.is_exact
        self.blank = self._blank()
        return None

    def _source(self, register: Register) -> int:
        """Give the place of the event value that a register is made from; -1: none."""
        if register.values is None:
            return -1
        place = self._place(register.values)[1]
        # Where no event had a value so far, none is counted: at that place all events are null.
        return MOST_VALUES if place < 0 and register.function == "count" else place

    def _constants(self, programs: Programs) -> tuple[Int64Array, FloatArray]:
        self._reads_shapes = programs.reads_shapes
        self._laid_out = len(self.values.texts)
        layout = ShapeLayout(self.coordinates)
        return programs.constants(layout, self.values.texts.values() if programs.reads_shapes else [])

    @property
    def is_behind(self) -> bool:
        """Whether there are shapes that the programs do not know yet."""
        return self._reads_shapes and len(self.values.texts) != self._laid_out

    def _total(self, step: str, values: Expr | None) -> tuple[int, int, int]:
        if values is None:
            return self.steps[step], 0, -1
        is_float, place = self._place(values)
        # What has no value in any event so far counts nothing: at that place all events are null.
        return self.steps[step], int(is_float), place if place >= 0 else MOST_VALUES

    def _blank(self) -> int:
        """Give the null marks of a run that has taken nothing: only counts and sums have a value, 0."""
        bits = -1
        for register, (is_float, place) in zip(self.registers, self.register_places, strict=True):
            if register.function in ("count", "sum") and place >= 0:
                bits &= ~(1 << (place + 32 * is_float))
        return bits

    def _programs(self) -> Programs:
        read = {}
        for register, kind, place in zip(
            self.registers, self.register_kinds, self.register_places, strict=True
        ):
            for expr in self._readings(register):
                read[expr] = Operand(kind, place[1])
        return Programs(self._operand, {EVENT: 0}, self.coordinates, read, self._text_code)

    def _readings(self, register: Register) -> Iterable[Expr]:
        """Give the expressions that read a register."""
        if register.values is None:
            yield Call("count", (PartRef(register.step),))
            return
        named = _of_step(register.values, register.step)
        yield Call(register.function, (named,))
        if register.function == "last" and isinstance(named, Attribute | Call):
            yield named

    def _operand(self, slot: int, expr: Expr) -> Operand:  # noqa: ARG002, there is only one
        value = own(expr, EVENT)
        if isinstance(value, Attribute) and value.name in ("start", "end"):
            return Operand(Type.TIMESTAMP, -1)
        return self.values.operand(ColumnKey(value))

    def _text_code(self, text: str) -> int:
        return int(self.values.texts.codes(Column(Type.STRING, pa.array([text])))[0])

    def places_of_texts(self) -> Int64Array:
        """Give the places of the registers that hold codes of texts."""
        return places_of_texts(self.register_kinds, self.register_places)

    def codes_of_constants(self) -> Int64Array:
        """Give the codes of the texts that conditions name."""
        return np.array([self._text_code(text) for text in self._constant_texts()], np.int64)

    def _constant_texts(self) -> list[str]:
        return [
            node.value
            for condition in self._conditions
            if condition is not None
            for node in walk(condition)
            if isinstance(node, Literal) and isinstance(node.value, str)
        ]

    def _program(self, programs: Programs, condition: Expr | None) -> tuple[int, int]:
        if condition is None:
            return 0, 0
        try:
            return programs.add(condition)
        except BeyondTheMachine:
            raise QueryError(
                f"the condition {format_expr(condition)!r} on earlier steps is too complex",
                condition.at,
                "compute what it needs in a definition of its own, one event at a time",
            ) from None

    # -- values --------------------------------------------------------------------------------------------

    def kind_of(self, values: Expr | None) -> Type | None:
        """Give the kind of what is summed up, as far as it is known."""
        return Type.INT if values is None else self.values.type_of(self._key(values))

    def widths(self) -> tuple[int, int]:
        """Give how many whole numbers and floats a run keeps."""
        return widths(self.register_places)

    def column_widths(self) -> tuple[int, int]:
        """Give how many whole numbers and floats of an event are read."""
        return widths(self.values.places)


def _of_step(expr: Expr, step: str) -> Expr:
    """Rewrite an expression over an event itself as one over the events of a step."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Attribute) and node.part is None:
            return Attribute(step, node.name, at=node.at)
        if isinstance(node, PartRef) and node.name is None:
            return PartRef(step, at=node.at)
        return node

    return transform(expr, change)
