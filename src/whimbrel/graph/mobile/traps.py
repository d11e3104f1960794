"""What is allowed, but tells something else than most people expect: the warnings of mobile queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from whimbrel.graph.mobile.parts import parts
from whimbrel.graph.mobile.policy import MobilePolicy, RefreshWhenQualityFalls
from whimbrel.graph.operators.encounter import Encounter, Meeting
from whimbrel.graph.operators.motion import Motion, Verb
from whimbrel.graph.reach import anchors

if TYPE_CHECKING:
    from whimbrel.graph.mobile.query import MobileQuery


def traps(query: MobileQuery) -> tuple[str, ...]:
    """Warn of what is probably not meant.

    >>> from whimbrel.lang.wbl import compile_text
    >>> pairs = "define P detect A as a then B within 5 s consuming a"
    >>> query = compile_text(f"{pairs} around Car within 50 m report P")
    >>> query.warnings[0].partition(" uses")[0]
    "line 1, col 61: 'P.match'"
    """
    return tuple(dict.fromkeys(_traps(query)))


def _traps(query: MobileQuery) -> Iterator[str]:
    yield from _idle_quality(query.policy)
    each = parts(query).each
    for name, why in anchors(each, query.detect.operators).items():
        operator = each[name]
        if isinstance(operator, Motion | Encounter):
            yield _of_motion(operator.verb)
        elif query.policy.completeness != "strong":
            yield (
                f"{name!r} {why}, so that what is found depends on where each interest begins; "
                "completeness strong shares runs between interests"
            )
    moves = any(isinstance(operator, Motion | Encounter) for operator in query.detect.graph.operators)
    if query.motion_within and query.of_situations:
        yield (
            "'of situations' takes the detections of one run over all events, motions included, "
            "so that 'motion within the interest' says nothing"
        )
    elif query.motion_within and not moves:
        yield "nothing moves in what is reported, so that 'motion within the interest' says nothing"


def _idle_quality(policy: MobilePolicy) -> Iterator[str]:
    """Warn of a quality that nothing asks for, or of something that asks for less than the quality."""
    asks = policy.prediction is not None or policy.reuse == "similar"
    if not policy.quality.is_perfect and not asks and not isinstance(policy.refresh, RefreshWhenQualityFalls):
        yield (
            "a quality below 1 says nothing by itself: it is for 'refresh when quality falls', 'predict' and "
            "'reuse similar'"
        )
    if policy.quality.is_perfect and policy.reuse == "similar":
        yield "with quality 1, 'reuse similar' is 'reuse exact'"


def _of_motion(verb: Verb | Meeting) -> str:
    if verb.waits:
        return (
            f"with 'motion within the interest', `{verb}` counts its time from where the run of each "
            "interest begins, and begins anew at every switch"
        )
    return (
        f"with 'motion within the interest', `{verb}` knows nothing of where movers were before the "
        "run of an interest begins, or outside of it"
    )
