"""Compile the kernels of the engine ahead, in several processes at once, and say how far that is.

What a query needs follows from its operators. For every kind there is an *exercise*: a small query with
events that reaches the kernels of this kind. Run as a trial, with all kernels as plain Python, it shows which
ones are called and with what; those without machine code on disk are dealt out to processes, each of which
runs the exercises again and compiles its share. Numba keeps the results on disk, where every process finds
them.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakSet

from whimbrel.engine.kernels.relation_address import RelationKernel
from whimbrel.engine.session import Session
from whimbrel.engine.type_index import FEW
from whimbrel.graph.expressions import PLACE_RELATIONS, Call, Expr, walk
from whimbrel.graph.query import Compilable, Query, compiled
from whimbrel.lang.wbl.compile import compile_text
from whimbrel.model.frames import EventPaths, EventTable, are_files, listed_paths, row_count
from whimbrel.space.kernels.jit import ALLOWED, Kernel, TrialRun

Report = Callable[[int, int], None]
"""Called with how many kernels have been compiled, and how many there are to compile."""

LITTLE_BYTES, LITTLE_ROWS = 40_000, 400
"""Inputs up to this size need no machine code, or hardly any."""

EXERCISES = {
    "common": "define Seen(n) detect A as a assign n = a.v",
    "match": "define Pairs detect A as a then B as b within 10 s where b.v > a.v group by k",
    "absence": "define Lone detect A as a then not B as b for 3 s where b.v > a.v group by k",
    "choice": """
        define Kept(n) detect A as a then B as b within 10 s where b.v > a.v assign n = b.v context cumulative
        """,
    "repeat": "define Runs(n, f) detect A{2,3} as a within 10 s assign n = sum(a.v), f = max(a.w)",
    "aggregate": """
        define Means(m, d, f, t, c) over 5 s detect A
        assign m = avg(A.v), d = distinct(A.k), f = first(A.k), t = max(A.w), c = count(A.v)
        group by k
        define Every(n, s) every 5 s detect A assign n = sum(A.w), s = min(A.v)
        """,
    "steps": """
        define Walk detect A(v >= 0) as a followed by any A(v > a.v)+ as b followed by B as c within 10 s
        group by k
        """,
    "skipping": """
        define Walk detect A(v >= 0) as a next B(v > a.v)+ greedy as b within 10 s group by k
        skip past last event
        """,
    "motion": """
        region Round = circle(3, 3, 3)
        region Square = box(2, 2, 6, 6)
        define In detect A enters Square group by k
        define Out detect A leaves Round group by k
        define Still detect A stays in Square for 1 s group by k
        define Stop detect A stops for 1 s within 5 m group by k
        """,
    "shapes": "",
    "meeting": "define Met detect A as a meets A as b within 5 m for 1 s group by k",
    "conditions": "",
    "following": """
        define Seen detect A(v > 1) as a assign n = a.v
        define Lone detect A as a then not B as b for 3 s where b.v > a.v group by k
        define Means(m) over 2 s detect A assign m = avg(A.v) group by k
        around A as near group by k within 3 m report Seen, Lone, Means lifetime 5 s deliver changes
        around A as wide group by k box 4 m, 4 m report Seen lifetime 5 s excluding itself
        around A as inside group by k within 3 m of situations report Seen lifetime 5 s deliver new
        around A as ahead group by k ahead 4 m, 90 degrees report Lone
          refresh when quality falls over 5 s quality 0.9
        around A as moved group by k outline 'POLYGON ((-2 -2, 2 -2, 0 3, -2 -2))' report Lone
          refresh when moved 1 m until silent for 3 s
        around A as shared group by k within 3 m report Lone completeness strong on a grid of 2 m
        """,
}
"""For each kind of operator a query that reaches its kernels. Events are of types A and B; v is a whole
number, w a float, k a text. `conditions` stands for subscriptions and for queries by the dozen."""

_SECONDS = {"match_step": 11, "walk": 8, "address_of_related": 5, "hulls": 2}
"""What takes much longer to compile than the usual second, so that it is begun first."""


@dataclass(frozen=True)
class Warmed:
    """What was compiled, what was there already, and where all of it is kept."""

    compiled: int
    kept: int
    folders: tuple[Path, ...]
    bytes: int


def warm(*queries: Query | Compilable, report: Report | None = None, processes: int | None = None) -> Warmed:
    """Compile ahead what queries need, or everything: for images, and for machines that run them later.

    Nothing is compiled that is on disk already. The machine code is kept beside the package, or, where that
    cannot be written to, in the cache folder of the user, or where `NUMBA_CACHE_DIR` says.

    Parameters
    ----------
    queries
        Those that will run; none stands for all kinds of queries.
    report
        Called with how many kernels are done, and of how many.
    processes
        How many compile at once; None: one for every core.

    Examples
    --------
    >>> import whimbrel as wb
    >>> done = wb.warm(wb.compile("define Hot detect Temp(v > 30)"))      # doctest: +SKIP
    >>> done.compiled, done.bytes                                         # doctest: +SKIP
    (7, 183022)
    """
    names = exercises_together(queries) if queries else list(EXERCISES)
    work = CompileWork.of(names)
    work.run(report, processes)
    places = {kernel.name: kernel for kernel in work.kernels}
    folders = {Path(kernel.machine.stats.cache_path) for kernel in places.values()}
    size = sum(file.stat().st_size for folder in folders for file in folder.glob("*.nb[ci]"))
    return Warmed(len(work.missing), len(places) - len(work.missing), tuple(sorted(folders)), size)


def exercises_together(queries: Sequence[Query | Compilable]) -> list[str]:
    """Name the exercises that reach the kernels of queries in one session: many share an index."""
    names = set().union(*map(exercises_of, queries))
    return sorted(names | {"conditions"} if len(queries) >= FEW else names)


def exercises_of(query: Query | Compilable) -> set[str]:
    """Name the exercises that reach the kernels of a query."""
    query = compiled(query)
    operators = query.graph.operators
    following = {"following"} if query.mobile else set()
    found = {
        "common",
        *following,
        *(operator.exercise for operator in operators if operator.exercise is not None),
    }
    # The kernel of patterns leaves out what none of them has; one that has more runs them all.
    for more, less in (("choice", "absence"), ("choice", "match"), ("absence", "match")):
        found -= {less} if more in found else set()
    if any(_compares_places(each) for op in operators if op.is_composite for each in op.conditions):
        found.add("shapes")
    return found


def _compares_places(condition: Expr) -> bool:
    return any(isinstance(node, Call) and node.function in PLACE_RELATIONS for node in walk(condition))


def is_much(events: EventTable | EventPaths) -> bool:
    """Tell whether an input is so large that it pays to compile, or of unknown size."""
    if are_files(events):
        from whimbrel.io.files import find_files

        files = [file for path in listed_paths(events) for file in find_files(Path(path))]
        return sum(file.stat().st_size for file in files) > LITTLE_BYTES
    rows = row_count(events)
    return rows is None or rows > LITTLE_ROWS


def compile_meanwhile(
    query: Query | Compilable, events: Any, report: Report | None = None
) -> Callable[[], None]:
    """Begin to compile what a query needs, if there are many events; give what waits for the end of that."""
    return ready(query, report).wait if is_much(events) else lambda: None


def ready(query: Query | Compilable, report: Report | None = None) -> CompileWork:
    """Begin to compile what a query needs, in the background; `wait` for it before the query runs."""
    needed = tuple(sorted(exercises_of(query)))
    if needed not in _BEGUN:
        _BEGUN[needed] = CompileWork.of(needed)
        _BEGUN[needed].start(report)
    return _BEGUN[needed]


_RUNNING: WeakSet[subprocess.Popen[str]] = WeakSet()


@atexit.register
def _leave() -> None:
    """Do not go on compiling for a program that has ended; what is done is on disk."""
    for process in list(_RUNNING):
        if process.poll() is None:
            process.terminate()


_BEGUN: dict[tuple[str, ...], CompileWork] = {}
"""What this process has begun already."""


class CompileWork:
    """Kernels that have to be compiled, and the processes that do it."""

    def __init__(self, exercises: Sequence[str], kernels: list[Kernel[..., Any]], missing: list[str]) -> None:
        self.exercises = exercises
        self.kernels = kernels
        self.missing = missing
        self._listeners: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._done = 0

    @classmethod
    def of(cls, exercises: Sequence[str]) -> CompileWork:
        """Find out what exercises call, and which of it is not on disk."""
        met: dict[str, Kernel[..., Any]] = {}
        missing: set[str] = set()

        def meet(kernel: Kernel[..., Any], args: Any) -> None:
            met[kernel.name] = kernel
            if kernel.name not in missing and not kernel.is_kept(args):
                missing.add(kernel.name)

        if ALLOWED.is_endless:
            return cls(exercises, [], [])
        with TrialRun(lambda _: False, meet):
            for name in exercises:
                exercise(name)
        return cls(exercises, list(met.values()), sorted(missing, key=_first_the_longest))

    def run(self, report: Report | None = None, processes: int | None = None) -> None:
        """Compile all of it."""
        self.start(report, processes)
        self.wait()

    def start(self, report: Report | None = None, processes: int | None = None) -> None:
        """Start the processes that compile; one kernel alone is left to whoever calls it."""
        if not self.missing:
            return
        if report is not None:
            report(0, len(self.missing))
        many = min(processes or _cores(), len(self.missing))
        for share in _shares(self.missing, many):
            order = json.dumps({"exercises": list(self.exercises), "kernels": share})
            process = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", "whimbrel.warming", order],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )  # fmt: skip
            _RUNNING.add(process)
            listener = threading.Thread(target=self._listen, args=(process, report), daemon=True)
            listener.start()
            self._listeners.append(listener)

    def _listen(self, process: subprocess.Popen[str], report: Report | None) -> None:
        with process:
            assert process.stdout is not None
            for _ in process.stdout:
                with self._lock:
                    self._done += 1
                    if report is not None:
                        report(self._done, len(self.missing))

    def wait(self) -> None:
        """Wait until all is compiled. What a process could not do is compiled when it is called."""
        for listener in self._listeners:
            listener.join()


def exercise(name: str) -> None:
    """Run an exercise: with ids and without, as a stream and as a whole."""
    if name == "shapes":
        RelationKernel()()
        return
    if name == "conditions":
        _subscribe()
        return
    query = compile_text(EXERCISES[name], emit=None if "around" in EXERCISES[name] else "all")
    for with_ids in (True, False):
        session = Session(query, lateness="1 s", coordinates="plane")
        session.push(_events(with_ids))
        session.close()


def _subscribe() -> None:
    """Add subscriptions that are found in every way, match events, and remove them."""
    from whimbrel.subscriptions import Subscriptions

    subscriptions = Subscriptions()
    asked = ["k = 'x', k != 'z'", "v > 1, v < 9", "startswith(k, 'x')", "v in (1, 2)"]
    places = ["this in circle(1, 1, 2), k = 'x'", "this in box(0, 0, 2, 2)"]
    for number, where in enumerate([*asked, *8 * places]):
        subscriptions.add(str(number), where=where)
    subscriptions.add_many([{"id": "in a row", "k": "y"}])
    for events in (_events(True), _events(True)[:1]):
        subscriptions.match(events)
    subscriptions.remove(["in a row", *(str(number) for number in range(len(subscriptions) - 1))])


def _events(with_ids: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [
        {
            "type": "AB"[n % 2 if n < 8 else 0], "time": n // 2 * 2, "source": "s",
            "v": n, "w": n / 4, "k": "xy"[n // 2 % 2], "x": float(n % 5), "y": float(n * n % 7),
        }
        for n in range(16)
    ]  # fmt: skip
    return [{"id": str(n)} | row for n, row in enumerate(rows)] if with_ids else rows


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cost(name: str) -> int:
    return _SECONDS.get(name.rpartition(".")[2], 1)


def _first_the_longest(name: str) -> tuple[int, str]:
    return -_cost(name), name


def _shares(names: Iterable[str], many: int) -> list[list[str]]:
    """Deal names out so that all are done at about the same time.

    >>> _shares(["a.match_step", "b.c", "b.d"], 2)
    [['a.match_step'], ['b.c', 'b.d']]
    """
    shares: list[list[str]] = [[] for _ in range(many)]
    for name in names:
        min(shares, key=lambda share: sum(map(_cost, share))).append(name)
    return shares


def _compile_share(order: str) -> None:
    """Compile what one process is asked to; print a line for each kernel."""
    import gc

    from whimbrel.space.kernels.compiler import take_shortcuts

    take_shortcuts()
    gc.disable()  # the compiler keeps what it makes: looking for rubbish takes a tenth of the time
    asked = json.loads(order)
    left = set(asked["kernels"])

    def meet(kernel: Kernel[..., Any], _args: Any) -> None:
        if kernel.name in left:
            left.remove(kernel.name)
            print(kernel.name, flush=True)  # noqa: T201 - this is what the parent waits for

    with TrialRun(frozenset(left).__contains__, meet):
        for name in asked["exercises"]:
            exercise(name)


if __name__ == "__main__":
    _compile_share(sys.argv[1])
