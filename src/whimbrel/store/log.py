"""What a store holds: a log of commits, each of which names the files that came and those that went.

`_log/` has one small JSON file a commit, numbered without gaps; every so often a checkpoint holds the whole
state, so that opening a store reads one checkpoint and a few commits. A commit is one file that appears
under its name at once. That is the moment at which an append or a compaction has happened: whoever reads
through the log sees all of it or nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from whimbrel.errors import DataError
from whimbrel.io.atomic import writing

FOLDER = "_log"
CHECKPOINT_EVERY = 32
REMEMBERED_BATCHES = 10_000
"""How many names of batches without files of their own are remembered, to know them when they come again."""

Box = tuple[float, float, float, float]
"""Least x and y, largest x and y."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of events, and what is known of it without opening it."""

    path: str
    """Below the root: day=YYYY-MM-DD/cell=NAME/part-NAME.parquet."""
    rows: int
    size: int
    first_end: int
    last_end: int
    first_start: int
    last_start: int
    box: Box | None
    """Around the centres of the locations; None for events without one."""
    points: bool
    """Whether any location is a point."""
    types: tuple[str, ...] | None
    """The event types in it; None: too many to list."""
    sequence: int
    """Which append brought it, or, for a merged file, the last of those."""
    batch: str | None
    """The batch whose events it holds; None for a merged file."""

    @staticmethod
    def from_json(fields: dict[str, Any]) -> StoredFile:
        """Make it of what JSON has of it: lists instead of tuples."""
        box, types = fields["box"], fields["types"]
        tuples = {
            "box": None if box is None else tuple(box),
            "types": None if types is None else tuple(types),
        }
        return StoredFile(**fields | tuples)

    @property
    def day(self) -> str:
        """The day on which its events ended."""
        return self.path.split("/")[0].removeprefix("day=")

    @property
    def cell(self) -> str:
        """The cell in which its events lie."""
        return self.path.split("/")[1].removeprefix("cell=")


@dataclass(frozen=True, slots=True)
class Batch:
    """One append: its place among all, and enough to tell whether it comes again unchanged."""

    name: str
    sequence: int
    rows: int
    check: int
    generation: int = 0
    """How often it has been replaced."""


@dataclass(frozen=True, slots=True)
class Commit:
    """A change of the store, all of it or nothing."""

    version: int
    add: tuple[StoredFile, ...] = ()
    remove: tuple[str, ...] = ()
    batch: Batch | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Types of attributes that are new or have become wider."""
    erase: bool = False
    """Whether the removed files are deleted at once: nobody may read them any longer."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """What the store holds after a commit."""

    version: int = 0
    sequence: int = 0
    files: Mapping[str, StoredFile] = field(default_factory=dict)
    batches: Mapping[str, Batch] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)

    def after(self, commit: Commit) -> StoreState:
        """Apply one more commit."""
        gone = set(commit.remove)
        files = {path: file for path, file in self.files.items() if path not in gone}
        files |= {file.path: file for file in commit.add}
        batches, sequence = dict(self.batches), self.sequence
        if commit.batch is not None:
            batches[commit.batch.name] = commit.batch
            sequence = max(sequence, commit.batch.sequence)
        if len(batches) > REMEMBERED_BATCHES:
            batches = _remembered(batches, files.values())
        return StoreState(commit.version, sequence, files, batches, {**self.attributes, **commit.attributes})

    def of_batch(self, name: str) -> list[StoredFile]:
        """List the files that hold the events of one batch and no others."""
        return [file for file in self.files.values() if file.batch == name]

    @property
    def partitions(self) -> dict[tuple[str, str], list[StoredFile]]:
        """The files of every day and cell, in the order in which their events came."""
        by_partition: dict[tuple[str, str], list[StoredFile]] = {}
        for file in sorted(self.files.values(), key=lambda file: (file.day, file.sequence, file.path)):
            by_partition.setdefault((file.day, file.cell), []).append(file)
        return by_partition


def _remembered(batches: dict[str, Batch], files: Iterable[StoredFile]) -> dict[str, Batch]:
    own = {file.batch for file in files}
    others = [name for name in batches if name not in own]
    forgotten = set(others[:-REMEMBERED_BATCHES])
    return {name: batch for name, batch in batches.items() if name not in forgotten}


class Log:
    """The commits of a store, on disk."""

    def __init__(self, root: Path) -> None:
        self.folder = root / FOLDER
        self._state = StoreState()

    def state(self) -> StoreState:
        """Read what has been committed since the last call."""
        for _ in range(3):
            try:
                self._state = self._read(self._state)
            except FileNotFoundError:
                # A writer has put a checkpoint in the place of the commits that were just listed.
                self._state = StoreState()
                continue
            return self._state
        raise DataError(f"{self.folder}: the log changes faster than it can be read")

    def _read(self, state: StoreState) -> StoreState:
        commits, checkpoints = self._versions()
        newest = max(checkpoints, default=0)
        if newest > state.version and state.version + 1 not in commits:
            state = _state_from(json.loads(self._path(newest, checkpoint=True).read_bytes()))
        for version in sorted(version for version in commits if version > state.version):
            if version != state.version + 1:
                raise DataError(f"{self.folder}: commit {state.version + 1} is missing; the log is damaged")
            state = state.after(self._commit(version))
        return state

    def _versions(self) -> tuple[set[int], set[int]]:
        commits: set[int] = set()
        checkpoints: set[int] = set()
        for path in self.folder.iterdir():
            number, _, ending = path.name.partition(".")
            if number.isdigit() and ending in ("json", "checkpoint.json"):
                (commits if ending == "json" else checkpoints).add(int(number))
        return commits, checkpoints

    def _path(self, version: int, *, checkpoint: bool = False) -> Path:
        return self.folder / f"{version:012d}.{'checkpoint.' if checkpoint else ''}json"

    def _commit(self, version: int) -> Commit:
        return _commit_from(json.loads(self._path(version).read_bytes()))

    def last_commit(self) -> Commit | None:
        """Find the latest commit, if there is any."""
        version = self.state().version
        return self._commit(version) if version else None

    def write(self, commit: Commit) -> None:
        """Make a change happen. Nobody else may have written the same version.

        Raises
        ------
        DataError
            If somebody wrote it without holding the store's lock.
        """
        target = self._path(commit.version)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                file.write(json.dumps(asdict(commit)).encode())
                file.flush()
                os.fsync(file.fileno())
            os.link(part, target)  # unlike a rename, it does not replace
        except FileExistsError as error:
            raise DataError(f"{target}: somebody else has written to the store meanwhile") from error
        finally:
            part.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Write a checkpoint if it is time for one, and delete the commits before the last but one."""
        state = self.state()
        if state.version % CHECKPOINT_EVERY:
            return
        with writing(self._path(state.version, checkpoint=True)) as file:
            file.write(json.dumps(_state_to(state)).encode())
        commits, checkpoints = self._versions()
        kept_from = sorted(checkpoints)[-2:][0]
        for version in sorted(commits | checkpoints):
            if version < kept_from:
                self._path(version).unlink(missing_ok=True)
                self._path(version, checkpoint=True).unlink(missing_ok=True)


def _commit_from(fields: dict[str, Any]) -> Commit:
    return Commit(
        fields["version"],
        tuple(StoredFile.from_json(file) for file in fields["add"]),
        tuple(fields["remove"]),
        None if fields["batch"] is None else Batch(**fields["batch"]),
        fields["attributes"],
        fields["erase"],
    )


def _state_to(state: StoreState) -> dict[str, Any]:
    return {
        "version": state.version,
        "sequence": state.sequence,
        "files": [asdict(file) for file in state.files.values()],
        "batches": [asdict(batch) for batch in state.batches.values()],
        "attributes": dict(state.attributes),
    }


def _state_from(fields: dict[str, Any]) -> StoreState:
    files = [StoredFile.from_json(file) for file in fields["files"]]
    batches = [Batch(**batch) for batch in fields["batches"]]
    return StoreState(
        fields["version"],
        fields["sequence"],
        {file.path: file for file in files},
        {batch.name: batch for batch in batches},
        fields["attributes"],
    )


def next_commit(state: StoreState, commit: Commit) -> Commit:
    """Place a commit after the last."""
    return replace(commit, version=state.version + 1)
