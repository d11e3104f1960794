"""Measure planning: how near to the optimum plans are, how long they take, and how they do on real networks.

Prints tables; `--write` puts them into docs/benchmarks-planning.md, and draws the curves to docs/images.
The part on real networks needs recordings that are not in the repository (WHIMBREL_DATA names their folder);
without them it is left out, and stays as it is in the docs.
"""

from __future__ import annotations

import argparse
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import real
import speed

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"
PAGE = DOCS / "benchmarks-planning.md"
END = "<!-- end of figures -->"
GAPS = {
    "placement": "greedy_gap.py",
    "flow": "flow_gap.py",
    "push and pull": "pushpull_gap.py",
    "migration": "migration_gap.py",
}
"""What is planned, and the script that compares the heuristics for it with the optimum."""
COLUMNS: dict[str, tuple[str, ...]] = {
    "median": ("median",),
    "90 % within": ("90 %",),
    "worst": ("worst",),
    "optimal": ("optim",),
    "valid": ("valid", "possible", "breaks"),
}
"""The columns of the table of all, and what the scripts call them."""


def main() -> None:
    """Run the parts that were asked for and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="gaps,speed,real", help="which parts, such as gaps,speed")
    parser.add_argument("--write", action="store_true", help="put the tables and curves into the docs")
    options = parser.parse_args()
    for part in options.only.split(","):
        table = PARTS[part](options.write)
        if table is None:
            print(f"{part}: left out, as the recordings are not there", file=sys.stderr)
            continue
        print(table + "\n", flush=True)
        if options.write:
            write(part, table)


def gaps(_: bool) -> str:
    """Put the tables of all scripts together to one."""
    lines = [
        "| above the optimum | problems | " + " | ".join(COLUMNS) + " |",
        "|---" * (2 + len(COLUMNS)) + "|",
    ]
    for what, script in GAPS.items():
        lines += rows_of(what, first_table(script))
    return "\n".join(lines)


def first_table(script: str) -> str:
    """Give what a script prints up to the end of its first table; it is not asked for more."""
    found: list[str] = []
    running = subprocess.Popen(
        [sys.executable, "-u", str(HERE / script)], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert running.stdout is not None
    for line in running.stdout:
        if found and found[-1].startswith("|") and not line.startswith("|"):
            break
        print(line, end="", file=sys.stderr, flush=True)
        found.append(line)
    else:
        if running.wait():
            raise SystemExit(f"{script} failed")
    running.terminate()
    running.wait()
    return "".join(found)


def rows_of(what: str, text: str) -> list[str]:
    """Make rows of the table of all from what a script printed."""
    count = re.search(r"([\d,]+) problems", text)
    problems = int(count[1].replace(",", "")) if count else 0
    head, _, *rows = [_cells(line) for line in text.splitlines() if line.startswith("|")]
    places = {
        column: next((n for n, name in enumerate(head) if n and any(word in name for word in words)), None)
        for column, words in COLUMNS.items()
    }
    found = []
    for row in rows:
        if row[0].startswith("exact"):
            continue
        cells = {column: "-" if place is None else row[place] for column, place in places.items()}
        if places["valid"] is not None and "breaks" in head[places["valid"]]:
            cells["valid"] = f"{1 - int(cells['valid']) / problems:.0%}"
        found.append(f"| {what}: {row[0]} | {problems} | " + " | ".join(cells.values()) + " |")
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def times(is_drawn: bool) -> str:
    """Take the curves, and draw them for the docs."""
    curves = speed.measure()
    if is_drawn:
        speed.draw(curves, DOCS / "images")
    return "\n\n".join([speed.tables(curves), speed.end_to_end(), speed.simulator()])


def on_real_networks(_: bool) -> str | None:
    """Plan on operators' networks and over recorded contacts, if the recordings are there."""
    data = real.data_folder()
    return None if data is None else real.operators(data) + "\n\n" + real.meetings(data)


def write(part: str, table: str) -> None:
    """Put a table between its marks in the docs page."""
    begin = f"<!-- figures: {part}, made by `make bench-planning ARGS=--write` -->"
    head, rest = PAGE.read_text(encoding="utf-8").split(begin)
    about = f"Python {platform.python_version()}, one core of {platform.machine()}."
    tail = rest.split(END, 1)[1]
    PAGE.write_text(f"{head}{begin}\n\n{about}\n\n{table}\n\n{END}{tail}", encoding="utf-8")


PARTS: dict[str, Callable[[bool], str | None]] = {"gaps": gaps, "speed": times, "real": on_real_networks}

if __name__ == "__main__":
    main()
