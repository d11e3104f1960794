"""The events of a test as one table, and which of its rows come at which step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from whimbrel.engine.input_notes import types_named
from whimbrel.errors import DataError
from whimbrel.graph.mobile.reading import read_of, types_read
from whimbrel.graph.query import Query
from whimbrel.io.files import read_events
from whimbrel.model.batch import Normalised, Normaliser
from whimbrel.model.columns import decoded
from whimbrel.model.reading import Reading
from whimbrel.model.schema import Coordinates, Type
from whimbrel.testing.scenario import InputEvent, InputFile, Scenario

INSTANT = pa.timestamp("us", "UTC")
_FIXED = {"id": pa.string(), "type": pa.string(), "start": INSTANT, "end": INSTANT}
_COLUMNS = _FIXED | {"source": pa.string(), "geometry": pa.binary(), "x": pa.float64(), "y": pa.float64()}
_ARROW = {
    Type.BOOL: pa.bool_(),
    Type.INT: pa.int64(),
    Type.FLOAT: pa.float64(),
    Type.STRING: pa.string(),
    Type.TIMESTAMP: INSTANT,
}


@dataclass(frozen=True)
class ScenarioInput:
    """All events of a test in the order they come in.

    `rows` gives the rows, from and to, that each step of the test brings; `rejected` says why rows of event
    files were refused.
    """

    events: pa.Table
    rows: Mapping[int, tuple[int, int]]
    coordinates: Coordinates | None
    rejected: tuple[str, ...] = ()


def gather(scenario: Scenario, query: Query) -> ScenarioInput:
    """Put the events of a test, those of the files that it names too, into one table.

    Raises
    ------
    ScenarioError
        If files and lines do not fit together.
    """
    tables: list[pa.Table] = []
    rows: dict[int, tuple[int, int]] = {}
    rejected: list[str] = []
    coordinates = scenario.settings.coordinates or query.graph.coordinates
    written = [step for step in scenario.steps if isinstance(step, InputEvent)]
    kinds = _kinds(written)
    count = 0
    for number, step in enumerate(scenario.steps):
        if isinstance(step, InputEvent):
            tables.append(_table(step, kinds))
        elif isinstance(step, InputFile):
            table, coordinates = _read(step, query, coordinates, rejected)
            tables.append(table)
        else:
            continue
        rows[number] = (count, count + tables[-1].num_rows)
        count += tables[-1].num_rows
    return ScenarioInput(_joined(tables, coordinates, scenario), rows, coordinates, tuple(rejected))


def _joined(tables: list[pa.Table], coordinates: Coordinates | None, scenario: Scenario) -> pa.Table:
    if not tables:
        return pa.schema(_FIXED).empty_table()
    try:
        whole = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise scenario.error(
            f"the events of this test do not fit together: {error}",
            "give an attribute values of one type, or declare its type in the query",
        ) from None
    if coordinates is Coordinates.LONLAT:
        whole = whole.rename_columns(
            [{"x": "lon", "y": "lat"}.get(name, name) for name in whole.column_names]
        )
    return whole


# Events that are written in the test ------------------------------------------------------------------------


def _kinds(events: Iterable[InputEvent]) -> dict[str, Type]:
    """Tell the type of every attribute: that of its values, or text if they have several."""
    seen: dict[str, set[Type]] = {}
    for event in events:
        for name, value in event.attributes.items():
            seen.setdefault(name, set()).update(() if value.type is None else (value.type,))
    return {name: _common(kinds) for name, kinds in seen.items()}


def _common(kinds: set[Type]) -> Type:
    if kinds == {Type.INT, Type.FLOAT}:
        return Type.FLOAT
    return next(iter(kinds)) if len(kinds) == 1 else Type.STRING


def _table(event: InputEvent, kinds: Mapping[str, Type]) -> pa.Table:
    values: dict[str, Any] = {"id": event.id, "type": event.type, "start": event.start, "end": event.end}
    if event.source is not None:
        values["source"] = event.source
    if isinstance(event.location, bytes):
        values["geometry"] = event.location
    elif event.location is not None:
        values["x"], values["y"] = event.location
    for name, value in event.attributes.items():
        # `truck=1` beside `truck=T2` is a text, as it would be in a CSV file.
        is_text = kinds[name] is Type.STRING and value.value is not None
        values[name] = value.text if is_text else value.value
    types = _COLUMNS | {name: _ARROW[kind] for name, kind in kinds.items()}
    return pa.table({name: pa.array([value], types[name]) for name, value in values.items()})


# Event files ------------------------------------------------------------------------------------------------


def _read(
    step: InputFile, query: Query, coordinates: Coordinates | None, rejected: list[str]
) -> tuple[pa.Table, Coordinates | None]:
    """Read the events of a file; those without an id are named after the file and their row."""
    batches: list[pa.RecordBatch] = []
    reading = Reading(types=types_named(types_read(query)))
    read = read_of(query).atoms
    for piece in read_events(step.path, schemas=query.schemas).pieces():
        try:
            normalised = Normaliser(query.schemas, coordinates, reading, read=read).normalise(piece.batch)
        except DataError as error:
            raise DataError(f"{piece.file}: {error}") from error
        coordinates = coordinates or normalised.coordinates
        rejected += _reasons(piece.rejected, piece.file) + _reasons(normalised.rejected, piece.file)
        batches.append(_plain(normalised))
    table = pa.Table.from_batches(batches)
    if "id" not in table.column_names:
        width = len(str(table.num_rows))
        names = [f"{step.path.name}:{row:0{width}}" for row in range(1, table.num_rows + 1)]
        table = table.append_column("id", pa.array(names, pa.string()))
    return table, coordinates


def _reasons(rejected: pa.RecordBatch | None, file: Path) -> list[str]:
    reasons = [] if rejected is None else rejected.column("reason").to_pylist()
    return [f"{file}: {reason}" for reason in reasons]


def _plain(normalised: Normalised) -> pa.RecordBatch:
    """Write times as timestamps and texts as texts, so that the batch can be joined with others."""
    columns = {}
    for name, column in zip(normalised.events.schema.names, normalised.events.columns, strict=True):
        columns[name] = column.cast(INSTANT) if name in ("start", "end") else decoded(column)
    return pa.RecordBatch.from_pydict(columns)
