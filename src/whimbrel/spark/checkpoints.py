"""What a checkpoint is of: the number of shards that its state was partitioned into.

The state of each shard knows that number too, but is opened only when events come. A file in the folder of
the checkpoint lets a stream be refused before it starts, whether there are new events or not.
"""

from __future__ import annotations

import json
from os import PathLike, fspath
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.utils import is_remote

from whimbrel.errors import StateError

FILE = "whimbrel.json"
_SHARDS = "whimbrel.shards"


def with_shards(frame: DataFrame, shards: int | None) -> DataFrame:
    """Let a streaming frame of detections say how many shards it has: in the metadata of its column `id`."""
    return frame if shards is None else frame.withMetadata("id", {_SHARDS: shards})


def without_shards(frame: DataFrame) -> DataFrame:
    """Take that away again, so that no table keeps it."""
    return frame if shards_of(frame) is None else frame.withMetadata("id", {})


def shards_of(frame: DataFrame) -> int | None:
    """Look up the number of shards of a streaming frame; None if it does not say it."""
    said = [field.metadata or {} for field in frame.schema.fields if field.name == "id"]
    return next((int(each[_SHARDS]) for each in said if _SHARDS in each), None)


def settle_shards(frame: DataFrame, checkpoint: str | PathLike[str]) -> None:
    """Refuse a checkpoint of another number of shards; note the number in a new one.

    A checkpoint without a note is left to the workers, which see the state with the next events. So are those
    of Spark Connect, whose files only the server knows.

    Raises
    ------
    StateError
        If the checkpoint was made with another number of shards.
    """
    shards = shards_of(frame)
    if shards is None or is_remote():
        return
    folder = _Folder(frame.sparkSession, fspath(checkpoint))
    if not folder.has_begun():
        folder.write(FILE, json.dumps({"shards": shards}))
        return
    had = _noted(folder.read(FILE))
    if had is not None and had != shards:
        raise other_shards(had, shards, f"{fspath(checkpoint)}: ")


def other_shards(had: int, has: int, where: str = "") -> StateError:
    """Build the error for a stream that was begun with another number of shards."""
    return StateError(
        f"{where}the checkpoint is of a stream with {had} shards, and this one has {has}; start it with "
        f"shards={had} (--shards {had}), or with a new checkpoint"
    )


def _noted(text: str | None) -> int | None:
    """Read the note; one that was cut off while it was written says nothing."""
    try:
        return int(json.loads(text or "{}")["shards"])
    except (ValueError, KeyError, TypeError):
        return None


class _Folder:
    """The folder of a checkpoint in whichever file system Spark finds it."""

    def __init__(self, spark: Any, path: str) -> None:
        self._java = spark._jvm  # noqa: SLF001 - PySpark has no other way to the file systems of Hadoop
        self._path = self._java.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001 - as above

    def _at(self, name: str) -> Any:
        return self._java.org.apache.hadoop.fs.Path(self._path, name)

    def has_begun(self) -> bool:
        """Tell whether a stream has planned a micro-batch here."""
        offsets = self._at("offsets")
        return bool(self._files.exists(offsets) and len(self._files.listStatus(offsets)) > 0)

    def read(self, name: str) -> str | None:
        """Read the text of a file; None if there is none."""
        if not self._files.exists(self._at(name)):
            return None
        stream = self._files.open(self._at(name))
        try:
            return str(self._java.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file, in place of one that is there."""
        stream = self._files.create(self._at(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
