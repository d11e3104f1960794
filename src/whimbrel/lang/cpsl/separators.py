"""Tell what each `;` and `,` of a line stands for, before the grammar sees it.

A `;` ends a variable, separates the arguments of an operator, or stands between the predicates of one
event; a `,` between predicates, bindings or coordinates. What follows, and how many arguments the operator
around it takes, decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lark import Token

from whimbrel.errors import QuerySyntaxError
from whimbrel.lang.wbl.literals import token_span

SEPARATOR, COMMA, PREDICATE_COMMA = "_SEPARATOR", "_COMMA", "_PREDICATE_COMMA"

_OPENING, _CLOSING = ("LPAR", "LSQB"), ("RPAR", "RSQB")
_TIMED = ("BETWEEN", "AFTER", "NOT")
_STARTS = {"KIND", "VARIABLE", "NAME", "LPAR", *_TIMED, "_BAR", "RELATION", "_DIST", "REPEAT"}
_ENDS_VARIABLE = {"SEMICOLON", "RPAR", "COMMA", "_AND", "_OR", "_NL"}


@dataclass(slots=True)
class _Group:
    """What stands in one pair of parentheses, or outside of all: the operator, and its separators so far."""

    operator: str | None = None
    has_separator: bool = False
    open: list[int] = field(default_factory=list)
    """Places of `;` that stand before a predicate, and may be either."""


class Separators:
    """Lark calls this between its lexer and its parser."""

    always_accept = ("SEMICOLON", "COMMA")

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Tell every `;` and `,` apart among the tokens; those that only end a variable are left out."""
        tokens = list(stream)
        roles = _Roles(tokens).tell()
        for number, token in enumerate(tokens):
            role = roles.get(number, token.type)
            if role is not None:
                yield token if role == token.type else token.update(type=role)


class _Roles:
    """Walk along the tokens of a text; a role of None means that the token is left out."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.roles: dict[int, str | None] = {}
        self.groups = [_Group()]

    def tell(self) -> dict[int, str | None]:
        for number, token in enumerate(self.tokens):
            if token.type in _OPENING:
                self.groups.append(_Group(self._operator(number)))
            elif token.type in _CLOSING and len(self.groups) > 1:
                self._close(number)
            elif token.type == "SEMICOLON":
                self._semicolon(number)
            elif token.type == "COMMA":
                self._comma(number)
            elif token.type == "_NL":
                self._end_line()
        self._end_line()
        return self.roles

    def _type(self, place: int) -> str:
        return self.tokens[place].type if 0 <= place < len(self.tokens) else "_NL"

    def _operator(self, place: int) -> str | None:
        """Name the operator that a parenthesis belongs to; `v !(1;5]` compares, and is none."""
        before = self._type(place - 1)
        return None if before == "NOT" and self._type(place - 2) == "NAME" else before

    def _semicolon(self, place: int) -> None:
        group = self.groups[-1]
        if self._type(place - 1) == "VARIABLE" and self._only_ends_variable(place):
            self.roles[place] = None
        elif self._type(place + 1) == "KIND" and self._type(place - 1) not in ("VARIABLE", "SEMICOLON"):
            group.open.append(place)
        else:
            self.roles[place] = SEPARATOR
            group.has_separator = True

    def _only_ends_variable(self, place: int) -> bool:
        following = self._type(place + 1)
        if following in _ENDS_VARIABLE or len(self.groups) == 1:
            return True
        if following == "_AT":
            return self._type(place + 2) != "LPAR"
        return following == "EQUAL" and self._type(place + 2) != "SEMICOLON"

    def _comma(self, place: int) -> None:
        group = self.groups[-1]
        if self._type(place + 1) == "KIND":
            self.roles[place] = PREDICATE_COMMA
        elif group.operator in _TIMED or group.operator == "REPEAT":
            self.roles[place] = SEPARATOR
            group.has_separator = True
        else:
            self.roles[place] = COMMA

    def _close(self, place: int) -> None:
        group = self.groups.pop()
        needs_separator = group.operator in _TIMED or (
            group.operator == "RELATION" and not self._starts_subscription(place + 1)
        )
        if needs_separator and not group.has_separator and group.open:
            self._separate(group)
        self.roles |= dict.fromkeys(group.open, PREDICATE_COMMA)

    def _separate(self, group: _Group) -> None:
        if len(group.open) > 1:
            raise QuerySyntaxError(
                "this can be read in several ways: any of these ';' may stand between two subscriptions",
                token_span(self.tokens[group.open[0]]),
                "write ',' between the predicates of one event, and ';' between two subscriptions",
            )
        self.roles[group.open.pop()] = SEPARATOR

    def _starts_subscription(self, place: int) -> bool:
        following = self._type(place)
        return following in _STARTS or (following == "_AT" and self._type(place + 1) == "LPAR")

    def _end_line(self) -> None:
        for group in self.groups:
            self.roles |= dict.fromkeys(group.open, PREDICATE_COMMA)
        self.groups = [_Group()]
