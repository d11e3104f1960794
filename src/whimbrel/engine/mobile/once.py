"""Runs the part of mobile queries that is found once for all interests, as a pipeline like any other."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

import numpy as np

from whimbrel.engine.mobile.atom_places import AtomPlaces
from whimbrel.engine.mobile.found_once import FoundOnce, FoundRows
from whimbrel.engine.mobile.located_rows import own_locations
from whimbrel.engine.mobile.member_operators import KNOWN, MOMENT, known_of
from whimbrel.engine.mobile.reporting import detection_keys, places_of_atoms
from whimbrel.engine.mobile.updates import FocalKeys
from whimbrel.engine.operators.base import OperatorSetup
from whimbrel.engine.operators.custom.runtime import CustomRuntime, Key
from whimbrel.engine.operators.custom.steps import Emitted
from whimbrel.engine.operators.derive import DeriveOperator
from whimbrel.engine.operators.registry import KINDS, Kinds
from whimbrel.engine.pipeline import Pipeline
from whimbrel.engine.report import apart_from_deliveries, report
from whimbrel.engine.row_store import RowStore
from whimbrel.engine.source_events import SourceEvents
from whimbrel.engine.streams import OperatorStream, RowsFrame
from whimbrel.engine.values import Column
from whimbrel.graph.expressions import Expr
from whimbrel.graph.mobile.knowing import is_behind
from whimbrel.graph.mobile.parts import MobileParts
from whimbrel.graph.operators import Custom, Derive
from whimbrel.graph.query import Query
from whimbrel.graph.required_columns import RequiredColumns
from whimbrel.model.schema import Coordinates, Type


class KnowingDeriveOperator(DeriveOperator):
    """A `Derive` whose events say by when they are known, where that is not their end."""

    def __init__(self, op: Derive, setup: OperatorSetup) -> None:
        super().__init__(op, setup)
        self._is_behind = is_behind(setup.graph, op.name)

    def _marks(self, frame: RowsFrame) -> dict[Expr, Column]:
        if not self._is_behind:
            return {}
        return {KNOWN: Column(Type.INT, known_of(self.graph, frame.stream, frame.rows))}


class KnowingCustomRuntime(CustomRuntime):
    """A `Custom` whose detections say when they were made."""

    def _marks(self, emitted: list[tuple[Key, Emitted]]) -> dict[Expr, Column]:
        return {MOMENT: Column(Type.INT, np.array([each.moment for _, each in emitted], np.int64))}


class OncePipeline(Pipeline):
    """What is found once for all interests of a mobile query."""

    kinds: ClassVar[Kinds] = {**KINDS, Derive: KnowingDeriveOperator, Custom: KnowingCustomRuntime}

    def __init__(self, query: Query, parts: MobileParts, atoms: SourceEvents, name: str) -> None:
        self.parts = parts
        above = RequiredColumns(parts.each, query.functions)
        self._asked: Mapping[str, Collection[Expr]] = {each: above.of[each] for each in parts.given}
        own = Query(parts.once, functions=query.functions, operators=query.operators)
        super().__init__(own, atoms, name, ())

    def _needs(self) -> RequiredColumns:
        return RequiredColumns(self.graph, self.query.functions, asked=self._asked)

    def _read_at_once(self) -> list[RowStore]:
        """Keep the rows that interests may look back at."""
        given = {id(self.streams[name].store) for name in self.parts.given}
        return [store for store in super()._read_at_once() if id(store) not in given]

    def collect(self, into: FoundOnce, keys: FocalKeys | None) -> None:
        """Put what is new into the detections that interests are told of.

        `keys` tells the objects apart, where an object's own events do not count.
        """
        found = [
            self._found(self.streams[name], keys, into.by_own_location)
            for name in self.parts.reported_once
            if len(self.streams[name].new)
        ]
        if found:
            rows, atoms = zip(*found, strict=True)
            into.append(FoundRows.concat(list(rows)), AtomPlaces.concat(list(atoms)))

    def _found(
        self, stream: OperatorStream, keys: FocalKeys | None, by_own_location: bool
    ) -> tuple[FoundRows, AtomPlaces]:
        rows = stream.new
        table = apart_from_deliveries(report(stream, rows, self.context))
        found = FoundRows(
            table, detection_keys(self.context, stream, rows), known_of(self.graph, stream, rows)
        )
        if by_own_location:
            coordinates = self.context.coordinates or Coordinates.PLANE
            return found, own_locations(table.column("geometry"), coordinates)
        return found, places_of_atoms(self.atoms, stream.store.lineage(rows), keys)
