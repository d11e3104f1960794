"""What a mobile query became: whom it follows, what is found once or for each interest, what it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from whimbrel.graph.costs import events_over
from whimbrel.graph.expressions import format_expr
from whimbrel.graph.mobile.additional_time import additional_time
from whimbrel.graph.mobile.interests import (
    BoxInterest,
    CircleInterest,
    CorridorInterest,
    FunctionInterest,
    Interest,
    OutlineInterest,
    SectorInterest,
)
from whimbrel.graph.mobile.parts import MobileParts, parts
from whimbrel.graph.mobile.policy import (
    Refresh,
    RefreshEvery,
    RefreshWhenMoved,
    RefreshWhenQualityFalls,
)
from whimbrel.graph.mobile.query import FocalObjects, MobileQuery
from whimbrel.graph.mobile.reusing import ReusedOperator, reused_operators
from whimbrel.graph.operators import Source
from whimbrel.graph.reach import anchors
from whimbrel.model.time import END_OF_TIME, format_duration

_KINDS = {
    CircleInterest: "circle",
    BoxInterest: "box",
    OutlineInterest: "outline",
    SectorInterest: "sector",
    CorridorInterest: "corridor",
    FunctionInterest: "function",
}


@dataclass(frozen=True, slots=True)
class MobileFacts:
    """What can be read off a mobile query without running it."""

    query: MobileQuery
    parts: MobileParts
    anchors: Mapping[str, str]
    """Of what runs for each interest: why its results depend on where the run begins."""
    back: Mapping[str, int]
    """The additional time of each type."""
    reused: tuple[ReusedOperator, ...]
    """What is reused of operators written in Python."""

    @classmethod
    def of(cls, query: MobileQuery) -> MobileFacts:
        """Work everything out once."""
        found = parts(query)
        return cls(
            query,
            found,
            anchors(found.each, query.detect.operators),
            additional_time(query.detect.graph),
            reused_operators(query, found.each),
        )

    @property
    def longest_lifetime(self) -> int:
        """The lifetime, or that of an object of a table, if one has a longer one."""
        return max([self.query.lifetime, *(each.lifetime or 0 for each in self.query.focal.listed or ())])

    @property
    def history(self) -> dict[str, int]:
        """For how long events of each type are kept, so that the run of an interest may begin with them."""
        read = {each.event_type for each in self.parts.each.operators if isinstance(each, Source)}
        kept = {name: self.longest_lifetime + back for name, back in self.back.items() if name in read}
        refresh = self.query.policy.refresh
        if isinstance(refresh, RefreshWhenQualityFalls):
            kept = {name: max(kept.get(name, 0), refresh.over) for name in self.back}
        return kept


def mobile_words(query: MobileQuery) -> str:
    """Name a mobile query and its interest: `around Position as rescue within 500 m`.

    >>> from whimbrel.lang.wbl import compile_text
    >>> text = "define Slow detect Car(speed < 3) around Car(kind = 1) as me within 1 nmi report Slow"
    >>> mobile_words(compile_text(text).mobile[0])
    'around Car(kind = 1) as me within 1852 m'
    """
    return f"{_around(query)} {_region_words(query)}"


def mobile_lines(query: MobileQuery, rates: Mapping[str, float]) -> list[str]:
    """Write a mobile query as lines of text; `rates` are events a second by type."""
    facts = MobileFacts.of(query)
    said = [*_said(query), *_worked_out(facts, rates)]
    return [_around(query), *(f"  {label:<15} {text}" for label, text in said)]


def mobile_label(query: MobileQuery) -> list[str]:
    """Say what fits into a box."""
    lines = [_around(query), _region_words(query), f"lifetime {format_duration(query.lifetime)}"]
    return [*lines, f"refresh {_refresh_words(query.policy.refresh)}", f"deliver {query.policy.deliver}"]


def mobile_document(query: MobileQuery) -> dict[str, Any]:
    """Say everything, for programs."""
    facts, policy = MobileFacts.of(query), query.policy
    return {
        "name": query.name,
        "focal": _focal_document(query.focal),
        "interest": _interest_document(query.interest),
        "of": "situations" if query.of_situations else "events",
        "lifetime_us": query.lifetime,
        "refresh": {"when": _refresh_word(policy.refresh), **asdict(policy.refresh)},
        "quality": asdict(policy.quality),
        "order": policy.order,
        "completeness": {"kind": policy.completeness, "grid_m": policy.grid_m},
        "prediction": None if policy.prediction is None else asdict(policy.prediction),
        "reuse": policy.reuse,
        "reused": [asdict(each) for each in facts.reused],
        "deliver": policy.deliver,
        "excluding_itself": query.excluding_itself,
        "silent_us": query.silent,
        "motion_within": query.motion_within,
        "reports": list(query.detect.graph.outputs),
        "found_once": list(facts.parts.reported_once),
        "found_each": list(facts.parts.each.outputs),
        "given": list(facts.parts.given),
        "anchors": dict(facts.anchors),
        "additional_time_us": {name: _bounded(back) for name, back in facts.back.items()},
        "history_us": {name: _bounded(kept) for name, kept in facts.history.items()},
    }


def _bounded(length: int) -> int | None:
    return None if length >= END_OF_TIME else length


def _around(query: MobileQuery) -> str:
    focal = query.focal
    condition = "" if focal.condition is None else f"({format_expr(focal.condition)})"
    name = "" if query.name == focal.type else f" as {query.name}"
    return f"around {focal.type}{condition}{name}"


def _focal_document(focal: FocalObjects) -> dict[str, Any]:
    return {
        "type": focal.type,
        "key": focal.key,
        "condition": None if focal.condition is None else format_expr(focal.condition),
        "only": None if focal.only is None else sorted(focal.only, key=str),
        "listed": None if focal.listed is None else len(focal.listed),
    }


def _interest_document(interest: Interest) -> dict[str, Any]:
    if isinstance(interest, FunctionInterest):
        return {"kind": "function", "name": interest.name}
    return {"kind": _KINDS[type(interest)], **asdict(interest)}


# In words ---------------------------------------------------------------------------------------------


def interest_words(interest: Interest) -> str:
    """Say where things count, as the language does."""
    match interest:
        case CircleInterest(radius):
            return f"within {radius:g} m"
        case BoxInterest(width, height):
            return f"box {width:g} m, {height:g} m"
        case OutlineInterest(corners):
            return f"outline of {len(corners)} corners"
        case SectorInterest(distance, degrees):
            return f"ahead {distance:g} m, {degrees:g} degrees"
        case CorridorInterest(attribute, distance):
            return f"along {attribute}, {distance:g} m"
        case FunctionInterest(name):
            return f"shaped by {name}"


def _region_words(query: MobileQuery) -> str:
    return interest_words(query.interest) + (" of situations" if query.of_situations else "")


def _refresh_word(refresh: Refresh) -> str:
    match refresh:
        case RefreshEvery():
            return "every"
        case RefreshWhenMoved():
            return "when moved"
        case RefreshWhenQualityFalls():
            return "when quality falls"
    return "always"


def _refresh_words(refresh: Refresh) -> str:
    word = _refresh_word(refresh)
    match refresh:
        case RefreshEvery(period):
            return f"{word} {format_duration(period)}"
        case RefreshWhenMoved(distance):
            return f"{word} {distance:g} m"
        case RefreshWhenQualityFalls(over):
            return f"{word} over {format_duration(over)}"
    return word


def _said(query: MobileQuery) -> Iterator[tuple[str, str]]:
    """Say what is asked, defaults included."""
    yield "follows", _followed(query)
    yield "interest", f"{_region_words(query)}{', without its own events' if query.excluding_itself else ''}"
    yield "lifetime", format_duration(query.lifetime) if query.lifetime else "0: live results only"
    policy, ends = query.policy, ""
    if query.silent is not None:
        ends = f"; ends when silent for {format_duration(query.silent)}"
    yield "refresh", _refresh_words(policy.refresh) + ends
    quality = policy.quality
    yield "quality", f"precision {quality.precision:g}, recall {quality.recall:g}"
    yield "order", policy.order
    grid = "" if policy.grid_m is None else f" on a grid of {policy.grid_m:g} m"
    yield "completeness", policy.completeness + grid
    ahead = policy.prediction
    if ahead is not None:
        steps, places = _several(ahead.steps, "step"), _several(ahead.candidates, "candidate")
        yield "prediction", f"{steps}, {places} by {ahead.by}"
    yield "reuse", policy.reuse
    yield "delivers", policy.deliver


def _several(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count:,} {what}s"


def _followed(query: MobileQuery) -> str:
    focal = query.focal
    whom = "all objects" if focal.condition is None else f"all for whom {format_expr(focal.condition)}"
    if focal.listed is not None:
        own = any(each.radius_m is not None or each.lifetime is not None for each in focal.listed)
        whom = f"{_several(len(focal.listed), 'object')} of a table" + (
            ", some with amounts of their own" if own else ""
        )
    elif focal.only is not None:
        shown = ", ".join(sorted(map(str, focal.only))[:3])
        whom = shown if len(focal.only) <= 3 else f"{shown} and {len(focal.only) - 3:,} more"
    return f"{whom}, told apart by {focal.key}"


def _worked_out(facts: MobileFacts, rates: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Say what follows from the graph."""
    once, each = facts.parts.reported_once, facts.parts.each.outputs
    yield "found once", ", ".join(once) or "nothing that is reported"
    handed_on = ", ".join(facts.parts.given)
    if handed_on:
        yield "", f"and handed on to what is found for each: {handed_on}"
    yield "found for each", ", ".join(each) or "nothing"
    if each:
        depends = [f"anchored: {name} {why}" for name, why in facts.anchors.items()]
        yield "a run", "; ".join(depends) or "bounded: it may begin anywhere early enough"
    for operator in facts.reused:
        yield "reused", operator.words
    for number, (name, back) in enumerate(facts.back.items()):
        yield "" if number else "additional time", f"{name} {_words(back)}"
    if once and facts.longest_lifetime:
        yield "keeps", f"what is found once for {format_duration(facts.longest_lifetime)}"
    if handed_on:
        yield "keeps", f"{handed_on} for {_words(facts.longest_lifetime + max(facts.back.values()))} at most"
    for name, kept in facts.history.items():
        yield "keeps", f"{name} for {_words(kept)}{_amount(kept, rates.get(name, 1.0))}"


def _words(length: int) -> str:
    return "without bound" if length >= END_OF_TIME else format_duration(length)


def _amount(length: int, rate: float) -> str:
    return "" if length >= END_OF_TIME else f": {events_over(length, rate)}"
