"""Run the tests in two processes at once: the shared suite and what has a Spark session, and all others.

Takes pytest's arguments. What the first process says is shown when the second is through.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

LANE = "spark or suite"
"""The marks of the tests that run in the first process."""

NOTHING_CHOSEN = 5
"""The status of pytest if no test was chosen."""


def main(arguments: list[str]) -> int:
    """Run both; the status is that of the first that failed."""
    chosen, arguments = _marks(arguments)
    with tempfile.TemporaryFile() as said:
        first = subprocess.Popen(_command(LANE, chosen, arguments), stdout=said, stderr=said)
        try:
            rest = subprocess.run(_command(f"not ({LANE})", chosen, arguments), check=False).returncode
            print("The shared suite and the tests with Spark", flush=True)
            beside = first.wait()
        finally:
            first.terminate()
        said.seek(0)
        sys.stdout.buffer.write(said.read())
    failed = [status for status in (rest, beside) if status not in (0, NOTHING_CHOSEN)]
    return failed[0] if failed else min(rest, beside)


def _marks(arguments: list[str]) -> tuple[str, list[str]]:
    """Take the choice by markers out of the arguments: the last one counts, as for pytest."""
    chosen, others = "", list(arguments)
    while "-m" in others:
        place = others.index("-m")
        chosen = others[place + 1]
        del others[place : place + 2]
    return chosen, others


def _command(lane: str, chosen: str, arguments: list[str]) -> list[str]:
    marks = f"({lane}) and ({chosen})" if chosen else lane
    return [sys.executable, "-m", "pytest", "-m", marks, *arguments]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
