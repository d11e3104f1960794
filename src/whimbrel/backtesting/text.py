"""A backtest in lines of text, with bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.backtesting.compare import ADDED, BEFORE, CHANGE, CHANGED, DROPPED
from whimbrel.backtesting.counting import DetectionSummary, bins_over, summary_of
from whimbrel.backtesting.keys import KEY
from whimbrel.model.time import SECOND, format_duration
from whimbrel.model.words import many

if TYPE_CHECKING:
    from whimbrel.backtesting.backtest import Backtest

TOP = 10
"""How many of a long list are shown."""
BINS = 31
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SIGNS = {ADDED: "+", DROPPED: "-", CHANGED: "~"}


def summary(result: Backtest, width: int = 80) -> str:
    """Say what a backtest detected."""
    lines = list(_compared(result, width) if result.is_comparison else _alone(result, width))
    return "\n".join(line.rstrip() for line in lines)


def _alone(result: Backtest, width: int) -> Iterator[str]:
    counted = result.detection_counts
    yield from summary_lines(summary_of(counted.old, result.zone), result)
    if not counted.old.num_rows:
        return
    if len(types := result.by_type()) > 1:
        yield from ["", "by type", *_listed(types, "type", width)]
    yield from _over_time(result, width)
    yield from ["", "by key", *_keys(result.by_key())]


def _compared(result: Backtest, width: int) -> Iterator[str]:
    counted, changes = result.detection_counts, result.changes
    assert counted.new is not None
    assert counted.both is not None
    for role, name, table in zip(("old", "new"), result.names, (counted.old, counted.new), strict=True):
        shown = "" if name == role else f" ({name})"
        yield f"{role}{shown}: {many(table.num_rows, 'detection')}"
    yield "new against old: " + ", ".join(f"{count:,} {kind}" for kind, count in changes.items())
    if not counted.both.num_rows:
        return
    yield from ["", "by type", *_columns(_with_text(result.by_type(), "type"))]
    yield from _over_time(result, width)
    yield from ["", "by key", *_keys(result.by_key())]
    yield from _differences(result)


# -- what stands out -------------------------------------------------------------------------------------


def summary_lines(summary: DetectionSummary, result: Backtest) -> Iterator[str]:
    """Say what stands out."""
    if summary.first is None or summary.last is None or summary.busiest is None:
        yield "no detections"
        return
    written = result.zone.written
    days = many(summary.days, "day")
    rate = f", {summary.count / summary.days:,.1f} a day" if summary.days > 1 else ""
    yield f"{many(summary.count, 'detection')} in {days}{rate}"
    yield f"  first        {written(summary.first)} {result.zone.name}"
    yield f"  last         {written(summary.last)} {result.zone.name}"
    if summary.gap is not None:
        begin, end = summary.gap
        length = format_duration((end - begin) // SECOND * SECOND)
        yield f"  longest gap  {length}, from {written(begin)} to {written(end)}"
    day, count = summary.busiest
    yield f"  busiest day  {day}: {count:,}"


# -- bars -------------------------------------------------------------------------------------------------


def bar(share: float, width: int) -> str:
    """Draw a bar that fills a share of the width, to the eighth of a character.

    >>> bar(0.5, 7)
    '███▌'
    """
    eighths = round(share * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _over_time(result: Backtest, width: int) -> Iterator[str]:
    tables = result.detection_counts.columns
    bins = bins_over(list(tables.values()), result.zone, BINS)
    if bins is None:
        return
    counted = {name: bins.counts(table).tolist() for name, table in tables.items()}
    yield from ["", f"by {bins.unit}", *_bars(bins.labels, counted, width)]
    hours = result.by_hour()
    labels = [f"{hour:02}:00" for hour in range(24)]
    counted = {name: hours.column(name).to_pylist() for name in hours.column_names[1:]}
    busy = [hour for hour in range(24) if any(counts[hour] for counts in counted.values())]
    # Outside the busy hours there is nothing to see.
    shown = slice(busy[0], busy[-1] + 1)
    cut = {name: counts[shown] for name, counts in counted.items()}
    yield from ["", "by hour of day", *_bars(labels[shown], cut, width)]


def _listed(table: pa.Table, name: str, width: int) -> list[str]:
    counted = {column: table.column(column).to_pylist() for column in table.column_names if column != name}
    return _bars(table.column(name).to_pylist(), counted, width)


def _bars(labels: Sequence[str], counted: dict[str, list[int]], width: int) -> list[str]:
    """Draw a bar for every label: of detections, or of what the new query finds, with the differences."""
    leading = counted.get("detections") or counted["new"]
    texts = _tails(counted)
    widest = max(len(label) for label in labels)
    room = max(10, width - widest - 6 - max(len(text) for text in texts))
    most = max(*leading, 1)
    return [
        f"  {label:<{widest}}  {bar(count / most, room):<{room}}  {text}"
        for label, count, text in zip(labels, leading, texts, strict=True)
    ]


def _tails(counted: dict[str, list[int]]) -> list[str]:
    """Write the numbers behind the bars: `12`, or `12  +3 -1 ~2`."""
    leading = counted.get("detections") or counted["new"]
    widest = max(len(f"{count:,}") for count in leading)
    tails = []
    for row, count in enumerate(leading):
        marks = [
            f"{sign}{counted[kind][row]:,}"
            for kind, sign in _SIGNS.items()
            if kind in counted and counted[kind][row]
        ]
        tails.append(f"{count:>{widest},}  {' '.join(marks)}".rstrip())
    return tails


# -- lists ------------------------------------------------------------------------------------------------


def _keys(table: pa.Table) -> list[str]:
    shown = table.slice(0, TOP)
    names = [name for name in table.column_names if name not in ("first", "last")]
    if len(set(table.column("type").to_pylist())) == 1:
        names.remove("type")
    lines = _columns(shown.select(names))
    more = table.num_rows - shown.num_rows
    return [*lines, f"  and {many(more, 'more key')}"] if more else lines


def _with_text(table: pa.Table, name: str) -> pa.Table:
    return table.set_column(0, name, table.column(name).cast(pa.string()))


def _columns(table: pa.Table) -> list[str]:
    """Write a table: texts to the left, numbers to the right, names above."""
    is_text = [pa.types.is_string(field.type) for field in table.schema]
    rows = [list(table.column_names)]
    rows += [[_written(value) for value in row.values()] for row in table.to_pylist()]
    if table.column_names[-1] == "detections" and sum(is_text) == len(is_text) - 1:
        rows = rows[1:]  # the only number needs no name
    widths = [max(len(row[column]) for row in rows) for column in range(len(is_text))]
    return [
        "  "
        + "  ".join(
            f"{value:<{wide}}" if text else f"{value:>{wide}}"
            for value, wide, text in zip(row, widths, is_text, strict=True)
        )
        for row in rows
    ]


def _written(value: str | int) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _differences(result: Backtest) -> Iterator[str]:
    both = result.detection_counts.both
    assert both is not None
    for kind in (ADDED, DROPPED, CHANGED):
        rows = both.filter(pc.equal(both.column(CHANGE), kind))
        if not rows.num_rows:
            continue
        yield ""
        yield kind
        shown = rows.slice(0, TOP)
        shown = shown.set_column(shown.column_names.index("end"), "end", shown.column("end").cast(pa.int64()))
        for row in shown.to_pylist():
            moment = result.zone.written(row["end"])
            before = f"  before: {row[BEFORE]}" if row[BEFORE] else ""
            events = ", ".join(row["events"][:3]) + (", ..." if len(row["events"]) > 3 else "")
            yield f"  {moment}  {row['type']}  {row[KEY]}  {events}{before}"
        if rows.num_rows > TOP:
            yield f"  and {rows.num_rows - TOP:,} more"
