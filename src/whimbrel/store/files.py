"""Files on disk: written under a hidden name, shown when they are committed, hidden again when they go.

    .part-7.parquet.new   ->   part-7.parquet   ->   .part-7.parquet.old   ->   deleted
       staged                     shown                  retired

Spark, Arrow and others pass over names that begin with a dot. Who reads through the log finds a file under
any of its three names, so a commit counts from the moment it is written, and a reader that has begun may
end, whatever is merged meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from whimbrel.errors import DataError
from whimbrel.store.log import Commit


def staged(path: Path) -> Path:
    """Name a file that is not committed yet."""
    return path.with_name(f".{path.name}.new")


def retired(path: Path) -> Path:
    """Name a file that later readers do not need."""
    return path.with_name(f".{path.name}.old")


def find(root: Path, path: str) -> Path:
    """Find a file under whichever of its names it has.

    Raises
    ------
    DataError
        If it is gone: days were deleted since the reader began, or it is slower than a compaction waits for.
    """
    shown = root / path
    for _ in range(3):  # it may get its next name while we look for it under the one before
        for candidate in (shown, staged(shown), retired(shown)):
            if candidate.exists():
                return candidate
    raise DataError(
        f"{shown}: the file is gone; it was deleted or merged while it was to be read. Read again"
    )


def carry_out(root: Path, commit: Commit) -> None:
    """Rename the files of a commit as it asks for. Doing it twice does no harm."""
    for name in commit.remove:
        path = root / name
        if commit.erase:
            # What was merged or replaced before has to go too.
            for each in (path, staged(path), *path.parent.glob(".*.old")):
                each.unlink(missing_ok=True)
            remove_empty(path.parent)
        elif path.exists():
            hide(path)
    for file in commit.add:
        path = root / file.path
        if staged(path).exists():
            show(path)


def hide(path: Path) -> None:
    """Take a file away from those who read the folder, not from those who read through the log."""
    path.rename(retired(path))


def show(path: Path) -> None:
    """Let a staged file be seen."""
    staged(path).rename(path)


def remove_empty(cell: Path) -> None:
    """Delete the folder of a cell, and of its day, if nothing is left in it."""
    for folder in (cell, cell.parent):
        with contextlib.suppress(OSError):
            folder.rmdir()


def sweep(root: Path, kept: Iterable[str], patience_us: int) -> None:
    """Delete staged files that no commit names, and those that were retired so long ago.

    `kept` are the files of the state. The only clock that tells how long a file has been retired is that of
    the disk, so the clock is asked here; no result depends on it.
    """
    known = {staged(root / path) for path in kept}
    stale = [path for path in root.glob("day=*/cell=*/.*.new") if path not in known]
    limit = time.time() - patience_us / 1e6
    stale += [path for path in root.glob("day=*/cell=*/.*.old") if path.stat().st_ctime <= limit]
    for path in stale:
        path.unlink(missing_ok=True)
        remove_empty(path.parent)


@contextlib.contextmanager
def locked(root: Path, name: str) -> Iterator[None]:
    """Wait until nobody else holds the lock `name` of a store, and hold it.

    It ends with the process that holds it, so a crash leaves no lock behind.
    """
    with (root / name).open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
