"""From a flat list of clauses to cases: each clause at most once, in any order after `detect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whimbrel.errors import QuerySyntaxError, Span
from whimbrel.lang.wbl.tree import Assignment, CaseNode, GroupKey, MobileNode, Occurrence, PatternNode


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a body or one suffix of a part, as it was parsed."""

    word: str
    at: Span | None
    value: Any


@dataclass(frozen=True, slots=True)
class OldForm:
    """`from PATTERN range D where a = ...`: an aggregate as the older language wrote it."""

    pattern: PatternNode
    length: Any
    assign: tuple[Assignment, ...]
    group_by: tuple[GroupKey, ...]


_FIELDS = {
    "where": "where",
    "assign": "assign",
    "consuming": "consuming",
    "group by": "group_by",
    "context": "context",
    "<post>": "post",
    "having": "having",
    "among": "among",
    "skip": "skip",
    "counting matches": "counting",
    "limit": "limit",
    "timing out": "timing_out",
}


def collect_cases(clauses: Sequence[Clause], at: Span) -> tuple[CaseNode, ...]:
    """Sort the clauses of a body into its cases."""
    cases: list[CaseNode] = []
    rest = list(clauses)
    while rest:
        cases.append(_take_case(rest, at, first=not cases))
    _check_labels(cases)
    return tuple(cases)


_MOBILE_FIELDS = {
    "group by": "group_by",
    "listed in": "listed",
    "interest": "interest",
    "report": "report",
    "lifetime": "lifetime",
    "refresh": "refresh",
    "quality": "quality",
    "order": "order",
    "completeness": "completeness",
    "predict": "prediction",
    "reuse": "reuse",
    "deliver": "deliver",
    "excluding itself": "excluding_itself",
    "until silent for": "silent",
    "motion within the interest": "motion_within",
}
"""The clauses of a mobile query, in the order in which they are written."""


def collect_mobile(focal: Occurrence, alias: str | None, clauses: Sequence[Clause], at: Span) -> MobileNode:
    """Sort the clauses of a mobile query, which may stand in any order."""
    values: dict[str, Any] = {}
    for clause in clauses:
        field = _MOBILE_FIELDS[clause.word]
        if field in values:
            what = "an interest" if field == "interest" else f"`{clause.word}`"
            raise QuerySyntaxError(f"{what} is given twice", clause.at, "leave out one of them")
        values[field] = clause.value
    if "interest" not in values:
        raise QuerySyntaxError(
            "a mobile query needs an interest: where things happen that count",
            at,
            "write for example 'within 500 m'",
        )
    if "report" not in values:
        raise QuerySyntaxError(
            "a mobile query reports definitions, and this one names none",
            at,
            "write 'report' and the names of definitions",
        )
    return MobileNode(focal, alias=alias, at=at, **values)


def _take_case(rest: list[Clause], at: Span, *, first: bool) -> CaseNode:
    pre, label = _take(rest, "<pre>"), _take(rest, "case")
    pre = pre or _take(rest, "<pre>")
    if not rest or rest[0].word != "detect":
        wrong = rest[0].at if rest else (label or pre or Clause("", at, None)).at
        raise QuerySyntaxError(
            "a definition starts with `detect`",
            wrong,
            "write 'detect PATTERN' first, then where, assign, ...",
        )
    detect = rest.pop(0)
    if not first and label is None:
        raise QuerySyntaxError(
            "a second `detect` needs cases",
            detect.at,
            "write 'case 0:' before the first and 'case 1:' before this one",
        )
    values: dict[str, Any] = {}
    while rest and rest[0].word in _FIELDS:
        clause = rest.pop(0)
        field = _FIELDS[clause.word]
        if field in values:
            raise QuerySyntaxError(f"`{clause.word}` is given twice", clause.at, _twice_hint(clause.word))
        values[field] = clause.value
    return CaseNode(
        detect.value,
        label=None if label is None else label.value,
        pre=pre is not None,
        at=label.at if label else detect.at,
        **values,
    )


def _twice_hint(word: str) -> str:
    joined = {"where": "join the conditions with 'and'", "having": "join the conditions with 'and'"}
    return joined.get(word, "write everything behind one of them, with commas")


def _take(rest: list[Clause], word: str) -> Clause | None:
    return rest.pop(0) if rest and rest[0].word == word else None


def _check_labels(cases: list[CaseNode]) -> None:
    if len(cases) > 1 and cases[0].label is None:
        raise QuerySyntaxError(
            "the first of several cases has no label", cases[0].at, "write 'case 0:' before it"
        )
    seen: set[str | None] = set()
    for case in cases:
        if case.label in seen and case.label is not None:
            raise QuerySyntaxError(
                f"there are two cases {case.label}", case.at, "number the cases 0, 1, 2, ..."
            )
        seen.add(case.label)
