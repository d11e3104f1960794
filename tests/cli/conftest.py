"""A folder with queries and events, and a way to run commands in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from whimbrel.cli.main import main

LATE = """\
define Late
  detect Leave then not Arrive for 1 h
  group by source
"""
TRIPS = """\
id,type,time,source,x,y,load
e1,Leave,2024-05-01T08:00:00Z,truck-1,3,4,2.5
e2,Leave,2024-05-01T08:10:00Z,truck-2,3,4,1
e3,Arrive,2024-05-01T08:50:00Z,truck-2,9,4,
"""


class Folder:
    """The current folder of a test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")

    def names(self) -> set[str]:
        return {path.name for path in self.path.iterdir()}

    def run(self, *args: str, stdin: str | None = None) -> Result:
        """Run `whimbrel` in this process."""
        return CliRunner().invoke(main, args, input=stdin, prog_name="whimbrel", catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A current folder with late.wbl and trips.csv."""
    monkeypatch.chdir(tmp_path)
    made = Folder(tmp_path)
    made.write("late.wbl", LATE)
    made.write("trips.csv", TRIPS)
    return made
