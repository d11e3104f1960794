"""From parse trees to nodes, and parse trees that are used again for texts that have the same tokens.

An LALR parser looks at the types of the tokens and at nothing else. So texts with the same types of tokens,
such as subscriptions that differ in their constants, have the same tree, with other tokens in it. A plan is
such a tree: it says which rules match, and which token stands where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token, Tree

from whimbrel.errors import QuerySyntaxError, Span

Rules = Mapping[str, Callable[..., Any]]
"""Makes a node of each rule, from where it stands (None: it matches nothing) and from what is in it."""


def build(parsed: Tree[Token], rules: Rules) -> Any:
    """Make the nodes of a tree, leaves first."""
    items = [build(child, rules) if isinstance(child, Tree) else child for child in parsed.children]
    return rules[str(parsed.data)](meta_span(parsed), *items)


def meta_span(parsed: Tree[Token]) -> Span | None:
    """Tell where a parsed rule stands; None for one that matched nothing."""
    meta = parsed.meta
    return None if meta.empty else Span(meta.line, meta.column, meta.end_line, meta.end_column)


def refuse_deep(parsed: Tree[Token], levels: int, what: str, hint: str) -> None:
    """Refuse a tree of more levels: later steps are recursive, and must stay far from Python's limit."""
    level: list[Tree[Token]] = [parsed]
    for _ in range(levels):
        level = [child for node in level for child in node.children if isinstance(child, Tree)]
        if not level:
            return
    raise QuerySyntaxError(f"{what} here", meta_span(level[0]), hint)


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """What to make of the tokens that one rule matches."""

    rule: Callable[..., Any]
    items: tuple[TokenPlan | int | None, ...]
    """Further plans, numbers of tokens, and None for what is left out."""
    first: int | None
    last: int | None

    @staticmethod
    def of(parsed: Tree[Token], tokens: Sequence[Token], rules: Rules) -> TokenPlan:
        """Make a plan of a tree."""
        begins = {token.start_pos: number for number, token in enumerate(tokens)}
        ends = {token.end_pos: number for number, token in enumerate(tokens)}

        def item(child: Any) -> TokenPlan | int | None:
            return (
                plan(child) if isinstance(child, Tree) else None if child is None else begins[child.start_pos]
            )

        def plan(node: Tree[Token]) -> TokenPlan:
            items = tuple(map(item, node.children))
            meta = node.meta
            first, last = (None, None) if meta.empty else (begins[meta.start_pos], ends[meta.end_pos])
            return TokenPlan(rules[str(node.data)], items, first, last)

        return plan(parsed)

    def carry_out(self, tokens: Sequence[Token]) -> Any:
        """Make the nodes of a tree, leaves first."""
        items = [
            tokens[item]
            if type(item) is int
            else item.carry_out(tokens)
            if isinstance(item, TokenPlan)
            else None
            for item in self.items
        ]
        if self.first is None or self.last is None:
            return self.rule(None, *items)
        first, last = tokens[self.first], tokens[self.last]
        at = Span(first.line or 1, first.column or 1, last.end_line or 1, last.end_column or 1)
        return self.rule(at, *items)
