"""A checkpoint says how many shards it is of, before any event comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.spark.frames import Folder

import whimbrel as wb
from whimbrel.errors import StateError
from whimbrel.spark import detect_live, differences, outcomes
from whimbrel.spark.checkpoints import FILE, shards_of
from whimbrel.spark.errors import plain_errors
from whimbrel.spark.sinks import start

pytestmark = pytest.mark.slow

QUERY = wb.compile("define Both detect A as a then B as b within 1 h group by source")
SCHEMA = "type string, time long, source string"


class Keeping:
    """A sink that keeps the schema of what it was given in a file: it is sent to where Spark runs."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def write(self, frame: Any, batch_id: int) -> None:  # noqa: ARG002 - sinks have it
        """Write the schema, once Spark has computed all rows."""
        frame.collect()
        Path(self.path).write_text(frame.schema.json())


@pytest.fixture
def folder(spark, tmp_path):
    made = Folder(spark, tmp_path / "in", SCHEMA)
    made.put([{"type": "A", "time": 0, "source": "x"}])
    return made


def end(running: Any) -> None:
    with plain_errors():
        running.awaitTermination()


def test_another_number_of_shards_is_refused_though_no_events_come(folder, tmp_path):
    def begin(shards: int) -> None:
        found = wb.detect(QUERY, folder.stream(), shards=shards)
        end(start(found, Keeping(tmp_path / "schema"), checkpoint=tmp_path / "state", available_now=True))

    begin(2)
    assert "whimbrel" not in (tmp_path / "schema").read_text()
    with pytest.raises(StateError, match="is of a stream with 2 shards, and this one has 3") as refused:
        begin(3)
    assert str(refused.value).startswith(f"{tmp_path / 'state'}: ")
    assert str(refused.value).endswith("start it with shards=2 (--shards 2), or with a new checkpoint")
    begin(2)
    (tmp_path / "state" / FILE).write_text('{"sha')
    (tmp_path / "state" / f".{FILE}.crc").unlink()
    begin(3)  # a note that says nothing is no reason to refuse
    folder.put([{"type": "B", "time": 1, "source": "x"}])
    with pytest.raises(StateError, match="is of a stream with 2 shards, and this one has 3"):
        begin(3)


def test_a_stream_that_never_began_may_begin_with_another_number(folder, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / FILE).write_text('{"shards": 9}')
    found = wb.detect(QUERY, folder.stream(), shards=2)
    end(start(found, Keeping(tmp_path / "schema"), checkpoint=tmp_path / "state", available_now=True))
    assert (tmp_path / "state" / FILE).read_text() == '{"shards": 2}'


def test_all_streams_of_detections_say_how_many_shards_they_have(spark, folder, tmp_path):
    stream = folder.stream()
    control = spark.readStream.schema("action string, name string, query string").json(str(folder.path))
    assert shards_of(wb.detect(QUERY, stream, shards=3)) == 3
    assert shards_of(outcomes(QUERY, stream, shards=3)) == 3
    assert shards_of(differences(QUERY, QUERY, stream, shards=3)) == 3
    assert shards_of(detect_live(stream, control, by="source", shards=3)) == 3
    assert shards_of(spark.read.schema(SCHEMA).parquet(str(folder.path))) is None
