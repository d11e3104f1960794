"""Detections as Spark gives them, in the forms that Whimbrel writes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from whimbrel.errors import DataError
from whimbrel.io.detections import ATTRIBUTES_KEY, write_jsonl
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.schema import Coordinates


@dataclass(frozen=True)
class DetectionForm:
    """What a frame of detections does not say about itself.

    Parameters
    ----------
    attributes
        The attributes of each type of detection; without it every type has all of them.
    coordinates
        In which coordinates the geometries are, for formats that can say so.
    """

    attributes: Mapping[str, Sequence[str]] | None = None
    coordinates: Coordinates | None = None

    def table(self, batches: Iterable[pa.RecordBatch] | pa.Table) -> pa.Table | None:
        """Put batches of detections together; None if there is none."""
        table = batches if isinstance(batches, pa.Table) else _joined(batches)
        if table is None or table.num_rows == 0:
            return None
        missing = [
            name for name in ("id", "type", "start", "end", "events") if name not in table.schema.names
        ]
        if missing:
            raise DataError(f"these are no detections: there is no column {missing[0]!r}")
        metadata = {}
        if self.attributes is not None:
            named = {event: list(names) for event, names in self.attributes.items()}
            metadata[ATTRIBUTES_KEY] = json.dumps(named).encode()
        if self.coordinates is not None:
            metadata[COORDINATES_KEY] = self.coordinates.encode()
        return table.replace_schema_metadata(metadata)


def _joined(batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
    kept = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(kept) if kept else None


def json_texts(table: pa.Table) -> list[str]:
    """Write each detection as one JSON object, in the order of the table."""
    file = io.BytesIO()
    write_jsonl(table, file)
    # Not splitlines: texts may hold separators that JSON need not escape.
    return file.getvalue().decode().split("\n")[:-1]
