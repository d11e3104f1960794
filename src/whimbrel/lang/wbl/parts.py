"""From prefixes, cores and suffixes to the parts of a pattern, with everything odd refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lark import Token

from whimbrel.errors import QuerySyntaxError, Span
from whimbrel.lang.wbl.clauses import Clause
from whimbrel.lang.wbl.literals import token_span
from whimbrel.lang.wbl.tree import (
    STEPS,
    Amount,
    Detail,
    MotionNode,
    Occurrence,
    PatternNode,
    PatternPartNode,
    TargetNode,
    TimesNode,
)

_SELECTIONS = ("each", "first", "last")


@dataclass(frozen=True, slots=True)
class RawPart:
    """A part as it was parsed, and the `within` that belongs to the pattern around it."""

    part: PatternPartNode
    within: Clause | None
    gaps: Clause | None
    at: Span | None


@dataclass(frozen=True, slots=True)
class Phrase:
    """What stands behind a mover: how it moves, and by what that is judged."""

    verb: str
    target: TargetNode | None
    near: Amount | None
    details: tuple[Detail, ...]
    at: Span | None


def words(token: Token) -> str:
    """Join the words of a token with single blanks between them."""
    return " ".join(str(token).split())


def moving(pattern: PatternNode, phrase: Phrase) -> MotionNode:
    """Join a mover and how it moves; what moves is one event, with or without a name."""
    part = pattern.parts[0]
    what = part.what
    plain = pattern == PatternNode(None, (PatternPartNode(what, alias=part.alias),))
    if not plain or not isinstance(what, Occurrence):
        raise QuerySyntaxError(
            f"`{phrase.verb}` is said of one event type",
            pattern.at,
            f"write for example 'Truck as t {phrase.verb} ...', and use that definition in a pattern",
        )
    return MotionNode(
        what, part.alias, phrase.verb, phrase.target, phrase.near, phrase.details, at=pattern.at
    )


def make_pattern(items: Sequence[Any], at: Span | None) -> PatternNode:
    """Join parts by their one connective; a last `within` without `from` bounds the whole pattern."""
    raw: list[RawPart] = [*(_with_window(part) for part in items[:-1:2]), items[-1]]
    for part in raw[:-1]:
        misplaced = part.within or part.gaps
        if misplaced is not None:
            raise QuerySyntaxError(
                "`within` without `from` bounds the whole pattern",
                misplaced.at,
                "write it behind the last part, or name a part: 'within D from a'",
            )
    within, gaps = raw[-1].within, raw[-1].gaps
    connective = _connective(items[1::2])
    parts = tuple(item.part for item in raw)
    if connective == STEPS:
        signs = [" ".join(str(sign).split()) for sign in items[1::2]]
        parts = (parts[0], *(replace(p, follows=s) for p, s in zip(parts[1:], signs, strict=True)))
    bounds = [None if bound is None else bound.value for bound in (within, gaps)]
    pattern = PatternNode(connective, parts, *bounds, at=at)
    return _simplified(pattern)


def _with_window(raw: RawPart) -> RawPart:
    """Let `within ... between events` behind a loop that is not last be about the loop, named or not."""
    if raw.gaps is None or raw.part.times is None or raw.part.window is not None:
        return raw
    return replace(raw, part=replace(raw.part, window=raw.gaps.value), gaps=None)


def _connective(signs: Sequence[Token]) -> str | None:
    if not signs:
        return None
    if all(sign.type == "FOLLOWS" for sign in signs):
        return STEPS
    for sign in signs[1:]:
        if sign != signs[0]:
            raise QuerySyntaxError(
                f"`{signs[0]}` and `{sign}` are mixed",
                token_span(sign),
                f"add parentheses, for example 'A {signs[0]} (B {sign} C)'",
            )
    return str(signs[0])


def _simplified(pattern: PatternNode) -> PatternNode:
    """Take off parentheses that say nothing: `((A then B))` is `A then B`."""
    only = pattern.parts[0]
    if (
        pattern.connective is None
        and isinstance(only.what, PatternNode)
        and only == PatternPartNode(only.what)
    ):
        inner = only.what
        bounds = (pattern.within, inner.within), (pattern.gaps, inner.gaps)
        if all(None in pair for pair in bounds):
            return replace(inner, within=inner.within or pattern.within, gaps=inner.gaps or pattern.gaps)
    return pattern


def make_part(
    prefixes: Sequence[Token], core: Occurrence | PatternNode, suffixes: Sequence[Any], at: Span | None
) -> RawPart:
    """Sort what stands before and behind a part."""
    fields: dict[str, Any] = _read_prefixes(prefixes)
    within: Clause | None = None
    between: Clause | None = None
    for suffix in suffixes:
        if isinstance(suffix, TimesNode):
            _set_times(fields, suffix)
        elif suffix.word == "mark":
            _set_mark(fields, suffix)
        elif suffix.word == "within between" and _is_about_the_loop(fields, within):
            _set(fields, "window", suffix.value, suffix.at, "`within ... between events`")
        elif suffix.word == "within between":
            _refuse_second("`within ... between events`", between, suffix)
            between = suffix
        elif suffix.word == "within":
            _refuse_second("`within`", within, suffix)
            within = suffix
        elif suffix.word == "within from":
            fields["gaps"] = (*fields.get("gaps", ()), suffix.value)
        else:
            field = {"as": "alias", "until": "until", "for": "lasting"}[suffix.word]
            _set(fields, field, suffix.value, suffix.at, f"`{suffix.word}`")
    part = _unwrapped(PatternPartNode(core, at=_without(at, within, suffixes), **fields))
    _check(part)
    return RawPart(part, within, between, at)


def _is_about_the_loop(fields: dict[str, Any], within: Clause | None) -> bool:
    """Tell whether what comes next stands behind how often a part is taken, and before all else.

    There `within ... between events` bounds the gaps of that one step; behind its name, those of the whole.
    """
    named = "alias" in fields or "gaps" in fields or "window" in fields
    return "times" in fields and not named and within is None


def _set_times(fields: dict[str, Any], times: TimesNode) -> None:
    """Take a number of times; none at the least means one at the least, or that the part is missing."""
    if times.at_least == 0 and times.at_most != 0:
        fields["marks"] = tuple(dict.fromkeys((*fields.get("marks", ()), "optional")))
        if times.at_most == 1:
            return
        times = replace(times, at_least=1)
    _set(fields, "times", times, times.at, "the number of times")


def _set_mark(fields: dict[str, Any], mark: Clause) -> None:
    marks = fields.get("marks", ())
    if mark.value in marks:
        raise QuerySyntaxError(
            f"`{mark.value}` is given twice for one part", mark.at, "leave out one of them"
        )
    if mark.value != "reluctant":  # what is not greedy is reluctant
        fields["marks"] = (*marks, mark.value)


def _without(at: Span | None, within: Clause | None, suffixes: Sequence[Any]) -> Span | None:
    """Leave a last `within`, which belongs to the whole pattern, out of the span of its part."""
    if at is None or within is None or within.at is None or suffixes[-1] is not within:
        return at
    if within.at.line != at.line or within.at.column < at.column + 2:
        return at
    return Span(at.line, at.column, within.at.line, within.at.column - 1)


def _read_prefixes(prefixes: Sequence[Token]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for prefix in prefixes:
        if prefix in _SELECTIONS:
            _set(fields, "select", str(prefix), token_span(prefix), "first, last or each")
        else:
            name = "negated" if prefix == "not" else "outer"
            _set(fields, name, True, token_span(prefix), f"`{prefix}`")
    return fields


def _set(fields: dict[str, Any], name: str, value: Any, at: Span | None, shown: str) -> None:
    if name in fields:
        raise QuerySyntaxError(f"{shown} is given twice for one part", at, "leave out one of them")
    fields[name] = value


def _refuse_second(shown: str, first: Clause | None, second: Clause) -> None:
    if first is not None:
        raise QuerySyntaxError(f"{shown} is given twice", second.at, "leave out one of them")


def _unwrapped(part: PatternPartNode) -> PatternPartNode:
    """Take parentheses off a single event: `(A as a){2}` is `A{2} as a`, where nothing is said twice."""
    inner = part.what
    if not isinstance(inner, PatternNode) or inner.connective is not None:
        return part
    if inner.within is not None or inner.gaps is not None:
        return part
    return _merged(part, inner.parts[0]) or part


def _merged(outer: PatternPartNode, inner: PatternPartNode) -> PatternPartNode | None:
    # Only `as` is looked through: `(A{2}){3}` and `(not A) as b` mean something else, or nothing.
    if inner != PatternPartNode(inner.what, alias=inner.alias) or (inner.alias and outer.alias):
        return None
    return replace(outer, what=inner.what, alias=inner.alias or outer.alias)


def _check(part: PatternPartNode) -> None:
    if part.negated:
        _check_absent(part)
    elif part.lasting is not None:
        raise QuerySyntaxError(
            "`for` belongs to a part with `not`",
            _place(part.lasting, part),
            "write 'not A for D' as the last part",
        )
    if part.until is not None and part.times is None:
        raise QuerySyntaxError(
            "`until` belongs to a repeated part", part.until.at, "write for example 'A+ until B'"
        )


def _check_absent(part: PatternPartNode) -> None:
    wrong = None
    if part.select is not None:
        wrong = part.select
    elif part.outer:
        wrong = "outer"
    elif part.times is not None:
        wrong = "a number of times"
    elif part.gaps:
        wrong = "within ... from"
    if wrong:
        raise QuerySyntaxError(
            f"a part with `not` cannot have {wrong!r} as well",
            part.at,
            "an absent part has no event to choose",
        )


def _place(amount: Amount, part: PatternPartNode) -> Span | None:
    return amount.at or part.at
