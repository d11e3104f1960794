"""Detections as the data frames of other packages, and as a map in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from whimbrel.errors import DataError, MissingDependency
from whimbrel.io.files import read_events
from whimbrel.io.map import map_snippet, write_map
from whimbrel.model.batch import COORDINATES_KEY, Normaliser
from whimbrel.model.frames import EventPaths, EventTable, are_files, arrow_table, batches, listed_paths
from whimbrel.model.reading import Reading, ReadSettings
from whimbrel.model.schema import Coordinates, EventSchema

if TYPE_CHECKING:
    import geopandas
    import pandas as pd
    import polars as pl


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert detections to a pandas data frame.

    Times are aware timestamps, `geometry` is WKB, `events` lists of ids.

    >>> import whimbrel as wb
    >>> query = wb.compile("define Warm detect Temp(val > 25)")
    >>> wb.to_pandas(wb.detect(query, [{"type": "Temp", "time": 0, "val": 30.5}]))["val"].tolist()
    [30.5]

    Raises
    ------
    MissingDependency
        If pandas is not installed.
    """
    _needed("pandas", "a pandas data frame", "pandas")
    frame = arrow_table(table).to_pandas(date_as_object=False)
    if "events" in frame:
        frame["events"] = [list(ids) for ids in frame["events"]]
    return frame


def to_polars(table: pa.Table) -> pl.DataFrame:
    """Convert detections to a polars data frame; `geometry` is WKB, `events` lists of ids.

    Raises
    ------
    MissingDependency
        If polars is not installed.
    """
    polars = _needed("polars", "a polars data frame", "polars")
    frame: pl.DataFrame = polars.from_arrow(arrow_table(table))
    return frame


def to_geopandas(table: pa.Table) -> geopandas.GeoDataFrame:
    """Convert detections to a GeoDataFrame, its CRS EPSG:4326 for lonlat coordinates and none for a plane.

    Raises
    ------
    MissingDependency
        If GeoPandas is not installed.
    """
    package = _needed("geopandas", "a GeoDataFrame", "geo")
    frame = to_pandas(table)
    shapes = package.GeoSeries.from_wkb(frame.pop("geometry"))
    crs = "EPSG:4326" if coordinates_of(table) is Coordinates.LONLAT else None
    # Where no detection has a location, GeoPandas cannot tell what the column is for.
    frame["geometry"] = package.array.GeometryArray(shapes.to_numpy())
    return package.GeoDataFrame(frame[table.column_names], geometry="geometry", crs=crs)


def coordinates_of(table: pa.Table) -> Coordinates | None:
    """Tell in which coordinates the locations of a table are; None if it has none."""
    said = (table.schema.metadata or {}).get(COORDINATES_KEY, b"none").decode()
    return None if said == "none" else Coordinates(said)


def _needed(package: str, purpose: str, extra: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingDependency(package, purpose, extra) from error


class Map:
    """A map of detections with a time slider: shows itself in a notebook, `save` writes a page."""

    def __init__(self, detections: pa.Table, **settings: Any) -> None:
        self._detections = detections
        self._settings = settings

    def __repr__(self) -> str:
        count = self._detections.num_rows
        return f"<map of {count:,} {'detection' if count == 1 else 'detections'}; save(path) writes it>"

    def _repr_html_(self) -> str:
        return map_snippet(detections=self._detections, **self._settings)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the map as one HTML file that needs nothing else."""
        return write_map(path, detections=self._detections, **self._settings)


class MapSettings(ReadSettings, total=False):
    """The settings of `show`; each may be left out."""

    roads: Mapping[str, object] | None
    coordinates: str | None
    title: str
    max_points: int | None
    schemas: Mapping[str, EventSchema] | None


def show(
    table: pa.Table,
    events: EventTable | EventPaths | None = None,
    *,
    roads: Mapping[str, object] | None = None,
    coordinates: str | None = None,
    title: str = "Whimbrel",
    max_points: int | None = None,
    schemas: Mapping[str, EventSchema] | None = None,
    **how: Unpack[ReadSettings],
) -> Map:
    """Draw detections on a map with a time slider; as the last line of a notebook cell, it shows itself.

    Parameters
    ----------
    events
        What they were found in, as for `detect`: paths, Arrow, pandas, polars, a list of dicts. Then the map
        shows how the objects moved, too.
    roads
        A GeoJSON feature collection in the same coordinates, drawn below.
    coordinates
        "plane" or "lonlat"; by default what the table says.
    max_points
        How many positions to draw at most; with more, every object keeps every n-th one.
    columns, time_unit, time_format, day_first, time_zone
        How the events are read, as for `whimbrel.run`.
    schemas
        Those of the query, if it says itself which column is what.

    Examples
    --------
    >>> import whimbrel as wb
    >>> query = wb.compile("define Warm detect Temp(val > 25)")
    >>> wb.show(wb.detect(query, [{"type": "Temp", "time": 0, "val": 30.5, "x": 1.0, "y": 2.0}]))
    <map of 1 detection; save(path) writes it>
    """
    system = Coordinates(coordinates) if coordinates else coordinates_of(table) or Coordinates.PLANE
    settings: dict[str, Any] = {"roads": roads, "coordinates": system.value, "title": title}
    if max_points is not None:
        settings["max_points"] = max_points
    if events is not None:
        settings["events"] = positions(events, system, schemas, **how)
    return Map(arrow_table(table), **settings)


def positions(
    events: Any,
    coordinates: Coordinates,
    schemas: Mapping[str, EventSchema] | None = None,
    **how: Unpack[ReadSettings],
) -> pa.Table:
    """Find where and when events were, as `write_map` wants it: ids, sources, times and places."""
    kept = ("id", "source", "start", "end", "x", "y")
    reading = replace(Reading.of(**how), default_type="")
    tables = []
    normaliser = Normaliser(schemas or {}, coordinates, reading, columns=())
    for batch in _batches(events, reading, schemas or {}):
        normalised = normaliser.normalise(batch).events
        tables.append(
            pa.Table.from_batches(
                [normalised.select([name for name in kept if name in normalised.schema.names])]
            )
        )
    if not tables:
        raise DataError("there are no events to draw")
    table = pa.concat_tables(tables, promote_options="permissive")
    if coordinates is Coordinates.LONLAT:
        table = table.rename_columns(
            [{"x": "lon", "y": "lat"}.get(name, name) for name in table.column_names]
        )
    return table


def _batches(events: Any, reading: Reading, schemas: Mapping[str, EventSchema]) -> Iterator[pa.RecordBatch]:
    if are_files(events):
        return iter(read_events(listed_paths(events), columns=(), schemas=schemas, reading=reading))
    return batches(events)
