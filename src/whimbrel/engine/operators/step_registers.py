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

from whimbrel.engine.interner import Texts
from whimbrel.engine.kernels import runs as k
from whimbrel.engine.operators.step_automaton import Lookahead
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
    columns: list[Expr] = field(default_factory=list)
    """Expressions over one event that programs or registers read."""
    kinds: list[Type | None] = field(default_factory=list)
    """What is known of the columns so far."""
    texts: Texts = field(default_factory=Texts)

    def __post_init__(self) -> None:
        self._conditions = [
            None if test.condition is None else self._prepared(test.condition) for test in self.tests
        ]
        for condition in self._conditions:
            if condition is not None:
                self._collect(condition)
        for _, values in self.totals:
            if values is not None:
                self._column(values)
        self.compile()

    # -- snapshots -----------------------------------------------------------------------------------------

    def save(self, blocks: Blocks, name: str) -> None:
        """Write what is known of the values: their kinds, and the texts that have codes."""
        kinds = [None if kind is None else kind.value for kind in self.kinds]
        blocks.put_json(name, {"kinds": kinds, "texts": self.texts.values()})

    def load(self, blocks: Blocks, name: str) -> None:
        """Read what `save` wrote."""
        about = blocks.json(name)
        self.kinds = [None if kind is None else Type(kind) for kind in about["kinds"]]
        self.texts.restore(about["texts"])
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
                        self._column(register.values)

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

    def _column(self, expr: Expr) -> int:
        if expr not in self.columns:
            self.columns.append(expr)
            self.kinds.append(None)
        return self.columns.index(expr)

    @property
    def is_needed(self) -> bool:
        """Whether any condition reads more than the event itself."""
        return bool(self.columns)

    # -- where values lie ----------------------------------------------------------------------------------

    def _places(self, kinds: list[Type | None]) -> list[tuple[bool, int]]:
        """Give every value its place among whole numbers or floats; -1 where its kind is not known."""
        used = [0, 0]
        places = []
        for kind in kinds:
            if kind is None:
                places.append((False, -1))
                continue
            is_float = kind is Type.FLOAT
            places.append((is_float, used[is_float]))
            used[is_float] += 1
        if max(used) > MOST_VALUES:
            raise QueryError(f"the conditions of a pattern read more than {MOST_VALUES} values")
        return places

    def _register_kind(self, register: Register) -> Type | None:
        if register.function == "count":
            return Type.INT
        assert register.values is not None
        kind = self.kinds[self._column(register.values)]
        if register.function != "sum":
            return kind
        if kind not in (None, Type.INT, Type.FLOAT, Type.DURATION):
            raise QueryTypeError(f"sum needs numbers, not a {kind.value}")
        return kind or Type.INT  # nothing adds up to 0, whatever it is

    def compile(self) -> None:
        """Compile the conditions for the kinds of values known so far."""
        self.register_kinds = [self._register_kind(register) for register in self.registers]
        self.register_places = self._places(self.register_kinds)
        self._add_columns_of_programs()
        self.column_places = self._places(self.kinds)
        for value in self._constant_texts():
            self.texts.codes(Column(Type.STRING, pa.array([value])))
        programs = self._programs()
        bounds = [
            (*self._program(programs, condition), test.window if isinstance(test, Lookahead) else -1)
            for test, condition in zip(self.tests, self._conditions, strict=True)
        ]
        if programs.orders_texts and not self.texts.in_order:
            self.texts.in_order = True
            self.texts.learn([])
            return self.compile()
        table = [
            (
                self.steps[register.step], register.kind, int(place[0]), place[1],
                self._source(register),
                0 if register.values is None else int(self.column_places[self._column(register.values)][0]),
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
        place = self.column_places[self._column(register.values)][1]
        # Where no event had a value so far, none is counted: at that place all events are null.
        return MOST_VALUES if place < 0 and register.function == "count" else place

    def _constants(self, programs: Programs) -> tuple[Int64Array, FloatArray]:
        self._reads_shapes = programs.reads_shapes
        self._laid_out = len(self.texts)
        layout = ShapeLayout(self.coordinates)
        return programs.constants(layout, self.texts.values() if programs.reads_shapes else [])

    @property
    def is_behind(self) -> bool:
        """Whether there are shapes that the programs do not know yet."""
        return self._reads_shapes and len(self.texts) != self._laid_out

    def _total(self, step: str, values: Expr | None) -> tuple[int, int, int]:
        if values is None:
            return self.steps[step], 0, -1
        is_float, place = self.column_places[self._column(values)]
        # What has no value in any event so far counts nothing: at that place all events are null.
        return self.steps[step], int(is_float), place if place >= 0 else MOST_VALUES

    def _blank(self) -> int:
        """Give the null marks of a run that has taken nothing: only counts and sums have a value, 0."""
        bits = -1
        for register, (is_float, place) in zip(self.registers, self.register_places, strict=True):
            if register.function in ("count", "sum") and place >= 0:
                bits &= ~(1 << (place + 32 * is_float))
        return bits

    def _add_columns_of_programs(self) -> None:
        """Find out which event values the programs ask for, by compiling them once."""
        self.column_places = self._places(self.kinds)
        programs = self._programs()
        for condition in self._conditions:
            self._program(programs, condition)

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
        number = self._column(value)
        if number >= len(self.column_places):
            return Operand(None, -1)
        return Operand(self.kinds[number], self.column_places[number][1])

    def _text_code(self, text: str) -> int:
        return int(self.texts.codes(Column(Type.STRING, pa.array([text])))[0])

    def places_of_texts(self) -> Int64Array:
        """Give the places of the registers that hold codes of texts."""
        pairs = zip(self.register_kinds, self.register_places, strict=True)
        found = [place for kind, (_, place) in pairs if kind is Type.STRING and place >= 0]
        return np.array(found, np.int64)

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

    def learn(self, number: int, kind: Type | None) -> bool:
        """Take note of a column's kind; tell whether everything has to be compiled anew."""
        known = self.kinds[number]
        if kind is None or kind is known or (known is Type.FLOAT and kind is Type.INT):
            return False
        if known is not None and not (known is Type.INT and kind is Type.FLOAT):
            raise QueryTypeError(
                f"{format_expr(self.columns[number])!r} was a {known.value} before and is a {kind.value} now"
            )
        self.kinds[number] = kind
        return True

    def kind_of(self, values: Expr | None) -> Type | None:
        """Give the kind of what is summed up, as far as it is known."""
        return Type.INT if values is None else self.kinds[self._column(values)]

    def widths(self) -> tuple[int, int]:
        """Give how many whole numbers and floats a run keeps."""
        return _widths(self.register_places)

    def column_widths(self) -> tuple[int, int]:
        """Give how many whole numbers and floats of an event are read."""
        return _widths(self.column_places)


def _widths(places: list[tuple[bool, int]]) -> tuple[int, int]:
    ints = max((place for is_float, place in places if not is_float), default=-1) + 1
    floats = max((place for is_float, place in places if is_float), default=-1) + 1
    return ints, floats


def own(expr: Expr, part: str) -> Expr:
    """Rewrite an expression over one part as one over the event itself."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Attribute) and node.part == part:
            return Attribute(None, node.name, at=node.at)
        if isinstance(node, PartRef) and node.name == part:
            return PartRef(None, at=node.at)
        return node

    return transform(expr, change)


def _of_step(expr: Expr, step: str) -> Expr:
    """Rewrite an expression over an event itself as one over the events of a step."""

    def change(node: Expr) -> Expr:
        if isinstance(node, Attribute) and node.part is None:
            return Attribute(step, node.name, at=node.at)
        if isinstance(node, PartRef) and node.name is None:
            return PartRef(step, at=node.at)
        return node

    return transform(expr, change)


def moved(
    ints: np.ndarray, floats: np.ndarray, nulls: np.ndarray,
    old: list[tuple[bool, int]], new: list[tuple[bool, int]], widths: tuple[int, int], blank: int,
) -> tuple[Int64Array, np.ndarray, np.ndarray]:  # fmt: skip
    """Bring the registers of all runs to new places; whole numbers may become floats."""
    size = len(nulls)
    made_ints = np.zeros((size, widths[0]), np.int64)
    made_floats = np.zeros((size, widths[1]), np.float64)
    made_nulls = np.full(size, blank, np.int64)
    for (was_float, was), (is_float, place) in zip(old, new, strict=True):
        if was < 0 or place < 0:
            continue
        values = (floats if was_float else ints)[:, was]
        (made_floats if is_float else made_ints)[:, place] = values
        old_bit, new_bit = np.int64(1 << (was + 32 * was_float)), np.int64(1 << (place + 32 * is_float))
        gone = nulls & old_bit != 0
        made_nulls = np.where(gone, made_nulls | new_bit, made_nulls & ~new_bit)
    return made_ints, made_floats, made_nulls
