"""Parse trees, used again for texts that have the same tokens.

An LALR parser looks at the types of the tokens and at nothing else. So texts with the same types of tokens,
such as subscriptions that differ in their constants, have the same tree, with other tokens in it. A plan is
such a tree: it says which rules match, and which token stands where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token, Tree

Rule = Callable[["Extent", list[Any]], Any]
"""Makes a node from where it stands and from what is in it."""


@dataclass(frozen=True, slots=True)
class Extent:
    """From which token to which a rule matches; none where it matches nothing."""

    first: Token | None
    last: Token | None

    @property
    def empty(self) -> bool:
        return self.first is None

    @property
    def line(self) -> int:
        assert self.first is not None
        return self.first.line or 1

    @property
    def column(self) -> int:
        assert self.first is not None
        return self.first.column or 1

    @property
    def end_line(self) -> int:
        assert self.last is not None
        return self.last.end_line or 1

    @property
    def end_column(self) -> int:
        assert self.last is not None
        return self.last.end_column or 1


@dataclass(frozen=True, slots=True)
class TokenPlan:
    """What to make of the tokens that one rule matches."""

    rule: Rule
    items: tuple[TokenPlan | int | None, ...]
    """Further plans, numbers of tokens, and None for what is left out."""
    first: int | None
    last: int | None

    @staticmethod
    def of(parsed: Tree[Token], tokens: Sequence[Token], rules: object) -> TokenPlan:
        """Make a plan of a tree, with the method of `rules` that is called as each rule is."""
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
            return TokenPlan(getattr(rules, str(node.data)), items, first, last)

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
            return self.rule(Extent(None, None), items)
        return self.rule(Extent(tokens[self.first], tokens[self.last]), items)
