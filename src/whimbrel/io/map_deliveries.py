"""What a map shows of deliveries: whose interests were where, and what each object sees at any time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from whimbrel.model.deliveries import AREA

if TYPE_CHECKING:
    import pyarrow as pa

Outline = Callable[[Any], dict[str, Any]]
"""Gives the rings, the box and the centre of a shape on the map."""
MAX_INTERESTS = 5_000
_SHOWN = ("query", "focal", "interest", "live", "change")


@dataclass(frozen=True)
class DeliveryRows:
    """The columns of deliveries, row by row; times in microseconds."""

    rows: Sequence[Mapping[str, Any]]
    told: Sequence[int]
    begun: Sequence[int]
    areas: pa.ChunkedArray | None
    """Where the interests are; read where it is needed only, as many rows are of one."""

    @classmethod
    def of(cls, table: pa.Table) -> DeliveryRows:
        """Read them."""
        import pyarrow as pa

        areas = table[AREA] if AREA in table.column_names else None
        told, begun = (table[name].cast(pa.int64()).to_pylist() for name in ("told", "interest_start"))
        return cls(table.select(["id", *_SHOWN]).to_pylist(), told, begun, areas)

    def focals(self) -> list[tuple[str, str]]:
        """List whom the queries follow: the query and the key of each."""
        return sorted({_focal(row) for row in self.rows if row["focal"] is not None})


def notes_told(table: DeliveryRows | None) -> list[str]:
    """Say what the map cannot show of interests."""
    if table is None or table.areas is None:
        return []
    notes = ["Interests in which nothing was told are not in the deliveries, and not shown."]
    count = len({(_focal(row), row["interest"]) for row in table.rows})
    if count > MAX_INTERESTS:
        notes.append(f"The first {MAX_INTERESTS:,} of {count:,} interests are shown.")
    return notes


def _focal(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row["query"]), str(row["focal"])


def interests_shown(table: DeliveryRows, first: int, last: int, outline: Outline) -> list[dict[str, Any]]:
    """List the interests that anything was told in, with their outlines; times in ms since `first`.

    An interest lasts until the next one of its object begins. Where nothing was told in that one, it is shown
    as long as something was told in it: nobody knows from the deliveries when it ended.
    """
    import shapely

    found: dict[tuple[tuple[str, str], int], dict[str, Any]] = {}
    if table.areas is None:
        return []
    for place, (row, told, begun) in enumerate(zip(table.rows, table.told, table.begun, strict=True)):
        if row["focal"] is None:
            continue
        which = _focal(row), row["interest"]
        each = found.setdefault(which, {"begun": begun, "told": told, "place": place})
        each["told"] = max(each["told"], told)
    numbers = {focal: number for number, focal in enumerate(table.focals())}
    latest: dict[tuple[str, str], int] = {}
    for owner, number in found:
        latest[owner] = max(number, latest.get(owner, 0))
    shown = []
    chosen = sorted(found.items(), key=lambda item: item[1]["begun"])[:MAX_INTERESTS]
    for (focal, number), each in chosen:
        follower = found.get((focal, number + 1))
        until = follower["begun"] if follower else last + 1 if number == latest[focal] else each["told"] + 1
        shape = outline(shapely.from_wkb(table.areas[each["place"]].as_py()))
        times = {"from": (each["begun"] - first) / 1000, "until": (until - first) / 1000}
        shown.append({"focal": numbers[focal], "number": number, **times, **shape})
    return shown


def times_seen(table: DeliveryRows, first: int, last: int) -> list[dict[str, Any]]:
    """Tell from when to when the object sees what each row tells it; in ms since `first`.

    Where changes are delivered, until it is told again what became of it, or the end. Otherwise until the
    next interest of the object that anything was told in.
    """
    changing = {str(row["query"]) for row in table.rows if row["change"] in ("kept", "removed")}
    again: dict[tuple[tuple[str, str], str], int] = {}
    begins: dict[tuple[str, str], dict[int, int]] = {}
    for row, begun in zip(table.rows, table.begun, strict=True):
        if row["focal"] is not None:
            begins.setdefault(_focal(row), {})[row["interest"]] = begun
    ends = {focal: _followers(of, last) for focal, of in begins.items()}
    seen: list[dict[str, Any]] = []
    for row, told in zip(reversed(table.rows), reversed(table.told), strict=True):
        if row["focal"] is None:
            seen.append({})
            continue
        focal = _focal(row)
        of_changes = focal[0] in changing
        until = again.get((focal, row["id"]), last + 1) if of_changes else ends[focal][row["interest"]]
        again[focal, row["id"]] = told
        until = told if row["change"] == "removed" else until
        seen.append({"from": (told - first) / 1000, "until": (until - first) / 1000})
    return seen[::-1]


def _followers(begins: Mapping[int, int], last: int) -> dict[int, int]:
    """Tell for each interest of an object when the next one that anything was told in begins."""
    numbers = sorted(begins)
    return {
        number: begins[after] if after is not None else last + 1
        for number, after in zip(numbers, [*numbers[1:], None], strict=True)
    }


def facts_told(row: Mapping[str, Any]) -> dict[str, Any]:
    """Say of a row to whom it is told, for the list beside the map."""
    if row["focal"] is None:
        return {}
    when = "live" if row["live"] else "history"
    to = f"{row['focal']} ({row['query']})"
    return {"told to": to, "interest": row["interest"], "change": f"{row['change']}, {when}"}
