"""Run the tests in four processes at once: two cores share them out, however unequal they are.

Takes pytest's arguments. What the first processes say is shown when the last is through. Arguments that name
tests (tests/lang, say) are handed to one process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parents[1]
BESIDE = {
    "The shared suite, and other tests with a session of Spark": [
        "tests/shared",
        "tests/cli",
        "tests/testing",
    ],
    "Spark": ["tests/spark"],
    "The repository, the examples and the engine": [
        "tests/repo",
        "tests/examples",
        "tests/engine",
        "tests/steps",
        "tests/subscriptions",
        "tests/whynot",
    ],
}
"""What runs beside the other tests: a title, and folders. No process reads what belongs to another one."""

NOTHING_CHOSEN = 5
"""The status of pytest if no test was chosen."""


def main(arguments: list[str]) -> int:
    """Run all; the status is that of the first that failed."""
    if any(_names_tests(each) for each in arguments):
        return subprocess.run(_command(arguments), env=_environment(), cwd=ROOT, check=False).returncode
    with ExitStack() as stack:
        beside = []
        for title, folders in BESIDE.items():
            said = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(
                _command([*arguments, *folders]), env=_environment(), cwd=ROOT, stdout=said, stderr=said
            )
            stack.callback(process.terminate)
            beside.append((title, process, said))
        others = [f"--ignore={folder}" for folders in BESIDE.values() for folder in folders]
        command = _command([*arguments, *others])
        statuses = [subprocess.run(command, env=_environment(), cwd=ROOT, check=False).returncode]
        for title, process, said in beside:
            print(title, flush=True)
            statuses.append(process.wait())
            said.seek(0)
            sys.stdout.buffer.write(said.read())
            sys.stdout.flush()
    failed = [status for status in statuses if status not in (0, NOTHING_CHOSEN)]
    return failed[0] if failed else min(statuses)


def _names_tests(argument: str) -> bool:
    return not argument.startswith("-") and (ROOT / argument.partition("::")[0]).exists()


def _command(arguments: list[str]) -> list[str]:
    return [sys.executable, "-m", "pytest", *arguments]


def _environment() -> dict[str, str]:
    """Keep the bytecode of tests and modules, even where that is not usual: hundreds of programs start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
