"""The installed command in a process of its own: start-up, pipes, signals, terminals."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import LATE, TRIPS

HEAVY = ("geopandas", "numba", "numpy", "pandas", "polars", "pyarrow", "shapely")
COMMAND = [sys.executable, "-c", "from whimbrel.cli.main import main; main(prog_name='whimbrel')"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "late.wbl").write_text(LATE, encoding="utf-8")
    (tmp_path / "trips.csv").write_text(TRIPS, encoding="utf-8")
    return tmp_path


def whimbrel(here: Path, *args: str, **settings) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args], cwd=here, capture_output=True, text=True, check=False, **settings
    )


@pytest.mark.parametrize(
    "args", ["--help", "detect --help", "check late.wbl", "explain late.wbl", "fmt late.wbl"]
)
def test_quick_commands_load_nothing_heavy(here, args):
    code = f"""
import sys
from whimbrel.cli.main import main
try:
    main({args.split()!r})
except SystemExit as ended:
    assert not ended.code, ended.code
print(*sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


@pytest.mark.slow
def test_detections_and_diagnostics_go_separate_ways(here):
    done = whimbrel(here, "detect", "late.wbl", "--events", "trips.csv")
    assert done.returncode == 0
    assert done.stdout.count("\n") == 1
    assert done.stderr.splitlines()[-1] == "3 events read, 1 detection, 0 late, 0 duplicate, 0 rejected"


def test_a_query_comes_through_a_pipe(here):
    done = whimbrel(here, "check", "-", input="define Wärm detect Temp(val > 25)")
    assert "detects Wärm (from Temp)" in done.stdout


@pytest.mark.parametrize(
    ("args", "status"), [("check late.wbl", 0), ("check no.wbl", 1), ("check --no", 2), ("", 2)]
)
def test_exit_status(here, args, status):
    done = whimbrel(here, *args.split())
    assert done.returncode == status
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv", "geojson"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(here, form):
    rows = "".join(f"e{n},Leave,{n},t{n},3,4,1\n" for n in range(20_000))
    (here / "many.csv").write_text("id,type,time,source,x,y,load\n" + rows, encoding="utf-8")
    args = [*COMMAND, "detect", "late.wbl", "--events", "many.csv", "--quiet", "--format", form]
    with subprocess.Popen(args, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(60), said) == (0, b"")


def test_ctrl_c_stops_it_with_a_short_message(here):
    read, write = os.pipe()
    # The command waits for its query on a pipe that nobody writes to.
    with subprocess.Popen(
        [*COMMAND, "check", "late.wbl", "-"],
        cwd=here,
        stdin=read,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(read)
        assert process.stdout is not None
        assert process.stderr is not None
        os.set_blocking(process.stdout.fileno(), True)
        process.stdout.readline()  # late.wbl is done, so the command is up
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(60) == 130
    os.close(write)
    assert said == b"\nstopped\n"


def test_a_terminal_gets_no_parquet(here):
    main, terminal = pty.openpty()
    args = ["detect", "late.wbl", "--events", "trips.csv", "--format", "parquet"]
    done = subprocess.run([*COMMAND, *args], cwd=here, stdout=terminal, stderr=subprocess.PIPE, check=False)
    os.close(terminal)
    os.close(main)
    assert done.returncode == 2
    assert b"not for a terminal" in done.stderr


def test_the_installed_command_runs(here):
    command = Path(sys.executable).with_name("whimbrel")
    if not command.exists():
        pytest.skip("the package is not installed as a command here")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("whimbrel ")
