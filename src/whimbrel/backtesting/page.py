"""A backtest as one HTML page that needs nothing else, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.backtesting.compare import BEFORE, CHANGE, SAME
from whimbrel.backtesting.counting import DetectionSummary, summary_of
from whimbrel.backtesting.keys import KEY
from whimbrel.backtesting.text import summary_lines
from whimbrel.model.time import format_instant
from whimbrel.model.words import many

if TYPE_CHECKING:
    from whimbrel.backtesting.backtest import Backtest

MOST_KEYS, MOST_ROWS = 200, 500
"""How many rows of long lists stand on a page; it tells how many more there are."""

_STYLE = """
.whimbrel-backtest { font: 14px/1.5 system-ui, sans-serif; color: #222; max-width: 900px }
.whimbrel-backtest svg { max-width: 100%; height: auto }
.whimbrel-backtest table { border-collapse: collapse; margin: .5em 0 1em }
.whimbrel-backtest th, .whimbrel-backtest td { padding: 2px 10px; text-align: left }
.whimbrel-backtest tr { border-bottom: 1px solid #ddd }
.whimbrel-backtest td.number, .whimbrel-backtest th.number { text-align: right }
.whimbrel-backtest pre { background: #f5f5f5; padding: 10px; overflow-x: auto }
.whimbrel-backtest tr.added td:first-child { border-left: 4px solid #4c9a5c }
.whimbrel-backtest tr.dropped td:first-child { border-left: 4px solid #c25757 }
.whimbrel-backtest tr.changed td:first-child { border-left: 4px solid #e0a93b }
"""


def page(result: Backtest) -> str:
    """Write the whole page."""
    title = escape(f"Backtest: {' against '.join(_names(result))}")
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"</head>\n<body>\n{fragment(result)}\n</body>\n</html>\n"
    )


def fragment(result: Backtest) -> str:
    """Write what stands on the page, for a notebook too."""
    parts = [f"<style>{_STYLE}</style>", *_head(result), result.to_svg()]
    by_type, by_key, by_day = result.by_type(), result.by_key(), result.by_day()
    parts += ["<h3>By type</h3>", _table(by_type)]
    parts += ["<h3>By key</h3>", _table(_local(by_key, result), MOST_KEYS, "key")]
    parts += [f"<h3>By day ({escape(result.zone.name)})</h3>", _folded(_table(by_day), by_day.num_rows)]
    parts += _list(result)
    for name, query in zip(_names(result), (result.query, result.against), strict=False):
        if query is not None and query.text:
            parts += [f"<h3>{escape(name)}</h3>", f"<pre>{escape(query.text)}</pre>"]
    return '<div class="whimbrel-backtest">\n' + "\n".join(parts) + "\n</div>"


def _names(result: Backtest) -> list[str]:
    """Name the queries: which is old and which new, where there are two."""
    if not result.is_comparison:
        return [result.names[0] if result.names[0] != "old" else "the query"]
    pairs = zip(("old", "new"), result.names, strict=True)
    return [role if name == role else f"{role} ({name})" for role, name in pairs]


def _head(result: Backtest) -> list[str]:
    if not result.is_comparison:
        first, *others = summary_lines(summary_of(result.detection_counts.old, result.zone), result)
        return [f"<h2>{escape(first)}</h2>", *(f"<div>{escape(line.strip())}</div>" for line in others)]
    changes = ", ".join(f"{count:,} {kind}" for kind, count in result.changes.items())
    old, new = (escape(name) for name in _names(result))
    counts = (
        f"{old}: {many(result.detections.num_rows, 'detection')}; "
        f"{new}: {many(result.new_detections.num_rows, 'detection')}"
    )
    return [f"<h2>New against old: {changes}</h2>", f"<div>{counts}</div>"]


def _local(table: pa.Table, result: Backtest) -> pa.Table:
    """Write the times of a table in local time."""
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            moments = table.column(field.name).cast(pa.int64()).to_pylist()
            texts = [result.zone.written(moment) for moment in moments[:MOST_ROWS]]
            texts += [""] * (len(moments) - len(texts))
            table = table.set_column(number, field.name, pa.array(texts, pa.string()))
    return table


def _list(result: Backtest) -> list[str]:
    """List the detections, or what the new query changes."""
    counted = result.detection_counts
    table = counted.old if counted.both is None else counted.both
    title, names = "Detections", ["end", "type", KEY, "events", "id"]
    if result.is_comparison:
        table = table.filter(pc.not_equal(table.column(CHANGE), SAME))
        title, names = "Differences", [CHANGE, "end", "type", KEY, BEFORE, "events", "id"]
    shown = table.select(names).slice(0, MOST_ROWS)
    events = [_some(ids) for ids in shown.column("events").to_pylist()]
    shown = shown.set_column(names.index("events"), "events", pa.array(events, pa.string()))
    shown = _local(shown, result).rename_columns(["key" if name == KEY else name for name in names])
    more = table.num_rows - shown.num_rows
    rest = [f"<div>and {more:,} more</div>"] if more else []
    return [f"<h3>{title}</h3>", _folded(_table(shown), shown.num_rows), *rest] if shown.num_rows else []


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f", and {len(ids) - 5:,} more" if len(ids) > 5 else "")


def _folded(text: str, rows: int) -> str:
    """Hide a long table until somebody asks for it."""
    if rows <= 31:
        return text
    return f"<details><summary>{many(rows, 'row')}</summary>{text}</details>"


def _table(table: pa.Table, most: int | None = None, what: str = "row") -> str:
    """Write a table, at most so many rows of it."""
    is_number = [pa.types.is_integer(field.type) for field in table.schema]
    heads = [_cell(name, "th", right) for name, right in zip(table.column_names, is_number, strict=True)]
    lines = ["<table>", f"<tr>{''.join(heads)}</tr>"]
    for row in table.slice(0, most).to_pylist():
        mark = f' class="{row[CHANGE]}"' if CHANGE in row else ""
        cells = [
            _cell(_shown(value), "td", right) for value, right in zip(row.values(), is_number, strict=True)
        ]
        lines.append(f"<tr{mark}>{''.join(cells)}</tr>")
    lines.append("</table>")
    more = 0 if most is None else table.num_rows - most
    return "\n".join([*lines, f"<div>and {many(more, f'more {what}')}</div>"] if more > 0 else lines)


def _cell(text: str, tag: str, is_number: bool) -> str:
    mark = ' class="number"' if is_number else ""
    return f"<{tag}{mark}>{escape(text)}</{tag}>"


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)


# -- JSON -------------------------------------------------------------------------------------------------


def as_json(result: Backtest) -> str:
    """Write counts and what stands out as JSON."""
    report: dict[str, Any] = {"timezone": result.zone.name, "queries": _queries(result)}
    if result.is_comparison:
        report["changes"] = result.changes
    for name in ("by_type", "by_day", "by_hour", "by_key"):
        report[name] = getattr(result, name)().to_pylist()
    return json.dumps(report, indent=2, ensure_ascii=False, default=_plain) + "\n"


def _queries(result: Backtest) -> list[dict[str, Any]]:
    counted = result.detection_counts
    parts = [("old" if result.is_comparison else "query", counted.old, result.counts, result.query)]
    if counted.new is not None and result.new_counts is not None and result.against is not None:
        parts.append(("new", counted.new, result.new_counts, result.against))
    queries = []
    for (role, table, counts, query), name in zip(parts, result.names, strict=False):
        events = {
            key: getattr(counts, key) for key in ("received", "processed", "late", "duplicate", "rejected")
        }
        summary = _summary(summary_of(table, result.zone))
        queries.append({"role": role, "name": name, "text": query.text, "events": events, **summary})
    return queries


def _summary(summary: DetectionSummary) -> dict[str, Any]:
    return {
        "detections": summary.count,
        "first": None if summary.first is None else format_instant(summary.first),
        "last": None if summary.last is None else format_instant(summary.last),
        "days": summary.days,
        "longest_gap": None if summary.gap is None else [*map(format_instant, summary.gap)],
        "busiest_day": None if summary.busiest is None else summary.busiest[0],
        "on_busiest_day": None if summary.busiest is None else summary.busiest[1],
    }


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert isinstance(value, date)
    return value.isoformat()
