"""Tell tankers and pilots what the ships around them are up to, in plain words.

Without a file it takes the invented sample of this folder; `--events` takes a recording with these columns.

python examples/port/run.py
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import whimbrel as wb

HERE = Path(__file__).parent


def main() -> None:
    arguments = parse_arguments()
    query, events = wb.read(HERE / "port.wbl"), pq.read_table(arguments.events)
    told = tell(query, events)
    for row in told.filter(pc.field("change") != "kept").to_pylist():
        print(f"{row['told']:%H:%M:%S}  {row['query']:6}  {row['focal']:9}  {how(row):9}{what(row)}")
    kept = told.num_rows - told.filter(pc.field("change") != "kept").num_rows
    print(f"and {kept} times that something is still so, as a ship has moved on")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=Path, default=HERE / "port.parquet", help="positions of ships")
    return parser.parse_args()


def tell(query: wb.Query, events: pa.Table) -> pa.Table:
    """Give everything that is told until the recording ends.

    A session is not closed, as `wb.detect` would do: nobody has gone dark because a recording has ended.
    """
    session = wb.Session(query)
    steps = [session.push(events), session.advance(pc.max(events["t"]).as_py())]
    return pa.concat_tables([step for step in steps if step.num_rows], promote_options="permissive")


def how(row: dict[str, Any]) -> str:
    if row["change"] == "removed":
        return "no more"
    return "live" if row["live"] else "history"


def what(row: dict[str, Any]) -> str:
    match row["type"]:
        case "Drifting":
            return f"{row['ship']} drifts since {row['since']:%H:%M}{since(row)}"
        case "Dark":
            return f"{row['ship']} has not been heard of for ten minutes{since(row)}"
        case _:
            return f"{row['one']} and {row['other']} lie side by side{since(row)}"


def since(row: dict[str, Any]) -> str:
    minutes = (row["told"] - row["end"]).total_seconds() / 60
    return "" if row["live"] or row["change"] == "removed" else f", known for {minutes:.0f} min"


if __name__ == "__main__":
    main()
