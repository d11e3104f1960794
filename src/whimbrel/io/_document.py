"""Read events from one JSON document: a list of objects, or a GeoJSON FeatureCollection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whimbrel.errors import DataError
from whimbrel.io._pieces import Piece, Plan, malformed
from whimbrel.io._rows import Row, batch_of_rows, kinds_of_rows
from whimbrel.io._streams import Progress, is_blank, open_text, reading
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.schema import Coordinates, Type

_LARGEST = 512 * 2**20


def is_document(path: Path) -> bool:
    """Tell a document from JSON lines, by the start of a .json file."""
    with reading(path), open_text(path, lambda _: None) as stream:
        start = stream.read(4096).lstrip()
    first_line, more, _ = start.partition(b"\n")
    if start.startswith(b"[") or b'"FeatureCollection"' in start:
        return True
    try:
        json.loads(first_line)
    except (ValueError, RecursionError):
        # The first line ends inside an object that is spread over several lines.
        return bool(more) and first_line.rstrip().endswith((b"{", b",", b"["))
    return False


class JsonDocument:
    """A document that is read as a whole, so it must be small."""

    rows: int | None = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._on_read: Progress = lambda _: None
        if path.stat().st_size > _LARGEST:
            raise DataError(f"{path}: too large to be read as one JSON document; use JSON lines (.jsonl)")

    def unknown(self, plan: Plan) -> list[str]:  # noqa: ARG002 - the same for every format
        """Return nothing: the document is read once and kept."""
        return []

    def kinds(self, plan: Plan, on_read: Progress) -> dict[str, Type | None]:
        """Return what the columns hold."""
        self._on_read = on_read
        return kinds_of_rows((row for _, row in self._content[0]), plan)

    def pieces(self, plan: Plan, on_read: Progress) -> Iterator[Piece]:  # noqa: ARG002 - it was read before
        """Yield one piece with everything in it."""
        good, bad, coordinates = self._content
        with reading(self.path):
            batch = batch_of_rows([row for _, row in good], plan.kinds)
        if coordinates:
            batch = batch.replace_schema_metadata({COORDINATES_KEY: coordinates.encode()})
        numbers = np.array([number for number, _ in good], "i8")
        yield Piece(self.path, batch, 1, numbers, malformed(bad) if bad else None)

    @cached_property
    def _content(self) -> tuple[list[tuple[int, Row]], list[tuple[int, str, str]], Coordinates | None]:
        with reading(self.path), open_text(self.path, self._on_read) as stream:
            if is_blank(stream):
                raise DataError("the file is empty; it must hold a list of events or a FeatureCollection")
            try:
                document = json.loads(stream.read().decode())
            except (ValueError, RecursionError) as error:
                if isinstance(error, UnicodeDecodeError):
                    raise
                raise DataError(f"the file is not JSON: {error}") from error
            return _rows_of(document)


def _rows_of(
    document: Any,
) -> tuple[list[tuple[int, Row]], list[tuple[int, str, str]], Coordinates | None]:
    if isinstance(document, dict) and document.get("type") == "FeatureCollection":
        # GeoJSON is in degrees (RFC 7946) unless it says otherwise, as what Whimbrel writes does.
        plane = document.get("coordinates") == Coordinates.PLANE
        return *_read_items(
            document.get("features"), _feature
        ), Coordinates.PLANE if plane else Coordinates.LONLAT
    if isinstance(document, dict):
        document = [document]
    return *_read_items(document, _object), None


def _read_items(
    items: Any, read: Callable[[Any], Row | str]
) -> tuple[list[tuple[int, Row]], list[tuple[int, str, str]]]:
    if not isinstance(items, list):
        raise DataError("this JSON is neither a list of events nor a GeoJSON FeatureCollection")
    good: list[tuple[int, Row]] = []
    bad: list[tuple[int, str, str]] = []
    for number, item in enumerate(items, 1):
        row = read(item)
        text = json.dumps(item, ensure_ascii=False)
        if not _is_encodable(text):
            row, text = "it holds half a character (a lone surrogate)", json.dumps(item)
        if isinstance(row, str):
            bad.append((number, row, text))
        else:
            good.append((number, row))
    return good, bad


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _object(item: Any) -> Row | str:
    return item if isinstance(item, dict) else "this is not a JSON object"


def _feature(item: Any) -> Row | str:
    from whimbrel.space.geometry import geojson_to_wkt

    if not isinstance(item, dict) or item.get("type") != "Feature":
        return "this is not a GeoJSON feature"
    properties = item.get("properties") or {}
    if not isinstance(properties, dict):
        return "the properties of the feature are not an object"
    row = dict(properties)
    if item.get("id") is not None:
        row.setdefault("id", item["id"])
    if item.get("geometry") is not None:
        try:
            row["geometry"] = geojson_to_wkt(item["geometry"])
        except DataError as error:
            return str(error)
    return row
