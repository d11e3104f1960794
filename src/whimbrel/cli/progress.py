"""A progress bar on standard error, for people who wait."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import IO, Self

PATIENCE_S = 1.0
"""Nobody needs a bar for less."""
_REDRAW_S = 0.1
_WIDTH = 30


class ProgressBar:
    """How far the input has been read; drawn only on a terminal, and only after a second.

    Use it as a context: it wipes itself away at the end.
    """

    def __init__(self, out: IO[str] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = sys.stderr if out is None else out
        self._clock = clock
        self._began = clock()
        self._drawn_at = float("-inf")
        self._width = 0

    def __call__(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` has been read."""
        now = self._clock()
        if now - self._began < PATIENCE_S or now - self._drawn_at < _REDRAW_S or not self._out.isatty():
            return
        self._drawn_at = now
        self._draw(f"{_bar(done, total)}  {now - self._began:.0f} s")

    def _draw(self, text: str) -> None:
        self._out.write("\r" + text.ljust(self._width))
        self._out.flush()
        self._width = len(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._width:
            self._draw("")
            self._out.write("\r")
            self._out.flush()


def _bar(done: int, total: int | None) -> str:
    if not total:
        return f"reading: {done:,} so far"
    share = min(done / total, 1.0)
    # Reading comes first, and detecting follows without a measure of its own.
    filled = "#" * round(share * _WIDTH)
    return f"reading [{filled:<{_WIDTH}}] {share:4.0%}" if share < 1 else "detecting".ljust(_WIDTH + 15)
