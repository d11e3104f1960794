"""The syntax tree: what a query says, before anyone asks what its names mean.

Plain frozen data. `at` is where a node stands in the text; it does not count for equality, so
`parse(print(tree)) == tree`. The builder makes the same nodes without a text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from whimbrel.errors import Span


@dataclass(frozen=True, slots=True)
class WblNode:
    """Base of all nodes."""

    at: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


# Expressions ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Constant(WblNode):
    """A number, a text, `true`, `false` or `null`."""

    value: bool | int | float | str | None

    def __eq__(self, other: object) -> bool:
        # 1, 1.0 and True are equal in Python, but not in a query.
        return type(other) is Constant and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class QuantityNode(WblNode):
    """Numbers with units, as in `1 h 30 min` or `500 m`; units in their short form."""

    amounts: tuple[tuple[int | float, str], ...]


@dataclass(frozen=True, slots=True)
class InstantNode(WblNode):
    """`timestamp '2024-05-01T12:00:00Z'`."""

    text: str


@dataclass(frozen=True, slots=True)
class Name(WblNode):
    """A bare name: an attribute, a part, a parameter or a region."""

    name: str


@dataclass(frozen=True, slots=True)
class Dotted(WblNode):
    """`part.name`."""

    part: str
    name: str


@dataclass(frozen=True, slots=True)
class Not(WblNode):
    """`not operand`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Negative(WblNode):
    """`-operand`."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Logic(WblNode):
    """Two or more conditions joined by `and` or by `or`."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Infix(WblNode):
    """`left operator right` with + - * / %."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Compare(WblNode):
    """`first < second <= third`: every neighbouring pair must hold."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Among(WblNode):
    """`value in (a, b, c)`."""

    value: Expression
    choices: tuple[Expression, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class BetweenNode(WblNode):
    """`value between low and high`, both included."""

    value: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNullNode(WblNode):
    """`value is null`."""

    value: Expression
    negated: bool = False


@dataclass(frozen=True, slots=True)
class InRegionNode(WblNode):
    """`value in region`."""

    value: Expression
    region: ShapeNode
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Relation(WblNode):
    """`left before right` and its kin."""

    left: Expression
    relation: str
    right: Expression


@dataclass(frozen=True, slots=True)
class Apply(WblNode):
    """A function or an aggregate with its arguments; the name in lower case."""

    function: str
    arguments: tuple[Expression, ...]


Expression = (
    Constant
    | QuantityNode
    | InstantNode
    | Name
    | Dotted
    | Not
    | Negative
    | Logic
    | Infix
    | Compare
    | Among
    | BetweenNode
    | IsNullNode
    | InRegionNode
    | Relation
    | Apply
)


@dataclass(frozen=True, slots=True)
class ShapeNode(WblNode):
    """A region: `name` of a declared one, `text` in WKT, or made by `function` from numbers."""

    name: str | None = None
    text: str | None = None
    function: str | None = None
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class NamedAmount(WblNode):
    """A parameter where an amount of time or a count stands: `x secs`, or `x` alone."""

    name: str
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Count(WblNode):
    """`100 events`."""

    count: int


Amount = QuantityNode | NamedAmount | Count


# Patterns ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Occurrence(WblNode):
    """`Type(condition, condition)`."""

    type: str
    conditions: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class TimePoint(Occurrence):
    """`time '2024-05-01T12:00:00Z'`: something that happens then, whatever comes; its type names the time."""


@dataclass(frozen=True, slots=True)
class TimesNode(WblNode):
    """`{at_least,at_most}`; no `at_most`: any number."""

    at_least: int
    at_most: int | None


@dataclass(frozen=True, slots=True)
class Gap(WblNode):
    """`within duration from other`."""

    duration: Amount
    other: str


@dataclass(frozen=True, slots=True)
class PatternPartNode(WblNode):
    """One part: an event or a pattern in parentheses, with everything said about it."""

    what: Occurrence | PatternNode
    negated: bool = False
    outer: bool = False
    select: str | None = None
    times: TimesNode | None = None
    until: Occurrence | None = None
    alias: str | None = None
    gaps: tuple[Gap, ...] = ()
    lasting: Amount | None = None
    follows: str | None = None
    """In a sequence of steps, how it follows the one before: `next`, `followed by any`, ..."""
    marks: tuple[str, ...] = ()
    """In a sequence of steps: `optional`, `greedy`, `consecutive`, `combinations`."""
    window: Amount | None = None
    """In a sequence of steps: how far the events of a repeated step may lie apart."""


STEPS = "steps"
"""The connective of a sequence of steps; each part says itself how it follows."""


@dataclass(frozen=True, slots=True)
class PatternNode(WblNode):
    """Parts joined by one connective (None where there is one part only), and the span of the whole."""

    connective: str | None
    parts: tuple[PatternPartNode, ...]
    within: Amount | None = None
    gaps: Amount | None = None
    """In a sequence of steps: how far an event may lie from the one taken before."""


# Motion --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetNode(WblNode):
    """What a mover is judged by: a region as a `ShapeNode` is, or `Type(condition) as alias`, another mover.

    Which of the two a name stands for is not known before the declarations are.
    """

    name: str | None = None
    text: str | None = None
    arguments: tuple[Expression, ...] | None = None
    alias: str | None = None


@dataclass(frozen=True, slots=True)
class Detail(WblNode):
    """`for 10 min`, `margin 20 m`, `accuracy hdop`, `between samples`, `to 'moored'`."""

    word: str
    value: Amount | Expression | None = None


@dataclass(frozen=True, slots=True)
class MotionNode(WblNode):
    """`Truck(speed > 5) as t enters Depot margin 20 m`: how something moves."""

    mover: Occurrence
    alias: str | None
    verb: str
    target: TargetNode | None = None
    near: Amount | None = None
    """The distance of `comes within`."""
    details: tuple[Detail, ...] = ()


# Statements ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declared(WblNode):
    """`name: type` of an event or a definition; the type in lower case."""

    name: str
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Mapped(WblNode):
    """`name = column` of `from columns`: what events call a column of the input.

    A time may stand in several columns: `time = date + clock`.
    """

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assignment(WblNode):
    """`name = value`."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class GroupKey(WblNode):
    """A key of `group by`: an attribute, `source`, or `cell(500 m)`."""

    name: str
    size: Expression | None = None


@dataclass(frozen=True, slots=True)
class Consuming(WblNode):
    """A part that a detection uses up; `all` stands for every part."""

    name: str


@dataclass(frozen=True, slots=True)
class Chosen(WblNode):
    """The choice behind a word, as in `context recent` or `deliver changes`; or a clause of words alone."""

    name: str


@dataclass(frozen=True, slots=True)
class SkipNode(WblNode):
    """`skip past last event`, `skip to next`, `skip to first b or fail`."""

    strategy: str
    step: str | None = None
    or_fail: bool = False


@dataclass(frozen=True, slots=True)
class LimitNode(WblNode):
    """`limit 1000 runs dropping newest`."""

    runs: int
    drop: str | None = None


@dataclass(frozen=True, slots=True)
class CaseNode(WblNode):
    """One way of detecting: the clauses from one `detect` to the next."""

    detect: PatternNode | MotionNode
    label: str | None = None
    where: Expression | None = None
    assign: tuple[Assignment, ...] = ()
    consuming: tuple[Consuming, ...] = ()
    group_by: tuple[GroupKey, ...] = ()
    context: Chosen | None = None
    pre: bool = False
    post: tuple[Assignment, ...] = ()
    having: Expression | None = None
    among: tuple[Name, ...] = ()
    skip: SkipNode | None = None
    counting: bool = False
    limit: LimitNode | None = None
    timing_out: Name | None = None


@dataclass(frozen=True, slots=True)
class WindowClause(WblNode):
    """`every D`, `over W`, or `over W every D`; where it counts events, `within D` bounds their age."""

    over: Amount | None
    every: Amount | None
    within: Amount | None = None


@dataclass(frozen=True, slots=True)
class CoordinatesStatement(WblNode):
    """`coordinates plane`."""

    name: str


@dataclass(frozen=True, slots=True)
class ParamNode(WblNode):
    """`param name = value`."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class EventNode(WblNode):
    """`event Name(attribute: type, ...) from columns name = column, ...`."""

    name: str
    attributes: tuple[Declared, ...]
    columns: tuple[Mapped, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionNode(WblNode):
    """`region Name = shape`."""

    name: str
    shape: ShapeNode


@dataclass(frozen=True, slots=True)
class Definition(WblNode):
    """`define Name(attributes) window` and its cases."""

    name: str
    cases: tuple[CaseNode, ...]
    attributes: tuple[Declared, ...] | None = None
    aggr: bool = False
    window: WindowClause | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionNode(WblNode):
    """`Subscription Name seq 1 from User1 to Actor` and its cases."""

    name: str | None
    sequence: int
    subscriber: str
    actor: str
    cases: tuple[CaseNode, ...]


# Mobile queries ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InterestNode(WblNode):
    """`within 500 m`, `box 400 m, 200 m`, `ahead 2 km, 60 degrees` and so on: by its first word."""

    word: str
    amounts: tuple[Amount, ...] = ()
    degrees: int | float | None = None
    outline: str | None = None
    route: Dotted | None = None
    function: str | None = None
    of_situations: bool = False


@dataclass(frozen=True, slots=True)
class RefreshNode(WblNode):
    """`refresh when moved 50 m`: its words, and how much."""

    word: str
    amount: Amount | None = None


@dataclass(frozen=True, slots=True)
class QualityNode(WblNode):
    """`quality precision 0.9, recall 0.8`, or one number for both."""

    precision: int | float
    recall: int | float


@dataclass(frozen=True, slots=True)
class CompletenessNode(WblNode):
    """`completeness strong on a grid of 100 m`."""

    word: str
    grid: Amount | None = None


@dataclass(frozen=True, slots=True)
class PredictionNode(WblNode):
    """`predict 3 steps, 10 candidates by location`."""

    steps: int
    candidates: int | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class MobileNode(WblNode):
    """`around Position(kind = 'ambulance') as rescue` and its clauses."""

    focal: Occurrence
    interest: InterestNode
    report: tuple[Name, ...]
    alias: str | None = None
    group_by: tuple[GroupKey, ...] = ()
    listed: Constant | None = None
    lifetime: Amount | None = None
    refresh: RefreshNode | None = None
    quality: QualityNode | None = None
    order: Chosen | None = None
    completeness: CompletenessNode | None = None
    prediction: PredictionNode | None = None
    reuse: Chosen | None = None
    deliver: Chosen | None = None
    excluding_itself: Chosen | None = None
    silent: Amount | None = None
    motion_within: Chosen | None = None


Statement = (
    CoordinatesStatement | ParamNode | EventNode | RegionNode | Definition | SubscriptionNode | MobileNode
)


@dataclass(frozen=True, slots=True)
class WblFile(WblNode):
    """A whole query text."""

    statements: tuple[Statement, ...]
