"""Sessions that each have some of the places tell together what one session tells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.engine.mobile.comparing import compiled, sorted_told, told
from tests.reference.mobile import Always, Every, Moved
from tests.reference.mobile.strategies import mobile_queries, worlds_of_events
from tests.reference.strategies import cuts
from tests.reference.tables import event_table

from whimbrel.engine.mobile.deliveries import INTERESTS
from whimbrel.engine.mobile.retelling import Retelling
from whimbrel.engine.session import Session
from whimbrel.engine.snapshot import Blocks
from whimbrel.graph.mobile.sharding import sharding_of
from whimbrel.graph.sharding import ByInterests
from whimbrel.model.schema import Coordinates
from whimbrel.model.time import END_OF_TIME, SECOND
from whimbrel.space.partitioning import CELLS_PER_INTEREST, Cells, place_copies

CONDITIONS = st.sampled_from([Always(), Every(2 * SECOND), Moved(1.2)])
TELLINGS = st.sampled_from(["all", "new", "changes"])
SHIFT = 1.3
"""Events lie on a small lattice: moved like this, the corner of four cells is in the middle of it."""
POINTS = worlds_of_events().map(lambda events: [each for each in events if each.polygon is None])


def shifted(events) -> pa.Table:
    """The events, on all sides of the origin."""
    table = event_table(events)
    for axis in ("x", "y"):
        moved = pa.array(table.column(axis).to_numpy(zero_copy_only=False) - SHIFT, from_pandas=True)
        table = table.set_column(table.schema.get_field_index(axis), axis, moved)
    return table


def pieces(table: pa.Table, reach_m: float, shards: int, updates: tuple[str, ...]) -> list[pa.Table]:
    """The events that go to each shard."""
    x, y = (np.asarray(table.column(axis).to_numpy(zero_copy_only=False), float) for axis in ("x", "y"))
    everywhere = np.isin(np.array(table.column("type").to_pylist()), updates)
    placed = place_copies(x, y, reach_m, shards, Coordinates.PLANE, everywhere, CELLS_PER_INTEREST)
    copies = table.take(pa.array(placed.row)).append_column("@primary", pa.array(placed.is_primary))
    return [copies.filter(pa.array(placed.shard == shard)) for shard in range(shards)]


class Shard:
    """A session that has some of the places, and is thrown away after each batch."""

    def __init__(self, query, places) -> None:
        self.query, self.places, self.saved = query, places, None

    def session(self) -> Session:
        """Go on where the last session was."""
        session = Session(
            self.query,
            lateness=None,
            owned="@primary",
            places=self.places,
            follows_events=False,
            coordinates="plane",
        )
        if self.saved is not None:
            session.restore(self.saved)
        return session

    def push(self, table: pa.Table, watermark: int) -> tuple[list[pa.Table], list[pa.Table]]:
        """What is told of a batch, and which interests begin or end."""
        session = self.session()
        tables = [session.push(table), session.advance(watermark)]
        interests = session.take_interests()
        self.saved = session.snapshot()
        return [each for each in tables if each.num_rows], [] if interests is None else [interests]


class Collector:
    """Compares what shards tell, and is thrown away after each batch."""

    def __init__(self, query) -> None:
        self.query, self.saved = query, None

    def push(self, tables: list[pa.Table], interests: list[pa.Table], watermark: int) -> list[pa.Table]:
        """What is told in the end."""
        retelling = Retelling(self.query)
        if self.saved is not None:
            retelling.load(Blocks.from_bytes(self.saved), "it")
        nothing = pa.schema([*INTERESTS, pa.field("focal", pa.string())]).empty_table()
        have = pa.concat_tables(tables, promote_options="permissive") if tables else pa.table({})
        which = pa.concat_tables(interests, promote_options="permissive") if interests else nothing
        found = retelling.step(have, which, watermark)
        blocks = Blocks()
        retelling.save(blocks, "it")
        self.saved = blocks.to_bytes()
        return [] if found is None else [found]


@given(st.data(), mobile_queries(refresh=Always()), POINTS, st.integers(2, 5), TELLINGS)
def test_shards_tell_together_what_one_session_tells(data, query, events, shards, deliver):
    assume(events)
    of = data.draw(st.sampled_from(["events", "events", "situations"]))
    query = compiled(replace(query, deliver=deliver, refresh=data.draw(CONDITIONS), of=of))
    plan = sharding_of(query)
    assume(isinstance(plan, ByInterests))
    events = sorted(events, key=lambda each: each.end)
    alone = Session(query, lateness=None, coordinates="plane")
    expected = [*told(alone.push(shifted(events))), *told(alone.close())]
    parts = [Shard(query, Cells(plan.reach_m, shards).of_shard(shard)) for shard in range(shards)]
    collector = Collector(query.mobile[0]) if deliver != "all" else None
    found, batches = [], [batch for batch in data.draw(cuts(events)) if batch]
    for number, batch in enumerate(batches):
        rest = [each.end for after in batches[number + 1 :] for each in after]
        watermark = min(rest) - 1 if rest else END_OF_TIME
        dealt = pieces(shifted(batch), plan.reach_m, shards, plan.updates)
        steps = [part.push(table, watermark) for part, table in zip(parts, dealt, strict=True)]
        tables = [table for step, _ in steps for table in step]
        if collector is not None:
            tables = collector.push(tables, [table for _, step in steps for table in step], watermark)
        found += [each for table in tables for each in told(table)]
    assert sorted_told(found) == sorted_told(expected)


@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("coordinates", list(Coordinates))
def test_what_is_needed_everywhere_goes_to_all_shards_and_is_owned_by_one(shards, coordinates):
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-170, 170, 500), rng.uniform(-80, 80, 500)
    reach = 4.0 if coordinates is Coordinates.PLANE else 500_000.0
    everywhere = rng.random(500) < 0.2
    placed = place_copies(x, y, reach, shards, coordinates, everywhere, CELLS_PER_INTEREST)
    assert (np.bincount(placed.row)[everywhere] == shards).all()
    assert len(set(zip(placed.row.tolist(), placed.shard.tolist(), strict=True))) == len(placed.row)
    for shard in range(shards):
        own = Cells(reach, shards).of_shard(shard).holds(x, y, coordinates)
        primary = placed.row[placed.is_primary & (placed.shard == shard)]
        assert sorted(primary.tolist()) == np.flatnonzero(own).tolist()
