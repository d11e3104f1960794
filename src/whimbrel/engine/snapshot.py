"""The state of a session as one self-describing block of bytes.

Layout: the mark `WBSNAP`, the version, the length of a JSON directory, the directory, then the blocks one
after the other. A block is a NumPy array (its raw bytes), Arrow record batches (IPC stream) or JSON. No
pickle: a snapshot can be read by other versions and languages, and reading one cannot run code.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.row_store import Chunk, Lineage, RowStore
from whimbrel.engine.values import from_arrow, to_arrow
from whimbrel.errors import StateError
from whimbrel.graph.expressions import Attribute, Binary, Call, Expr, Literal, PartRef, Unary
from whimbrel.model.schema import Type

MARK = b"WBSNAP"
VERSION = 3
"""Raised when older snapshots would be misread: 2 keeps the content of events that came without ids, and the
last sample of movers that stop or stay; 3 names the state of operators as they declare it."""
_HEAD = struct.Struct("<6sHQ")


class Blocks:
    """Named blocks, to be written or as they were read."""

    def __init__(self) -> None:
        self._blocks: dict[str, tuple[dict[str, Any], bytes]] = {}

    def put_json(self, name: str, value: Any) -> None:
        """Add a value that JSON can hold."""
        self._blocks[name] = ({"kind": "json"}, json.dumps(value).encode())

    def put_array(self, name: str, array: np.ndarray) -> None:
        """Add an array."""
        array = np.ascontiguousarray(array)
        self._blocks[name] = (
            {"kind": "array", "dtype": array.dtype.str, "shape": array.shape},
            array.tobytes(),
        )

    def put_arrays(self, name: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Add several arrays below one name."""
        self.put_json(name, list(arrays))
        for key, array in arrays.items():
            self.put_array(f"{name}/{key}", array)

    def put_batches(self, name: str, batches: Iterable[pa.RecordBatch]) -> None:
        """Add record batches, each with a schema of its own."""
        batches = list(batches)
        self.put_json(name, len(batches))
        for number, batch in enumerate(batches):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch)
            self._blocks[f"{name}/{number}"] = ({"kind": "arrow"}, sink.getvalue().to_pybytes())

    def json(self, name: str) -> Any:
        """Give a JSON value."""
        return json.loads(self._find(name, "json")[1])

    def array(self, name: str) -> np.ndarray:
        """Give an array."""
        about, content = self._find(name, "array")
        return np.frombuffer(content, np.dtype(about["dtype"])).reshape(about["shape"]).copy()

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Give several arrays below one name."""
        return {key: self.array(f"{name}/{key}") for key in self.json(name)}

    def batches(self, name: str) -> list[pa.RecordBatch]:
        """Give record batches."""
        found = []
        for number in range(self.json(name)):
            with pa.ipc.open_stream(self._find(f"{name}/{number}", "arrow")[1]) as reader:
                found.append(reader.read_next_batch())
        return found

    def _find(self, name: str, kind: str) -> tuple[dict[str, Any], bytes]:
        if name not in self._blocks or self._blocks[name][0]["kind"] != kind:
            raise StateError(f"the snapshot has no {kind} block {name!r}; it is damaged or of another query")
        return self._blocks[name]

    def to_bytes(self) -> bytes:
        """Write everything as one block of bytes."""
        return self._written({})

    def parted(self, least: int) -> tuple[bytes, dict[str, bytes]]:
        """Write all but blocks of at least so many bytes, and give these by names made of what they hold.

        So who keeps them sees which have been written before: chunks of history stay as they are for long.
        """
        names = {
            name: blake2b(content, digest_size=16).hexdigest()
            for name, (_, content) in self._blocks.items()
            if len(content) >= least
        }
        return self._written(names), {names[name]: self._blocks[name][1] for name in names}

    def _written(self, apart: Mapping[str, str]) -> bytes:
        directory, contents, begin = [], [], 0
        for name, (about, content) in self._blocks.items():
            entry = {**about, "name": name, "begin": begin, "size": len(content)}
            if name in apart:
                entry["apart"] = apart[name]
            else:
                contents.append(content)
                begin += len(content)
            directory.append(entry)
        head = json.dumps(directory).encode()
        return b"".join([_HEAD.pack(MARK, VERSION, len(head)), head, *contents])

    @classmethod
    def from_bytes(cls, data: bytes, apart: Callable[[str], bytes] | None = None) -> Blocks:
        """Read what `to_bytes` or `parted` wrote; `apart` looks up a block that was written apart.

        Raises
        ------
        StateError
            If it is no snapshot, damaged, or of a version that this one does not know.
        """
        if len(data) < _HEAD.size or data[: len(MARK)] != MARK:
            raise StateError("this is no Whimbrel snapshot")
        _, version, size = _HEAD.unpack_from(data)
        if version != VERSION:
            raise StateError(
                f"the snapshot has version {version}; this Whimbrel reads version {VERSION}. "
                f"Restore it with the Whimbrel that made it, or start again from the events"
            )
        try:
            directory = json.loads(data[_HEAD.size : _HEAD.size + size])
        except ValueError as error:
            raise StateError("the snapshot is damaged: its directory cannot be read") from error
        blocks, body = cls(), _HEAD.size + size
        for entry in directory:
            if "apart" in entry:
                if apart is None:
                    raise StateError(f"the snapshot is only a part: block {entry['name']!r} is elsewhere")
                blocks._blocks[entry["name"]] = (entry, apart(entry["apart"]))
                continue
            begin = body + entry["begin"]
            if begin + entry["size"] > len(data):
                raise StateError(f"the snapshot is damaged: block {entry['name']!r} is cut off")
            blocks._blocks[entry["name"]] = (entry, data[begin : begin + entry["size"]])
        return blocks


def save_store(blocks: Blocks, name: str, store: RowStore) -> None:
    """Write the remembered rows of a stream."""
    keys = [[expr_to_json(key) for key in chunk.columns] for chunk in store.chunks]
    firsts = [chunk.first for chunk in store.chunks]
    blocks.put_json(name, {"total": store.total, "columns": keys, "first": firsts})
    blocks.put_batches(f"{name}/rows", [_rows(chunk) for chunk in store.chunks])
    for number, chunk in enumerate(store.chunks):
        if chunk.lineage is not None:
            arrays = {"offsets": chunk.lineage.offsets, "refs": chunk.lineage.refs}
            blocks.put_arrays(f"{name}/lineage/{number}", arrays)


def _rows(chunk: Chunk) -> pa.RecordBatch:
    arrays = [
        pa.array(chunk.start),
        pa.array(chunk.end),
        *(to_arrow(column) for column in chunk.columns.values()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))])


def load_store(blocks: Blocks, name: str, store: RowStore, *, is_atomic: bool = False) -> None:
    """Read back what `save_store` wrote."""
    about = blocks.json(name)
    store.total = about["total"]
    store.chunks = []
    for number, batch in enumerate(blocks.batches(f"{name}/rows")):
        start, end, *columns = batch.columns
        keys = [expr_from_json(key) for key in about["columns"][number]]
        lineage = None if is_atomic else Lineage(**blocks.arrays(f"{name}/lineage/{number}"))
        ends = end.to_numpy().copy()
        store.chunks.append(
            Chunk(
                about["first"][number],
                start.to_numpy().copy(),
                ends,
                {key: from_arrow(column) for key, column in zip(keys, columns, strict=True)},
                lineage,
                int(ends.max()),
            )
        )


def expr_to_json(expr: Expr) -> Any:
    """Write an expression as JSON."""
    match expr:
        case Literal(value, kind):
            return ["literal", value, kind.value if kind else None]
        case Attribute(part, name):
            return ["attribute", part, name]
        case PartRef(name):
            return ["part", name]
        case Unary(operator, operand):
            return ["unary", operator, expr_to_json(operand)]
        case Binary(operator, left, right):
            return ["binary", operator, expr_to_json(left), expr_to_json(right)]
        case Call(function, arguments):
            return ["call", function, *(expr_to_json(argument) for argument in arguments)]
    raise TypeError(f"not an expression: {expr!r}")


def expr_from_json(data: Any) -> Expr:
    """Read what `expr_to_json` wrote."""
    match data:
        case ["literal", value, kind]:
            return Literal(value, Type(kind) if kind else None)
        case ["attribute", part, name]:
            return Attribute(part, name)
        case ["part", name]:
            return PartRef(name)
        case ["unary", operator, operand]:
            return Unary(operator, expr_from_json(operand))
        case ["binary", operator, left, right]:
            return Binary(operator, expr_from_json(left), expr_from_json(right))
        case ["call", function, *arguments]:
            return Call(function, tuple(expr_from_json(argument) for argument in arguments))
    raise StateError(f"the snapshot holds an expression that cannot be read: {data!r}")
