"""Run tests: each over the whole input at once and event by event, which must detect the same."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from whimbrel.engine.bounded import run
from whimbrel.engine.ingest import Counts
from whimbrel.engine.session import Session
from whimbrel.errors import DataError, ScenarioError, WhimbrelError, did_you_mean
from whimbrel.graph.functions import Function
from whimbrel.graph.query import Query
from whimbrel.lang.reading import read
from whimbrel.model.time import END_OF_TIME
from whimbrel.testing.checking import Problem, check_agreement, check_expectations, check_side_outputs
from whimbrel.testing.observed import ObservedDetection, observed_detections
from whimbrel.testing.parsing import ENDING, SIDE_OUTPUTS, read_tests
from whimbrel.testing.scenario import Advance, Check, End, InputEvent, InputFile, Scenario
from whimbrel.testing.scenario_input import ScenarioInput, gather

if TYPE_CHECKING:
    from whimbrel.spark.session import SparkSession
    from whimbrel.testing.coverage import Coverage

MOST_PUSHES = 2_000
"""Events that are pushed one by one; longer inputs are cut into so many pieces."""

MOST_SHOWN = 50
"""Problems of one test that are reported; more do not help."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class ScenarioResult:
    """What became of one test, or of a file that could not be read."""

    file: Path
    name: str
    line: int
    status: str
    """passed, failed, error or skipped."""
    report: str = ""
    """Everything that is to be said about it."""
    summary: str = ""
    """The same in a few words."""
    seconds: float = 0.0

    @property
    def title(self) -> str:
        """The file and the name."""
        return f"{self.file}: {self.name}"


@dataclass(frozen=True)
class ScenarioResults:
    """What became of all tests. `str()` is the report that the command line prints."""

    results: tuple[ScenarioResult, ...]
    coverage: Coverage | None = None

    @property
    def all_passed(self) -> bool:
        """Whether no test failed and every file could be read."""
        return not any(result.status in ("failed", "error") for result in self.results)

    def count(self, status: str) -> int:
        """Count the tests of a status."""
        return sum(result.status == status for result in self.results)

    def __str__(self) -> str:
        from whimbrel.testing.reporting import report

        return report(self)


@dataclass
class Runner:
    """Runs tests one by one, and takes note of what they cover."""

    query: Query | None = None
    """The query to test, where it is not the one that the files name."""
    functions: Sequence[Function] = ()
    spark: Any = None
    """A Spark session: the whole input is then run there."""
    coverage: Coverage | None = None
    clock: Clock = time.perf_counter
    warn: Callable[[str], None] = field(default=lambda _text: None)

    def run(self, scenario: Scenario) -> ScenarioResult:
        """Run one test."""
        began = self.clock()
        status, report, summary = self._outcome(scenario)
        seconds = self.clock() - began
        return ScenarioResult(
            scenario.file, scenario.name, scenario.at.line, status, report, summary, seconds
        )

    def _outcome(self, scenario: Scenario) -> tuple[str, str, str]:
        from whimbrel.testing.reporting import in_short

        if self.spark is not None and scenario.settings.lateness is not None:
            why = "a static frame has no order of arrival, so a lateness means nothing there"
            return "skipped", why, why
        try:
            problems = self.problems(scenario)
        except WhimbrelError as error:
            return "error", str(error), str(error).splitlines()[0]
        except Exception as error:  # noqa: BLE001 - functions of the user's may raise anything
            return "error", traceback.format_exc(), f"{type(error).__name__}: {error}"
        origin = scenario.settings.origin
        lines = [line for problem in problems[:MOST_SHOWN] for line in problem.report(origin)]
        if len(problems) > MOST_SHOWN:
            lines.append(f"... and {len(problems) - MOST_SHOWN:,} more")
        return "failed" if problems else "passed", "\n".join(lines), in_short(problems)

    def problems(self, scenario: Scenario) -> list[Problem]:
        """Run a test both ways, and list what is not as expected."""
        query = compile_for(scenario, self.query, self.functions)
        for warning in query.warnings:
            self.warn(f"{scenario.title}: warning: {warning}")
        inputs = gather(scenario, query)
        self._cover(scenario, query, inputs)
        output = run_in_session(scenario, query, inputs)
        way, whole = self._whole(scenario, query, inputs)
        counts = {what: getattr(output.counts, what) for what in SIDE_OUTPUTS}
        counts["rejected"] += len(inputs.rejected)
        reasons = (*output.counts.reasons, *inputs.rejected)
        return [
            *check_expectations(scenario, output.phases),
            *check_side_outputs(scenario.side_outputs, counts, reasons),
            *check_agreement((way, "event by event"), whole, list(chain.from_iterable(output.phases))),
        ]

    def _cover(self, scenario: Scenario, query: Query, inputs: ScenarioInput) -> None:
        if self.coverage is None:
            return
        try:
            file = None if self.query is not None else query_file(scenario)
            self.coverage.add(scenario, query, inputs, file)
        except WhimbrelError as error:
            self.warn(f"{scenario.title}: warning: its coverage cannot be measured: {error}")

    def _whole(
        self, scenario: Scenario, query: Query, inputs: ScenarioInput
    ) -> tuple[str, list[ObservedDetection]]:
        if self.spark is not None:
            return "Spark", on_spark(self.spark, query, inputs)
        return "the whole input", observed_detections(detect_whole(scenario, query, inputs))


def run_tests(
    paths: str | Path | Iterable[str | Path],
    *,
    query: Query | None = None,
    select: str | None = None,
    functions: Sequence[Function] = (),
    spark: SparkSession | None = None,
    coverage: bool = False,
    on_result: Callable[[ScenarioResult], None] | None = None,
    warn: Callable[[str], None] | None = None,
    clock: Clock = time.perf_counter,
) -> ScenarioResults:
    """Run the tests of files, or of all test files in folders.

    Parameters
    ----------
    query
        A compiled query to test, such as one built in Python, instead of those that the files name.
    select
        Only tests whose file or name holds this text, whatever the case.
    functions
        Python functions that the queries call.
    spark
        A Spark session, to run every test there as well.
    coverage
        Whether to find out which branches of the queries the tests reach.
    on_result
        Called with each result as soon as it is there.
    warn
        Called with the warnings of the queries.

    Raises
    ------
    DataError
        If there is no such file or folder, or no test in it.
    """
    from whimbrel.testing.coverage import Coverage

    measured = Coverage() if coverage else None
    runner = Runner(query, functions, spark, measured, clock, warn or (lambda _text: None))
    results: list[ScenarioResult] = []
    for file in find_tests(paths):
        for result in _run_file(file, runner, select):
            results.append(result)
            if on_result is not None:
                on_result(result)
    if not results:
        raise DataError(
            f"no test is named like {select!r}" if select else "there are no tests in these files"
        )
    return ScenarioResults(tuple(results), measured)


def _run_file(file: Path, runner: Runner, select: str | None) -> Iterable[ScenarioResult]:
    try:
        scenarios = read_tests(file)
    except WhimbrelError as error:
        line = error.at.line if isinstance(error, ScenarioError) and error.at else 1
        yield ScenarioResult(file, "(reading)", line, "error", str(error), str(error).splitlines()[0])
        return
    for scenario in scenarios:
        if select is None or select.lower() in scenario.title.lower():
            yield runner.run(scenario)


def find_tests(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """List the test files that paths stand for: files themselves, folders with everything in them.

    Raises
    ------
    DataError
        If there is nothing at a path, or no test file in a folder.
    """
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    files: dict[Path, None] = {}
    for path in map(Path, listed):
        files |= dict.fromkeys(_files_at(path))
    return list(files)


def _files_at(path: Path) -> list[Path]:
    if path.is_dir():
        files = [
            file
            for file in sorted(path.rglob(f"*{ENDING}"))
            if not any(part.startswith(".") for part in file.relative_to(path).parts)
        ]
        if not files:
            raise DataError(f"there is no test file (*{ENDING}) in the folder {path}")
        return files
    if not path.exists():
        near = [other.name for other in path.parent.glob(f"*{ENDING}")] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, near)
        raise DataError(f"there is no test file {path}" + (f"; {hint}" if hint else ""))
    if path.suffix != ENDING:
        raise DataError(f"{path}: a test file ends in {ENDING}")
    return [path]


# One test ---------------------------------------------------------------------------------------------------


def compile_for(scenario: Scenario, ready: Query | None, functions: Sequence[Function]) -> Query:
    """Compile the query of a test with its settings; `ready` is one that is compiled already."""
    query = _compiled(scenario, functions) if ready is None else _as_it_is(scenario, ready)
    context = scenario.settings.context
    return query if context is None else query.in_context(context)


def _as_it_is(scenario: Scenario, query: Query) -> Query:
    settings = scenario.settings
    if settings.params or settings.horizon is not None or settings.emit is not None:
        raise scenario.error(
            "params, horizon and emit are for queries in files; this one is compiled already",
            "compile it with them: wb.compile(text, params=..., horizon=..., emit=...)",
        )
    return query


def _compiled(scenario: Scenario, functions: Sequence[Function]) -> Query:
    settings = scenario.settings
    query = read(
        query_file(scenario),
        params={name: param.value for name, param in settings.params.items()},
        functions=functions,
        horizon=settings.horizon,
        emit=settings.emit,
    )
    _refuse_unknown_params(scenario, query)
    return query


def query_file(scenario: Scenario) -> Path:
    """Find the query that a test names, or the one beside the file that has its name.

    Raises
    ------
    ScenarioError
        If the test names none and there is none.
    """
    if scenario.settings.query is not None:
        return scenario.settings.query
    beside = scenario.file.with_suffix(".wbl")
    for file in (beside, beside.with_suffix(".cpsl")):
        if file.exists():
            return file
    raise scenario.error(
        "which query is tested?",
        f"there is no {beside.name} beside the test file; name the query at the top: query NAME.wbl",
    )


def _refuse_unknown_params(scenario: Scenario, query: Query) -> None:
    """Refuse values for parameters that the query does not have: the test would not test what it says."""
    for name, param in scenario.settings.params.items():
        if any(warning.startswith(f"the query has no parameter {name!r}") for warning in query.warnings):
            raise scenario.error(
                f"the query has no parameter {name!r}", "declare it there: param NAME = ...", param.at
            )


def detect_whole(scenario: Scenario, query: Query, inputs: ScenarioInput) -> pa.Table:
    """Find the detections in the whole input at once."""
    lateness = scenario.settings.lateness
    events: Any = inputs.events
    if lateness is not None:
        # Whether an event is late shows when it comes, so each has to come for itself.
        single = inputs.events.to_batches(max_chunksize=1)
        events = pa.RecordBatchReader.from_batches(inputs.events.schema, single)
    return run(query, events, lateness=lateness, coordinates=inputs.coordinates).detections


def on_spark(spark: Any, query: Query, inputs: ScenarioInput) -> list[ObservedDetection]:
    """Find the detections on Spark, in a static frame."""
    from whimbrel.spark.running import run as run_on_spark

    frame = spark.createDataFrame(inputs.events)
    return observed_detections(run_on_spark(query, frame, coordinates=inputs.coordinates).detections)


@dataclass
class SessionOutput:
    """What a session reported before each check of a test."""

    phases: list[list[ObservedDetection]]
    counts: Counts


def run_in_session(scenario: Scenario, query: Query, inputs: ScenarioInput) -> SessionOutput:
    """Push the events of a test one by one into a session, and let time pass as the test says.

    Without a lateness, time goes on to just before the earliest event that is still to come, but not past an
    `advance` that a check follows.
    """
    lateness = scenario.settings.lateness
    session = Session(query, lateness=lateness, coordinates=inputs.coordinates)
    following = _following(inputs.events) if lateness is None else None
    size = max(1, -(-inputs.events.num_rows // MOST_PUSHES))
    phases: list[list[ObservedDetection]] = []
    new: list[ObservedDetection] = []
    done = 0
    for number, step in enumerate(scenario.steps):
        match step:
            case InputEvent() | InputFile():
                for start in range(*inputs.rows[number], size):
                    stop = min(start + size, inputs.rows[number][1])
                    new += _wait(session, following, start)
                    new += observed_detections(session.push(inputs.events.slice(start, stop - start)))
                done = inputs.rows[number][1]
            case Advance():
                new += observed_detections(session.advance(step.time))
            case End():
                new += observed_detections(session.close())
                following = None
            case Check():
                if not isinstance(scenario.steps[number - 1], Advance):
                    new += _wait(session, following, done)
                phases.append(new)
                new = []
    return SessionOutput(phases, session.counts)


def _wait(session: Session, following: np.ndarray | None, row: int) -> list[ObservedDetection]:
    """Let time pass to just before the earliest of the events from `row` on."""
    if following is None or row >= len(following):
        return []
    return observed_detections(session.advance(int(following[row]) - 1))


def _following(events: pa.Table) -> np.ndarray:
    """Compute, for each row, the least end of it and all rows behind it."""
    ends = events.column("end").cast(pa.int64()).to_numpy()
    if not len(ends):
        return np.full(0, END_OF_TIME, np.int64)
    return np.minimum.accumulate(ends[::-1])[::-1]
