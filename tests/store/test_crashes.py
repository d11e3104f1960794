"""Wherever a writer dies, the store holds either what it held before or what it was to hold after."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from whimbrel.store import Store, compact, event_store, files, log, write

DAY_S = 86_400


class Killed(BaseException):
    """Stands for the end of the process."""


def rows(first: int, count: int = 8) -> list[dict]:
    """Events of two days in two cells, whatever the first number is."""
    return [
        {"id": f"e{n}", "type": "A", "time": n % 20 * DAY_S // 4, "x": 10.0 * (n % 2), "y": 0.0, "v": n}
        for n in range(first, first + count)
    ]


def ids(store: Store) -> list[str]:
    return sorted(store.scan().read_all().column("id").to_pylist())


def ids_in_folder(root: Path) -> list[str]:
    """What others see, who read the folder without Whimbrel."""
    return sorted(ds.dataset(root, partitioning="hive").to_table(columns=["id"]).column("id").to_pylist())


def hidden(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".*") if path.is_file()]


def die_at(monkeypatch: pytest.MonkeyPatch, place: object, name: str, call: int, *, after: bool) -> None:
    """End the process when a function is called for the n-th time, before or after it has done its work."""
    real, calls = getattr(place, name), [0]

    def dying(*args, **settings):
        calls[0] += 1
        if calls[0] == call and not after:
            raise Killed
        done = real(*args, **settings)
        if calls[0] == call:
            raise Killed
        return done

    monkeypatch.setattr(place, name, dying)
    # A process that is killed does not tidy up.
    monkeypatch.setattr(write.Staged, "discard", lambda staged, root: None)


CHANGES: dict[str, Callable[[Store], object]] = {
    "append": lambda store: store.append(rows(100), batch="new"),
    "replace": lambda store: store.append(rows(10), batch="second"),
    "widen": lambda store: store.append([{"id": "w", "type": "A", "time": 0, "v": 0.5}], batch="new"),
    "compact": lambda store: store.compact(),
}
PLACES = {
    "file": [(write, "write_file"), (compact, "write_file")],
    "commit": [(log.Log, "write")],
    "hide": [(files, "hide")],
    "show": [(files, "show")],
    "tidy": [(log.Log, "tidy")],
}


@pytest.mark.parametrize(("call", "after"), [(1, False), (2, True)], ids=["first", "second"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_crash_leaves_all_or_nothing(new_store, monkeypatch, change, place, call, after):
    store = new_store(cell_m=10)
    store.append(rows(0), batch="first")
    store.append(rows(20), batch="second")
    old = ids(store)
    with monkeypatch.context() as patched:
        for module, name in PLACES[place]:
            die_at(patched, module, name, call, after=after)
        try:
            CHANGES[change](store)
            survived = True
        except Killed:
            survived = False
    again = Store.open(store.root)
    new = sorted({"append": [*old, *(r["id"] for r in rows(100))],
                  "replace": [r["id"] for r in (*rows(0), *rows(10))],
                  "widen": [*old, "w"], "compact": old}[change])  # fmt: skip
    assert ids(again) in ([new] if survived else [old, new])
    held = ids(again)
    again.repair(patience=0)
    assert ids(again) == ids_in_folder(store.root) == held
    assert hidden(store.root) == []
    CHANGES[change](again)
    assert ids(again) == ids_in_folder(store.root) == new


def test_a_failure_leaves_nothing_behind(new_store, monkeypatch):
    store = new_store(cell_m=10)
    store.append(rows(0))

    def fails(*args):
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(log.Log, "write", fails)
        with pytest.raises(OSError, match="no space"):
            store.append(rows(100))
    assert hidden(store.root) == []
    assert ids(store) == ids_in_folder(store.root) == sorted(row["id"] for row in rows(0))


@pytest.mark.slow
def test_a_killed_process_leaves_the_store_readable(new_store):
    store = new_store(cell_m=10)
    store.append(rows(0))
    script = textwrap.dedent("""
        import sys
        from tests.store.test_crashes import rows
        from whimbrel.store import Store
        store = Store.open(sys.argv[1])
        for number in range(1, 1000):
            store.append(rows(20 * number), batch=number)
            if number % 5 == 0:
                store.compact()
            print(number, flush=True)
    """)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "-c", script, store.root], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        done = [process.stdout.readline() for _ in range(12)]
        process.send_signal(signal.SIGKILL)
    assert done[-1] == "12\n"
    whole = {row["id"] for number in range(13) for row in rows(20 * number)}
    found = ids(Store.open(store.root))
    assert len(found) == len(set(found))
    assert whole <= set(found)
    assert len(found) % 8 == 0
    Store.open(store.root).repair()
    assert ids_in_folder(store.root) == found


def test_a_reader_that_has_begun_may_end(new_store):
    store = new_store(cell_m=10)
    for batch in range(3):
        store.append(rows(20 * batch), batch=batch)
    expected = ids(store)
    reader = store.scan()
    first = reader.read_next_batch()
    assert store.compact().files_before > 0
    assert sorted([*first.column("id").to_pylist(), *reader.read_all().column("id").to_pylist()]) == expected


def test_a_file_that_is_gone_is_an_error_that_says_so(new_store):
    store = new_store(cell_m=10)
    store.append(rows(0))
    reader = store.scan()
    store.retain(before="1980-01-01T00:00:00Z")
    with pytest.raises(event_store.DataError, match="the file is gone"):
        reader.read_all()


def test_compaction_gives_way_to_somebody_who_replaces_a_file_meanwhile(new_store, monkeypatch):
    store = new_store(cell_m=1000)
    store.append(rows(0), batch="first")
    store.append(rows(0, 4), batch="second")
    other, real = Store.open(store.root), compact.merge

    def slow(*args, **settings):
        made = real(*args, **settings)
        other.append(rows(50), batch="second")
        return made

    with monkeypatch.context() as patched:
        patched.setattr(compact, "merge", slow)
        store.compact()
    assert ids(store) == ids_in_folder(store.root) == sorted(r["id"] for r in (*rows(0), *rows(50)))


def test_readers_see_whole_appends_while_others_write_and_merge(new_store):
    store = new_store(cell_m=10)
    seen: list[list[str]] = []
    ended = threading.Event()

    def read() -> None:
        mine = Store.open(store.root)
        while not ended.is_set():
            seen.append(ids(mine))

    def append(name: str) -> None:
        mine = Store.open(store.root)
        for number in range(6):
            mine.append(
                [row | {"id": f"{name}-{number}-{row['id']}"} for row in rows(0)], batch=f"{name}-{number}"
            )

    writers = [threading.Thread(target=append, args=(name,)) for name in "ab"]
    reader = threading.Thread(target=read)
    for thread in (*writers, reader):
        thread.start()
    while any(writer.is_alive() for writer in writers):
        store.compact()
    ended.set()
    reader.join()
    assert len(ids(store)) == 2 * 6 * 8
    for found in seen:
        counts = Counter(identity.rpartition("-")[0] for identity in found)
        assert set(counts.values()) <= {8}
    assert [len(found) for found in seen] == sorted(len(found) for found in seen)
