"""Ask Flink CEP itself what a pattern in Whimbrel's JSON form finds.

    with Oracle() as flink:
        answer = flink.answer(pattern, events)

An event is `{"id": ..., "type": ..., "time": milliseconds, "attributes": {...}}`. An answer has `matches`
(each with `events`, the ids in the order taken, and `steps`, step -> ids) in the order in which Flink emits
them, `timeouts` (`steps` and `time`) and `error`, which is null or says why Flink refuses.

The first use compiles a small Java program into build/oracle, and gets Flink's jars into build/peers if
they are not there. Run as a script, it answers the requests on its input, one a line.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCES = Path(__file__).parent
sys.path += [str(SOURCES), str(ROOT / "bench" / "peers")]

from conditions import condition_tree  # noqa: E402 - a script, found by the line above
from flink_program import PeerMissing, _installed, _jars, _tool  # noqa: E402 - the same

JARS = ROOT / "build" / "peers"
CLASSES = ROOT / "build" / "oracle"
JAVA_OPTIONS = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")

Json = dict[str, Any]


class Oracle:
    """Flink's CEP in a process of its own, to be used in a `with` statement.

    Parameters
    ----------
    patience_s
        How long Flink may take for one request. There are patterns over which it never ends; then the
        process is started anew, and the answer is an error.
    """

    def __init__(self, patience_s: float = 10.0) -> None:
        self.patience_s = patience_s
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Oracle:
        self._process = _started()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate()  # the end of its input is its end
            self._process = None

    def answer(self, pattern: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Json:
        """Give what Flink finds; conditions of the pattern may be texts or trees."""
        return self.ask({"pattern": with_trees(pattern), "events": [dict(event) for event in events]})

    def ask(self, request: Json) -> Json:
        """Pass on a request as it stands."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise PeerMissing("the oracle is not running; use it in a with statement")
        print(json.dumps(request, allow_nan=False), file=process.stdin, flush=True)
        impatience = threading.Timer(self.patience_s, process.kill)
        impatience.start()
        line = process.stdout.readline()
        impatience.cancel()
        if line:
            answer: Json = json.loads(line)
            return answer
        process.communicate()
        self._process = _started()
        return {"matches": [], "timeouts": [], "error": f"no answer in {self.patience_s:g} s"}


def with_trees(node: Any) -> Any:
    """Give a pattern, or a part of one, with the texts of its conditions replaced by trees."""
    if isinstance(node, Mapping):
        return {name: _value(name, value) for name, value in node.items()}
    if isinstance(node, list | tuple):
        return [with_trees(each) for each in node]
    return node


def _value(name: str, value: Any) -> Any:
    if name in ("condition", "until"):
        return condition_tree(value) if isinstance(value, str) else value
    return with_trees(value)


def missing() -> str | None:
    """Say what cannot be had without a download, or None if everything is there."""
    if not _installed(JARS / "venv"):
        return "Flink's jars are not in build/peers; tools/flink/oracle.py gets them"
    lacking = [name for name in ("java", "javac") if shutil.which(name) is None]
    return f"there is no {lacking[0]}; install a JDK (17 or newer)" if lacking else None


def _started() -> subprocess.Popen[str]:
    jars = _jars(JARS)
    _compile(jars)
    path = ":".join(map(str, [CLASSES, *jars]))
    command = [_tool("java"), *JAVA_OPTIONS, "-Dorg.apache.logging.log4j.level=ERROR", "-cp", path]
    return subprocess.Popen(
        [*command, "oracle.Oracle"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def _compile(jars: list[Path]) -> None:
    stamp = CLASSES / "compiled"
    sources = sorted(SOURCES.glob("*.java"))
    if stamp.exists() and stamp.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return
    shutil.rmtree(CLASSES, ignore_errors=True)
    CLASSES.mkdir(parents=True)
    options = ["-Xlint:all", "-Werror", "-proc:none", "-cp", ":".join(map(str, jars)), "-d", str(CLASSES)]
    if subprocess.run([_tool("javac"), *options, *sources], check=False).returncode:
        raise PeerMissing("the oracle does not compile; what javac said stands above")
    stamp.touch()


def main() -> None:
    with Oracle() as flink:
        for line in sys.stdin:
            request = json.loads(line)
            print(json.dumps(flink.answer(request["pattern"], request["events"])), flush=True)


if __name__ == "__main__":
    main()
