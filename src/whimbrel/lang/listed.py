"""Tables of focal objects: a key in each row, perhaps a radius and a lifetime of its own."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from whimbrel.errors import DataError, QueryError
from whimbrel.graph.mobile import ListedObject
from whimbrel.model.frames import EventTable, are_files, batches
from whimbrel.model.schema import Type, Value

if TYPE_CHECKING:
    import pyarrow as pa

FocalTable: TypeAlias = "EventTable | str | PathLike[str]"
"""A table of focal objects: in memory, as events are, or the path of a CSV or Parquet file."""

_KEY, _RADIUS, _LIFETIME = COLUMNS = ("key", "radius", "lifetime")
_NULLS = ["", "null", "NULL"]


def listed_objects(table: FocalTable, kind: Type | None = None) -> tuple[ListedObject, ...]:
    """Read a table of focal objects; `kind` is the type of the attribute that tells them apart.

    Raises
    ------
    DataError
        If it has no column `key`, a key stands there twice, or a value is none; it names the row.
    """
    if are_files(table):
        if not isinstance(table, str | PathLike):
            raise DataError("a table of focal objects is one file")
        return listed_file(Path(table), kind)
    return _listed(batches(table), "the table of focal objects", kind)


def listed_file(path: Path, kind: Type | None = None) -> tuple[ListedObject, ...]:
    """Read a table of focal objects from a CSV or Parquet file."""
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    readers = {".csv": _csv, ".parquet": _parquet}
    if path.suffix not in readers:
        raise DataError(f"{path.name}: a table of focal objects ends in {' or '.join(readers)}")
    return _listed(iter(readers[path.suffix](path, kind).to_batches()), path.name, kind)


def _csv(path: Path, kind: Type | None) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    # Amounts have units, and `007` is no number where the attribute is a text.
    texts = {_RADIUS: pa.string(), _LIFETIME: pa.string()} | (
        {_KEY: pa.string()} if kind is Type.STRING else {}
    )
    options = csv.ConvertOptions(column_types=texts, strings_can_be_null=True, null_values=_NULLS)
    try:
        return csv.read_csv(path, convert_options=options)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path.name} is no CSV: {error}") from error


def _parquet(path: Path, _kind: Type | None) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path.name} is no Parquet file: {error}") from error


def _listed(rows: Iterator[pa.RecordBatch], where: str, kind: Type | None) -> tuple[ListedObject, ...]:
    found: dict[Value, ListedObject] = {}
    number = 0
    for batch in rows:
        _check_columns(batch.schema.names, where)
        columns = [
            batch.column(name).to_pylist() if name in batch.schema.names else [None] * batch.num_rows
            for name in COLUMNS
        ]
        for key, radius, lifetime in zip(*columns, strict=True):
            number += 1
            row = f"{where}: row {number}"
            made = _object(checked_key(key, kind, row), radius, lifetime, row)
            if made.key in found:
                raise DataError(f"{row}: the key {made.key!r} is there already; each object has one row")
            found[made.key] = made
    return tuple(found.values())


def _check_columns(names: list[str], where: str) -> None:
    if _KEY not in names:
        has = ", ".join(names) or "none"
        raise DataError(f"{where} has no column 'key'; its columns are {has}")
    for wanted in (_RADIUS, _LIFETIME):
        near = get_close_matches(wanted, names, n=1, cutoff=0.75)
        if wanted not in names and near:
            raise DataError(f"{where} has a column {near[0]!r}; did you mean {wanted!r}?")


def checked_key(key: Any, kind: Type | None, where: str) -> Value:
    """Give the key of an object, which has to be of the type that its attribute has."""
    if key is None:
        raise DataError(f"{where} has no key")
    if isinstance(key, float) and key.is_integer() and kind is not Type.FLOAT:
        key = int(key)  # a column of whole numbers with gaps
    expected = {Type.INT: int, Type.STRING: str, Type.BOOL: bool}.get(kind) if kind else None
    fits = expected is None or type(key) is expected
    if not fits or not isinstance(key, bool | int | float | str):
        wanted = kind.value if kind else "text or number"
        raise DataError(
            f"{where}: the key {key!r} is no {wanted}, as the attribute is that tells objects apart"
        )
    return float(key) if kind is Type.FLOAT and not isinstance(key, str) else key


def _object(key: Value, radius: Any, lifetime: Any, row: str) -> ListedObject:
    try:
        return ListedObject(key, _given(radius), _given(lifetime))
    except (DataError, QueryError) as error:
        raise DataError(f"{row}: {error}") from None


def _given(value: Any) -> Any:
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124 (NaN is no value)
