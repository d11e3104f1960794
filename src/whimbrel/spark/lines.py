"""Where a row of a frame stood in its file: a hidden column that readers add and the gate takes away again.

A line that is no row at all (broken JSON, a field too many) cannot become a row of a frame, and must not get
lost either. So it travels as a row that has nothing but the column `@line`, with its text and the reason, and
the gate counts it among the rejected ones. The column is a struct, which no attribute of an event can be:
whatever does not know it passes it by.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import from_arrow_type

from whimbrel.engine.session import Session
from whimbrel.io.rejected import RejectedWriter
from whimbrel.model.batch import REJECTED_SCHEMA, Normalised
from whimbrel.model.schema import Coordinates
from whimbrel.spark.types import type_of

LINE = "@line"
LINE_ARROW = pa.struct([("file", pa.string()), ("row", pa.int64()), ("refused", pa.string())])
LINE_SPARK = from_arrow_type(LINE_ARROW)
"""`refused` is null for a row; for a line that is none, its text and the reason as JSON."""

PLACED_SCHEMA = pa.schema([*REJECTED_SCHEMA, pa.field("file", pa.string())])
"""Rejected rows that know their file."""

_ARROW_KEY, _COORDINATES_KEY, _FILE_KEY = "whimbrel.arrow", "whimbrel.coordinates", "whimbrel.file"


# -- the column ---------------------------------------------------------------------------------------------


def line_field(file: str, coordinates: str | None) -> sql.StructField:
    """Describe the hidden column of a frame read from files; the first file is named in errors."""
    said = {_FILE_KEY: file} | ({_COORDINATES_KEY: coordinates} if coordinates else {})
    return sql.StructField(LINE, LINE_SPARK, metadata=said)


def lines_of_rows(file: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
    """Write the hidden column for rows."""
    count = len(numbers)
    parts = [pa.repeat(pa.scalar(file), count), pa.array(numbers, pa.int64()), pa.nulls(count, pa.string())]
    return pa.StructArray.from_arrays(parts, fields=list(LINE_ARROW))


def lines_of_refused(file: str, refused: pa.RecordBatch) -> pa.Array:
    """Write the hidden column for lines that are no rows, given as readers give them."""
    texts = [json.dumps(entry) for entry in refused.select(["reason", "event"]).to_pylist()]
    parts = [pa.repeat(pa.scalar(file), len(texts)), refused.column("row"), pa.array(texts, pa.string())]
    return pa.StructArray.from_arrays(parts, fields=list(LINE_ARROW))


# -- what a frame says about itself -------------------------------------------------------------------------


def said_arrow(kind: pa.DataType) -> dict[str, str]:
    """Write, as metadata of a column, which Arrow type it had in its file."""
    return {_ARROW_KEY: b64encode(pa.schema([("_", kind)]).serialize().to_pybytes()).decode()}


def arrow_type_said(field: sql.StructField) -> pa.DataType | None:
    """Determine the Arrow type that a column had in its file; None if its frame does not come from files."""
    text = (field.metadata or {}).get(_ARROW_KEY)
    return None if text is None else pa.ipc.read_schema(pa.py_buffer(b64decode(text))).types[0]


def is_attribute(field: sql.StructField) -> bool:
    """Tell whether a column can be an attribute; a time of day, which travels as text, can not."""
    kind = arrow_type_said(field)
    return type_of(field.dataType) is not None and not (kind is not None and pa.types.is_time(kind))


def coordinates_said(schema: sql.StructType) -> Coordinates | None:
    """Determine the coordinates that the files of a frame say they have."""
    text = _said(schema).get(_COORDINATES_KEY)
    return None if text is None else Coordinates(text)


def file_said(schema: sql.StructType) -> str | None:
    """Name the file, or the first of the files, that a frame was read from."""
    return _said(schema).get(_FILE_KEY)


def _said(schema: sql.StructType) -> Mapping[str, str]:
    return next((field.metadata or {} for field in schema.fields if field.name == LINE), {})


# -- the gate -----------------------------------------------------------------------------------------------


def normalise_lines(normalise: Callable[[pa.RecordBatch], Normalised], batch: pa.RecordBatch) -> Normalised:
    """Bring a batch through a gate; what is rejected knows file and row, if the batch does.

    The gate must count rows from 0 with every batch.
    """
    if LINE not in batch.schema.names:
        return normalise(batch)
    rows = _Split.of(batch)
    normalised = normalise(rows.events)
    rejected = _together([rows.refused, rows.placed(normalised.rejected, 0)])
    return replace(normalised, rejected=rejected)


class Gate:
    """Brings batches into a session, and keeps what it rejects with file and row."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rejected: list[pa.RecordBatch] = []

    def normalise(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Select the events of a batch."""
        session = self._session
        if LINE not in batch.schema.names:
            return session.normalise(batch).events
        rows = _Split.of(batch)
        if rows.refused.num_rows:
            session.ingest.count_rejected(rows.refused.select(REJECTED_SCHEMA.names))
        before = session.counts.received
        normalised = session.normalise(rows.events)
        session.take_rejected()
        self._rejected += [rows.refused, rows.placed(normalised.rejected, before)]
        return normalised.events

    def take_rejected(self) -> pa.Table | None:
        """Tell what was rejected since the last time."""
        kept, self._rejected = [batch for batch in self._rejected if batch.num_rows], []
        return pa.Table.from_batches(kept) if kept else self._session.take_rejected()


@dataclass(frozen=True)
class _Split:
    """A batch without its hidden column, and what that said."""

    events: pa.RecordBatch
    files: pa.Array
    numbers: pa.Array
    refused: pa.RecordBatch

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> _Split:
        lines = batch.column(LINE)
        files, numbers, refused = (pc.struct_field(lines, index) for index in range(3))
        rest = batch.drop_columns([LINE])
        if refused.null_count == len(refused):
            return cls(rest, files, numbers, _nobody())
        is_row = refused.is_null()
        is_line = pc.invert(is_row)
        return cls(
            rest.filter(is_row),
            files.filter(is_row),
            numbers.filter(is_row),
            _refused(files.filter(is_line), numbers.filter(is_line), refused.filter(is_line)),
        )

    def placed(self, rejected: pa.RecordBatch, before: int) -> pa.RecordBatch:
        """Replace positions in the batch by rows of files."""
        if not rejected.num_rows:
            return _nobody()
        positions = pc.subtract(rejected.column("row"), before)
        columns = [self.numbers.take(positions), rejected.column("reason"), rejected.column("event")]
        return pa.RecordBatch.from_arrays([*columns, self.files.take(positions)], schema=PLACED_SCHEMA)


def _refused(files: pa.Array, numbers: pa.Array, texts: pa.Array) -> pa.RecordBatch:
    entries = [json.loads(text) for text in texts.to_pylist()]
    reasons, events = ([entry[name] for entry in entries] for name in ("reason", "event"))
    columns = [numbers, pa.array(reasons, pa.string()), pa.array(events, pa.string()), files]
    return pa.RecordBatch.from_arrays(columns, schema=PLACED_SCHEMA)


def _nobody() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.nulls(0, kind) for kind in PLACED_SCHEMA.types], schema=PLACED_SCHEMA
    )


def _together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.concat_batches([batch for batch in batches if batch.num_rows] or [_nobody()])


# -- where rejected rows go ---------------------------------------------------------------------------------


def write_placed(
    writer: RejectedWriter, rejected: pa.Table, shown: Mapping[str, str | PathLike[str]] | None = None
) -> None:
    """Write rejected rows in the order of their files and rows; those that know no file come first."""
    ordered = rejected.sort_by([("file", "ascending"), ("row", "ascending")])
    names = ordered.column("file").to_pylist()
    start = 0
    for end in range(1, len(names) + 1):
        if end == len(names) or names[end] != names[start]:
            part = ordered.slice(start, end - start).select(REJECTED_SCHEMA.names).combine_chunks()
            file = names[start] or ""
            for batch in part.to_batches():
                writer.write(batch, (shown or {}).get(file, file))
            start = end
