"""Numbers with a decimal comma, as files have them whose fields are parted by semicolons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.io import _kinds
from whimbrel.io._pieces import ReadPlan
from whimbrel.model.schema import Type


class DecimalCommas:
    """Finds the columns whose values are all numbers, with a comma in some of them, and reads them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._kinds: dict[str, Type | None] = dict.fromkeys(names)
        self._names: frozenset[str] = frozenset()

    def see(self, batch: pa.RecordBatch) -> None:
        """Take more values into account."""
        for name, kind in self._kinds.items():
            if kind is not Type.STRING:
                self._kinds[name] = _kinds.kind_of_texts(_with_points(batch.column(name)), kind)

    def settle(self, found: Mapping[str, Type | None], plan: ReadPlan) -> dict[str, Type | None]:
        """Return what columns hold, given what they hold if a comma is a comma.

        A declared column is left to its schema, unless its numbers have commas.
        """
        self._names = frozenset(
            name
            for name, kind in found.items()
            if kind is Type.STRING and self._kinds[name] in (Type.FLOAT, Type.INT)
        )
        return {
            name: self._kinds[name] if name in self._names else kind
            for name, kind in found.items()
            if name in self._names or name not in plan.declared
        }

    def plain(self, name: str, texts: pa.Array) -> pa.Array:
        """Return the values of a column with decimal points."""
        return _with_points(texts) if name in self._names else texts


def _with_points(texts: pa.Array) -> pa.Array:
    # Only one comma makes a number: 1,234,567 and 1.234,5 stay what they are, which is text.
    return pc.if_else(
        pc.match_substring_regex(texts, r"^[+-]?\d+,\d+$"), pc.replace_substring(texts, ",", "."), texts
    )
