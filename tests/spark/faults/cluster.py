"""A Spark cluster on loopback: a master and two workers, each a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from tests.spark.processes import LOOPBACK, cut_off, free_port

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"


@dataclass
class Cluster:
    """A master and its workers."""

    folder: Path
    port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address of the master."""
        return f"spark://{LOOPBACK}:{self.port}"

    def start(self, workers: int = 2) -> None:
        """Start all processes, and wait until the master listens."""
        self._launch("master", ["org.apache.spark.deploy.master.Master", "--host", LOOPBACK,
                                "--port", str(self.port), "--webui-port", str(free_port())])  # fmt: skip
        self._wait()
        for number in range(workers):
            self._launch(f"worker-{number}", [
                "org.apache.spark.deploy.worker.Worker", self.address, "--host", LOOPBACK, "--cores", "1",
                "--memory", "1200m", "--port", str(free_port()), "--webui-port", str(free_port()),
                "--work-dir", str(self.folder / f"worker-{number}"),
            ])  # fmt: skip

    def _launch(self, name: str, command: list[str]) -> None:
        environment = os.environ | {"SPARK_LOCAL_IP": LOOPBACK, "PYSPARK_PYTHON": sys.executable,
                                    "SPARK_DAEMON_MEMORY": "256m"}  # fmt: skip
        log = (self.folder / f"{name}.log").open("wb")
        self.processes[name] = subprocess.Popen(
            [str(SPARK_CLASS), *command], env=environment, stdout=log, stderr=log
        )

    def _wait(self) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with closing(socket.socket()) as trial:
                if trial.connect_ex((LOOPBACK, self.port)) == 0:
                    return
            time.sleep(0.2)
        raise TimeoutError("the master does not listen")

    def kill(self, name: str) -> None:
        """Kill a worker, and the executors that it has started, at once."""
        cut_off(self.processes.pop(name))


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    """Start a cluster; all its processes end with the context."""
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        for name in list(cluster.processes):
            cluster.kill(name)
