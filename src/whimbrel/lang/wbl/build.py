"""Make the nodes of the tree from what Lark has parsed."""

# ruff: noqa: ARG002 (Lark hands every rule the same two arguments)

from __future__ import annotations

from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from whimbrel.errors import DataError, QuerySyntaxError, Span
from whimbrel.lang.plans import Extent
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.clauses import Clause, OldForm, collect_cases
from whimbrel.lang.wbl.literals import (
    LENGTHS,
    number,
    quantity,
    short_unit,
    times,
    token_span,
    unquote,
    whole,
)
from whimbrel.lang.wbl.parts import Phrase, RawPart, make_part, make_pattern, moving, words
from whimbrel.model.time import format_instant, instant, time_point

MAX_OPERANDS = 60
"""Operands of one chain of + - * /, which becomes as many levels."""

_COMPARISONS = {"==": "=", "<>": "!="}


def meta_span(meta: Meta | Extent) -> Span | None:
    """Tell where a parsed rule stands; None for one that matched nothing."""
    if meta.empty:
        return None
    return Span(meta.line, meta.column, meta.end_line, meta.end_column)


@v_args(meta=True)
class WblTreeBuilder(Transformer[Token, Any]):
    """Make the nodes of the tree, leaves first."""

    def start(self, meta: Meta, items: list[Any]) -> t.WblFile:
        return t.WblFile(tuple(items), at=meta_span(meta))

    # Statements

    def coordinates(self, meta: Meta, items: list[Any]) -> t.CoordinatesStatement:
        return t.CoordinatesStatement(str(items[0]), at=token_span(items[0]))

    def param(self, meta: Meta, items: list[Any]) -> t.ParamNode:
        return t.ParamNode(str(items[0]), items[1], at=meta_span(meta))

    def event(self, meta: Meta, items: list[Any]) -> t.EventNode:
        name, attributes, columns = items
        return t.EventNode(str(name), attributes, columns or (), at=token_span(name))

    def from_columns(self, meta: Meta, items: list[Any]) -> tuple[t.Mapped, ...]:
        return tuple(items)

    def mapped(self, meta: Meta, items: list[Any]) -> t.Mapped:
        name, *columns = items
        texts = [unquote(column) if column.type == "STRING" else str(column) for column in columns]
        return t.Mapped(str(name), tuple(texts), at=meta_span(meta))

    def region(self, meta: Meta, items: list[Any]) -> t.RegionNode:
        return t.RegionNode(str(items[0]), items[1], at=token_span(items[0]))

    def attributes(self, meta: Meta, items: list[Any]) -> tuple[t.Declared, ...]:
        return tuple(items)

    def attribute(self, meta: Meta, items: list[Any]) -> t.Declared:
        name, kind = items
        return t.Declared(str(name), None if kind is None else str(kind).lower(), at=meta_span(meta))

    def definition(self, meta: Meta, items: list[Any]) -> t.Definition:
        name, attributes, aggr, window, *clauses = items
        at = token_span(name)
        if len(clauses) == 1 and isinstance(clauses[0], OldForm):
            return self._old_definition(name, attributes, aggr, window, clauses[0])
        return t.Definition(
            str(name), collect_cases(clauses, at), attributes, aggr is not None, window, at=at
        )

    def _old_definition(
        self, name: Token, attributes: Any, aggr: Any, window: Any, old: OldForm
    ) -> t.Definition:
        at = token_span(name)
        if window is not None:
            raise QuerySyntaxError(
                "`from ... range` already gives the window", window.at, "leave out one of them"
            )
        case = t.CaseNode(old.pattern, assign=old.assign, group_by=old.group_by, at=old.pattern.at)
        return t.Definition(
            str(name), (case,), attributes, aggr is not None, t.WindowClause(old.length, None, at=at), at=at
        )

    def old_form(self, meta: Meta, items: list[Any]) -> OldForm:
        pattern, length, _, assign, group = items
        return OldForm(pattern, length, assign, group.value if group else ())

    def subscription(self, meta: Meta, items: list[Any]) -> t.SubscriptionNode:
        name, sequence, subscriber, actor, *clauses = items
        at = token_span(name or sequence)
        cases = collect_cases(clauses, at)
        return t.SubscriptionNode(
            None if name is None else str(name), whole(sequence), str(subscriber), str(actor), cases, at=at
        )

    def every(self, meta: Meta, items: list[Any]) -> t.WindowClause:
        every, _, within = items
        return t.WindowClause(None, every, within, at=meta_span(meta))

    def over(self, meta: Meta, items: list[Any]) -> t.WindowClause:
        over, every, _, within = items
        return t.WindowClause(over, every, within, at=meta_span(meta))

    # Amounts

    def measured(self, meta: Meta, items: list[Any]) -> t.QuantityNode:
        return self.quantity(meta, items)

    def named_amount(self, meta: Meta, items: list[Any]) -> t.NamedAmount:
        name, unit = items
        return t.NamedAmount(str(name), None if unit is None else short_unit(str(unit)), at=meta_span(meta))

    def counted(self, meta: Meta, items: list[Any]) -> t.QuantityNode | t.Count:
        count, unit = items
        at = meta_span(meta)
        if unit is None:
            raise QuerySyntaxError(
                f"the number {count} needs a unit here",
                at,
                f"write for example '{count} s' or '{count} min'",
            )
        if unit.lower() in ("event", "events"):
            return t.Count(whole(count), at=at)
        return t.QuantityNode(((number(count), short_unit(str(unit))),), at=at)

    # Clauses

    def case(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("case", meta_span(meta), str(whole(items[1])))

    def pre(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("<pre>", meta_span(meta), None)

    def post(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("<post>", token_span(items[0]), items[2])

    def detect(self, meta: Meta, items: list[Any]) -> Clause:
        word, pattern, motion = items
        what = pattern if motion is None else moving(pattern, motion)
        return Clause("detect", token_span(word), what)

    def where(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("where", token_span(items[0]), items[1])

    def assign(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("assign", token_span(items[0]), items[1])

    def assignments(self, meta: Meta, items: list[Any]) -> tuple[t.Assignment, ...]:
        return tuple(items)

    def assignment(self, meta: Meta, items: list[Any]) -> t.Assignment:
        return t.Assignment(str(items[0]), items[1], at=meta_span(meta))

    def consuming(self, meta: Meta, items: list[Any]) -> Clause:
        names = tuple(t.Consuming(str(item), at=token_span(item)) for item in items[1:])
        return Clause("consuming", token_span(items[0]), names)

    def group_by(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("group by", token_span(items[0]), tuple(items[1:]))

    def key(self, meta: Meta, items: list[Any]) -> t.GroupKey:
        return t.GroupKey(str(items[0]), items[1], at=meta_span(meta))

    def context(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("context", token_span(items[0]), t.Chosen(str(items[1]), at=token_span(items[1])))

    def having(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("having", token_span(items[0]), items[1])

    def among_clause(self, meta: Meta, items: list[Any]) -> Clause:
        names = tuple(t.Name(str(item), at=token_span(item)) for item in items[1:])
        return Clause("among", token_span(items[0]), names)

    def skip_past(self, meta: Meta, items: list[Any]) -> Clause:
        return self._skip(meta, "past last event")

    def skip_next(self, meta: Meta, items: list[Any]) -> Clause:
        return self._skip(meta, "to next")

    def skip_to(self, meta: Meta, items: list[Any]) -> Clause:
        word, step, or_fail = items
        return self._skip(meta, " ".join(str(word).split()[1:]), str(step), or_fail is not None)

    def _skip(self, meta: Meta, strategy: str, step: str | None = None, or_fail: bool = False) -> Clause:
        at = meta_span(meta)
        return Clause("skip", at, t.SkipNode(strategy, step, or_fail, at=at))

    def counting(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("counting matches", token_span(items[0]), True)

    def limit(self, meta: Meta, items: list[Any]) -> Clause:
        word, runs, drop = items
        at = meta_span(meta)
        return Clause("limit", token_span(word), t.LimitNode(whole(runs), drop and str(drop), at=at))

    def timing_out(self, meta: Meta, items: list[Any]) -> Clause:
        word, name = items
        return Clause("timing out", token_span(word), t.Name(str(name), at=token_span(name)))

    # Motion

    def toward(self, meta: Meta, items: list[Any]) -> Phrase:
        verb, target, *details = items
        return Phrase(words(verb), target, None, tuple(details), meta_span(meta))

    def near(self, meta: Meta, items: list[Any]) -> Phrase:
        verb, distance, target, *details = items
        return Phrase(words(verb), target, distance, tuple(details), meta_span(meta))

    def alone(self, meta: Meta, items: list[Any]) -> Phrase:
        verb, *details = items
        return Phrase(words(verb), None, None, tuple(details), meta_span(meta))

    def target(self, meta: Meta, items: list[Any]) -> t.TargetNode:
        if items[0].type == "STRING":
            return t.TargetNode(text=unquote(items[0]), at=meta_span(meta))
        name, arguments, alias = items
        return t.TargetNode(str(name), None, arguments, alias and str(alias), at=meta_span(meta))

    def measured_detail(self, meta: Meta, items: list[Any]) -> t.Detail:
        return t.Detail(words(items[0]), items[1], at=meta_span(meta))

    def from_detail(self, meta: Meta, items: list[Any]) -> t.Detail:
        return t.Detail("from", items[0], at=meta_span(meta))

    def by_detail(self, meta: Meta, items: list[Any]) -> t.Detail:
        return t.Detail("by", items[0], at=meta_span(meta))

    def named_detail(self, meta: Meta, items: list[Any]) -> t.Detail:
        named = t.Name(str(items[1]), at=token_span(items[1]))
        return t.Detail(words(items[0]), named, at=meta_span(meta))

    def valued_detail(self, meta: Meta, items: list[Any]) -> t.Detail:
        return t.Detail(words(items[0]), items[1], at=meta_span(meta))

    def bare_detail(self, meta: Meta, items: list[Any]) -> t.Detail:
        return t.Detail(words(items[0]), at=meta_span(meta))

    # Patterns

    def pattern(self, meta: Meta, items: list[Any]) -> t.PatternNode:
        return make_pattern(items, meta_span(meta))

    def part(self, meta: Meta, items: list[Any]) -> RawPart:
        prefixes, core, *suffixes = items
        return make_part(prefixes, core, suffixes, meta_span(meta))

    def prefixes(self, meta: Meta, items: list[Any]) -> list[Token]:
        return items

    def occurrence(self, meta: Meta, items: list[Any]) -> t.Occurrence:
        return t.Occurrence(str(items[0]), items[1] or (), at=meta_span(meta))

    def time_point(self, meta: Meta, items: list[Any]) -> t.TimePoint:
        text = checked_instant(items[1], meta_span(meta), "time")
        return t.TimePoint(time_point(instant(text)), at=meta_span(meta))

    def exactly(self, meta: Meta, items: list[Any]) -> t.TimesNode:
        return times(items[0], items[0], meta_span(meta))

    def between_times(self, meta: Meta, items: list[Any]) -> t.TimesNode:
        return times(items[0], items[1], meta_span(meta))

    def often(self, meta: Meta, items: list[Any]) -> t.TimesNode:
        return t.TimesNode(1, None, at=meta_span(meta))

    def any_times(self, meta: Meta, items: list[Any]) -> t.TimesNode:
        return t.TimesNode(0, None, at=meta_span(meta))

    def perhaps(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("mark", meta_span(meta), "optional")

    def mark(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("mark", meta_span(meta), str(items[0]))

    def within_gaps(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("within between", meta_span(meta), items[1])

    def until(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("until", meta_span(meta), items[0])

    def alias(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("as", meta_span(meta), str(items[0]))

    def within(self, meta: Meta, items: list[Any]) -> Clause:
        _, duration, other = items
        if other is None:
            return Clause("within", meta_span(meta), duration)
        return Clause("within from", meta_span(meta), t.Gap(duration, str(other), at=token_span(other)))

    def lasting(self, meta: Meta, items: list[Any]) -> Clause:
        return Clause("for", meta_span(meta), items[1])

    def arguments(self, meta: Meta, items: list[Any]) -> tuple[t.Expression, ...]:
        return tuple(items)

    # Expressions

    def any_of(self, meta: Meta, items: list[Any]) -> t.Logic:
        return t.Logic("or", tuple(items[::2]), at=meta_span(meta))

    def all_of(self, meta: Meta, items: list[Any]) -> t.Logic:
        return t.Logic("and", tuple(items[::2]), at=meta_span(meta))

    def negated(self, meta: Meta, items: list[Any]) -> t.Not:
        return t.Not(items[1], at=meta_span(meta))

    def compare(self, meta: Meta, items: list[Any]) -> t.Compare:
        signs = tuple(_COMPARISONS.get(str(sign), str(sign)) for sign in items[1::2])
        return t.Compare(tuple(items[::2]), signs, at=meta_span(meta))

    def among(self, meta: Meta, items: list[Any]) -> t.Among:
        return t.Among(items[0], tuple(items[2:]), items[1] is not None, at=meta_span(meta))

    def in_region(self, meta: Meta, items: list[Any]) -> t.InRegion:
        return t.InRegion(items[0], items[2], items[1] is not None, at=meta_span(meta))

    def between(self, meta: Meta, items: list[Any]) -> t.BetweenNode:
        return t.BetweenNode(items[0], items[2], items[4], items[1] is not None, at=meta_span(meta))

    def is_null(self, meta: Meta, items: list[Any]) -> t.IsNull:
        return t.IsNull(items[0], items[1] is not None, at=meta_span(meta))

    def relation(self, meta: Meta, items: list[Any]) -> t.Relation:
        return t.Relation(items[0], str(items[1]), items[2], at=meta_span(meta))

    def infix(self, meta: Meta, items: list[Any]) -> t.Expression:
        at = meta_span(meta)
        if len(items) > 2 * MAX_OPERANDS:
            raise QuerySyntaxError(f"more than {MAX_OPERANDS} operands in one expression", at)
        result: t.Expression = items[0]
        for sign, operand in zip(items[1::2], items[2::2], strict=True):
            result = t.Infix(str(sign), result, operand, at=at)
        return result

    def negative(self, meta: Meta, items: list[Any]) -> t.Negative:
        return t.Negative(items[1], at=meta_span(meta))

    def number(self, meta: Meta, items: list[Any]) -> t.Constant:
        return t.Constant(number(items[0]), at=meta_span(meta))

    def quantity(self, meta: Meta, items: list[Any]) -> t.QuantityNode:
        amounts = tuple(quantity(item) for item in items)
        if len(amounts) > 1 and any(unit in LENGTHS for _, unit in amounts):
            raise QuerySyntaxError(
                "a length is one number with one unit", meta_span(meta), "write for example '1.5 km'"
            )
        return t.QuantityNode(amounts, at=meta_span(meta))

    def string(self, meta: Meta, items: list[Any]) -> t.Constant:
        return t.Constant(unquote(items[0]), at=meta_span(meta))

    def true(self, meta: Meta, items: list[Any]) -> t.Constant:
        return t.Constant(True, at=meta_span(meta))

    def false(self, meta: Meta, items: list[Any]) -> t.Constant:
        return t.Constant(False, at=meta_span(meta))

    def null(self, meta: Meta, items: list[Any]) -> t.Constant:
        return t.Constant(None, at=meta_span(meta))

    def instant(self, meta: Meta, items: list[Any]) -> t.InstantNode:
        return t.InstantNode(checked_instant(items[1], meta_span(meta), "timestamp"), at=meta_span(meta))

    def name(self, meta: Meta, items: list[Any]) -> t.Name:
        return t.Name(str(items[0]), at=meta_span(meta))

    def dotted(self, meta: Meta, items: list[Any]) -> t.Dotted:
        return t.Dotted(str(items[0]), str(items[1]), at=meta_span(meta))

    def apply(self, meta: Meta, items: list[Any]) -> t.Apply:
        return t.Apply(str(items[0]).lower(), items[1], at=meta_span(meta))

    def shape_text(self, meta: Meta, items: list[Any]) -> t.ShapeNode:
        return t.ShapeNode(text=unquote(items[0]), at=meta_span(meta))

    def shape_name(self, meta: Meta, items: list[Any]) -> t.ShapeNode:
        return t.ShapeNode(name=str(items[0]), at=meta_span(meta))

    def shape_made(self, meta: Meta, items: list[Any]) -> t.ShapeNode:
        return t.ShapeNode(function=str(items[0]).lower(), arguments=items[1], at=meta_span(meta))


def checked_instant(token: Token, at: Span | None, word: str) -> str:
    """Read a time in quotes; near the years 1 and 9999 an offset may lead out of the calendar."""
    text = unquote(token)
    try:
        format_instant(instant(text))
    except (DataError, OverflowError) as error:
        raise QuerySyntaxError(str(error), at, f"write for example {word} '2024-05-01T12:00:00Z'") from None
    return text
