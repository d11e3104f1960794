"""Contacts that were recorded: who was in reach of whom, and when. Of these, links are made.

A trace is a CSV or Parquet file with the columns `a`, `b`, `start` and `end`, a row for each contact. Times
are seconds since the start of a run, or timestamps: those become seconds since the first of the file. Both
ends may have seen the same contact, and long ones may be cut into pieces: what overlaps or touches is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from whimbrel.errors import NetworkError
from whimbrel.plan.contacts import ContactPlan
from whimbrel.plan.tracks import column_named, is_stamped, seconds, table_of

Contact = tuple[str, str, float, float]
"""Both ends, start and end in seconds."""
Pair = tuple[str, str]
WHAT, COLUMNS = "contacts", ("a", "b", "start", "end")


def read_contacts(file: Path) -> dict[Pair, ContactPlan]:
    """Read who was in contact with whom and when, from a CSV or Parquet file.

    Raises
    ------
    NetworkError
        If columns are missing, or times make no sense.
    """
    table = table_of(file)
    a, b, start, end = (
        table.column(column_named(table, name, WHAT, "a, b, start and end")) for name in COLUMNS
    )
    starts, ends = seconds(start, "start", WHAT), seconds(end, "end", WHAT)
    if is_stamped(start) != is_stamped(end):
        raise NetworkError("of start and end, one holds timestamps and the other does not")
    if is_stamped(start) and len(starts):
        starts, ends = starts - starts.min(), ends - starts.min()
    names = ([str(each) for each in column.to_pylist()] for column in (a, b))
    return contacts_from(zip(*names, starts.tolist(), ends.tolist(), strict=True))


def contacts_from(rows: Iterable[Contact]) -> dict[Pair, ContactPlan]:
    """Put contacts together, whoever of the two saw them: what overlaps or touches is one.

    Moments without length, and contacts of somebody with itself, are left out: nothing can be sent in them.
    The order is that in which the pairs come first.

    Examples
    --------
    >>> contacts_from([("ann", "bob", 0, 60), ("bob", "ann", 50, 90), ("ann", "bob", 200, 200)])
    {('ann', 'bob'): ContactPlan(times=((0, 90),))}
    """
    seen: dict[Pair, list[tuple[float, float]]] = {}
    for a, b, start, end in rows:
        if not 0 <= start <= end:
            raise NetworkError(
                f"the contact of {a!r} and {b!r} from {start:g} s to {end:g} s ends before it begins, or "
                "begins before 0",
                "give times in seconds since the start of a run, or timestamps",
            )
        if a != b and start < end:
            seen.setdefault((b, a) if (b, a) in seen else (a, b), []).append((start, end))
    return {pair: ContactPlan(_merged(times)) for pair, times in seen.items()}


def _merged(times: list[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    merged: list[tuple[float, float]] = []
    for start, end in sorted(times):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)
