"""What `Session.monitor` tells of mobile queries: measures by name, as a table, for Prometheus, as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

import numpy as np
import pyarrow as pa

from whimbrel.engine.mobile.chained_runs import ChainedRuns
from whimbrel.engine.mobile.memory import nbytes_of
from whimbrel.errors import QueryError

if TYPE_CHECKING:
    from whimbrel.engine.mobile.cohorts import Cohorts
    from whimbrel.engine.mobile.following import Following
    from whimbrel.engine.mobile.run import MobileRun

By = OneOf["query", "focal"]
FOCAL, QUERY = "focal", "query"
_PREFIX = "whimbrel_mobile_"
_MICROSECOND, _NANOSECOND = 1e-6, 1e-9

Number = int | float | None


@dataclass(frozen=True, slots=True)
class Measure:
    """One number that is told of a mobile query."""

    name: str
    help: str
    kind: OneOf["counter", "gauge"] = "counter"
    type: pa.DataType = pa.int64()
    of_focal: bool = True
    """Whether it is known of single objects, too."""

    @property
    def metric(self) -> str:
        """Its name in Prometheus."""
        return f"{_PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"


def _counter(name: str, text: str) -> Measure:
    return Measure(name, text)


def _of_query(name: str, text: str) -> Measure:
    return Measure(name, text, of_focal=False)


def _seconds(name: str, text: str) -> Measure:
    return Measure(name, text, "counter", pa.float64(), of_focal=False)


def _mean(name: str, text: str) -> Measure:
    return Measure(name, text, "gauge", pa.float64(), of_focal=False)


def _gauge(name: str, text: str, *, of_focal: bool = True, of: pa.DataType | None = None) -> Measure:
    return Measure(name, text, "gauge", of or pa.int64(), of_focal)


def _share(name: str, text: str) -> Measure:
    return _gauge(name, text, of=pa.float64())


MEASURES = (
    _gauge("objects", "Focal objects that have had an interest.", of_focal=False),
    _gauge("interests_open", "Interests that have not ended."),
    _counter("switches", "Interests that have begun, the first of each object among them."),
    _counter("predicted", "Interests that have begun in areas that were predicted for them."),
    _counter("runs_kept", "Interests that have begun with a run that was there already."),
    _counter("updates", "Location updates of focal objects, at most one for each object and time."),
    _counter("late_updates", "Location updates that came later than the lateness allows, without effect."),
    _counter("deliveries_live", "Deliveries of what became known since the interest began."),
    _counter("deliveries_historical", "Deliveries of what was known before the interest began."),
    _counter("deliveries_added", "Deliveries of what is new in the interest."),
    _counter("deliveries_kept", "Deliveries of what stays at a switch (deliver changes)."),
    _counter("deliveries_removed", "Deliveries of what goes at a switch (deliver changes)."),
    _counter("left_out", "Deliveries that a degraded mode left out."),
    _share("completeness", "Told, of what would be told; null where nobody can know."),
    _share("precision", "Of the events used, the share that should be: mean over location updates."),
    _share("precision_min", "The lowest precision at any location update."),
    _share("recall", "Of the events that should be used, the share that is: mean over location updates."),
    _share("recall_min", "The lowest recall at any location update."),
    _counter("measured_updates", "Location updates at which precision and recall were measured."),
    _counter("interest_events_historical", "Events of before a switch that its interest looks back at."),
    _counter("interest_events_live", "Events in interests while they are current."),
    _counter("streamed_historical", "Events of before a switch, streamed to runs of single interests."),
    _counter("streamed_live", "Live events streamed to runs of single interests."),
    _of_query("streamed_ahead", "Events streamed to runs that are prepared for predicted areas."),
    _of_query("streamed_again", "Events streamed once more, as runs of few interests were put together."),
    _of_query("streamed_derived", "Events of definitions found once for all, streamed to such runs."),
    _counter("duplicates_avoided", "Events of the interest before, too, that a switch did not stream again."),
    _counter("looked_up", "Detections of history that were found once for all, and only looked up."),
    _of_query("selections", "Selections of operators in Python, those that were not processed among them."),
    _of_query("selections_reused", "Those that were not processed, as another one stood for them."),
    _of_query("steps_once", "Correlation steps of what is found once: rows that its operators took."),
    _of_query("steps_each", "Correlation steps of runs of single interests: rows that their operators took."),
    _gauge("cohorts", "Runs of single interests; interests that begin together share one.", of_focal=False),
    _of_query("cohorts_begun", "Such runs that have begun."),
    _gauge("members", "Interests that take part in such runs.", of_focal=False),
    _mean("latency_seconds", "From a switch to the telling of its history, in event time: the mean."),
    _mean("latency_max_seconds", "The longest of them."),
    _mean("switch_processor_seconds", "Processor time that beginning an interest took: the mean."),
    _seconds("processor_seconds", "Processor time of the steps of the query."),
    _seconds("processor_once_seconds", "The part of it that went into what is found once for all."),
    _seconds("processor_switch_seconds", "The part of it that went into switches."),
    _gauge("history_bytes", "Memory of what interests look back at: indexes and detections.", of_focal=False),
    _gauge("state_bytes", "Memory of operators, timelines, interests, and of what was told.", of_focal=False),
    _gauge("memory_peak_bytes", "The most memory of both that was seen, if it is watched.", of_focal=False),
    _gauge("events_bytes", "Memory of remembered events, which all queries share.", of_focal=False),
)  # fmt: skip
"""Everything that is told, in this order."""


# -- the table ---------------------------------------------------------------------------------------------


def monitor_table(runs: Sequence[MobileRun], *, by: By = "query") -> pa.Table:
    """Give what was counted of mobile queries, a row for each, or for each of their focal objects."""
    if by not in (QUERY, FOCAL):
        raise QueryError(f"there is no monitoring by {by!r}", hint="use 'query' or 'focal'")
    each = [following for run in runs for following in run.following]
    if by == QUERY:
        return _table(MEASURES, {QUERY: [one.query.name for one in each]}, [_of(one) for one in each])
    names: list[str] = []
    keys: list[object] = []
    rows: list[dict[str, Number]] = []
    for one in each:
        for key, row in _of_objects(one):
            names.append(one.query.name)
            keys.append(key)
            rows.append(row)
    measures = [measure for measure in MEASURES if measure.of_focal]
    return _table(measures, {QUERY: names, FOCAL: keys}, rows)


def _table(
    measures: Sequence[Measure], labels: dict[str, list[Any]], rows: Sequence[dict[str, Number]]
) -> pa.Table:
    columns = {name: _labels(values) for name, values in labels.items()}
    columns |= {each.name: pa.array([row[each.name] for row in rows], each.type) for each in measures}
    return pa.table(columns)


def _labels(values: list[Any]) -> pa.Array:
    """Keep the type of keys, where all have one."""
    if not values or len({type(value) for value in values}) > 1:
        values = list(map(str, values))
        return pa.array(values, pa.string())
    return pa.array(values)


def _of(one: Following) -> dict[str, Number]:
    """Tell all measures of a mobile query."""
    monitor, cohorts = one.monitor, _cohorts(one)
    total = monitor.total
    updates, switches = total("measured_updates"), total("switches")
    sums, worst = monitor.qualities.sum(axis=0), monitor.worst.min(axis=0, initial=1.0)
    told = total("deliveries_live") + total("deliveries_historical")
    known = {each.name for each in MEASURES} & monitor.totals.keys()
    return {
        **{name: total(name) for name in known},
        "objects": int(np.count_nonzero(monitor.of_objects("switches"))),
        "interests_open": len(_open(one)),
        "completeness": _completeness(one, told, total("left_out"), total("predicted")),
        **_quality(sums, worst, updates),
        **_measured(one, {name: total(name) for name in _MEASURED}),
        "cohorts": 0 if cohorts is None else len(cohorts.running),
        "members": 0 if cohorts is None else int(np.count_nonzero(_open_members(one) >= 0)),
        "latency_seconds": _ratio(total("latency"), switches, 0.0) * _MICROSECOND,
        "latency_max_seconds": total("latency_max") * _MICROSECOND,
        "switch_processor_seconds": _ratio(total("processor_switch"), switches, 0.0) * _NANOSECOND,
        "processor_seconds": total("processor") * _NANOSECOND,
        "processor_once_seconds": total("processor_once") * _NANOSECOND,
        "processor_switch_seconds": total("processor_switch") * _NANOSECOND,
        "memory_peak_bytes": total("memory_peak") if one.watches_memory else None,
        **memory_of(one),
    }  # fmt: skip


def _of_objects(one: Following) -> Iterator[tuple[object, dict[str, Number]]]:
    """Tell of each object what is known of single ones."""
    monitor = one.monitor
    values = one.objects.keys.values()
    current = np.bincount(_open(one), minlength=len(monitor.counts))
    shared = isinstance(one.cohorts, ChainedRuns)
    names = [each.name for each in MEASURES if each.of_focal and each.name in monitor.totals]
    there = np.flatnonzero(monitor.counts.any(axis=1))
    for obj in there.tolist():
        row: dict[str, Number] = {name: int(monitor.of_objects(name)[obj]) for name in names}
        told = int(row["deliveries_live"] or 0) + int(row["deliveries_historical"] or 0)
        updates = int(row["measured_updates"] or 0)
        row |= _measured(one, row) | _quality(monitor.qualities[obj], monitor.worst[obj], updates)
        if shared:  # what runs take that several objects share is nobody's
            row |= dict.fromkeys(("streamed_historical", "streamed_live"))
        row["interests_open"] = int(current[obj])
        row["completeness"] = _completeness(one, told, int(row["left_out"] or 0), int(row["predicted"] or 0))
        yield values[obj], row


_MEASURED = (
    "measured_updates",
    "interest_events_historical",
    "interest_events_live",
    "duplicates_avoided",
)
"""What is known where quality is measured only."""


def _measured(one: Following, counts: dict[str, Number]) -> dict[str, Number]:
    is_measured = one.objects.measured is not None
    return {name: counts[name] if is_measured else None for name in _MEASURED}


def _quality(sums: np.ndarray, worst: np.ndarray, updates: int) -> dict[str, Number]:
    names = ("precision", "recall")
    if not updates:
        return dict.fromkeys((*names, *(f"{name}_min" for name in names)))
    mean: dict[str, Number] = {name: float(value) / updates for name, value in zip(names, sums, strict=True)}
    return mean | {f"{name}_min": float(value) for name, value in zip(names, worst, strict=True)}


def _completeness(one: Following, told: int, left_out: int, predicted: int) -> float | None:
    """Tell which share is told of what would be told.

    Nobody knows what matches would have become that were given up for lack of room, nor what would have been
    told of an interest of which a predicted area, which need not be the same, has taken the place.
    """
    if one.dropped or (predicted and not one.query.policy.quality.is_perfect):
        return None
    return _ratio(told, told + left_out, 1.0)


def _ratio(part: int, whole: int, otherwise: float) -> float:
    return part / whole if whole else otherwise


def _open(one: Following) -> np.ndarray:
    """Give the objects of the interests that have not ended."""
    current = one.objects.current
    return np.zeros(0, np.int64) if current is None else current.obj


def _open_members(one: Following) -> np.ndarray:
    current = one.objects.current
    return np.zeros(0, np.int64) if current is None else current.member


def _cohorts(one: Following) -> Cohorts | None:
    return one.cohorts.cohorts if isinstance(one.cohorts, ChainedRuns) else one.cohorts


def memory_of(one: Following) -> dict[str, int]:
    """Tell what a mobile query holds, each thing once: what all queries share, and the monitor, apart.

    What it shares with other mobile queries counts for the first of them.
    """
    cohorts, seen = _cohorts(one), {id(one.events), id(one.monitor)}
    events = nbytes_of([one.events.stream.store], seen)
    histories = [] if cohorts is None else cohorts.histories
    once = one.once_run if one.once_run is not None and one.once_run.query is one.query else None
    found, runtimes = (None, {}) if once is None else (once.found, once.pipeline.runtimes)
    if one.once_run is not None and once is None:
        seen |= {id(one.found), id(one.once)}
    history = nbytes_of([found, histories, one.objects.measured], seen)
    state = nbytes_of([runtimes, one.cohorts, one.objects], seen)
    return {"history_bytes": history, "state_bytes": state, "events_bytes": events}


# -- other forms -------------------------------------------------------------------------------------------


def as_json(table: pa.Table) -> str:
    r"""Write what `Session.monitor` gives as JSON: a list with an object a row.

    >>> as_json(pa.table({"query": ["rescue"], "switches": [2], "precision": pa.nulls(1, pa.float64())}))
    '[{"query": "rescue", "switches": 2, "precision": null}]\n'
    """
    return json.dumps(table.to_pylist(), default=str) + "\n"


def as_prometheus(table: pa.Table) -> str:
    """Write what `Session.monitor` gives as Prometheus reads it; what is not known is left out.

    >>> print(as_prometheus(pa.table({"query": ["rescue"], "switches": [2]})), end="")
    # HELP whimbrel_mobile_switches_total Interests that have begun, the first of each object among them.
    # TYPE whimbrel_mobile_switches_total counter
    whimbrel_mobile_switches_total{query="rescue"} 2
    """
    labels = [name for name in (QUERY, FOCAL) if name in table.column_names]
    rows = table.to_pylist()
    marks = [",".join(f'{name}="{_escaped(row[name])}"' for name in labels) for row in rows]
    lines: list[str] = []
    for each in MEASURES:
        if each.name not in table.column_names:
            continue
        values = [(mark, row[each.name]) for mark, row in zip(marks, rows, strict=True)]
        told = [f"{each.metric}{{{mark}}} {value}" for mark, value in values if value is not None]
        if told:
            lines += [f"# HELP {each.metric} {each.help}", f"# TYPE {each.metric} {each.kind}", *told]
    return "".join(f"{line}\n" for line in lines)


def _escaped(label: object) -> str:
    return str(label).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def as_text(table: pa.Table) -> str:
    """Write what `Session.monitor` gives for people: a line a measure, a column a query or object.

    >>> print(as_text(pa.table({"query": ["rescue"], "switches": [12000], "precision": [0.25]})), end="")
    query      rescue
    switches   12,000
    precision  0.25
    """
    cells = [
        [name, *(_shown(value) for value in table.column(name).to_pylist())] for name in table.column_names
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    first, rest = widths[0], widths[1:]
    lines = (
        "  ".join([name.ljust(first), *(cell.rjust(width) for cell, width in zip(row, rest, strict=True))])
        for name, *row in cells
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


FORMS: dict[str, Callable[[pa.Table], str]] = {
    "table": as_text,
    "json": as_json,
    "prometheus": as_prometheus,
}
"""Ways to write what is told."""
