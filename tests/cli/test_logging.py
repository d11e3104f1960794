"""What a command tells of its work: nothing, unless it is asked to."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from tests.cli.conftest import Folder


@pytest.fixture(autouse=True)
def quiet_again():
    logger = logging.getLogger("whimbrel")
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers, logger.level = handlers, level


@pytest.fixture
def folder(folder: Folder) -> Folder:
    folder.write("warm.wbl", "define Warm detect Temp(val > 25)\n")
    folder.write("temps.csv", "type,time,val\nTemp,0,30\nTemp,1,20\n")
    return folder


DETECT = ("detect", "warm.wbl", "--events", "temps.csv", "--time-unit", "s", "--quiet")


def test_nothing_is_told_unasked(folder: Folder):
    assert folder.run(*DETECT).stderr == ""


@pytest.mark.parametrize("option", [["-v"], ["--log-level", "info"], ["-vv"]])
def test_what_a_query_found_is_told_once_with_numbers(folder: Folder, option: list[str]):
    told = folder.run(*DETECT, *option).stderr.splitlines()
    (line,) = [line for line in told if "whimbrel.engine.bounded" in line]
    said = "Warm: 1 detection in 2 events: 2 processed, 0 late, 0 duplicate, 0 rejected"
    assert line.endswith(f"INFO whimbrel.engine.bounded: {said}")


def test_a_level_that_there_is_not_is_refused(folder: Folder):
    done = folder.run(*DETECT, "--log-level", "loud")
    assert done.exit_code == 2
    assert "'loud' is not one of 'debug', 'info', 'warning', 'error'" in done.stderr


def test_a_program_that_logs_itself_gets_the_messages(folder: Folder, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="whimbrel"):
        folder.run(*DETECT)
    assert [record.name for record in caplog.records if "1 detection" in record.getMessage()] == [
        "whimbrel.engine.bounded"
    ]


def test_importing_whimbrel_leaves_logging_alone():
    program = (
        "import logging, whimbrel; logging.getLogger('whimbrel.x').warning('heard?'); "
        "print(logging.root.handlers)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
