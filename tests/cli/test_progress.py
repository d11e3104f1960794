"""The progress bar, and the note about compiling."""

from __future__ import annotations

import io
import os

from whimbrel.cli.kernels import must_be_compiled
from whimbrel.cli.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_nothing_is_drawn_in_the_first_second():
    out, clock = Terminal(), Clock()
    with ProgressBar(out, clock) as bar:
        clock.now = 0.9
        bar(1, 2)
    assert out.getvalue() == ""


def test_a_long_input_has_a_bar_that_wipes_itself_away():
    out, clock = Terminal(), Clock()
    with ProgressBar(out, clock) as bar:
        clock.now = 3
        bar(50, 200)
        drawn = out.getvalue()
    assert drawn == "\rreading [########                      ]  25%  3 s"
    assert out.getvalue() == drawn + "\r" + " " * (len(drawn) - 1) + "\r"


def test_the_bar_is_not_drawn_for_every_batch():
    out, clock = Terminal(), Clock()
    bar = ProgressBar(out, clock)
    clock.now = 3
    for done in range(100):
        bar(done, 100)
    assert out.getvalue().count("\r") == 1


def test_after_reading_it_says_detecting():
    out, clock = Terminal(), Clock()
    bar = ProgressBar(out, clock)
    clock.now = 3
    bar(100, 100)
    assert out.getvalue().startswith("\rdetecting")


def test_a_file_gets_no_bar():
    out, clock = io.StringIO(), Clock()
    bar = ProgressBar(out, clock)
    clock.now = 3
    bar(1, 2)
    assert out.getvalue() == ""


def test_an_input_of_unknown_length_is_counted():
    out, clock = Terminal(), Clock()
    bar = ProgressBar(out, clock)
    clock.now = 2
    bar(1_234, None)
    assert out.getvalue() == "\rreading: 1,234 so far  2 s"


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
