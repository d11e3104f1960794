"""The documentation builds, its links lead somewhere, and its examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import whimbrel as wb

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in page.parts),
]
FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)[ \t]*$", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Examples:
    """The Python of one page, each line where it stands on the page, and the output the page promises."""

    code: str
    output: str


@dataclass(frozen=True)
class Build:
    """What Sphinx made, and what it said."""

    folder: Path
    status: int
    warnings: str


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def examples_of(text: str) -> Examples:
    """Keep the ```python blocks, unless tagged no-run, and what ```text output blocks say."""
    code, output = [], []
    lines_done = 0
    for fence in FENCE.finditer(text):
        info = fence["info"].split()
        if info == ["python"]:
            line = text.count("\n", 0, fence.start("body"))
            code += ["\n" * (line - lines_done), fence["body"]]
            lines_done = line + fence["body"].count("\n")
        elif info == ["text", "output"]:
            output.append(fence["body"])
    return Examples("".join(code), "".join(output))


def relative_links(text: str) -> list[str]:
    links = LINK.findall(re.sub(r"`[^`\n]+`", "", FENCE.sub("", text)))
    return [link for link in links if not re.match(r"[a-z]+:|#", link)]


def test_examples_keep_their_line_numbers():
    page = "# Title\n\n```python\na = 1\n```\ntext\n```python no-run\nb\n```\n```python\nc = 2\n```\n"
    assert examples_of(page) == Examples("\n\n\na = 1\n\n\n\n\n\n\nc = 2\n", "")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    targets = {link: page.parent / link.partition("#")[0] for link in relative_links(page.read_text("utf-8"))}
    assert [link for link, target in targets.items() if not target.exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name == "README.md" or examples_of(page.read_text("utf-8")).code],
    ids=page_name,
)  # fmt: skip
def test_examples_run(page, tmp_path, request):
    examples = examples_of(page.read_text(encoding="utf-8"))
    if "local_session" in examples.code:
        request.getfixturevalue("java")
    script = tmp_path / f"{page.stem}.py"
    script.write_text(examples.code, encoding="utf-8")
    in_a_checkout = {"PYTHONPATH": str(ROOT)} if "from experiments" in examples.code else {}
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        cwd=tmp_path,
        env=os.environ | in_a_checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{page_name(page)} (line numbers are those of the page)\n{done.stderr}"
    if examples.output:
        assert [line.rstrip() for line in done.stdout.splitlines()] == examples.output.splitlines()


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Build:
    """Build the documentation once, as `make docs` does."""
    out = tmp_path_factory.mktemp("docs")
    sphinx = [sys.executable, "-m", "sphinx", "-W", "-n", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*sphinx, "-d", out / "doctrees", ROOT / "docs", out / "html"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return Build(out / "html", done.returncode, done.stderr)


@pytest.mark.slow
def test_the_documentation_builds_without_a_warning(build):
    assert build.status == 0, build.warnings
    assert (build.folder / "index.html").is_file()


@pytest.mark.slow
def test_every_public_name_is_documented(build):
    page = (build.folder / "api.html").read_text(encoding="utf-8")
    assert [
        name for name in wb.__all__ if f'id="whimbrel.{name}"' not in page and name != "__version__"
    ] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/how-it-works.md", "docs/operators.md"])
def test_files_that_tables_name_are_there(page: str):
    rows = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`([a-z_]+/[a-z_/0-9]*\.(?:py|lark))`", row)}
    folders = (ROOT / "src" / "whimbrel", ROOT)
    assert {name for name in named if not any((folder / name).is_file() for folder in folders)} == set()
