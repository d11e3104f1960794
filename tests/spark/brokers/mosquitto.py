"""A Mosquitto broker, from the system's packages."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.processes import LOOPBACK, free_port, running

_INSTALL_SECONDS = 120


def mosquitto_path() -> str:
    """Find the broker; install it where that is possible without asking, or skip."""
    found = _find()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["update"], ["install", "-y", "--no-install-recommends", "mosquitto"]):
            with contextlib.suppress(subprocess.SubprocessError):
                subprocess.run(
                    ["apt-get", "-q", *command], check=True, capture_output=True, timeout=_INSTALL_SECONDS
                )
        found = _find()
    if found is None:
        pytest.skip("the broker mosquitto is not installed, and could not be")
    return found


def _find() -> str | None:
    return shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def mosquitto(folder: Path, *settings: str) -> Iterator[int]:
    """Run a broker that keeps sessions and long queues, and give its port."""
    port = free_port()
    lines = [
        f"listener {port} {LOOPBACK}",
        "max_queued_messages 1000000",
        "persistence false",
        *(settings or ("allow_anonymous true",)),
    ]
    config = folder / "mosquitto.conf"
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with running([mosquitto_path(), "-c", str(config)], port, folder / "mosquitto.log"):
        yield port
