"""Lower sequences of steps: `A next B followed by C+ greedy within 5 min`, and their clauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from whimbrel.errors import QueryError, QuerySyntaxError, Span, UnknownNameError
from whimbrel.graph.expressions import (
    AGGREGATES,
    Attribute,
    Binary,
    Call,
    Expr,
    PartRef,
    Unary,
    conjunction,
    conjuncts,
    parts_of,
)
from whimbrel.graph.operators import ANY
from whimbrel.graph.operators.step_checks import check_sequence
from whimbrel.graph.operators.step_pattern import (
    NO_SKIP,
    Contiguity,
    Dropped,
    Element,
    Inner,
    PatternStep,
    Quantifier,
    SkipPolicy,
    StepBound,
    StepGroup,
    StepPattern,
    StepTest,
    Strategy,
)
from whimbrel.graph.policies import Key, Partitioning
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.emit import Operators
from whimbrel.lang.wbl.pattern import Occurring, PartName, Scope, TypeInfo
from whimbrel.lang.wbl.resolve import QueryScope, VisibleNames

PREVIOUS = "previous"
_CONTIGUITY = {
    "next": Contiguity.NEXT,
    "followed by": Contiguity.FOLLOWED_BY,
    "followed by any": Contiguity.FOLLOWED_BY_ANY,
    "not next": Contiguity.NOT_NEXT,
    "not followed by": Contiguity.NOT_FOLLOWED_BY,
}
_SKIPS: dict[str, Strategy] = {
    "past last event": "skip_past_last_event",
    "to next": "skip_to_next",
    "to first": "skip_to_first",
    "to last": "skip_to_last",
}
_DROPPED: dict[str, Dropped] = {"oldest": "oldest", "newest": "newest"}
ONLY_FOR_STEPS = ("among", "skip", "counting", "limit", "timing_out")


def is_walked(case: t.CaseNode) -> bool:
    """Tell whether a case is a sequence of steps rather than a combination of parts."""
    steps = isinstance(case.detect, t.PatternNode) and _has_steps(case.detect)
    return steps or any(getattr(case, name) for name in ONLY_FOR_STEPS)


def _has_steps(pattern: t.PatternNode) -> bool:
    if pattern.connective == t.STEPS or pattern.gaps is not None:
        return True
    return any(
        part.marks or part.window or (isinstance(part.what, t.PatternNode) and _has_steps(part.what))
        for part in pattern.parts
    )


@dataclass(slots=True)
class SequenceLowering:
    """Make the operators of one sequence of steps."""

    name: str
    case: t.CaseNode
    pattern: t.PatternNode
    scope: QueryScope
    operators: Operators
    use: Callable[[str, Span | None], TypeInfo]
    stream_of: Callable[[str], str]
    horizon: int | None
    parts: dict[str, PartName] = field(default_factory=dict)
    leaves: list[Occurring] = field(default_factory=list)
    repeated: dict[str, bool] = field(default_factory=dict)
    """The steps so far, and whether each may take several events."""
    types: dict[str, None] = field(default_factory=dict)
    """The types that steps name, in order."""

    def bind(self) -> None:
        """Find out which steps there are, before conditions are read."""
        self._refuse_clauses()
        self._bind(self.pattern, repeated=False)

    def lower(self, keys: dict[str, Key]) -> StepPattern:
        """Add the operator and all that it reads; give it."""
        pattern = self.pattern
        steps = self._elements(pattern, keys)
        within = None if pattern.within is None else self.scope.params.duration(pattern.within)
        gap = None if pattern.gaps is None else self.scope.params.duration(pattern.gaps)
        made = StepPattern(
            self.operators.free_name(f"{self.name}.sequence"),
            self._streams(),
            steps,
            within if within is not None else self.horizon,
            gap,
            self._skip(),
            Partitioning(tuple(keys.values())),
            self._bound(),
            self.case.counting,
        )
        check_sequence(made)
        self.operators.add(made)
        return made

    def _refuse_clauses(self) -> None:
        case = self.case
        for word, value in (("where", case.where), ("consuming", case.consuming), ("context", case.context)):
            if value:
                at = value[0].at if isinstance(value, tuple) else value.at
                hint = {
                    "where": "write conditions into the parentheses of the steps: B(speed < first(a.speed))",
                    "consuming": "say what a match skips: skip past last event",
                    "context": "say what a match skips: skip to next, skip past last event, ...",
                }[word]
                raise QueryError(f"`{word}` does not go with a sequence of steps", at, hint)

    # -- names ---------------------------------------------------------------------------------------------

    def _bind(self, pattern: t.PatternNode, *, repeated: bool) -> None:
        for part in pattern.parts:
            self._refuse(part)
            often = repeated or (part.times is not None and part.times.at_most != 1)
            if isinstance(part.what, t.PatternNode):
                if part.alias is not None:
                    raise QueryError(
                        f"a group of steps cannot be named {part.alias!r}",
                        part.at,
                        "name the steps inside it",
                    )
                self._bind(part.what, repeated=often)
            else:
                self._bind_step(part, part.what, often)

    def _bind_step(self, part: t.PatternPartNode, what: t.Occurrence, often: bool) -> None:
        name = part.alias or what.type
        if name == ANY:
            raise QueryError("a step for any event needs a name", part.at, "write '* as x'")
        if name in ("group", "this", PREVIOUS):
            raise QueryError(f"{name!r} has a meaning of its own", part.at, "choose another name behind 'as'")
        if name in self.parts:
            raise QueryError(
                f"two steps are named {name!r}",
                part.at,
                f"name one of them: '{what.type} as {name.lower()}2'",
            )
        leaf = self._leaf(what, name)
        self.parts[name] = PartName(name, leaf.info, Scope(), [leaf], part.at)
        self.repeated[name] = often

    def _leaf(self, what: t.Occurrence, name: str) -> Occurring:
        if isinstance(what, t.TimePoint):
            raise QueryError(
                "a time point is no step", what.at, "use it in a pattern with 'then', and steps beside it"
            )
        info = TypeInfo("any event") if what.type == ANY else self.use(what.type, what.at)
        self.types.setdefault(what.type)
        leaf = Occurring(what, name, info, Scope())
        self.leaves.append(leaf)
        return leaf

    def _refuse(self, part: t.PatternPartNode) -> None:
        wrong = (
            "not"
            if part.negated
            else "outer"
            if part.outer
            else part.select or ("for" if part.lasting else None)
        )
        if wrong:
            hint = {
                "not": "write 'not next B' or 'not followed by B' between the steps",
                "for": "write 'not followed by B within 1 h' at the end",
            }.get(wrong, "leave it out")
            raise QuerySyntaxError(f"`{wrong}` does not go with a sequence of steps", part.at, hint)

    # -- elements ------------------------------------------------------------------------------------------

    def _elements(self, pattern: t.PatternNode, keys: dict[str, Key]) -> tuple[Element, ...]:
        if pattern.connective in ("then", "and"):
            raise QueryError(
                f"`{pattern.connective}` does not go with a sequence of steps",
                pattern.at,
                "write 'next', 'followed by' or 'followed by any' between the steps",
            )
        if pattern.connective == "or":
            return (self._choice(pattern, keys),)
        return tuple(self._element(part, keys) for part in pattern.parts)

    def _choice(self, pattern: t.PatternNode, keys: dict[str, Key]) -> StepGroup:
        branches = []
        for part in pattern.parts:
            inner = part.what
            plain = isinstance(inner, t.PatternNode) and part == t.PatternPartNode(inner)
            if isinstance(inner, t.PatternNode) and plain and inner.connective != "or":
                branches.append(self._elements(inner, keys))
            else:
                branches.append((self._element(part, keys),))
        return StepGroup(tuple(branches), at=pattern.at)

    def _element(self, part: t.PatternPartNode, keys: dict[str, Key]) -> Element:
        contiguity = None if part.follows is None else _CONTIGUITY[part.follows]
        quantifier = self._quantifier(part, keys)
        if isinstance(part.what, t.Occurrence):
            name = part.alias or part.what.type
            leaf = self.parts[name].leaves[0]
            gap = self._gap(part)
            return PatternStep(name, self._test(leaf, keys), contiguity, quantifier, gap, part.at)
        if part.gaps:
            raise QueryError(
                "`within ... from previous` belongs to a single step",
                part.gaps[0].at,
                "write it inside the group",
            )
        self._refuse_inner_within(part.what)
        inner = self._elements(part.what, keys)
        if part.what.connective == "or" and isinstance(inner[0], StepGroup):
            return replace(inner[0], contiguity=contiguity, quantifier=quantifier, at=part.at)
        return StepGroup((inner,), contiguity, quantifier, part.at)

    def _refuse_inner_within(self, pattern: t.PatternNode) -> None:
        amount = pattern.within or pattern.gaps
        if amount is not None:
            raise QueryError(
                "`within` bounds the whole sequence",
                amount.at,
                "write it behind the last step, outside the group",
            )

    def _gap(self, part: t.PatternPartNode) -> int | None:
        if not part.gaps:
            return None
        gap = part.gaps[0]
        if gap.other != PREVIOUS or len(part.gaps) > 1:
            raise QueryError(
                "a step is measured from the event taken before it",
                gap.at,
                "write 'within 5 s from previous', or 'within 5 s between events' behind the last step",
            )
        return self.scope.params.duration(gap.duration)

    def _quantifier(self, part: t.PatternPartNode, keys: dict[str, Key]) -> Quantifier:
        marks = set(part.marks)
        both = {"consecutive", "combinations"} <= marks
        if both:
            raise QueryError(
                "a step is either consecutive or in combinations", part.at, "leave out one of them"
            )
        inner = next(
            (Inner(mark) for mark in ("consecutive", "combinations") if mark in marks), Inner.RELAXED
        )
        times = part.times or t.TimesNode(1, 1)
        until = None
        if part.until is not None:
            own = part.alias or (part.what.type if isinstance(part.what, t.Occurrence) else "")
            until = self._test(self._leaf(part.until, f"until {own}"), keys)
            self._refuse_until(part, times)
        window = None if part.window is None else self.scope.params.duration(part.window)
        return Quantifier(
            times.at_least, times.at_most, "optional" in marks, "greedy" in marks, inner, until, window
        )

    def _refuse_until(self, part: t.PatternPartNode, times: t.TimesNode) -> None:
        """Refuse `until` where there is no loop to end."""
        if times.at_most is None:
            return
        exactly = "exactly" if times.at_least == times.at_most else "at most"
        often = "once" if times.at_most == 1 else f"{exactly} {times.at_most} times"
        what = part.alias or (part.what.type if isinstance(part.what, t.Occurrence) else "the group")
        assert part.until is not None
        raise QueryError(
            f"`until` ends a loop, and {what} is taken {often}",
            part.until.at,
            f"write a loop without an upper bound, such as {{{times.at_least},}}, or leave `until` out",
        )

    # -- tests ---------------------------------------------------------------------------------------------

    def _test(self, leaf: Occurring, keys: dict[str, Key]) -> StepTest:
        """Part the conditions of a step: about the event alone, and about what was taken before."""
        names = VisibleNames(self.scope, self.parts, keys, own=leaf, walked=self.repeated)
        own: list[Expr] = []
        others: list[Expr] = []
        for condition in leaf.occurrence.conditions:
            for conjunct in conjuncts(names.condition(condition)):
                expr = about_event(conjunct, leaf.name)
                reads = parts_of(expr) - {None}
                (others if reads else own).append(expr)
        stream = self.operators.filtered(self.stream_of(leaf.occurrence.type), tuple(own))
        return StepTest(stream, conjunction(tuple(others)))

    # -- what is walked along ------------------------------------------------------------------------------

    def _streams(self) -> tuple[str, ...]:
        among = [name.name for name in self.case.among] or list(self.types)
        if ANY in among:
            derived = [name for name in self.types if name != ANY and not self._is_atomic(name)]
            return tuple(self.stream_of(name) for name in dict.fromkeys([ANY, *derived]))
        missing = [name for name in self.types if name not in among]
        if missing:
            at = self.case.among[0].at
            raise QueryError(
                f"the steps take {missing[0]}, which is not among the events that are walked along",
                at,
                f"write 'among {', '.join([*among, missing[0]])}', or leave the clause out",
            )
        for name in self.case.among:
            self.use(name.name, name.at)
        return tuple(self.stream_of(name) for name in dict.fromkeys(among))

    def _is_atomic(self, name: str) -> bool:
        from whimbrel.graph.operators import Source

        return isinstance(self.operators.made.get(self.stream_of(name)), Source)

    def _skip(self) -> SkipPolicy:
        skip = self.case.skip
        if skip is None:
            return NO_SKIP
        if skip.step is not None and skip.step not in self.parts:
            raise UnknownNameError("step", skip.step, self.parts, skip.at)
        return SkipPolicy(_SKIPS[skip.strategy], skip.step, skip.or_fail)

    def _bound(self) -> StepBound:
        limit = self.case.limit
        if limit is None:
            return StepBound()
        if limit.runs < 1:
            raise QueryError("at least one run is needed", limit.at, "write for example 'limit 1000 runs'")
        drop = limit.drop or "oldest"
        if drop not in _DROPPED:
            raise UnknownNameError("choice of what is dropped", drop, _DROPPED, limit.at)
        return StepBound(limit.runs, _DROPPED[drop])


def about_event(expr: Expr, name: str) -> Expr:
    """Rewrite what reads the event under test; aggregates keep reading the events taken before."""
    if isinstance(expr, Attribute) and expr.part == name:
        return Attribute(None, expr.name, at=expr.at)
    if isinstance(expr, PartRef) and expr.name == name:
        return PartRef(None, at=expr.at)
    if isinstance(expr, Call):
        if expr.function in AGGREGATES:
            return expr
        return replace(expr, arguments=tuple(about_event(argument, name) for argument in expr.arguments))
    if isinstance(expr, Unary):
        return replace(expr, operand=about_event(expr.operand, name))
    if isinstance(expr, Binary):
        return replace(expr, left=about_event(expr.left, name), right=about_event(expr.right, name))
    return expr
