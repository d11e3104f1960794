"""Run the tests in four processes at once: two cores share them out, however unequal they are.

Takes pytest's arguments. What the first processes say is shown when the last is through.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack

SPARK = "(spark or suite)"
BESIDE = {
    "The shared suite and the tests with Spark": SPARK,
    "The generated tests": f"property and not programs and not {SPARK}",
    "The tests that start programs": f"programs and not {SPARK}",
}
"""What runs beside the other tests: a title, and the marks of the tests."""
OTHERS = f"not property and not programs and not {SPARK}"

NOTHING_CHOSEN = 5
"""The status of pytest if no test was chosen."""


def main(arguments: list[str]) -> int:
    """Run all; the status is that of the first that failed."""
    chosen, arguments = _marks(arguments)
    with ExitStack() as stack:
        beside = []
        for title, marks in BESIDE.items():
            said = stack.enter_context(tempfile.TemporaryFile())
            process = subprocess.Popen(_command(marks, chosen, arguments), stdout=said, stderr=said)
            stack.callback(process.terminate)
            beside.append((title, process, said))
        statuses = [subprocess.run(_command(OTHERS, chosen, arguments), check=False).returncode]
        for title, process, said in beside:
            print(title, flush=True)
            statuses.append(process.wait())
            said.seek(0)
            sys.stdout.buffer.write(said.read())
            sys.stdout.flush()
    failed = [status for status in statuses if status not in (0, NOTHING_CHOSEN)]
    return failed[0] if failed else min(statuses)


def _marks(arguments: list[str]) -> tuple[str, list[str]]:
    """Take the choice by markers out of the arguments: the last one counts, as for pytest."""
    chosen, others = "", list(arguments)
    while "-m" in others:
        place = others.index("-m")
        chosen = others[place + 1]
        del others[place : place + 2]
    return chosen, others


def _command(marks: str, chosen: str, arguments: list[str]) -> list[str]:
    both = f"{marks} and ({chosen})" if chosen else marks
    return [sys.executable, "-m", "pytest", "-m", both, *arguments]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
