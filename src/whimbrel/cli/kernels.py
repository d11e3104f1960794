"""Say that kernels are being compiled, and how far that is."""

from __future__ import annotations

import sys
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from whimbrel.graph.query import Query


class CompilingLine:
    """A line on standard error that counts kernels; where that is no terminal, it is said once.

    >>> line = CompilingLine(sys.stdout)
    >>> line(0, 11)
    compiling kernels for this query, once: 11
    >>> line(1, 11)
    """

    def __init__(self, out: IO[str] | None = None, what: str = "kernels for this query") -> None:
        self._out = sys.stderr if out is None else out
        self._what = what
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        """Take note that `done` of `total` kernels are compiled."""
        if not self._out.isatty():
            if done == 0:
                self._out.write(f"compiling {self._what}, once: {total}\n")
                self._out.flush()
            return
        text = compiling(done, total, self._what) if done < total else ""
        self._out.write("\r" + text.ljust(self._width) + ("" if text else "\r"))
        self._out.flush()
        self._width = len(text)


def compiling(done: int, total: int, what: str = "kernels for this query") -> str:
    """Say how many kernels are compiled.

    >>> compiling(3, 11)
    'compiling kernels for this query, once: 3 of 11 ...'
    """
    return f"compiling {what}, once: {done} of {total} ..."


def compile_ahead(query: Query, events: Any = None) -> None:
    """Compile what a query needs, unless there are few events, and say how far that is."""
    from whimbrel.warming import compile_meanwhile

    compile_meanwhile(query, events, CompilingLine())()
