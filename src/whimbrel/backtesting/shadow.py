"""Run a changed query beside the live one, over the same events, and tell what it finds otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.backtesting.compare import CHANGE, CHANGES
from whimbrel.backtesting.pairing import Pairing, differing, joined, load_table, save_table
from whimbrel.engine.report import together
from whimbrel.engine.session import Session
from whimbrel.engine.snapshot import Blocks
from whimbrel.errors import QueryError, WhimbrelError
from whimbrel.graph.query import Query
from whimbrel.model.frames import EventTable, batches
from whimbrel.model.reading import ReadSettings
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import BEGINNING_OF_TIME, DAY, END_OF_TIME

LIVE, CANDIDATE = "live", "candidate"
Step = Callable[[], list[pa.Table]]


@dataclass(frozen=True)
class Changes:
    """What has become of the detections of both queries so far."""

    same: int = 0
    added: int = 0
    """Found by the candidate only."""
    dropped: int = 0
    """Found by the live query only."""
    changed: int = 0
    """Found by both, with other times, place or attributes."""
    waiting: int = 0
    """Not settled yet: the other query may still find the same."""
    skipped: int = 0
    """Not compared: they began before the candidate had seen enough."""


@dataclass
class _ChangeCounts:
    """Counts of what is settled, by day, type and kind of change."""

    cells: Counter[tuple[int, str, str]] = field(default_factory=Counter)

    def add(self, settled: pa.Table) -> None:
        if not settled.num_rows:
            return
        days = pa.array(settled.column("end").cast(pa.int64()).to_numpy() // DAY)
        cells = pa.table({"day": days, "type": settled.column("type"), CHANGE: settled.column(CHANGE)})
        counted = cells.group_by(["day", "type", CHANGE]).aggregate([([], "count_all")])
        for row in counted.to_pylist():
            self.cells[row["day"], row["type"], row[CHANGE]] += row["count_all"]

    def total(self, kind: str) -> int:
        return sum(count for (_, _, change), count in self.cells.items() if change == kind)

    def table(self) -> pa.Table:
        cells = sorted({(day, kind) for day, kind, _ in self.cells})
        columns = {
            "day": pa.array(np.array([day for day, _ in cells], np.int32)).cast(pa.date32()),
            "type": pa.array([kind for _, kind in cells], pa.string()),
        }
        for change in CHANGES:
            counts = [self.cells[day, kind, change] for day, kind in cells]
            columns[change] = pa.array(counts, pa.int64())
        return pa.table(columns)


class Shadow:
    """A live query, and a candidate that sees the same events and whose detections are only compared.

    `push`, `advance` and `close` give what the live query finds, exactly as its session would without a
    shadow. What the candidate finds otherwise is counted, and collected until it is taken. If the candidate
    fails, the live query goes on; `failure` tells why.

    Parameters
    ----------
    live
        The query that is relied on, or a session that runs it already. Then the candidate sees the events
        from now on, and detections are compared once it has seen all that they can rest on. Of a session with
        several queries, the types that the candidate reports are compared.
    candidate
        The query that might replace it, or a session of its own for it. Its definitions should keep their
        names: findings are matched by type and atomic events.
    lateness, coordinates, columns, time_unit, time_format, day_first, time_zone, default_type
        As for `whimbrel.Session`, if `live` is a query.

    Examples
    --------
    >>> import whimbrel as wb
    >>> live = wb.compile("define Hot detect Temp(val > 25)")
    >>> candidate = wb.compile("define Hot detect Temp(val > 24)")
    >>> shadow = wb.Shadow(live, candidate)
    >>> shadow.push([{"type": "Temp", "time": n, "val": 20 + n} for n in range(9)]).column("val").to_pylist()
    [26, 27]
    >>> shadow.close().column("val").to_pylist()
    [28]
    >>> shadow.take_differences().select(["change", "val"]).to_pylist()
    [{'change': 'added', 'val': 25}]
    >>> shadow.changes
    Changes(same=3, added=1, dropped=0, changed=0, waiting=0, skipped=0)
    """

    def __init__(
        self,
        live: Query | Session,
        candidate: Query | Session,
        *,
        lateness: timedelta | str | int | None = 0,
        coordinates: Coordinates | str | None = None,
        **how: Unpack[ReadSettings],
    ) -> None:
        _refuse_mobile(live, candidate)
        if isinstance(live, Query):
            live = Session(
                live,
                lateness=lateness,
                coordinates=coordinates,
                **how,
            )
        self._types = candidate.types if isinstance(candidate, Query) and len(live.queries) > 1 else None
        """The types to compare, if the live session has others."""
        self.live = live
        """The session of the live query."""
        self.candidate = live.beside(candidate) if isinstance(candidate, Query) else candidate
        """The session of the candidate, to go on with if it is to replace the live one."""
        self.failure: str | None = None
        """Why the candidate was stopped, if it was."""
        reach = max(self.live.reach, self.candidate.reach)
        self._pairing = Pairing(reach, _since(live, reach))
        self._settled = _ChangeCounts()
        self._differences: list[pa.Table] = []

    # -- events ------------------------------------------------------------------------------------------

    def push(self, events: EventTable) -> pa.Table:
        """Take in events as a session does; give the detections of the live query that they complete."""
        pieces = list(batches(events, rows=self.live.slice_rows))  # what can be read once serves both
        if not pieces:
            return self._both(lambda session: session.push([]))
        table = pa.Table.from_batches(pieces)
        return self._both(lambda session: session.push(table))

    def advance(self, watermark: datetime | str | int) -> pa.Table:
        """Say that every event up to `watermark` has been pushed; give what the live query makes of that."""
        return self._both(lambda session: session.advance(watermark))

    def close(self) -> pa.Table:
        """Say that no more events will come; give the last of the live query. Then everything is settled."""
        return self._both(lambda session: session.close())

    def feed(
        self,
        live: Sequence[pa.RecordBatch],
        candidate: Sequence[pa.RecordBatch],
        watermarks: tuple[int, int],
    ) -> list[pa.Table]:
        """Take in events in the common form, as the session of each query has them, and let time pass."""
        return self._in_step(
            lambda: self.live.feed(live, watermarks[0]), lambda: self.candidate.feed(candidate, watermarks[1])
        )

    def _both(self, act: Callable[[Session], pa.Table]) -> pa.Table:
        """Do the same with both sessions."""
        return self._in_step(lambda: [act(self.live)], lambda: [act(self.candidate)])[0]

    def _in_step(self, mine: Step, theirs: Step) -> list[pa.Table]:
        """Let both sessions make a step, and compare; give what the live one found, untouched."""
        before = (self.live.counts.received, self.live.watermark)
        try:
            detections = mine()
        except WhimbrelError:
            # A batch that was refused as a whole is for neither; all else has been taken in.
            if (self.live.counts.received, self.live.watermark) != before:
                self._compare([], theirs)
            raise
        self._compare(detections, theirs)
        return detections

    def _compare(self, detections: list[pa.Table], theirs: Step) -> None:
        if self.failure is not None:
            return
        try:
            other = theirs()
        except WhimbrelError as error:
            self.failure = str(error)
            return
        watermark = min(self.live.watermark, self.candidate.watermark)
        mine = self._of_types(together(detections, self.live.coordinates))
        settled = self._pairing.step(mine, together(other, self.candidate.coordinates), watermark)
        self._settled.add(settled)
        if (different := differing(settled)).num_rows:
            self._differences.append(different)

    def _of_types(self, table: pa.Table) -> pa.Table:
        """Leave out what other queries of the live session found."""
        if self._types is None or not table.num_rows:
            return table
        return table.filter(pc.is_in(table.column("type"), pa.array(self._types, pa.string())))

    # -- differences -------------------------------------------------------------------------------------

    @property
    def changes(self) -> Changes:
        """How many findings are the same, added, dropped and changed so far, and how many wait."""
        settled = {kind: self._settled.total(kind) for kind in CHANGES}
        return Changes(**settled, waiting=self._pairing.waiting, skipped=self._pairing.skipped)

    def by_day(self) -> pa.Table:
        """Count what is settled: `day` (UTC), `type`, `same`, `added`, `dropped` and `changed`."""
        return self._settled.table()

    def take_differences(self) -> pa.Table:
        """Take what was settled as added, dropped or changed since the last call.

        The columns are those of detections, `change`, and `before`: a JSON object of what the live query says
        otherwise, in changed ones. All that is ever given is what a backtest over the same events finds.
        """
        taken, self._differences = self._differences, []
        return joined(taken)

    # -- snapshots ---------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Save the whole state as one block of bytes, differences that were not taken included."""
        return self.state().to_bytes()

    def state(self) -> Blocks:
        """Save it as blocks, for who keeps them otherwise; `take_up` reads them."""
        blocks = Blocks()
        cells = [[*cell, count] for cell, count in self._settled.cells.items()]
        blocks.put_json("shadow", {"failure": self.failure, "counts": cells})
        for name, session in self._sessions():
            blocks.put_array(name, np.frombuffer(session.snapshot(), np.uint8))
        self._pairing.save(blocks, "pairing")
        save_table(blocks, "differences", joined(self._differences))
        return blocks

    def restore(self, snapshot: bytes) -> None:
        """Go on where `snapshot` was taken. Both queries must be the same, with the same settings.

        Raises
        ------
        StateError
            If the snapshot is damaged, of another version, of other queries, or of no shadow.
        """
        self.take_up(Blocks.from_bytes(snapshot))

    def take_up(self, blocks: Blocks) -> None:
        """Go on where `state` was written; see `restore`."""
        about = blocks.json("shadow")
        self.failure = about["failure"]
        for name, session in self._sessions():
            session.restore(blocks.array(name).tobytes())
        self._pairing.load(blocks, "pairing")
        counts = {(day, kind, change): count for day, kind, change, count in about["counts"]}
        self._settled = _ChangeCounts(Counter(counts))
        kept = load_table(blocks, "differences")
        self._differences = [kept] if kept.num_rows else []

    def _sessions(self) -> list[tuple[str, Session]]:
        """List the sessions that go on: the state of a candidate that failed is of no use."""
        both = [(LIVE, self.live), (CANDIDATE, self.candidate)]
        return both if self.failure is None else both[:1]


def _refuse_mobile(*both: Query | Session) -> None:
    """Refuse queries that follow something: when both can have told the same is not bounded."""
    for one in both:
        queries = [one] if isinstance(one, Query) else [one.query(name) for name in one.queries]
        for query in queries:
            if query.mobile:
                names = ", ".join(each.name for each in query.mobile)
                raise QueryError(
                    f"a shadow cannot compare queries that follow something ({names}): what two of them tell "
                    "of one detection may lie apart as long as an interest lasts, so that nothing is settled",
                    hint="compare them over recorded events: whimbrel.backtest(old, events, against=new)",
                )


def _since(live: Session, reach: int) -> int:
    """Tell from when on detections can be compared with those of a query that starts now."""
    if not live.counts.received:
        return BEGINNING_OF_TIME
    if live.newest >= END_OF_TIME:
        raise WhimbrelError(
            "the session has no lateness, so nothing tells when the candidate has seen enough; "
            "begin the shadow before the first event: Shadow(query, candidate, lateness=None)"
        )
    return live.newest + reach
