"""What the commands say about themselves, held in golden files; `make golden` rewrites them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import whimbrel as wb
from whimbrel.cli.main import main

GOLDEN = Path(__file__).parent / "golden"


def run(*args: str):
    return CliRunner().invoke(main, args, prog_name="whimbrel", terminal_width=100)


@pytest.mark.parametrize("command", ["", *sorted(main.commands)])
def test_help(command: str, update_golden: bool):
    done = run(*command.split(), "--help")
    assert done.exit_code == 0
    file = GOLDEN / f"{command or 'whimbrel'}.txt"
    if update_golden:
        file.parent.mkdir(exist_ok=True)
        file.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_shows_an_example(command: str):
    assert f"whimbrel {command} " in run(command, "--help").stdout.partition("Options:")[0].partition("\n")[2]


def test_examples_stay_as_they_are_written():
    assert (
        "\n    1. write    late.wbl:  define Late\n                             detect Leave"
        in run("--help").stdout
    )


def test_the_version_is_that_of_the_package():
    assert run("--version").stdout == f"whimbrel {wb.__version__}\n"


def test_an_unknown_command_is_wrong_usage():
    done = run("detekt")
    assert done.exit_code == 2
    assert "No such command 'detekt'" in done.stderr
