"""Join the small files of a day and cell into larger ones, while others go on reading and appending."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from whimbrel.model.schema import Coordinates
from whimbrel.store import files, read
from whimbrel.store.cells import Int64Array
from whimbrel.store.log import Box, StoredFile, StoreState
from whimbrel.store.write import write_file

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class MergedFile:
    """A staged file, and the files whose place it takes."""

    file: StoredFile
    replaces: tuple[StoredFile, ...]

    @property
    def dropped(self) -> int:
        """How many repeated events were left out."""
        return sum(file.rows for file in self.replaces) - self.file.rows


def groups(
    partition: Sequence[StoredFile], target_rows: int, *, singles: bool = False
) -> Iterator[tuple[StoredFile, ...]]:
    """Group stretches of neighbouring small files that are to become one.

    Only neighbours are joined, so that what came first still stands first. `singles` gives lone files too.
    """
    waiting: list[StoredFile] = []
    rows = 0
    for file in [*partition, None]:
        is_small = file is not None and file.rows < target_rows
        if waiting and (not is_small or rows >= target_rows):
            if len(waiting) > 1 or singles:
                yield tuple(waiting)
            waiting, rows = [], 0
        if file is not None and is_small:
            waiting.append(file)
            rows += file.rows


def merge(
    root: Path,
    group: tuple[StoredFile, ...],
    state: StoreState,
    coordinates: Coordinates | None,
    *,
    drop_duplicates: bool,
) -> MergedFile | None:
    """Write the events of several files to a staged one; None where that would change nothing."""
    schema = read.schema_of(state, coordinates)
    table = pa.concat_tables([read.read_file(root, file, schema) for file in group]).combine_chunks()
    order = _total_order(table)
    if drop_duplicates:
        order = _once(table, order)
    if len(group) == 1 and len(order) == table.num_rows:
        return None
    key = sha256("\n".join(file.path for file in group).encode()).hexdigest()[:16]
    path = f"{group[0].path.rpartition('/')[0]}/part-merged-{key}.parquet"
    file = write_file(root, path, table.take(pa.array(order)), _around(group), group[-1].sequence, None)
    return MergedFile(file, group)


def _total_order(table: pa.Table) -> Int64Array:
    start, end = (table.column(name).to_numpy().view("i8") for name in ("start", "end"))
    order: Int64Array = np.lexsort((_ranks(table.column("source").combine_chunks()), start, end))
    return order


def _ranks(texts: pa.Array) -> Int64Array:
    """Rank every text among all, by code point; null comes first."""
    encoded = texts.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    rank = {name: number for number, name in enumerate(sorted(names), start=1)}
    table = np.array([*(rank[name] for name in names), 0], np.int64)
    return table[encoded.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)]


def _once(table: pa.Table, order: Int64Array) -> Int64Array:
    """Keep of every id the event that comes first."""
    codes = table.column("id").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first = np.unique(codes[order], return_index=True)
    return order[np.sort(first)]


def _around(group: Sequence[StoredFile]) -> Box | None:
    boxes = np.array([file.box for file in group if file.box is not None])
    if not len(boxes):
        return None
    (x0, y0), (x1, y1) = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    return float(x0), float(y0), float(x1), float(y1)


def widen(root: Path, state: StoreState, attributes: Mapping[str, str]) -> list[MergedFile]:
    """Rewrite the files in which an attribute is narrower than the store now has it.

    Spark reads whole numbers as nothing else, so it could not read files of both kinds together.
    """
    changed = {name for name, kind in attributes.items() if state.attributes.get(name, kind) != kind}
    if not changed:
        return []
    kinds = dict(read.attribute_fields(attributes))
    rewritten = []
    for file in state.files.values():
        own = pq.read_schema(files.find(root, file.path))
        if changed.isdisjoint(own.names):
            continue
        schema = pa.schema(
            [pa.field(c.name, kinds[c.name]) if c.name in changed else c for c in own], own.metadata
        )
        table = read.read_file(root, file, schema)
        path = file.path.removesuffix(".parquet") + f"-v{state.version + 1}.parquet"
        rewritten.append(
            MergedFile(write_file(root, path, table, file.box, file.sequence, file.batch), (file,))
        )
    return rewritten
