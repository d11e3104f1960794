"""Messages of a real MQTT broker arrive at least once, whoever dies."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.spark.brokers.mosquitto import mosquitto
from tests.spark.processes import LOOPBACK, cut_off, free_port
from tests.spark.sources import mqtt_driver
from tests.spark.sources.mqtt_driver import write_messages

from whimbrel.errors import DataError, WhimbrelError
from whimbrel.spark.sources.mqtt import MqttOptions, MqttReader

DRIVER = Path(mqtt_driver.__file__)
ALL = ReadAllAvailable()


@pytest.fixture
def port(tmp_path) -> Iterator[int]:
    with mosquitto(tmp_path) as port:
        yield port


@pytest.fixture
def reader(port, tmp_path) -> Iterator[Callable[..., MqttReader]]:
    """Open readers that are stopped at the end."""
    opened = []

    def make(**options: str) -> MqttReader:
        given = {"host": LOOPBACK, "port": str(port), "topic": "fleet/#", "spool": str(tmp_path / "spool")}
        opened.append(MqttReader(MqttOptions.of(given | options)))
        return opened[-1]

    yield make
    for each in opened:
        each.stop()


class Publisher:
    """Publishes, and knows when the broker has it."""

    def __init__(self, port: int, client_id: str = "", clean: bool = True) -> None:
        self.client = Client(CallbackAPIVersion.VERSION2, client_id=client_id, clean_session=clean)
        self.client.connect(LOOPBACK, port)
        self.client.loop_start()

    def publish(self, topic: str, payload: str | bytes) -> None:
        self.client.publish(topic, payload, qos=1).wait_for_publish(10)

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def publisher(port) -> Iterator[Publisher]:
    publisher = Publisher(port)
    yield publisher
    publisher.close()


def wait_for(holds: Callable[[], bool], seconds: float = 20) -> None:
    last_try = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < last_try, "it did not happen in time"
        time.sleep(0.02)


def payloads(reader: MqttReader, start: dict, end: dict) -> list[bytes]:
    return [
        payload
        for partition in reader.partitions(start, end)
        for batch in reader.read(partition)
        for payload in batch.column("payload").to_pylist()
    ]


def count(reader: MqttReader, start: dict) -> int:
    return reader.latestOffset(start, ALL)["message"] - start["message"]


def test_messages_have_their_topic_and_the_time_of_receipt(reader, publisher):
    source = reader(topic="fleet/+/position")
    start = source.initialOffset()
    publisher.publish("fleet/7/position", b"\xff\x00")
    publisher.publish("fleet/7/door", "not asked for")
    publisher.publish("fleet/8/position", "")
    wait_for(lambda: count(source, start) == 2)
    (partition,) = source.partitions(start, source.latestOffset(start, ALL))
    (batch,) = source.read(partition)
    assert batch.column("topic").to_pylist() == ["fleet/7/position", "fleet/8/position"]
    assert batch.column("payload").to_pylist() == [b"\xff\x00", b""]
    assert abs(batch.column("received")[0].as_py().timestamp() - time.time()) < 30


def test_micro_batches_are_bounded(reader, publisher):
    source = reader(rows_per_batch="3")
    assert source.getDefaultReadLimit() == ReadMaxRows(3)
    start = source.initialOffset()
    for number in range(5):
        publisher.publish("fleet/1", str(number))
    wait_for(lambda: count(source, start) == 5)
    middle = source.latestOffset(start, ReadMaxRows(3))
    assert payloads(source, start, middle) == [b"0", b"1", b"2"]
    assert payloads(source, middle, source.latestOffset(middle, ReadMaxRows(3))) == [b"3", b"4"]


@pytest.mark.slow
def test_what_comes_while_nobody_reads_is_there_afterwards(reader, publisher, caplog):
    caplog.set_level("INFO", "whimbrel.spark.sources")
    source = reader()
    start = source.initialOffset()
    publisher.publish("fleet/1", "before")
    wait_for(lambda: count(source, start) == 1)
    source.stop()
    publisher.publish("fleet/1", "between")
    again = reader()
    again.prepareForTriggerAvailableNow()
    end = again.latestOffset(start, ALL)
    publisher.publish("fleet/1", "too late for this run")
    wait_for(lambda: again._link.log.next == 3)
    assert again.latestOffset(end, ALL) == end
    assert payloads(again, start, end) == [b"before", b"between"]
    sessions = [message.partition(", ")[2] for message in caplog.messages]
    assert [session.partition(";")[0] for session in sessions] == ["a new session", "which kept our session"]


def test_no_more_is_acknowledged_than_may_be_buffered(reader, publisher, caplog):
    source = reader(max_buffered="50")
    start = source.initialOffset()
    for number in range(200):
        publisher.publish("fleet/1", str(number))
    link = source._link
    wait_for(lambda: link._unsent)
    link.wait_until_quiet(0.3)
    assert [record.levelname for record in caplog.records if "wait to be processed" in record.message] == [
        "WARNING"
    ]
    # How much more the broker sends without waiting for acknowledgements is its own choice.
    assert link.log.next - len(link._unsent) <= 50
    found: list[bytes] = []
    while len(found) < 200:
        end = source.latestOffset(start, ALL)
        found += payloads(source, start, end)
        source.commit(end)
        start = end
    assert sorted(map(int, found)) == list(range(200))


@pytest.mark.slow
def test_retained_messages_come_once(reader, port, publisher):
    publisher.client.publish("fleet/1", "kept", qos=1, retain=True).wait_for_publish(10)
    source = reader()
    start = source.initialOffset()
    wait_for(lambda: count(source, start) == 1)
    source.stop()
    again = reader()
    again.prepareForTriggerAvailableNow()
    assert count(again, start) == 1


def test_a_broker_that_is_not_there_is_named(reader):
    nobody = free_port()
    with pytest.raises(WhimbrelError, match=f"MQTT broker at 127.0.0.1:{nobody} cannot be reached"):
        reader(port=str(nobody)).initialOffset()


def test_a_refused_login_is_told(tmp_path):
    with mosquitto(tmp_path, "allow_anonymous false") as port:
        given = {"host": LOOPBACK, "port": str(port), "topic": "a", "spool": str(tmp_path / "spool")}
        with pytest.raises(WhimbrelError, match="refused the connection: Not authorized"):
            MqttReader(MqttOptions.of(given)).initialOffset()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spool": ""}, "needs the option 'spool': a folder on the driver's disk"),
        ({"qos": "2"}, "qos is 2; it must be 1, or 0"),
        ({"max_bufered": "5"}, "no option 'max_bufered'; did you mean 'max_buffered'"),
        ({"port": "http"}, "mqtt: port must be a number, not 'http'"),
        ({"port": "0"}, "mqtt: port is 0; it must be at least 1"),
        ({"max_buffered": "1.5"}, "max_buffered must be a whole number, not '1.5'"),
        ({"settle": "soon"}, "settle must be a number, not 'soon'"),
        ({"tls": "on"}, "tls must be true or false, not 'on'"),
    ],
)
def test_wrong_options_are_explained(options, message):
    with pytest.raises(DataError, match=message):
        MqttOptions.of({"host": "h", "topic": "t", "spool": "s"} | options)


@contextmanager
def driver(folder: Path, port: int) -> Iterator[subprocess.Popen]:
    """A Spark driver in a process of its own; at the end of the block it is cut off."""
    with (folder / "driver.log").open("wb") as log:
        command = [sys.executable, str(DRIVER), str(folder), str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        cut_off(process)


def found_ids(folder: Path) -> list[str]:
    files = sorted((folder / "found").glob("*.jsonl")) if (folder / "found").exists() else []
    return [json.loads(line)["id"] for file in files for line in file.read_text("utf-8").splitlines()]


@pytest.mark.slow
def test_nothing_is_lost_when_the_driver_is_killed(spark, tmp_path, port):
    # The session is made first, so that everything that is published from now on is meant for the driver.
    session = Publisher(port, "whimbrel-test", clean=False)
    session.client.subscribe("fleet/#", 1)
    wait_for(session.client.is_connected)
    time.sleep(0.2)
    session.close()
    publisher = Publisher(port)
    sent = []

    def publish(messages: int) -> None:
        for _ in range(messages):
            number = len(sent)
            sent.append(f"e{number}")
            event = {"id": sent[-1], "type": "A", "time": "2025-03-03T08:00:00Z", "n": number}
            publisher.publish(f"fleet/{number % 3}", json.dumps([event] if number % 2 else event))

    try:
        with driver(tmp_path, port) as running:
            while not found_ids(tmp_path):
                publish(20)
                time.sleep(0.1)
                assert running.poll() is None, (tmp_path / "driver.log").read_text()
            publish(100)
        publish(100)
    finally:
        publisher.close()
    seen = set(found_ids(tmp_path))
    assert 0 < len(seen) < len(sent)
    assert write_messages(spark, tmp_path, port, available_now=True).awaitTermination(150)
    assert set(found_ids(tmp_path)) == set(sent)
    assert seen <= set(found_ids(tmp_path))
