"""The commands that pages show are run, in the order in which they stand, beside the example files."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from whimbrel.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = ("planning", "migration", "flow", "push-pull", "operating", "simulation")


def commands(page: str) -> list[list[str]]:
    """Read the commands of a page that plan, or that carry out a plan; scenarios are tested by themselves."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```bash\n(.*?)^ *```", text, flags=re.MULTILINE | re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line[1:] for line in lines if line[:2] == ["whimbrel", "plan"] or "--query" in line]


@pytest.mark.parametrize("page", PAGES)
def test_commands_run(page, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "examples" / "planning", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    found = commands(page)
    assert found
    for line in found:
        done = CliRunner().invoke(main, line)
        assert done.exit_code == 0, f"whimbrel {shlex.join(line)}\n{done.output}"
