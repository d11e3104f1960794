"""A progress bar on standard error, for people who wait."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self

from whimbrel.cli.kernels import compiling

PATIENCE_S = 1.0
"""Nobody needs a bar for less."""
_REDRAW_S = 0.2
_WIDTH = 30


class ProgressBar:
    """How far a run has come; drawn only on a terminal, and only after a second.

    Call it with what has been read so far. Inside its context a thread redraws it, because detecting, which
    follows the reading, has no measure of its own: there the seconds go on. At the end it wipes itself away.
    """

    def __init__(
        self,
        out: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        doing: tuple[str, str] = ("reading", "detecting"),
    ) -> None:
        self._out = sys.stderr if out is None else out
        self._clock = clock
        self._doing = doing
        self._began = clock()
        self._read: tuple[int, int | None] = (0, None)
        self._compiled: tuple[int, int] = (0, 0)
        self._width = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep_drawing, daemon=True)

    def __call__(self, done: int, total: int | None) -> None:
        """Take note that `done` of `total` has been read."""
        self._read = (done, total)

    def compiling(self, done: int, total: int) -> None:
        """Take note that `done` of `total` kernels are compiled; a file is told once that this goes on."""
        self._compiled = (done, total)
        if done == 0 and not self._out.isatty():
            self._out.write(f"compiling kernels for this query, once: {total}\n")
            self._out.flush()

    def draw(self) -> None:
        """Show how far it is, if it takes long enough."""
        seconds = self._clock() - self._began
        if seconds >= PATIENCE_S:
            doing = stage(*self._read, *self._doing)
            if self._compiled[0] < self._compiled[1] and doing == self._doing[1]:
                doing = compiling(*self._compiled)
            self._write(f"{doing}  {seconds:.0f} s")

    def _write(self, text: str) -> None:
        self._out.write("\r" + text.ljust(self._width))
        self._out.flush()
        self._width = len(text)

    def _keep_drawing(self) -> None:
        while not self._ended.wait(_REDRAW_S):
            self.draw()

    def __enter__(self) -> Self:
        if self._out.isatty():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._width:
            self._write("")
            self._out.write("\r")
            self._out.flush()


def stage(done: int, total: int | None, doing: str = "reading", then: str = "detecting") -> str:
    """Say what is going on when `done` of `total` has been read.

    >>> stage(50, 200)
    'reading [########                      ]  25%'
    """
    if not total:
        return f"{doing}: {done:,} so far" if done else doing
    if done >= total:
        return then
    share = done / total
    return f"{doing} [{'#' * round(share * _WIDTH):<{_WIDTH}}] {share:4.0%}"
