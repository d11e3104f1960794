"""Run published experiments and write their figures: `python -m experiments [SCENARIO ...]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from experiments.published import write_figures
from experiments.scenarios import SCENARIOS, find
from whimbrel.cli.progress import ProgressBar
from whimbrel.errors import SimulationError


def main() -> None:
    """Run the scenarios that were asked for, or all, each with its defaults and into a folder of its own."""
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SCENARIO", help="which ones; without a name, all")
    parser.add_argument("--out", type=Path, default=Path("out/experiments"), help="where the folders go")
    options = parser.parse_args()
    try:
        chosen = [find(name) for name in options.names or SCENARIOS]
    except SimulationError as error:
        parser.error(str(error))
    for number, scenario in enumerate(chosen, 1):
        print(f"{scenario.name} ({number} of {len(chosen)}): {scenario.help}", file=sys.stderr)
        parameters = scenario.settings({})
        with ProgressBar(doing=("simulating", "writing")) as bar:
            results = scenario.run(parameters, bar)
        write_figures(scenario.name, parameters, results, options.out / scenario.name)
    print(f"written: {options.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
