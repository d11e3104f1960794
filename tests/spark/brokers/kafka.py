"""A Kafka broker of one node, from its published jars."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.spark.processes import LOOPBACK, free_port, running

from whimbrel.spark.session import java
from whimbrel.spark.sources import KAFKA_PACKAGE

BROKER = "org.apache.kafka:kafka_2.13:4.0.0"
OLDER_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
_CONNECTOR_JARS = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")
_RESOLVE_SECONDS = 240
_ASK_AGAIN_SECONDS = 24 * 3600
"""How long a package that Maven could not get is not asked for again, which takes a minute."""


@dataclass(frozen=True)
class Connector:
    """The jars that Spark needs for Kafka, and whether they are of the very same version as Spark.

    A connector of another version writes and reads, but cannot be the source of a stream: it calls parts of
    Spark that have changed.
    """

    jars: tuple[Path, ...]
    matches: bool


def kafka_connector() -> Connector:
    """Find the connector for the Spark that is installed, or the nearest older one, or skip."""
    for coordinates in (KAFKA_PACKAGE, OLDER_CONNECTOR):
        folder = find_jars(coordinates)
        if folder is not None:
            ours = [jar for jar in sorted(folder.iterdir()) if jar.name.startswith(_CONNECTOR_JARS)]
            return Connector(tuple(ours), coordinates == KAFKA_PACKAGE)
    pytest.skip(f"Maven could not get {KAFKA_PACKAGE}")


def kafka_jars() -> Path:
    """Find the folder of the broker's jars, or skip."""
    found = find_jars(BROKER)
    if found is None:
        pytest.skip(f"Maven could not get {BROKER}")
    return found


def find_jars(coordinates: str) -> Path | None:
    """Find the jars of a package in the user's cache; have Maven bring them there first."""
    group, artifact, version = coordinates.split(":")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whimbrel"
    found = cache / f"{artifact}-{version}"
    if found.is_dir():
        return found
    missing = cache / f"{artifact}-{version}.missing"
    if missing.exists() and time.time() - missing.stat().st_mtime < _ASK_AGAIN_SECONDS:
        return None
    if shutil.which("mvn") is None or java() is None:
        pytest.skip(f"{artifact} needs Java, and Maven to get it")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        (Path(folder) / "pom.xml").write_text(_pom(group, artifact, version), encoding="utf-8")
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        try:
            subprocess.run(
                [*command, "-DoutputDirectory=jars"],
                cwd=folder,
                check=True,
                capture_output=True,
                timeout=_RESOLVE_SECONDS,
            )
        except subprocess.SubprocessError:
            missing.touch()
            return None
        # Another run may have been faster.
        with contextlib.suppress(OSError):
            (Path(folder) / "jars").rename(found)
    return found


def _pom(group: str, artifact: str, version: str) -> str:
    wanted = f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
    return f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>whimbrel.tests</groupId><artifactId>jars</artifactId><version>1</version>
  <dependencies><dependency>{wanted}</dependency></dependencies>
</project>
"""


@contextlib.contextmanager
def kafka(folder: Path) -> Iterator[str]:
    """Run a broker and give its address."""
    port, control = free_port(), free_port()
    config = folder / "server.properties"
    config.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{LOOPBACK}:{control}
listeners=PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{control}
advertised.listeners=PLAINTEXT://{LOOPBACK}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={folder / "logs"}
num.partitions=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
""",
        encoding="utf-8",
    )
    run = [java() or "java", "-Xmx384m", "-cp", f"{kafka_jars()}/*"]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
    subprocess.run(
        [*run, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)],
        check=True,
        capture_output=True,
        timeout=60,
    )
    with running([*run, "kafka.Kafka", str(config)], port, folder / "kafka.log", seconds=90):
        yield f"{LOOPBACK}:{port}"
