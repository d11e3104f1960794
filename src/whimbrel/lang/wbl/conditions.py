"""Put every condition as deep into the pattern as its meaning allows.

A test of one event goes to the filter of that event; a test of several to the innermost match that has
them all; a test of an absent part to that part. Repetitions, branches of an `or` and absent parts are
borders: a condition written outside cannot be moved inside, because it would mean something else there.
"""

from __future__ import annotations

from whimbrel.errors import QueryError
from whimbrel.graph.expressions import AGGREGATES, GROUP, Attribute, Call, Expr, parts_of, transform, walk
from whimbrel.graph.policies import Key
from whimbrel.lang.wbl.pattern import (
    AbsentSlot,
    BoundPattern,
    Joined,
    Occurring,
    PartName,
    RequiredPart,
    Scope,
)


def place_own(bound: BoundPattern, leaf: Occurring, condition: Expr, keys: dict[str, Key]) -> None:
    """Place a condition written in the parentheses of an event."""
    others = [name for name in parts_of(condition) if name not in (leaf.name, GROUP)]
    if not others:
        leaf.conditions.append(without_group(condition, leaf.name, keys))
        return
    scopes = [leaf.scope, *(bound.parts[name].scope for name in others if name is not None)]
    joined = _innermost(scopes, leaf.scope)
    if joined is not None and _same_barriers(joined.scope, leaf.scope):
        joined.conditions.append(condition)
        return
    slot = _own_absent(leaf, [bound.parts[name] for name in others if name is not None])
    if slot is None:
        raise QueryError(
            f"this condition reads {others[0]!r}, which lies outside",
            condition.at,
            "a repeated or alternative part can only be tested by itself; write the rest behind 'where'",
        )
    slot.conditions.append(condition)


def place_where(bound: BoundPattern, condition: Expr, keys: dict[str, Key], *, push: bool) -> None:
    """Place a condition written behind `where`. Without `push`, tests of one event stay in the match."""
    names = parts_of(condition)
    if isinstance(bound.root, Occurring):
        bound.root.conditions.append(without_group(condition, bound.root.name, keys))
        return
    parts = [bound.parts[name] for name in names if name is not None and name != GROUP]
    if _place_absent(condition, parts):
        return
    if len(parts) == 1 and push and GROUP not in names and _pushable(parts[0], condition):
        for leaf in parts[0].leaves:
            leaf.conditions.append(condition)
        return
    joined = _innermost([part.scope for part in parts], Scope()) if parts else None
    (joined or top_match(bound)).conditions.append(condition)


def top_match(bound: BoundPattern) -> Joined:
    """Find the match at the top of a pattern, wrapped around it if it is something else."""
    if isinstance(bound.root, Joined):
        return bound.root
    root = Joined(Scope(), False, getattr(bound.root, "at", None), slots=[RequiredPart(bound.root)])
    if not isinstance(bound.root, Occurring):
        root.within = getattr(bound.root, "within", None)
    bound.root = root
    return root


def without_group(condition: Expr, part: str, keys: dict[str, Key]) -> Expr:
    """Read group keys from the only event there is: `group.lane` is `a.lane`."""

    def change(node: Expr) -> Expr:
        if not isinstance(node, Attribute) or node.part != GROUP:
            return node
        key = keys[node.name]
        if key.kind == "cell":
            raise QueryError("the cell of the only part cannot be tested", node.at, "test x and y instead")
        return Attribute(part, "source" if key.kind == "source" else key.name, at=node.at)

    return transform(condition, change)


def _place_absent(condition: Expr, parts: list[PartName]) -> bool:
    slots = {id(slot): slot for part in parts for slot in _absent_slots(part)}
    if not slots:
        return False
    if len(slots) > 1:
        raise QueryError(
            "this condition reads two absent parts", condition.at, "write one condition for each of them"
        )
    slot = next(iter(slots.values()))
    if len(parts) == 1 and isinstance(slot.node, Occurring) and GROUP not in parts_of(condition):
        slot.node.conditions.append(condition)
        return True
    owner = next(barrier.owner for part in parts for barrier in part.scope.barriers if barrier.absent is slot)
    for part in parts:
        if owner not in part.scope.joined:
            raise QueryError(f"{part.name!r} lies outside the group of the absent part", condition.at)
    slot.conditions.append(condition)
    return True


def _absent_slots(part: PartName) -> list[AbsentSlot]:
    return [barrier.absent for barrier in part.scope.barriers if barrier.absent is not None]


def _own_absent(leaf: Occurring, others: list[PartName]) -> AbsentSlot | None:
    """Find the absent slot that `leaf` lies directly in, if all others lie in the match around it."""
    barrier = leaf.scope.barriers[-1] if leaf.scope.barriers else None
    if barrier is None or barrier.absent is None or barrier.owner is None:
        return None
    for other in others:
        outside = barrier.owner not in other.scope.joined
        hidden = any(b.kind == "absent" and b is not barrier for b in other.scope.barriers)
        if outside or hidden:
            return None
    return barrier.absent


def _pushable(part: PartName, condition: Expr) -> bool:
    aggregated = any(isinstance(node, Call) and node.function in AGGREGATES for node in walk(condition))
    return not part.scope.barriers and not aggregated


def _innermost(scopes: list[Scope], viewpoint: Scope) -> Joined | None:
    """Find the innermost match around all scopes that lies in no barrier the viewpoint is outside of."""
    innermost: Joined | None = None
    for level in zip(*(scope.joined for scope in scopes), strict=False):
        if any(joined is not level[0] for joined in level) or not viewpoint.sees(level[0].scope):
            break
        innermost = level[0]
    return innermost


def _same_barriers(one: Scope, two: Scope) -> bool:
    return one.sees(two) and two.sees(one)
