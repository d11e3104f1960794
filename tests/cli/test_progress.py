"""The progress bar, and the note about compiling."""

from __future__ import annotations

import io
import os
import threading

from whimbrel.cli.kernels import must_be_compiled
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


def test_kernels_are_compiled_where_no_machine_code_is_newer(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    source, cache = tmp_path / "match.py", tmp_path / "__pycache__"
    source.write_text("")
    assert must_be_compiled(tmp_path)
    cache.mkdir()
    kept = cache / "match.holds-1.py311.nbi"
    kept.write_text("")
    os.utime(source, (100, 100))
    os.utime(kept, (200, 200))
    assert not must_be_compiled(tmp_path)
    os.utime(source, (300, 300))
    assert must_be_compiled(tmp_path)


def test_where_machine_code_is_kept_elsewhere_nothing_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not must_be_compiled(tmp_path)
