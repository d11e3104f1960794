"""How detections show themselves: as HTML in a notebook, as text in a terminal."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import pyarrow as pa

from whimbrel.io.frames import coordinates_of
from whimbrel.io.map import map_snippet
from whimbrel.model.deliveries import AREA, delivery_columns, has_deliveries
from whimbrel.model.schema import Coordinates
from whimbrel.model.words import many

ROWS = 10
"""Detections that are listed; a last line says how many more there are."""
LONGEST = 40
"""Letters of a value that are shown."""
LONGEST_ID = 9
"""Letters of an id that are shown: enough to tell those on the screen apart."""
MAPPED = 1_000
"""With more detections than this the map is left to `map`: it would make the notebook large."""
MAP_HEIGHT = 420
WIDTH = 100
"""Letters in a line, where there is no terminal that says how many it has."""

_FIRST_OF_DELIVERIES = ("told", "query", "focal", "interest", "live", "change")
_LAST = ("interest_start", "interest_area", "geometry", "events", "id", "delivery")
_STYLE = """
.whimbrel-result { font: 13px/1.5 system-ui, sans-serif; color: inherit }
.whimbrel-result .scroll { overflow-x: auto }
.whimbrel-result table { border-collapse: collapse; margin: .5em 0; font-size: 12px }
.whimbrel-result th, .whimbrel-result td { padding: 3px 10px 3px 0; text-align: left; white-space: nowrap;
  border: 0; border-bottom: 1px solid #8884; background: none; color: inherit }
.whimbrel-result th { font-weight: 600; border-bottom-color: #888a }
.whimbrel-result .number { text-align: right; font-variant-numeric: tabular-nums }
.whimbrel-result .faint { opacity: .65 }
.whimbrel-result ul { margin: .2em 0 .6em; padding-left: 1.4em }
"""


def result_html(table: pa.Table, headline: str, remarks: Sequence[str] = ()) -> str:
    """Write detections for a notebook: a headline, remarks, the first rows, and a map if they have places.

    The colours are those of the page around it, light or dark.
    """
    listed = "".join(f"<li>{escape(remark)}</li>" for remark in remarks)
    return "\n".join(
        [
            f'<style>{_STYLE}</style><div class="whimbrel-result">',
            f"<div><b>{escape(headline)}</b></div>",
            *([f"<ul>{listed}</ul>"] if listed else []),
            *_html_rows(table),
            *_html_map(table),
            "</div>",
        ]
    )


def result_text(table: pa.Table, headline: str, remarks: Sequence[str] = ()) -> str:
    """Write detections for a terminal: a headline, remarks, and the first rows as wide as it is."""
    lines = [headline, *(f"  {remark}" for remark in remarks)]
    if table.num_rows:
        lines += _text_rows(table, shutil.get_terminal_size((WIDTH, 24)).columns)
    return "\n".join(lines)


def _html_rows(table: pa.Table) -> list[str]:
    if not table.num_rows:
        return []
    shown = _columns(table)
    kinds = {name: ' class="number"' if _is_number(table.schema.field(name).type) else "" for name in shown}
    heads = "".join(f"<th{kinds[name]}>{escape(_title(table, name))}</th>" for name in shown)
    rows = [
        "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds.values(), cells, strict=True))
        for cells in zip(*shown.values(), strict=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    more = table.num_rows - ROWS
    return [
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>',
        *([f'<div class="faint">and {_more(table)}</div>'] if more > 0 else []),
    ]


def _html_map(table: pa.Table) -> list[str]:
    if not table.num_rows or not has_places(table):
        return []
    if table.num_rows > MAPPED:
        return ['<div class="faint">Too many for a map here; <code>.map()</code> draws it.</div>']
    coordinates = coordinates_of(table) or Coordinates.PLANE
    return [map_snippet(detections=table, coordinates=coordinates.value, height=MAP_HEIGHT)]


def has_places(table: pa.Table) -> bool:
    """Tell whether any detection has a place."""
    return "geometry" in table.column_names and table["geometry"].null_count < table.num_rows


def _text_rows(table: pa.Table, width: int) -> list[str]:
    shown = {_title(table, name): cells for name, cells in _columns(table).items()}
    kept, left = dict[str, list[str]](), list[str]()
    used = 0
    for title, cells in shown.items():
        needed = max(map(len, [title, *cells])) + 2
        if (used + needed > width and kept) or left:
            left.append(title)
            continue
        used += needed
        kept[title] = [text.ljust(needed) for text in [title, *cells]]
    lines = ["".join(cells).rstrip() for cells in zip(*kept.values(), strict=True)]
    more = table.num_rows - ROWS
    lines += [f"and {_more(table)}"] if more > 0 else []
    return [*lines, f"columns not shown: {', '.join(left)}"] if left else lines


def _columns(table: pa.Table) -> dict[str, list[str]]:
    """Write the first rows as texts, the columns that tell most first; no column that is empty."""
    head = table.slice(0, ROWS)
    told = delivery_columns(table.schema)
    first = _FIRST_OF_DELIVERIES if told else ()
    last = [name for name in _LAST if name in (*told, "geometry", "events", "id")]
    names = [*first, *(name for name in table.column_names if name not in (*first, *last))]
    names += [name for name in last if name in table.column_names]
    return {name: _texts(head, name) for name in names if table[name].null_count < table.num_rows}


def _more(table: pa.Table) -> str:
    """Say how many rows are not listed."""
    more = table.num_rows - ROWS
    if has_deliveries(table.schema):
        return f"{more:,} more {'delivery' if more == 1 else 'deliveries'}"
    return many(more, "more detection")


def _title(table: pa.Table, name: str) -> str:
    return f"{name} (UTC)" if pa.types.is_timestamp(table.schema.field(name).type) else name


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _texts(head: pa.Table, name: str) -> list[str]:
    column = head[name]
    if name in ("geometry", AREA):
        return _places(column.to_pylist(), coordinates_of(head))
    if pa.types.is_timestamp(column.type):
        return [_moment(value) for value in column.cast(pa.int64()).to_pylist()]
    if name == "events":
        return ["" if ids is None else many(len(ids), "id") for ids in column.to_pylist()]
    longest = LONGEST_ID if name in ("id", "delivery") else LONGEST
    return [_short(_value(value), longest) for value in column.to_pylist()]


def _value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:,.1f}"
    if isinstance(value, list):
        return ", ".join(_value(item) for item in value)
    return str(value)


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _moment(micros: int | None) -> str:
    if micros is None:
        return ""
    moment = datetime.fromtimestamp(micros // 1_000_000, UTC)
    text = moment.replace(tzinfo=None).isoformat(" ")  # strftime writes the year 1 without its zeros
    rest = micros % 1_000_000
    return f"{text}.{rest:06}".rstrip("0") if rest else text


def _places(values: list[bytes | None], coordinates: Coordinates | None) -> list[str]:
    """Write points as WKT, to about a metre in degrees and to a tenth in a plane; other shapes by size."""
    import shapely

    shapes = [None if value is None else shapely.from_wkb(value) for value in values]
    digits = 5 if coordinates is Coordinates.LONLAT else 1
    return [_place(shape, digits) for shape in shapes]


def _place(shape: Any, digits: int) -> str:
    import shapely

    if shape is None:
        return ""
    text: str = shapely.to_wkt(shape, rounding_precision=digits)
    points = int(shapely.get_num_coordinates(shape))
    return text if points <= 1 else f"{shape.geom_type}, {many(points, 'point')}"
