"""`whimbrel warm`: what it says, and what it refuses."""

from __future__ import annotations

import re

import pytest


def test_it_says_what_was_compiled_and_where_it_is(folder, compiled_kernels):
    done = folder.run("warm", "late.wbl")
    assert done.exit_code == 0
    assert re.fullmatch(
        r"(compiling kernels for these queries, once: \d+\n)?"
        r"compiled \d+ kernels?, \d+ were there; \d+\.\d MB of machine code in /\S+( \S+)*\n",
        done.stderr,
    )
    assert done.stdout == ""


def test_quiet_says_nothing(folder, compiled_kernels):
    done = folder.run("warm", "late.wbl", "--quiet")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("missing.wbl",), 1, "missing.wbl"),
        (("trips.csv",), 1, "error:"),
        (("late.wbl", "--processes", "0"), 2, "--processes"),
    ],
)
def test_wrong_queries_and_usage_are_told(folder, arguments, status, words):
    done = folder.run("warm", *arguments)
    assert (done.exit_code, words in done.stderr) == (status, True)


def test_its_help_says_when_to_use_it(folder):
    shown = folder.run("warm", "--help").stdout
    for words in ("image", "NUMBA_CACHE_DIR", "whimbrel warm late.wbl", "--processes"):
        assert words in shown
