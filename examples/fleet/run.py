"""Tell trucks with dangerous goods of fires and jams around them; one is put on the list on its way.

python examples/fleet/run.py
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import whimbrel as wb

HERE = Path(__file__).parent
LOADED = datetime(2025, 3, 3, 14, 20, tzinfo=UTC)
"""When MILK-5 takes in a tank of cleaning acid, and ADR-3 has unloaded."""


def main() -> None:
    events = pq.read_table(HERE / "fleet.parquet")
    session = wb.Session(wb.read(HERE / "fleet.wbl"))
    before = pc.less(events["time"], pa.scalar(LOADED))
    show(session.push(events.filter(before)))
    session.follow([wb.ListedObject("MILK-5", radius_m="1500 m")])
    session.unfollow(["ADR-3"])
    print(f"{LOADED:%H:%M:%S}  MILK-5 is on the list now, and ADR-3 is not")
    show(session.push(events.filter(pc.invert(before))))
    show(session.close())


def show(told: pa.Table) -> None:
    for row in told.to_pylist():
        what = f"fire at the {row['place']}" if row["type"] == "Fire" else f"jam of {row['cars']} cars"
        minutes = (row["told"] - row["end"]).total_seconds() / 60
        when = "live" if row["live"] else f"from history, {minutes:.0f} min old"
        print(f"{row['told']:%H:%M:%S}  {row['focal']:6} is told: {what}, {when}")


if __name__ == "__main__":
    main()
