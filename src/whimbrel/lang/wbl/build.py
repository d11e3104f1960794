"""Make the nodes of the tree from what Lark has parsed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lark import Token

from whimbrel.errors import DataError, QuerySyntaxError, Span
from whimbrel.lang.plans import Rules
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.clauses import Clause, OldForm, collect_cases, collect_mobile
from whimbrel.lang.wbl.literals import (
    number,
    quantity,
    short_unit,
    times,
    token_span,
    unquote,
    whole,
)
from whimbrel.lang.wbl.parts import Phrase, make_part, make_pattern, moving, words
from whimbrel.model.length import LENGTHS
from whimbrel.model.time import format_instant, instant, time_point

MAX_OPERANDS = 60
"""Operands of one chain of + - * /, which becomes as many levels."""

_COMPARISONS = {"==": "=", "<>": "!="}


def _text(token: Token | None) -> str | None:
    return None if token is None else str(token)


def _mapped(at: Span, name: Token, *columns: Token) -> t.Mapped:
    texts = (unquote(column) if column.type == "STRING" else str(column) for column in columns)
    return t.Mapped(str(name), tuple(texts), at=at)


def _definition(
    _at: Span, name: Token, attributes: Any, aggr: Any, window: t.WindowClause | None, *clauses: Any
) -> t.Definition:
    at = token_span(name)
    if len(clauses) == 1 and isinstance(clauses[0], OldForm):
        old = clauses[0]
        if window is not None:
            raise QuerySyntaxError(
                "`from ... range` already gives the window", window.at, "leave out one of them"
            )
        case = t.CaseNode(old.pattern, assign=old.assign, group_by=old.group_by, at=old.pattern.at)
        cases: tuple[t.CaseNode, ...] = (case,)
        window = t.WindowClause(old.length, None, at=at)
    else:
        cases = collect_cases(list(clauses), at)
    return t.Definition(str(name), cases, attributes, aggr is not None, window, at=at)


def _subscription(
    _at: Span, name: Token | None, sequence: Token, subscriber: Token, actor: Token, *clauses: Clause
) -> t.SubscriptionNode:
    at = token_span(name or sequence)
    cases = collect_cases(list(clauses), at)
    return t.SubscriptionNode(_text(name), whole(sequence), str(subscriber), str(actor), cases, at=at)


def _mobile(at: Span, focal: t.Occurrence, alias: Token | None, *clauses: Clause) -> t.MobileNode:
    return collect_mobile(focal, _text(alias), clauses, token_span(alias) if alias else focal.at or at)


def _interest(at: Span, region: t.InterestNode, situations: Token | None) -> Clause:
    return Clause("interest", at, replace(region, of_situations=situations is not None))


def _quality(at: Span, _word: Token, precision: Token, recall: Token | None = None) -> Clause:
    numbers = number(precision), number(recall or precision)
    return Clause("quality", at, t.QualityNode(*numbers, at=at))


def _predict(
    at: Span, _word: Token, steps: Token, candidates: Token | None, by: Token | None = None
) -> Clause:
    most = None if candidates is None else whole(candidates)
    return Clause("predict", at, t.PredictionNode(whole(steps), most, _text(by), at=at))


def _choice(clause: str) -> Callable[..., Clause]:
    """Make the rule of a clause that is a word and a choice."""
    return lambda at, _word, choice: Clause(clause, at, t.Chosen(words(choice), at=token_span(choice)))


def _bare(at: Span, said: Token) -> Clause:
    return Clause(words(said), at, t.Chosen(words(said), at=at))


def _counted(at: Span, count: Token, unit: Token | None) -> t.QuantityNode | t.Count:
    if unit is None and str(count) == "0":
        return t.QuantityNode(((0, "s"),), at=at)  # nothing needs no unit
    if unit is None:
        hint = f"write for example '{count} s' or '{count} min'; '{count} m' where it is a distance"
        raise QuerySyntaxError(f"the number {count} needs a unit here", at, hint)
    if unit.lower() in ("event", "events"):
        return t.Count(whole(count), at=at)
    return t.QuantityNode(((number(count), short_unit(str(unit))),), at=at)


def _quantity(at: Span, *items: Token) -> t.QuantityNode:
    amounts = tuple(quantity(item) for item in items)
    if len(amounts) > 1 and any(unit in LENGTHS for _, unit in amounts):
        raise QuerySyntaxError("a length is one number with one unit", at, "write for example '1.5 km'")
    return t.QuantityNode(amounts, at=at)


def _skip(at: Span, strategy: str, step: str | None = None, or_fail: object = None) -> Clause:
    return Clause("skip", at, t.SkipNode(strategy, step, or_fail is not None, at=at))


def _target(at: Span, name: Token, arguments: Any = None, alias: Token | None = None) -> t.TargetNode:
    if name.type == "STRING":
        return t.TargetNode(text=unquote(name), at=at)
    return t.TargetNode(str(name), None, arguments, _text(alias), at=at)


def _time_point(at: Span, _word: Token, text: Token) -> t.TimePoint:
    return t.TimePoint(time_point(instant(checked_instant(text, at, "time"))), at=at)


def _within(at: Span, _word: Token, duration: t.Amount, other: Token | None) -> Clause:
    if other is None:
        return Clause("within", at, duration)
    return Clause("within from", at, t.Gap(duration, str(other), at=token_span(other)))


def _compare(at: Span, *items: Any) -> t.Compare:
    signs = tuple(_COMPARISONS.get(str(sign), str(sign)) for sign in items[1::2])
    return t.Compare(items[::2], signs, at=at)


def _infix(at: Span, *items: Any) -> t.Expression:
    if len(items) > 2 * MAX_OPERANDS:
        raise QuerySyntaxError(f"more than {MAX_OPERANDS} operands in one expression", at)
    result: t.Expression = items[0]
    for sign, operand in zip(items[1::2], items[2::2], strict=True):
        result = t.Infix(str(sign), result, operand, at=at)
    return result


def _named(token: Token) -> t.Name:
    return t.Name(str(token), at=token_span(token))


def checked_instant(token: Token, at: Span | None, word: str) -> str:
    """Read a time in quotes; near the years 1 and 9999 an offset may lead out of the calendar."""
    text = unquote(token)
    try:
        format_instant(instant(text))
    except (DataError, OverflowError) as error:
        raise QuerySyntaxError(str(error), at, f"write for example {word} '2024-05-01T12:00:00Z'") from None
    return text


RULES: Rules = {
    "start": lambda at, *statements: t.WblFile(statements, at=at),
    # Statements
    "coordinates": lambda _, name: t.CoordinatesStatement(str(name), at=token_span(name)),
    "param": lambda at, name, value: t.ParamNode(str(name), value, at=at),
    "event": lambda _, name, attributes, columns: t.EventNode(
        str(name), attributes, columns or (), at=token_span(name)
    ),
    "from_columns": lambda _, *columns: columns,
    "mapped": _mapped,
    "region": lambda _, name, shape: t.RegionNode(str(name), shape, at=token_span(name)),
    "attributes": lambda _, *attributes: attributes,
    "attribute": lambda at, name, kind: t.Declared(str(name), kind and str(kind).lower(), at=at),
    "definition": _definition,
    "old_form": lambda _, pattern, length, _where, assign, group: OldForm(
        pattern, length, assign, group.value if group else ()
    ),
    "subscription": _subscription,
    "every": lambda at, every, _word, within: t.WindowClause(None, every, within, at=at),
    "over": lambda at, over, every, _word, within: t.WindowClause(over, every, within, at=at),
    # Mobile queries
    "mobile": _mobile,
    "listed": lambda at, file: Clause("listed in", at, t.Constant(unquote(file), at=token_span(file))),
    "interest": _interest,
    "within_reach": lambda at, word, amount: t.InterestNode(str(word), (amount,), at=at),
    "box_around": lambda at, word, *amounts: t.InterestNode(str(word), amounts, at=at),
    "outline_around": lambda at, word, text: t.InterestNode(str(word), outline=unquote(text), at=at),
    "ahead_of": lambda at, word, amount, degrees: t.InterestNode(
        str(word), (amount,), number(degrees), at=at
    ),
    "along_route": lambda at, word, part, name, amount: t.InterestNode(
        str(word), (amount,), route=t.Dotted(str(part), str(name), at=token_span(part)), at=at
    ),
    "shaped_by": lambda at, word, name: t.InterestNode(words(word), function=str(name).lower(), at=at),
    "report": lambda _, word, *names: Clause("report", token_span(word), tuple(map(_named, names))),
    "lifetime": lambda at, _word, amount: Clause("lifetime", at, amount),
    "refresh": lambda at, refresh: Clause("refresh", at, refresh),
    "refresh_always": lambda at, word: t.RefreshNode(words(word), at=at),
    "refresh_every": lambda at, amount: t.RefreshNode("every", amount, at=at),
    "refresh_when": lambda at, word, amount: t.RefreshNode(words(word), amount, at=at),
    "quality": _quality,
    "order": _choice("order"),
    "completeness": lambda at, _word, said, grid=None: Clause(
        "completeness", at, t.CompletenessNode(words(said), grid, at=at)
    ),
    "predicting": _predict,
    "reusing": _choice("reuse"),
    "delivering": _choice("deliver"),
    "leaving_out": _bare,
    "ending": lambda at, _word, amount: Clause("until silent for", at, amount),
    "own_motion": _bare,
    # Amounts
    "measured": _quantity,
    "named_amount": lambda at, name, unit: t.NamedAmount(str(name), unit and short_unit(str(unit)), at=at),
    "counted": _counted,
    # Clauses
    "case": lambda at, _word, label: Clause("case", at, str(whole(label))),
    "pre": lambda at, _word: Clause("<pre>", at, None),
    "post": lambda _, word, _where, assign: Clause("<post>", token_span(word), assign),
    "detect": lambda _, word, pattern, motion: Clause(
        "detect", token_span(word), pattern if motion is None else moving(pattern, motion)
    ),
    "where": lambda _, word, condition: Clause("where", token_span(word), condition),
    "assign": lambda _, word, assign: Clause("assign", token_span(word), assign),
    "assignments": lambda _, *assignments: assignments,
    "assignment": lambda at, name, value: t.Assignment(str(name), value, at=at),
    "consuming": lambda _, word, *names: Clause(
        "consuming", token_span(word), tuple(t.Consuming(str(name), at=token_span(name)) for name in names)
    ),
    "group_by": lambda _, word, *keys: Clause("group by", token_span(word), keys),
    "key": lambda at, name, size: t.GroupKey(str(name), size, at=at),
    "context": lambda _, word, name: Clause(
        "context", token_span(word), t.Chosen(str(name), at=token_span(name))
    ),
    "having": lambda _, word, condition: Clause("having", token_span(word), condition),
    "among_clause": lambda _, word, *names: Clause("among", token_span(word), tuple(map(_named, names))),
    "skip_past": lambda at, _word: _skip(at, "past last event"),
    "skip_next": lambda at, _word: _skip(at, "to next"),
    "skip_to": lambda at, word, step, or_fail: _skip(at, " ".join(str(word).split()[1:]), str(step), or_fail),
    "counting": lambda _, word: Clause("counting matches", token_span(word), True),
    "limit": lambda at, word, runs, drop: Clause(
        "limit", token_span(word), t.LimitNode(whole(runs), _text(drop), at=at)
    ),
    "timing_out": lambda _, word, name: Clause("timing out", token_span(word), _named(name)),
    # Motion
    "toward": lambda at, verb, target, *details: Phrase(words(verb), target, None, details, at),
    "near": lambda at, verb, distance, target, *details: Phrase(words(verb), target, distance, details, at),
    "alone": lambda at, verb, *details: Phrase(words(verb), None, None, details, at),
    "target": _target,
    "measured_detail": lambda at, word, amount: t.Detail(words(word), amount, at=at),
    "from_detail": lambda at, amount: t.Detail("from", amount, at=at),
    "by_detail": lambda at, amount: t.Detail("by", amount, at=at),
    "named_detail": lambda at, word, name: t.Detail(words(word), _named(name), at=at),
    "valued_detail": lambda at, word, value: t.Detail(words(word), value, at=at),
    "bare_detail": lambda at, word: t.Detail(words(word), at=at),
    # Patterns
    "pattern": lambda at, *items: make_pattern(list(items), at),
    "part": lambda at, prefixes, core, *suffixes: make_part(prefixes, core, list(suffixes), at),
    "prefixes": lambda _, *prefixes: list(prefixes),
    "occurrence": lambda at, name, conditions: t.Occurrence(str(name), conditions or (), at=at),
    "time_point": _time_point,
    "exactly": lambda at, count: times(count, count, at),
    "between_times": lambda at, least, most: times(least, most, at),
    "often": lambda at, _sign: t.TimesNode(1, None, at=at),
    "any_times": lambda at, _sign: t.TimesNode(0, None, at=at),
    "perhaps": lambda at: Clause("mark", at, "optional"),
    "mark": lambda at, word: Clause("mark", at, str(word)),
    "within_gaps": lambda at, _word, duration, _between: Clause("within between", at, duration),
    "until": lambda at, occurrence: Clause("until", at, occurrence),
    "alias": lambda at, name: Clause("as", at, str(name)),
    "within": _within,
    "lasting": lambda at, _word, duration: Clause("for", at, duration),
    "arguments": lambda _, *arguments: arguments,
    # Expressions
    "any_of": lambda at, *items: t.Logic("or", items[::2], at=at),
    "all_of": lambda at, *items: t.Logic("and", items[::2], at=at),
    "negated": lambda at, _word, operand: t.Not(operand, at=at),
    "compare": _compare,
    "among": lambda at, value, negated, *choices: t.Among(value, choices, negated is not None, at=at),
    "in_region": lambda at, value, negated, region: t.InRegionNode(value, region, negated is not None, at=at),
    "between": lambda at, value, negated, low, _word, high: t.BetweenNode(
        value, low, high, negated is not None, at=at
    ),
    "is_null": lambda at, value, negated, _word: t.IsNullNode(value, negated is not None, at=at),
    "relation": lambda at, left, relation, right: t.Relation(left, str(relation), right, at=at),
    "infix": _infix,
    "negative": lambda at, _sign, operand: t.Negative(operand, at=at),
    "number": lambda at, token: t.Constant(number(token), at=at),
    "quantity": _quantity,
    "string": lambda at, token: t.Constant(unquote(token), at=at),
    "true": lambda at, _word: t.Constant(True, at=at),
    "false": lambda at, _word: t.Constant(False, at=at),
    "null": lambda at, _word: t.Constant(None, at=at),
    "instant": lambda at, _word, text: t.InstantNode(checked_instant(text, at, "timestamp"), at=at),
    "name": lambda at, name: t.Name(str(name), at=at),
    "dotted": lambda at, part, name: t.Dotted(str(part), str(name), at=at),
    "apply": lambda at, name, arguments: t.Apply(str(name).lower(), arguments, at=at),
    "shape_text": lambda at, text: t.ShapeNode(text=unquote(text), at=at),
    "shape_name": lambda at, name: t.ShapeNode(name=str(name), at=at),
    "shape_made": lambda at, name, arguments: t.ShapeNode(
        function=str(name).lower(), arguments=arguments, at=at
    ),
}
"""What each rule of the grammar becomes: handed where it stands, and what it is made of."""
