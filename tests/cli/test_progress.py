"""The progress bar, and the note about compiling."""

from __future__ import annotations

import io
import threading

from whimbrel.cli.kernels import CompilingLine
from whimbrel.cli.progress import ProgressBar


class Terminal(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.was_written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.was_written.set()
        return super().write(text)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def drawn(done: int, total: int | None, *, after_s: float) -> str:
    out, clock = Terminal(), Clock()
    bar = ProgressBar(out, clock)
    bar(done, total)
    clock.now = after_s
    bar.draw()
    return out.getvalue()


def test_nothing_is_drawn_in_the_first_second():
    assert drawn(1, 2, after_s=0.9) == ""


def test_a_long_input_has_a_bar():
    assert drawn(50, 200, after_s=3) == "\rreading [########                      ]  25%  3 s"


def test_after_reading_it_says_detecting():
    assert drawn(100, 100, after_s=12) == "\rdetecting  12 s"


def test_an_input_of_unknown_length_is_counted():
    assert drawn(1_234, None, after_s=2) == "\rreading: 1,234 so far  2 s"


def test_the_bar_draws_itself_and_wipes_itself_away():
    out, clock = Terminal(), Clock()
    with ProgressBar(out, clock) as bar:
        bar(100, 100)
        clock.now = 3
        assert out.was_written.wait(10)
    assert out.getvalue().startswith("\rdetecting  3 s")
    assert out.getvalue().endswith("\r" + " " * len("detecting  3 s") + "\r")


def test_a_file_gets_no_bar():
    out, clock = io.StringIO(), Clock()
    with ProgressBar(out, clock) as bar:
        clock.now = 3
        bar(1, 2)
        assert not bar._thread.is_alive()
    assert out.getvalue() == ""


def test_a_bar_counts_kernels_once_all_is_read():
    out, clock = Terminal(), Clock()
    bar = ProgressBar(out, clock)
    clock.now = 3
    bar.compiling(2, 11)
    bar(5, 10)
    bar.draw()
    assert "reading" in out.getvalue()
    bar(10, 10)
    bar.draw()
    assert out.getvalue().endswith("compiling kernels for this query, once: 2 of 11 ...  3 s")
    bar.compiling(11, 11)
    bar.draw()
    assert out.getvalue().rstrip().endswith("detecting  3 s")


def test_a_file_is_told_once_that_kernels_are_compiled():
    out = io.StringIO()
    line, bar = CompilingLine(out), ProgressBar(out, Clock())
    for tell in (line, bar.compiling):
        for done in range(3):
            tell(done, 2)
    assert out.getvalue() == 2 * "compiling kernels for this query, once: 2\n"


def test_a_line_on_a_terminal_counts_and_wipes_itself_away():
    out = Terminal()
    line = CompilingLine(out)
    line(0, 2)
    line(1, 2)
    assert out.getvalue().endswith("\rcompiling kernels for this query, once: 1 of 2 ...")
    line(2, 2)
    assert out.getvalue().endswith(" \r")
