"""Send detections to Kafka, by Spark's own connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from whimbrel.spark.sinks._form import DetectionForm, json_texts
from whimbrel.spark.sources.kafka import missing_connector


@dataclass(frozen=True)
class KafkaSink:
    """Send each detection as a message: its key is the detection's id, its value Whimbrel's JSON.

    At least once: a micro-batch that is written again sends its messages again, with the same keys and
    values, so that a compacted topic, or a consumer that goes by the keys, has each detection once.

    Parameters
    ----------
    options
        More options of Spark's connector, such as {"kafka.security.protocol": "SSL"}.
    """

    servers: str
    topic: str
    options: Mapping[str, str] = field(default_factory=dict)
    form: DetectionForm = field(default_factory=DetectionForm)

    def write(self, frame: DataFrame, batch_id: int) -> None:  # noqa: ARG002 - the keys do its work
        """Send a micro-batch."""
        messages = frame.mapInArrow(partial(_messages, form=self.form), "key STRING, value STRING")
        given = {"kafka.bootstrap.servers": self.servers, "topic": self.topic, **self.options}
        try:
            messages.write.format("kafka").options(**given).save()
        except AnalysisException as error:
            raise missing_connector(error) from error


def _messages(batches: Iterator[pa.RecordBatch], form: DetectionForm) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        table = form.table([batch])
        if table is not None:
            keys = table["id"].combine_chunks().cast(pa.string())
            values = pa.array(json_texts(table), pa.string())
            yield pa.RecordBatch.from_arrays([keys, values], names=["key", "value"])
