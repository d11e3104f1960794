"""A line of a test file as words, and errors that point at one of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from whimbrel.errors import ScenarioError, Span

_TOKEN = re.compile(
    r"""(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<compare><=|>=|!=|=|<|>)
      | (?P<mark>[(),])
      | (?P<word>[^\s'"(),=<>!]+)""",
    re.VERBOSE,
)
_BLANK = re.compile(r"\s*")
_COMMENT = re.compile(r"(^|\s)#.*")
_ESCAPED = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a text in quotes, a comparison or a mark, and where it stands."""

    kind: str
    text: str
    at: Span

    @property
    def content(self) -> str:
        """What a text in quotes holds; any other token as it is."""
        if self.kind != "text":
            return self.text
        return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[1]), self.text[1:-1])


@dataclass(slots=True)
class Line:
    """One line, read from left to right. `#` begins a comment, at the start of a word."""

    raw: str
    number: int
    tokens: list[Token] = field(default_factory=list)
    place: int = 0

    @property
    def at(self) -> Span:
        """The line from its first character to its last."""
        start = len(self.raw) - len(self.raw.lstrip()) + 1
        return self._span(start, max(start + 1, len(self.raw.rstrip()) + 1))

    def _span(self, start: int, end: int) -> Span:
        return Span(self.number, start, self.number, end)

    def split(self) -> Line:
        """Find the tokens.

        Raises
        ------
        ScenarioError
            If a quote is not closed, or a character does not fit.
        """
        position = _BLANK.match(self.raw).end()  # type: ignore[union-attr] # it matches anything
        while position < len(self.raw) and self.raw[position] != "#":
            found = _TOKEN.match(self.raw, position)
            if found is None or found.lastgroup is None:
                raise self._misfit(position)
            at = self._span(position + 1, found.end() + 1)
            self.tokens.append(Token(found.lastgroup, found[0], at))
            position = _BLANK.match(self.raw, found.end()).end()  # type: ignore[union-attr]
        return self

    def _misfit(self, position: int) -> ScenarioError:
        character, at = self.raw[position], self._span(position + 1, position + 2)
        if character in "'\"":
            return ScenarioError(
                "this text has no closing quote", at, f"end it with {character} on the same line"
            )
        return ScenarioError(
            f"{character!r} does not fit here", at, "put texts with such characters in quotes"
        )

    # -- reading -----------------------------------------------------------------------------------------

    @property
    def first_word(self) -> str:
        """The first word as it stands, before the line is split."""
        return self.raw.split(maxsplit=1)[0]

    def behind_first_word(self) -> tuple[str, Span]:
        """Give the rest of the line without its comment, as it is written, and where it stands."""
        rest = self.raw.lstrip()[len(self.first_word) :]
        plain = _COMMENT.sub("", rest).strip()
        start = self.raw.index(self.first_word) + len(self.first_word) + len(rest) - len(rest.lstrip()) + 1
        return plain, self._span(start, start + max(1, len(plain)))

    @property
    def text(self) -> str:
        """The line without margin and comment."""
        return _COMMENT.sub("", self.raw).strip()

    def peek(self, ahead: int = 0) -> Token | None:
        """Give the next token, or one after it, and leave it there."""
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else None

    def next_is(self, *texts: str) -> bool:
        """Tell whether the next token is one of these words or marks."""
        token = self.peek()
        return token is not None and token.kind != "text" and token.text in texts

    def take(self, wanted: str, hint: str | None = None) -> Token:
        """Give the next token and go on; `wanted` says what is missing where the line ends."""
        token = self.peek()
        if token is None:
            raise ScenarioError(f"{wanted} is missing here", self.end, hint)
        self.place += 1
        return token

    def finish(self, hint: str | None = None) -> None:
        """Refuse what stands behind the end of a sentence."""
        token = self.peek()
        if token is not None:
            raise ScenarioError(
                f"{token.text!r} does not fit here", token.at, hint or "the line could end here"
            )

    @property
    def end(self) -> Span:
        """The place behind the last token."""
        last = self.tokens[-1].at.end_column if self.tokens else len(self.raw.rstrip()) + 1
        return self._span(last, last + 1)
