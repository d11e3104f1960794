"""Get Flink's jars and compile the Java program against them, all under build/."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

VERSION = "2.3.0"
PACKAGE = f"apache-flink-libraries=={VERSION}"
"""The part of the package apache-flink that holds the jars; the rest is Flink's Python API."""

SOURCES = Path(__file__).parent / "flink"
TOOLS = Path(__file__).parents[2] / "tools" / "flink"
SHARED = ("Conditions.java", "Patterns.java")
"""Of those tools: what says a pattern in JSON with the words of Flink."""
HEAP = "4g"
COLLECTORS = {1: "-XX:+UseSerialGC", 2: "-XX:+UseParallelGC"}
"""The garbage collector that was fastest for so many cores, of serial, parallel and G1."""


class PeerMissing(Exception):
    """Something that the comparison needs cannot be had; the message says what."""


def command(folder: Path, cores: int) -> list[str]:
    """Give the command that starts the program, built before if need be; a file of events is its argument."""
    jars = _jars(folder)
    classes = _compiled(folder, jars)
    return [
        _tool("java"),
        f"-Xms{HEAP}",
        f"-Xmx{HEAP}",
        COLLECTORS[cores],
        "-Dorg.apache.logging.log4j.level=ERROR",
        "-cp",
        ":".join(map(str, [classes, *jars])),
        "peer.FlinkPeer",
    ]


def java_version() -> str:
    """Give the version of the Java that is found."""
    said = subprocess.run([_tool("java"), "-version"], capture_output=True, text=True, check=True)
    return said.stderr.split('"')[1]


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PeerMissing(f"Flink needs {name}, and none was found; install a JDK (17 or newer)")
    return found


def _jars(folder: Path) -> list[Path]:
    """Give the jars that a job needs, installed before if need be."""
    home = folder / "venv"
    python = home / "bin" / "python"
    if not _installed(home):
        print(f"installing {PACKAGE} into {home.name} (about 350 MB, once)", file=sys.stderr)
        venv.create(home, with_pip=True, clear=True)
        install = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            PACKAGE,
        ]
        if subprocess.run(install, check=False).returncode:
            raise PeerMissing(f"pip could not install {PACKAGE}; what it said stands above")
    if not _installed(home):
        raise PeerMissing(f"{PACKAGE} is installed, but the jars of Flink {VERSION} are not in it")
    return _installed(home)


def _installed(home: Path) -> list[Path]:
    for library in home.glob("lib/python*/site-packages/pyflink/lib"):
        jars = [library / f"flink-{name}-{VERSION}.jar" for name in ("cep", "dist")]
        if all(jar.exists() for jar in jars):
            return [*jars, *sorted(library.glob("log4j-*.jar"))]
    return []


def _compiled(folder: Path, jars: list[Path]) -> Path:
    classes = folder / "classes"
    stamp = classes / "compiled"
    sources = [*sorted(SOURCES.glob("*.java")), *(TOOLS / name for name in SHARED)]
    lacking = [source.name for source in sources if not source.exists()]
    if lacking:
        raise PeerMissing(f"tools/flink has no {lacking[0]}; take it from Whimbrel's repository")
    if stamp.exists() and stamp.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return classes
    print("compiling the Flink program", file=sys.stderr)
    shutil.rmtree(classes, ignore_errors=True)
    classes.mkdir(parents=True)
    compiler = [
        _tool("javac"),
        "-Xlint:all",
        "-Werror",
        "-proc:none",
        "-cp",
        ":".join(map(str, jars)),
        "-d",
        classes,
    ]
    if subprocess.run([*compiler, *sources], check=False).returncode:
        raise PeerMissing("the Flink program does not compile; what javac said stands above")
    stamp.touch()
    return classes
