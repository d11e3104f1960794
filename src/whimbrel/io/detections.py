"""Write detections as JSON lines, CSV, Parquet, GeoJSON or Moving Features JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from os import PathLike, fspath
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from whimbrel.errors import DataError
from whimbrel.io import _text
from whimbrel.io._streams import known_ending
from whimbrel.io.atomic import format_by_ending, refuse_packed, writing
from whimbrel.model.batch import COORDINATES_KEY
from whimbrel.model.columns import decoded
from whimbrel.model.deliveries import (
    AREA,
    CHANGES,
    DELIVERIES_KEY,
    delivery_columns,
    has_deliveries,
    without_areas,
)
from whimbrel.model.frames import arrow_table
from whimbrel.model.schema import Coordinates

ATTRIBUTES_KEY = b"whimbrel.attributes"
"""Schema metadata: JSON {type: [names of its attributes]}. Without it every type has all attributes."""

_FIXED = ("id", "type", "start", "end", "geometry", "events")
ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".geojson": "geojson",
    ".mfjson": "mfjson",
    ".mf.json": "mfjson",
}
"""How detections are written, by the ending of a file's name; the ending of a packing may follow."""
_CHUNK = 65_536


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TRS = {"type": "Name", "properties": {"name": "urn:ogc:data:time:iso8601"}}
_CRS84 = {"type": "Name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}


def write_detections(
    table: pa.Table,
    target: str | PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    positions: pa.Table | None = None,
    interest_areas: bool = False,
) -> None:
    """Write detections, sorted by end, start, type and events; deliveries in the order they are told in.

    JSON lines: {"type", "start", "end", "geometry", "attributes": {...}, "events": [ids], "id"}, where only
    the attributes of the row's own type appear. CSV: one column for each attribute, the ids joined by spaces.
    Times are ISO 8601 with microseconds and Z, geometries WKT. Parquet is GeoParquet if any detection has
    a geometry. GeoJSON in plane coordinates says so by a member "coordinates": "plane". Moving Features JSON
    is GeoJSON whose features have their period as `time` and, if `positions` are given, a `temporalGeometry`
    through the places of their events: a MovingPoint, or several if the events have several sources.

    What a mobile query told has the columns of deliveries, too: as members of each line or as properties of
    each feature, `query`, `focal`, `interest`, `interest_start`, `told`, `live`, `change` and `delivery`. The
    id of a feature is then that of the delivery, and `id` in its properties that of the detection.

    Parameters
    ----------
    table
        Columns `id`, `type`, `start` and `end` (timestamps), `geometry` (WKB), attributes, `events` (ids).
    target
        A path, or "-" for standard output. The file appears only when it is complete; a name that also ends
        in .gz, .zst, .bz2 or .xz is packed.
    format
        "jsonl", "csv", "parquet", "geojson" or "mfjson"; by default the ending of `target` tells, and "-" is
        jsonl.
    positions
        For "mfjson": where and when the events were, as `whimbrel.io.frames.positions` gives it.
    interest_areas
        Whether to write the area of each delivery's interest, too, as geometries are written; it is longer
        than all the rest.
    """
    chosen = format or format_by_ending(target, ENDINGS, default="jsonl")
    refuse_packed(target, chosen)
    if chosen not in FORMATS:
        raise DataError(f"format {chosen!r} is not known; use one of: {', '.join(FORMATS)}")
    missing = [name for name in ("type", "start", "end", "events") if name not in table.schema.names]
    if missing:
        raise DataError(f"this is no table of detections: it has no column {missing[0]!r}")
    with writing(target) as file:
        ordered = sorted_detections(arrow_table(table))
        ordered = ordered if interest_areas else without_areas(ordered)
        if chosen == "mfjson":
            _write_mfjson(ordered, file, positions)
        else:
            _WRITERS[chosen](ordered, file)


def sorted_detections(table: pa.Table) -> pa.Table:
    """Sort detections by end, start, type and events: the order in which every backend reports them.

    Deliveries are sorted as they are told.
    """
    if table.num_rows == 0:
        return table
    if has_deliveries(table.schema):
        return _sorted_as_told(table)
    return _sorted_by(table, _order_keys(table))


def _order_keys(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {
        "end": table["end"],
        "start": table["start"],
        "type": table["type"].cast(pa.string()),
        # Joined by the least character, lists of ids compare as their texts do.
        "events": pc.binary_join(table["events"].cast(pa.list_(pa.string())), "\0"),
    }


def _sorted_by(table: pa.Table, keys: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Sort by columns; rows that are equal in them keep their order."""
    return table.take(pc.sort_indices(pa.table(dict(keys)), [(name, "ascending") for name in keys]))


def _sorted_as_told(table: pa.Table) -> pa.Table:
    """Sort deliveries by when they are told, and detections among them by their end.

    What is told of one interest at one time is in order already in what a session gave: by when it is known.
    Elsewhere it is sorted as detections are.
    """
    change = pc.index_in(table["change"].cast(pa.string()), pa.array(CHANGES))
    keys = {
        "told": pc.coalesce(table["told"], table["end"].cast(table.schema.field("told").type)),
        "query": table["query"].cast(pa.string()),
        "focal": table["focal"].cast(pa.string()),
        "interest": table["interest"],
        "change": change,
    }
    if DELIVERIES_KEY not in (table.schema.metadata or {}):
        keys |= _order_keys(table)
    return _sorted_by(table, keys)


def write_jsonl(table: pa.Table, file: IO[bytes]) -> None:
    """Write detections as JSON lines."""
    for batch in _parted(table):
        members = {
            "type": _text.json_values(batch.column("type")),
            "start": _text.json_values(batch.column("start")),
            "end": _text.json_values(batch.column("end")),
            "geometry": _text.json_values(_geometry_texts(batch)),
            "attributes": _own_attributes(batch, {}),
            "events": _text.json_values(batch.column("events")),
        }
        if "id" in batch.schema.names:
            members["id"] = _text.json_values(batch.column("id"))
        members |= _delivery_members(batch)
        file.write(_text.lines(_text.json_objects(members, batch.num_rows)))


def _write_geojson(table: pa.Table, file: IO[bytes]) -> None:
    plane = (table.schema.metadata or {}).get(COORDINATES_KEY) == Coordinates.PLANE.encode()
    said = b' "coordinates": "plane",' if plane else b""
    file.write(b'{"type": "FeatureCollection",' + said + b' "features": [')
    _write_features(table, file, _geojson_members)


def _parted(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Give the rows in batches; where there are detections among deliveries, each batch is of one of them.

    Rows of detections do not have the columns of deliveries.
    """
    for batch in _batches(table):
        if not has_deliveries(batch.schema) or not batch.column("delivery").null_count:
            yield batch
            continue
        plain = batch.column("delivery").is_null().to_numpy(zero_copy_only=False)
        borders = [0, *(np.flatnonzero(plain[1:] != plain[:-1]) + 1).tolist(), len(plain)]
        for first, last in pairwise(borders):
            piece = batch.slice(first, last - first)
            yield piece.drop_columns(delivery_columns(piece.schema)) if plain[first] else piece


def _delivery_members(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    return {
        name: _text.json_values(_area_texts(batch.column(name)) if name == AREA else batch.column(name))
        for name in delivery_columns(batch.schema)
    }


def _area_texts(column: pa.Array) -> pa.Array:
    """Write areas as WKT; many rows have the same one."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    used = encoded.indices.unique().drop_null()
    texts = encoded.dictionary.take(used)
    if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type):
        texts = _text.wkt(texts)
    return texts.take(pc.index_in(encoded.indices, used))


def _feature_properties(batch: pa.RecordBatch, fixed: tuple[str, ...]) -> dict[str, pa.Array]:
    """Write what stands first in the properties; the id of a delivery is that of its feature."""
    members = {name: _text.json_values(batch.column(name)) for name in fixed}
    told = _delivery_members(batch)
    if told and "id" in batch.schema.names:
        members["id"] = _text.json_values(batch.column("id"))
    return {**members, **{name: texts for name, texts in told.items() if name != "delivery"}}


def _geojson_members(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    fixed = _feature_properties(batch, ("type", "start", "end"))
    return {"geometry": _geojson_texts(batch), "properties": _properties(batch, fixed)}


def _write_mfjson(table: pa.Table, file: IO[bytes], positions: pa.Table | None) -> None:
    places = MovingPlaces(positions)

    def members(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        start, end = (_text.json_values(batch.column(name)) for name in ("start", "end"))
        return {
            "geometry": _geojson_texts(batch),
            "time": pc.binary_join_element_wise("[", start, ", ", end, "]", ""),
            "temporalGeometry": pa.array(places.moving(batch.column("events")), pa.string()),
            "properties": _properties(batch, _feature_properties(batch, ("type",))),
        }

    file.write(collection_head(table))
    _write_features(table, file, members)


def _properties(batch: pa.RecordBatch, before: Mapping[str, pa.Array]) -> pa.Array:
    return _own_attributes(batch, before, {"events": _text.json_values(batch.column("events"))})


def _write_features(
    table: pa.Table, file: IO[bytes], members_of: Callable[[pa.RecordBatch], dict[str, pa.Array]]
) -> None:
    """Write the features of a collection, and its end."""
    separator = b"\n"
    for batch in _parted(table):
        members = {"type": pa.array(['"Feature"'] * batch.num_rows)}
        name = "delivery" if has_deliveries(batch.schema) else "id"
        if name in batch.schema.names:
            members["id"] = _text.json_values(batch.column(name))
        members |= members_of(batch)
        texts = _text.json_objects(members, batch.num_rows).to_pylist()
        if "temporalGeometry" in members:
            texts = [text.replace(', "temporalGeometry": null', "", 1) for text in texts]
        file.write(separator + ",\n".join(texts).encode())
        separator = b",\n"
    file.write(b"\n]}\n")


def _write_csv(table: pa.Table, file: IO[bytes]) -> None:
    attributes = _attribute_names(table.schema)
    told = delivery_columns(table.schema)
    names = ["id", "type", "start", "end", "geometry", *attributes, *told, "events"]
    writer = None
    for batch in _batches(table) or [pa.RecordBatch.from_pylist([], schema=table.schema)]:
        columns = {name: _csv_column(batch, name) for name in names if name in batch.schema.names}
        rows = pa.RecordBatch.from_pydict(columns)
        writer = writer or pa.csv.CSVWriter(file, rows.schema)
        writer.write_batch(rows)
    if writer:
        writer.close()


def _csv_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    if name == AREA and name in delivery_columns(batch.schema):
        return _area_texts(batch.column(name))
    column = decoded(batch.column(name))
    if name == "geometry":
        return _text.wkt(column)
    if name == "events":
        return pc.binary_join(column.cast(pa.list_(pa.string())), " ")
    return _text.iso(column) if pa.types.is_timestamp(column.type) else column


def _write_parquet(table: pa.Table, file: IO[bytes]) -> None:
    metadata = dict(table.schema.metadata or {})
    if "geometry" in table.schema.names and table["geometry"].null_count < table.num_rows:
        metadata[b"geo"] = geo_metadata(metadata.get(COORDINATES_KEY) == Coordinates.LONLAT.encode())
    pq.write_table(table.replace_schema_metadata(metadata), file, compression="zstd")


def geo_metadata(lonlat: bool) -> bytes:
    """Return GeoParquet metadata for `geometry`: no CRS means WGS 84, a null one an unknown plane."""
    column: dict[str, object] = {"encoding": "WKB", "geometry_types": [], **({} if lonlat else {"crs": None})}
    return json.dumps(
        {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": column}}
    ).encode()


_WRITERS: dict[str, Callable[[pa.Table, IO[bytes]], None]] = {
    "jsonl": write_jsonl,
    "csv": _write_csv,
    "parquet": _write_parquet,
    "geojson": _write_geojson,
}
FORMATS = (*_WRITERS, "mfjson")
"""Names for `format`."""


def format_of(target: str | PathLike[str]) -> str | None:
    """Tell the format from the ending of a file's name; None if it does not tell."""
    return ENDINGS.get(known_ending(fspath(target), ENDINGS) or "")


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return list(table.combine_chunks().to_batches(max_chunksize=_CHUNK))


def _attribute_names(schema: pa.Schema) -> list[str]:
    told = delivery_columns(schema)
    return [name for name in schema.names if name not in _FIXED and name not in told]


def _geometry_texts(batch: pa.RecordBatch) -> pa.Array:
    if "geometry" not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.string())
    return _text.wkt(batch.column("geometry"))


def _geojson_texts(batch: pa.RecordBatch) -> pa.Array:
    import shapely

    if "geometry" not in batch.schema.names:
        return pa.array(["null"] * batch.num_rows, pa.string())
    values = np.empty(batch.num_rows, dtype=object)
    values[:] = batch.column("geometry").to_pylist()
    texts = np.asarray(shapely.to_geojson(shapely.from_wkb(values)), dtype=object)
    return pc.fill_null(pa.array(texts.tolist(), pa.string()), "null")


def _original(name: str, fixed: Collection[str]) -> str:
    """Undo what kept an attribute apart from a fixed column, where it stands apart anyway."""
    return name[:-1] if name.endswith("_") and name[:-1] in fixed else name


def attribute_texts(batch: pa.RecordBatch) -> pa.Array:
    """Write the attributes of each detection as a JSON object: those that its own type has.

    Of a delivery, its columns come first.
    """
    plain = _own_attributes(batch, {})
    if not has_deliveries(batch.schema):
        return plain
    told = _own_attributes(batch, _delivery_members(batch))
    return pc.if_else(batch.column("delivery").is_valid(), told, plain)


def _own_attributes(
    batch: pa.RecordBatch, before: Mapping[str, pa.Array], after: Mapping[str, pa.Array] | None = None
) -> pa.Array:
    """Write the attributes of each row's own type as a JSON object, between other members."""
    every = _attribute_names(batch.schema)
    fixed = {*_FIXED, *delivery_columns(batch.schema)}
    said = (batch.schema.metadata or {}).get(ATTRIBUTES_KEY)
    by_type: dict[str, list[str]] = json.loads(said) if said else {}
    types = decoded(batch.column("type")).dictionary_encode()
    texts = {name: _text.json_values(batch.column(name)) for name in every}
    objects: list[pa.Array] = []
    places: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []
    indices = types.indices.to_numpy(zero_copy_only=False)
    for code, event_type in enumerate(types.dictionary.to_pylist()):
        rows = np.flatnonzero(indices == code)
        own = [name for name in by_type.get(event_type, every) if name in texts]
        names = own if before or after else [_original(name, fixed) for name in own]
        members = {**before, **dict(zip(names, (texts[name] for name in own), strict=True)), **(after or {})}
        taken = {name: column.take(pa.array(rows)) for name, column in members.items()}
        objects.append(_text.json_objects(taken, len(rows)))
        places.append(rows)
    if not objects:
        return pa.array([], pa.string())
    return pa.concat_arrays(objects).take(pa.array(np.argsort(np.concatenate(places))))


def collection_head(table: pa.Table) -> bytes:
    """Return the beginning of a collection, up to its features."""
    plane = (table.schema.metadata or {}).get(COORDINATES_KEY) == Coordinates.PLANE.encode()
    system = {"coordinates": "plane"} if plane else {"crs": _CRS84}
    return json.dumps({"type": "FeatureCollection", **system, "trs": _TRS})[:-1].encode() + b', "features": ['


class MovingPlaces:
    """Where and when events were, by their ids.

    Parameters
    ----------
    positions
        `id`, `source`, `end`, and `lon` and `lat` or `x` and `y`, as `frames.positions` gives them.
    """

    def __init__(self, positions: pa.Table | None) -> None:
        names = positions.column_names if positions is not None else []
        pair = ("lon", "lat") if "lon" in names else ("x", "y")
        self._rows: dict[str, int] = {}
        if positions is None or not {"id", *pair} <= set(names):
            return
        self._x, self._y = (positions[name].to_numpy(zero_copy_only=False) for name in pair)
        self._times = positions["end"].cast(pa.int64()).to_numpy()
        self._sources = positions["source"].cast(pa.string()) if "source" in names else None
        self._rows = {name: row for row, name in enumerate(positions["id"].to_pylist())}

    def moving(self, events: pa.Array) -> list[str]:
        """Return how the events of each detection moved, as JSON; null where that is not known."""
        return [self._geometry(ids or []) for ids in events.to_pylist()]

    def _geometry(self, ids: list[str]) -> str:
        rows = [self._rows[name] for name in ids if name in self._rows]
        rows = [row for row in rows if np.isfinite(self._x[row]) and np.isfinite(self._y[row])]
        tracks: dict[str, dict[int, list[float]]] = {}
        for row in sorted(rows, key=lambda row: int(self._times[row])):
            # The times of a moving point rise: of two places of one source at one time the first is taken.
            track = tracks.setdefault(self._source(row), {})
            track.setdefault(int(self._times[row]), [float(self._x[row]), float(self._y[row])])
        parts = [
            {
                "type": "MovingPoint",
                "datetimes": [_iso(time) for time in track],
                "coordinates": list(track.values()),
                "interpolation": "Linear",
            }
            for track in tracks.values()
        ]
        if not parts:
            return "null"
        return json.dumps(
            parts[0] if len(parts) == 1 else {"type": "MovingGeometryCollection", "prisms": parts}
        )

    def _source(self, row: int) -> str:
        return "" if self._sources is None else self._sources[row].as_py() or ""


def _iso(micros: int) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
