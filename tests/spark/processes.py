"""Start a program, wait until it answers, and end it: kindly, or as a power cut would."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(command: Sequence[str], port: int, log: Path, seconds: float = 60) -> Iterator[subprocess.Popen]:
    """Run a command that listens on `port`; it is ended when the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_for(process, port, log, seconds)
        yield process
    finally:
        end(process)


def _wait_for(process: subprocess.Popen, port: int, log: Path, seconds: float) -> None:
    last_try = time.monotonic() + seconds
    while time.monotonic() < last_try:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
            return
        time.sleep(0.1)
    said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"{process.args} does not listen on port {port}:\n{said}")


def end(process: subprocess.Popen) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def cut_off(process: subprocess.Popen) -> None:
    """End a program and all that it has started in an instant, as a power cut would."""
    if process.poll() is None:
        family = _family(process.pid)
        # Stopped before the first is killed: none of them sees another one die and tidies up after it.
        for blow in (signal.SIGSTOP, signal.SIGKILL):
            for each in family:
                with contextlib.suppress(psutil.NoSuchProcess):  # it came to its own end meanwhile
                    each.send_signal(blow)
    process.wait(30)


def _family(pid: int) -> list[psutil.Process]:
    try:
        head = psutil.Process(pid)
        return [head, *head.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
