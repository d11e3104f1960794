"""A Kafka broker of one node, from its published jars."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.brokers.processes import LOOPBACK, free_port, running

from whimbrel.spark.session import java

VERSION = "4.0.0"
_RESOLVE_SECONDS = 240
_POM = f"""<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>whimbrel.tests</groupId><artifactId>kafka</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
    </dependency>
  </dependencies>
</project>
"""


def kafka_jars() -> Path:
    """Find the broker's jars in the user's cache; have Maven bring them there first, or skip."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "whimbrel"
    jars = cache / f"kafka-{VERSION}"
    if not jars.is_dir():
        if shutil.which("mvn") is None or java() is None:
            pytest.skip("a Kafka broker needs Java, and Maven to get it")
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            (Path(folder) / "pom.xml").write_text(_POM, encoding="utf-8")
            command = ["mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
            try:
                subprocess.run(
                    [*command, "-DoutputDirectory=jars"],
                    cwd=folder,
                    check=True,
                    capture_output=True,
                    timeout=_RESOLVE_SECONDS,
                )
            except subprocess.SubprocessError as error:
                pytest.skip(f"Maven could not get Kafka: {error}")
            # Another run may have been faster.
            with contextlib.suppress(OSError):
                (Path(folder) / "jars").rename(jars)
    return jars


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
