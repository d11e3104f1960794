"""Record what Flink CEP finds for random patterns, so that tests can compare with it where there is no Java.

    .venv/bin/python tools/flink/record.py [--count 1500] [--out tests/steps/golden/flink.jsonl.gz]

Each line has the `seed` that the pattern and its events come from, both of them, and Flink's `matches` and
`timeouts`. The same seeds give the same file. Patterns that Flink refuses are left out; so are most of those
for which it finds nothing, which prove little, and those for which it finds very much.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT), str(Path(__file__).parent)]

from oracle import Oracle  # noqa: E402 - a script, found by the line above
from tests.reference.random_steps import for_flink  # noqa: E402 - the same

OUT = ROOT / "tests" / "steps" / "golden" / "flink.jsonl.gz"
MOST_MATCHES = 40
EMPTY_ONE_IN = 3
"""Of how many patterns without a match one is kept."""

Json = dict[str, Any]


def recordings() -> Iterator[Json]:
    """Ask Flink about one pattern after the other, for ever."""
    with Oracle() as flink:
        for seed in itertools.count(1):
            asked, given = for_flink(Random(seed))
            answer = flink.answer(asked, given)
            if is_kept(seed, answer):
                found = {"matches": answer["matches"], "timeouts": answer["timeouts"]}
                yield {"seed": seed, "pattern": asked, "events": given} | found


def is_kept(seed: int, answer: Json) -> bool:
    """Tell whether an answer is worth its place."""
    if answer["error"] is not None or len(answer["matches"]) > MOST_MATCHES:
        return False
    return bool(answer["matches"]) or seed % EMPTY_ONE_IN == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1500, help="how many patterns to record")
    parser.add_argument("--out", type=Path, default=OUT, help="the file to write")
    options = parser.parse_args()
    kept = list(itertools.islice(recordings(), options.count))
    lines = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in kept)
    options.out.write_bytes(gzip.compress(lines.encode(), mtime=0))
    matching = sum(bool(each["matches"]) for each in kept)
    timing_out = sum(bool(each["timeouts"]) for each in kept)
    print(f"{len(kept)} patterns, {matching} with matches, {timing_out} with timeouts: {options.out}")


if __name__ == "__main__":
    main()
