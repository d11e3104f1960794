"""What a motion had to go by: how many samples of how many movers, and how near to its regions they came."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.operators.motion import floats
from whimbrel.engine.region_distances import WatchedRegions
from whimbrel.engine.streams import RowsFrame
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.graph.operators.encounter import Encounter, encounter_words
from whimbrel.graph.operators.motion import Motion, motion_words
from whimbrel.graph.policies import Partitioning
from whimbrel.model.schema import Coordinates, Type
from whimbrel.model.words import many
from whimbrel.whynot.asking import EngineView, EventGroups
from whimbrel.whynot.explanation import Finding
from whimbrel.whynot.findings import finding_of
from whimbrel.whynot.words import METRES, value_text


def explain_motion(op: Motion, view: EngineView, definition: str) -> Finding:
    """Say what was found of a motion, and how near its samples came."""
    samples = view.rows_asked_for(op.input, op.partitioning)
    notes = [f"looked for: {motion_words(op)}", _read(view, op.input, samples, op.partitioning)]
    if op.regions and len(samples):
        notes.append(_nearness(op, view, samples))
    return finding_of(view, op.name, definition, op.partitioning, notes=notes)


def explain_encounter(op: Encounter, view: EngineView, definition: str) -> Finding:
    """Say what was found of two movers, and what there was to be compared."""
    partitioning = Partitioning(op.keys)
    read = [_read(view, name, view.rows_asked_for(name, partitioning), partitioning) for name in op.inputs]
    notes = (f"looked for: {encounter_words(op)}", *read)
    return finding_of(view, op.name, definition, Partitioning(), notes=notes)


def _read(view: EngineView, stream: str, samples: Int64Array, partitioning: Partitioning) -> str:
    groups = EventGroups(view.context, partitioning.keys)
    movers = len(np.unique(groups.of(view.stream(stream), samples)))
    return f"{stream}: {many(len(samples), 'sample')} of {many(movers, 'mover')}"


def _nearness(op: Motion, view: EngineView, samples: Int64Array) -> str:
    """Tell how many samples are in a region, and how far the nearest of the others is."""
    x, y = (_places(view, op.input, samples, axis) for axis in ("@x", "@y"))
    seen = ~(np.isnan(x) | np.isnan(y))
    if not seen.any():
        return "none of them has a location"
    coordinates = view.context.coordinates or Coordinates.PLANE
    metres = WatchedRegions(tuple(region.wkt for region in op.regions), coordinates).distance(
        x[seen], y[seen]
    )
    near = metres <= op.near_m
    where = f"within {op.near_m:g} m of a region" if op.near_m else "in a region"
    text = f"{int(near.sum())} of them {where}"
    if near.all():
        return text
    least = value_text(float(metres[~near].min()), Type.FLOAT, METRES)
    return f"{text}; the nearest of the others is {least} away"


def _places(view: EngineView, stream: str, rows: Int64Array, axis: str) -> FloatArray:
    return floats(RowsFrame(view.context, view.stream(stream), rows).column(None, axis))
