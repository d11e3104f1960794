"""Events from an MQTT broker, at least once, through crashes of either side.

Registered as `whimbrel-mqtt`. MQTT has no offsets: a message that is acknowledged is gone. So the driver
keeps a session on the broker that outlives it, writes what comes to a message log on its disk, and confirms
a message only when it is there. Offsets are numbers of messages in the log. Tasks carry their messages
themselves, so that workers need neither the broker nor the log.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from whimbrel.errors import DataError, MissingDependency, WhimbrelError, did_you_mean
from whimbrel.spark.sources._json import events_from_json, read_schema
from whimbrel.spark.sources._message_log import LoggedMessage, MessageLog, unpack
from whimbrel.spark.sources._spec import Spec

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_LOG = logging.getLogger(__name__)
NAME = "whimbrel-mqtt"
OPTIONS = (
    "host",
    "port",
    "topic",
    "qos",
    "username",
    "password",
    "tls",
    "ca_file",
    "client_id",
    "spool",
    "max_buffered",
    "rows_per_batch",
    "settle",
)


class MayComeTwice(UserWarning):
    """Events have no ids, and the source may deliver a message again."""

    def __init__(self) -> None:
        super().__init__(
            "mqtt may deliver a message again, and an event without an id that comes twice counts as two; "
            "name a column 'id' in the schema, or make one with columns="
        )


_PATIENCE = 30.0
_CHECK_EVERY = 0.05


def read_mqtt(
    spark: SparkSession,
    host: str,
    topic: str,
    *,
    spool: str,
    port: int = 1883,
    schema: str | StructType | None = None,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read JSON events from an MQTT broker, each message one event or a list of them.

    A message that is no JSON or does not fit the schema becomes a row in which only `_raw` is set, with its
    text: Whimbrel rejects it and shows it among the rejected events.

    Parameters
    ----------
    topic
        A topic; `+` stands for any one level of it, `#` at the end for all that follow.
    spool
        A folder on the driver's disk that keeps messages until they are processed; each query needs its own,
        and needs it again after a restart.
    schema
        The columns of the events: "type STRING, time TIMESTAMP, x DOUBLE, y DOUBLE", or a StructType. If it
        has the columns `topic` or `received`, they tell where and when the message came. Without a schema
        the frame has the columns `topic`, `received` and `payload` (text).
    options
        More options of the data source: see `OPTIONS` and the documentation.

    Raises
    ------
    DataError
        If an option is wrong. That the broker cannot be reached shows when the query starts.
    """
    given = {"host": host, "topic": topic, "spool": spool, "port": str(port), **(options or {})}
    settings = MqttOptions.of(given)
    spark.dataSource.register(MqttSource)
    raw = spark.readStream.format(NAME).options(**given).load()
    text = fn.make_valid_utf8(fn.col("payload").cast("string"))
    if schema is None:
        return raw.select("topic", "received", text.alias("payload"))
    wanted = read_schema(spark, schema)
    if settings.qos and "id" not in wanted.fieldNames():
        warnings.warn(MayComeTwice(), stacklevel=2)
    own = [name for name in ("topic", "received") if name in wanted.fieldNames()]
    members = StructType([field for field in wanted.fields if field.name not in own])
    return events_from_json(raw, text, members, [fn.col(name) for name in own])


@dataclass(frozen=True)
class MqttOptions:
    """The options of the source, checked."""

    host: str
    port: int
    topic: str
    qos: int
    username: str | None
    password: str | None
    tls: bool
    ca_file: str | None
    client_id: str | None
    spool: Path
    max_buffered: int
    rows_per_batch: int
    settle: float

    @classmethod
    def of(cls, options: Mapping[str, str]) -> MqttOptions:
        """Read options as Spark gives them: text, with names in any case."""
        given = {name.lower(): text for name, text in options.items()}
        for name in given:
            if name not in OPTIONS:
                raise DataError(f"mqtt has no option {name!r}; {did_you_mean(name, OPTIONS)}")
        for name, meaning in _NEEDED.items():
            if not given.get(name):
                raise DataError(f"mqtt needs the option {name!r}: {meaning}")
        qos = given.get("qos", "1")
        if qos not in ("0", "1"):
            raise DataError(
                f"mqtt: qos is {qos}; it must be 1, or 0 where losses do not matter (with 2 the broker "
                "forgets a message before it is on the disk here; duplicates are dropped by their event ids)"
            )
        spec = Spec("mqtt", "mqtt", "", given)
        return cls(
            given["host"],
            spec.whole("port", 1883),
            given["topic"],
            int(qos),
            given.get("username"),
            given.get("password"),
            spec.flag("tls"),
            given.get("ca_file"),
            given.get("client_id"),
            Path(given["spool"]),
            spec.whole("max_buffered", 100_000),
            spec.whole("rows_per_batch", 10_000),
            spec.number("settle", 1),
        )


_NEEDED = {
    "host": "the broker's address",
    "topic": "what to subscribe to",
    "spool": "a folder on the driver's disk that keeps messages until they are processed",
}


class MqttSource(DataSource):
    """The data source `whimbrel-mqtt`: the columns `topic`, `received` and `payload`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "topic STRING, received TIMESTAMP, payload BINARY"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        return MqttReader(MqttOptions.of(self.options))


class MqttReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Read the messages of a log, which a link to the broker fills meanwhile."""

    def __init__(self, settings: MqttOptions) -> None:
        # Spark also makes readers that it only sends to workers, so nothing is opened here.
        self._settings = settings
        self._link: BrokerLink | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"message": self._linked(0).log.first}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._settings.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        # Not known yet: where to go on from, and so what the log must hold. See latestOffset.
        self._target = -1

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        first = start["message"]
        link = self._linked(first)
        link.check()
        if self._target is not None and self._target < 0:
            link.wait_until_quiet(self._settings.settle)
            self._target = link.log.next
        end = link.log.next if self._target is None else max(first, self._target)
        if end < first:
            raise DataError(
                f"{self._settings.spool}: the checkpoint has come to message {first}, but this spool only to "
                f"{end}; it belongs to another query, or was changed; keep it with the checkpoint"
            )
        return {"message": end if isinstance(limit, ReadAllAvailable) else min(end, first + _rows(limit))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        chunks = self._linked(start["message"]).log.read(start["message"], end["message"])
        return [InputPartition(chunk) for chunk in chunks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from unpack(partition.value).to_batches()

    def commit(self, end: dict[str, int]) -> None:
        self._linked(end["message"]).processed(end["message"])

    def stop(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _linked(self, least: int) -> BrokerLink:
        if self._link is None:
            self._link = BrokerLink(self._settings, least)
        return self._link


def _rows(limit: ReadLimit) -> int:
    return int(limit.max_rows) if isinstance(limit, ReadMaxRows) else 2**62


class BrokerLink:
    """Connects to the broker and fills a message log; acknowledges what is on the disk, and nothing else.

    Messages wait in a queue for a thread that writes all that have gathered with one sync. Beyond
    `max_buffered` messages that Spark has not processed, acknowledgements are held back: the broker then
    stops sending after its window of unacknowledged messages, and queues what comes itself.
    """

    def __init__(self, settings: MqttOptions, least: int) -> None:
        self._settings = settings
        self.log = MessageLog(settings.spool, least)
        self._arrived: queue.SimpleQueue[tuple[int, int, LoggedMessage] | None] = queue.SimpleQueue()
        self._unsent: deque[tuple[int, int]] = deque()
        self._lock = Lock()
        self._processed = max(self.log.first, least)
        self._connection = 0
        self._is_closing = self._holds_back = False
        self._last_arrival = time.monotonic()
        self._subscribed = Event()
        self._failure: Exception | None = None
        self._client = self._new_client()
        self._writer = Thread(target=self._write_all, name="whimbrel-mqtt-spool", daemon=True)
        self._writer.start()
        try:
            self._connect()
        except BaseException:
            self.close()
            raise

    def check(self) -> None:
        """Raise what went wrong in another thread."""
        if self._failure:
            raise self._failure

    def processed(self, number: int) -> None:
        """Learn that Spark will not ask for messages below `number` again."""
        with self._lock:
            self._processed = max(self._processed, number)
        self.log.release(number)
        self._acknowledge()

    def wait_until_quiet(self, seconds: float) -> None:
        """Wait until what the broker held for us has come: no message for some seconds, all on the disk."""
        last_try = time.monotonic() + _PATIENCE
        while time.monotonic() < last_try:
            self.check()
            if time.monotonic() - self._last_arrival > seconds and self._arrived.empty():
                return
            time.sleep(_CHECK_EVERY)

    def close(self) -> None:
        """End the connection; the session stays on the broker, which keeps what comes for us."""
        self._is_closing = True
        self._client.disconnect()
        self._client.loop_stop()
        self._arrived.put(None)
        self._writer.join(_PATIENCE)
        self.log.close()

    def _new_client(self) -> Client:
        try:
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        except ImportError as error:
            raise MissingDependency("paho-mqtt", "the MQTT source", "mqtt") from error
        settings = self._settings
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id or _lasting_id(settings.spool / "client"),
            clean_session=False,
            manual_ack=True,
        )
        if settings.username is not None:
            client.username_pw_set(settings.username, settings.password)
        if settings.tls:
            client.tls_set(ca_certs=settings.ca_file)
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_message = self._on_message
        return client

    def _connect(self) -> None:
        where = f"the MQTT broker at {self._settings.host}:{self._settings.port}"
        try:
            self._client.connect(self._settings.host, self._settings.port)
        except OSError as error:
            raise WhimbrelError(f"{where} cannot be reached: {error}") from error
        self._client.loop_start()
        if not self._subscribed.wait(_PATIENCE):
            raise WhimbrelError(f"{where} did not answer within {_PATIENCE:g} s")
        self.check()

    # What follows is called in the client's thread. ---------------------------------------------------------

    def _on_connect(
        self, client: Client, _data: object, flags: Any, reason: Any, _properties: object
    ) -> None:
        if reason.is_failure:
            self._fail(f"refused the connection: {reason}")
            return
        with self._lock:
            self._connection += 1
        self._last_arrival = time.monotonic()
        _LOG.info(
            "connected to %s:%d, %s; %d messages of before wait to be processed",
            self._settings.host, self._settings.port,
            "which kept our session" if flags.session_present else "a new session",
            self.log.next - self._processed,
        )  # fmt: skip
        if flags.session_present:
            # Subscribing again would bring all retained messages again.
            self._subscribed.set()
        else:
            client.subscribe(self._settings.topic, self._settings.qos)

    def _on_disconnect(self, *_about: object) -> None:
        if not self._is_closing:
            _LOG.warning(
                "lost the connection to %s:%d; trying again", self._settings.host, self._settings.port
            )
        with self._lock:
            # What was not acknowledged comes again; by then its number may mean another message.
            self._unsent.clear()
            self._connection += 1

    def _on_subscribe(
        self, _client: Client, _data: object, _mid: int, reasons: list[Any], _properties: object
    ) -> None:
        if reasons[0].is_failure:
            self._fail(f"refused the subscription to {self._settings.topic!r}: {reasons[0]}")
        self._subscribed.set()

    def _on_message(self, _client: Client, _data: object, message: Any) -> None:
        self._last_arrival = time.monotonic()
        received = LoggedMessage(message.topic, bytes(message.payload), time.time_ns() // 1000)
        self._arrived.put((self._connection, message.mid if message.qos else 0, received))

    def _fail(self, problem: str) -> None:
        self._failure = WhimbrelError(
            f"the MQTT broker at {self._settings.host}:{self._settings.port} {problem}"
        )
        self._subscribed.set()

    # What follows is called in the writing thread. ----------------------------------------------------------

    def _write_all(self) -> None:
        while (item := self._arrived.get()) is not None:
            items = [item]
            ending = False
            while not ending and not self._arrived.empty():
                more = self._arrived.get()
                ending = more is None
                items += [more] if more else []
            try:
                self.log.append([message for _, _, message in items])
            except (OSError, WhimbrelError) as error:
                self._failure = WhimbrelError(f"{self._settings.spool}: messages cannot be kept: {error}")
                return
            with self._lock:
                self._unsent += [(at, mid) for at, mid, _ in items if mid]
            self._acknowledge()
            if ending:
                return

    def _acknowledge(self) -> None:
        with self._lock:
            waiting = self.log.next - self._processed
            holds_back = waiting > self._settings.max_buffered
            if holds_back and not self._holds_back:
                _LOG.warning(
                    "%d messages wait to be processed: the broker is not sent acknowledgements", waiting
                )
            self._holds_back = holds_back
            if holds_back:
                return
            while self._unsent:
                connection, mid = self._unsent.popleft()
                if connection == self._connection:
                    self._client.ack(mid, 1)


def _lasting_id(path: Path) -> str:
    """Make a client id at first, and give the same one ever after: the broker keeps our session under it."""
    if not path.exists():
        part = path.with_suffix(".part")
        part.write_text(f"whimbrel-{uuid.uuid4().hex[:16]}", encoding="utf-8")
        part.replace(path)
    return path.read_text(encoding="utf-8")
