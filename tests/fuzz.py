"""Throw random and damaged input at everything that reads: queries, tests of queries and event files.

Run it with `make fuzz`, or `make fuzz ARGS="5000 7"` for 5,000 examples of each kind from seed 7. It stops by
itself; anything but one of the project's own errors is a failure.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.io.fuzz_readers import fuzz as fuzz_readers

from whimbrel.errors import WhimbrelError
from whimbrel.lang.wbl import compile_text, format_text
from whimbrel.testing import parse_tests

WORDS = """
define detect where assign group by within then and or not as first last each every over aggr consuming
context case event region param coordinates plane lonlat Subscription seq from to having until for is null in
between A B C Position speed a b 1 5 s min km 0.5 'x' ( ) { } , . : = < > <= != + - * / %
<pre> <post> # // ; " '
""".split()  # noqa: SIM905 (a list of quoted words could not be read)


SCENARIO = """\
query late.wbl  # the query
param limit = 30 min
start 2024-05-01T08:00:00Z
test a truck is late
  +5s..+8s  Leave  truck=A load=2 k='it\\'s' at (3, -4.5) source bus-4 as e1
  advance to +1h
  expect 3 Late truck=A at (3, 4) from +0s to +1h events e1 e2
  expect 1 late event
  end
  not Early at +5s
  allow others
"""


def fuzz_texts(
    what: str, valid: list[str], readers: Sequence[Callable[[str], object]], examples: int, seed: int
) -> None:
    """Read random texts and damaged ones."""
    rng = random.Random(seed)
    slowest = 0.0
    for number in range(examples):
        text = _random_text(rng) if number % 2 else _damaged(rng, rng.choice(valid))
        begin = time.perf_counter()
        for read in readers:
            try:
                read(text)
            except WhimbrelError:
                pass
            except BaseException:
                sys.stderr.write(f"example {number} of seed {seed}:\n{text!r}\n")
                raise
        slowest = max(slowest, time.perf_counter() - begin)
    sys.stdout.write(f"{what}: {examples:,} texts, only our own errors; the slowest took {slowest:.2f} s\n")


def _random_text(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return "".join(chr(rng.randrange(1, 0x250)) for _ in range(rng.randrange(200)))
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(60)))


def _damaged(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(text) + 1)
        what = rng.randrange(4)
        if what == 0:
            text = text[:at] + text[at + rng.randrange(1, 8) :]
        elif what == 1:
            text = text[:at] + rng.choice(WORDS) + text[at:]
        elif what == 2:
            text = text[:at] + chr(rng.randrange(1, 0x10000)) + text[at:]
        else:
            text = text[:at] + text[rng.randrange(len(text) + 1) :][:40] + text[at:]
    return text.encode("utf-8", "replace").decode("utf-8")


def main() -> None:
    """Fuzz with the number of examples and the seed given, or 2,000 and 1."""
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    queries = [path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("*.wbl")]
    fuzz_texts("language", queries, (compile_text, format_text), examples, seed)
    fuzz_texts("tests of queries", [SCENARIO], (parse_tests,), examples, seed)
    readable = fuzz_readers(examples, seed)
    sys.stdout.write(
        f"event files: {examples:,} damaged ones, only our own errors; {readable:,} could be read\n"
    )


if __name__ == "__main__":
    main()
