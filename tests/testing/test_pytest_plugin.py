"""The plugin that lets pytest collect test files of queries."""

from __future__ import annotations

import subprocess
import sys

import pytest

TEXT = "test one\n+0s Leave truck=T1\nexpect Late truck=T1\ntest two\n+0s Leave truck=T1\nexpect nothing\n"


def pytest_in(folder, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def queries(queries):
    queries.write("late.wbl", "define Late detect Leave then not Arrive for 1 h group by truck\n")
    queries.write("late.wbt", TEXT)
    return queries


@pytest.mark.slow
def test_pytest_runs_the_tests_of_queries(queries):
    queries.write("conftest.py", 'pytest_plugins = ["whimbrel.testing.pytest_plugin"]\n')
    done = pytest_in(queries.folder)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "late.wbt::two" in done.stdout
    assert "unexpected  Late truck=T1 from +0s to +1h events L5" in done.stdout
    assert "Traceback" not in done.stdout
    assert "1 passed, 1 deselected" in pytest_in(queries.folder, "-k", "one").stdout


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_an_error_of_collection(queries):
    queries.write("conftest.py", 'pytest_plugins = ["whimbrel.testing.pytest_plugin"]\n')
    queries.write("bad.wbt", "tset\n")
    done = pytest_in(queries.folder)
    assert "no line begins with 'tset'" in done.stdout
    assert "1 error" in done.stdout


@pytest.mark.slow
def test_without_the_plugin_pytest_sees_nothing(queries):
    assert "no tests ran" in pytest_in(queries.folder).stdout
