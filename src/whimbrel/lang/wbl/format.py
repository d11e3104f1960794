"""The formatter: a tree and the comments of its text, laid out in one canonical way."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate

from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.parse import parse
from whimbrel.lang.wbl.printer import Block, PrintedClause, PrintedText, print_statement

WIDTH = 88
_TOKENS = re.compile(r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|(?P<comment>(?:\#|//)[^\n]*)""")
_ONE_LINERS = (t.CoordinatesStatement, t.ParamNode, t.EventNode, t.RegionNode)


def format_text(text: str, file: str | None = None) -> str:
    """Lay out a query text; comments stay, and formatting twice changes nothing.

    Raises
    ------
    QueryError
        If the text does not parse.
    """
    return format_tree(parse(text, file), text)


def format_tree(tree: t.WblFile, text: str = "") -> str:
    """Write a tree, with the comments of the `text` it was parsed from."""
    blocks = [print_statement(statement) for statement in tree.statements]
    rows = [row for block in blocks for row in _rows(block)]
    loose = _attach(_comments(text), rows)
    out = _written(rows)
    if loose:
        out += [""] if out else []
        for comment in loose:
            out.append(comment.text)
            out += [""] if comment.gap_after and comment is not loose[-1] else []
    return "".join(f"{line}\n" for line in out)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: where it stands, and whether it has the line for itself."""

    line: int
    column: int
    text: str
    alone: bool
    gap_after: bool
    """Whether an empty line follows."""


@dataclass(slots=True)
class Row:
    """One line of output, and the comments that belong to it."""

    text: str
    starts: list[tuple[int, int]]
    """Where its pieces stood in the text; empty for a tree without a text."""
    opens: bool = False
    """Whether a statement starts here."""
    kind: type = t.WblFile
    above: list[Comment] = field(default_factory=list)
    behind: Comment | None = None


def _rows(block: Block) -> list[Row]:
    rows = [row for line in block.lines for row in _broken(line)]
    rows[0].opens = True
    for row in rows:
        row.kind = block.kind
    return rows


def _broken(line: PrintedClause) -> list[Row]:
    whole = " " * line.indent + " ".join(piece.text for piece in line.pieces)
    if len(whole) <= WIDTH or len(line.pieces) == 1:
        return [Row(whole, _starts(line.pieces))]
    first, *rest = line.pieces
    rows = [Row(" " * line.indent + first.text, _starts((first,)))]
    return rows + [Row(" " * (line.indent + 4) + piece.text, _starts((piece,))) for piece in rest]


def _starts(pieces: tuple[PrintedText, ...]) -> list[tuple[int, int]]:
    return [(piece.at.line, piece.at.column) for piece in pieces if piece.at is not None]


def _comments(text: str) -> list[Comment]:
    lines = text.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=0))
    comments = []
    for match in _TOKENS.finditer(text):
        if match["comment"] is None:
            continue
        line = bisect_right(offsets, match.start())
        column = match.start() - offsets[line - 1] + 1
        alone = not lines[line - 1][: column - 1].strip(" \t\f\r\ufeff\u00a0;")
        gap = line < len(lines) and not lines[line].strip()
        comments.append(Comment(line, column, _tidy(match["comment"]), alone, gap))
    return comments


def _tidy(comment: str) -> str:
    body = comment[2:] if comment.startswith("//") else comment[1:]
    body = body.rstrip()
    return f"# {body}" if body and not body.startswith((" ", "!", "#")) else f"#{body}"


def _attach(comments: list[Comment], rows: list[Row]) -> list[Comment]:
    """Assign each comment to a row; return those that come after everything."""
    starts = sorted((start, index) for index, row in enumerate(rows) for start in row.starts)
    places = [start for start, _ in starts]
    loose = []
    for comment in comments:
        nearest = bisect_right(places, (comment.line, comment.column)) - (0 if comment.alone else 1)
        if not comment.alone and nearest < 0:
            nearest = 0
        if nearest >= len(starts):
            loose.append(comment)
            continue
        row = rows[starts[nearest][1]]
        if comment.alone or row.behind is not None:
            row.above.append(comment)
        else:
            row.behind = comment
    for row in rows:
        _settle(row)
    return loose


def _settle(row: Row) -> None:
    # Two comments cannot both stay behind one line; then all go above it, in their order.
    if row.behind is not None and any(not comment.alone for comment in row.above):
        row.above = sorted([*row.above, row.behind], key=lambda comment: (comment.line, comment.column))
        row.behind = None


def _written(rows: list[Row]) -> list[str]:
    out: list[str] = []
    before: type | None = None
    for row in rows:
        if row.opens:
            together = before is row.kind and row.kind in _ONE_LINERS and not row.above
            out += [""] if out and not together else []
            before = row.kind
        indent = " " * (len(row.text) - len(row.text.lstrip()))
        for comment in row.above:
            out.append(indent + comment.text)
            out += [""] if comment.gap_after and row.opens else []
        out.append(row.text + (f"  {row.behind.text}" if row.behind else ""))
    return out
