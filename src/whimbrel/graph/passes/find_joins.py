"""Part a pattern by the attributes that its conditions require to be equal in all parts.

`where a.vehicle = b.vehicle and b.vehicle = c.vehicle` becomes a join on `vehicle`: events of different
vehicles then never meet, instead of being compared and refused one by one.
"""

from __future__ import annotations

from dataclasses import replace

from whimbrel.graph.expressions import Attribute, Binary, Expr
from whimbrel.graph.operators import Absent, Graph, JoinPattern, Operator, PatternPart
from whimbrel.graph.policies import Context


def find_joins(graph: Graph) -> Graph:
    """Turn equalities that tie all parts of a pattern together into joins."""
    return replace(graph, operators=tuple(_with_joins(operator) for operator in graph.operators))


def _with_joins(operator: Operator) -> Operator:
    # A chronicle tests conditions after it has chosen; a join would choose among fewer events.
    if not isinstance(operator, JoinPattern) or operator.context is Context.CHRONICLE:
        return operator
    members: list[PatternPart | Absent] = [*operator.parts, *operator.absent]
    aliases = [member.alias for member in members]
    if len(members) < 2 or None in aliases or len(set(aliases)) < len(aliases):
        return operator
    equalities = _equalities(operator)
    names = {name for name, _, _ in equalities}
    joins = tuple(sorted(name for name in names if _ties_all(name, equalities, set(aliases))))
    if not joins:
        return operator
    return replace(
        operator,
        joins=tuple(dict.fromkeys((*operator.joins, *joins))),
        conditions=_without(operator.conditions, joins),
        absent=tuple(replace(a, conditions=_without(a.conditions, joins)) for a in operator.absent),
    )


def _equalities(match: JoinPattern) -> list[tuple[str, str, str]]:
    """List the attributes that two parts must have in common: the name and the two parts."""
    conditions = [*match.conditions, *(c for absent in match.absent for c in absent.conditions)]
    return [found for condition in conditions if (found := _equality(condition)) is not None]


def _equality(condition: Expr) -> tuple[str, str, str] | None:
    match condition:
        case Binary("=", Attribute(str() as one, name), Attribute(str() as other, same)):
            if name == same and one != other:
                return name, one, other
    return None


def _ties_all(name: str, equalities: list[tuple[str, str, str]], aliases: set[str | None]) -> bool:
    """Tell whether equalities of attribute `name` connect all parts with each other."""
    links = [(one, other) for each, one, other in equalities if each == name]
    reached: set[str | None] = {links[0][0]}
    grown = True
    while grown:
        more = {end for link in links for end in link if reached & set(link)}
        grown = not more <= reached
        reached |= more
    return reached == aliases


def _without(conditions: tuple[Expr, ...], joins: tuple[str, ...]) -> tuple[Expr, ...]:
    return tuple(c for c in conditions if (found := _equality(c)) is None or found[0] not in joins)
