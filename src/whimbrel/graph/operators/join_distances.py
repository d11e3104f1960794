"""How far apart the parts of a pattern can lie, read off the distances in its conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from whimbrel.graph.expressions import Binary, Call, Expr, Literal, PartRef, conjuncts
from whimbrel.graph.operators.base import SpatialReach
from whimbrel.graph.policies import Context

if TYPE_CHECKING:
    from whimbrel.graph.operators.join_pattern import Absent, JoinPattern, PatternPart


def pattern_reach(match: JoinPattern, below: Callable[[str], SpatialReach | None]) -> SpatialReach | None:
    """Add up the distances that a pattern's conditions allow between its parts.

    No place in the hull of some events is farther from any of them than they are from each other, so that
    every step adds at most both spreads.
    """
    if match.context is not Context.EACH or match.consuming:
        return None  # what was used up far away and long ago would count
    members: list[PatternPart | Absent] = [*match.parts, *match.absent]
    inner = [below(member.input) for member in members]
    if any(reach is None for reach in inner):
        return None
    spreads = [reach for reach in inner if reach is not None]
    linked = _linked(match)
    if linked is None:
        return None
    positive = len(match.parts)
    apart = sum(linked[0]) + 2 * sum(reach.apart for reach in spreads[:positive])
    blocking = max(
        (link + 2 * reach.total for link, reach in zip(linked[1], spreads[positive:], strict=True)),
        default=0.0,
    )
    return SpatialReach(apart, apart + blocking + 2 * max(reach.total for reach in spreads))


def _linked(match: JoinPattern) -> tuple[list[float], list[float]] | None:
    """Give the distances that link all parts with each other, and each absent part with one of them."""
    aliases = [part.alias for part in match.parts]
    if len(aliases) > 1 and (None in aliases or len(set(aliases)) < len(aliases)):
        return None
    bounds = [bound for condition in match.conditions if (bound := _bound(condition)) is not None]
    reached, steps = {aliases[0]}, list[float]()
    while len(reached) < len(aliases):
        fitting = [(m, {a, b} - reached) for a, b, m in bounds if (a in reached) != (b in reached)]
        fitting = [(metres, new) for metres, new in fitting if new <= set(aliases)]
        if not fitting:
            return None
        metres, new = min(fitting, key=lambda step: step[0])
        reached |= new
        steps.append(metres)
    blocking = []
    for absent in match.absent:
        own = [bound for condition in absent.conditions if (bound := _bound(condition)) is not None]
        near = [m for a, b, m in own if {a, b} & set(aliases) and absent.alias in (a, b)]
        if not near:
            return None
        blocking.append(min(near))
    return steps, blocking


def _bound(condition: Expr) -> tuple[str, str, float] | None:
    """Read `distance(a, b) < metres` and what is like it as the two parts and the metres."""
    for part in conjuncts(condition):
        match part:
            case Binary(
                "<" | "<=" | "=", Call("distance", (PartRef(str() as a), PartRef(str() as b))), Literal(v)
            ):
                pass
            case Binary(
                ">" | ">=" | "=", Literal(v), Call("distance", (PartRef(str() as a), PartRef(str() as b)))
            ):
                pass
            case Call(
                "between", (Call("distance", (PartRef(str() as a), PartRef(str() as b))), _, Literal(v))
            ):
                pass
            case Call("intersects" | "lies_in", (PartRef(str() as a), PartRef(str() as b))):
                v = 0
            case Call("same_place", (PartRef(str() as a), PartRef(str() as b), Literal(v))):
                pass
            case _:
                continue
        if isinstance(v, int | float) and not isinstance(v, bool) and a != b:
            return a, b, max(float(v), 0.0)
    return None
