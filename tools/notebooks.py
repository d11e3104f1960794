"""Run notebooks from top to bottom as Jupyter would, and say what each cell shows.

Takes paths of notebooks. Each cell runs in IPython, in a folder that is thrown away; the first error ends it.
With --json, prints for each notebook a list of what its code cells show: what they print (stdout), and the
last value in all forms that a notebook can show (text/plain, text/html).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config


def code_cells(path: Path) -> list[str]:
    """Give the source of the code cells of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(path: Path) -> list[dict[str, str]]:
    """Run all cells in a new shell; give what each shows, by kind."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    cells = enumerate(code_cells(path), 1)
    return [_run(shell, source, f"{path.name}, code cell {number}") for number, source in cells]


def _run(shell: InteractiveShell, source: str, where: str) -> dict[str, str]:
    with capture_output() as captured:
        done = shell.run_cell(source)
    if not done.success:
        sys.stderr.write(captured.stdout + captured.stderr)
        raise SystemExit(f"{where} failed: {done.error_before_exec or done.error_in_exec!r}")
    shown: dict[str, str] = {"stdout": captured.stdout} if captured.stdout else {}
    if done.result is not None:
        forms, _ = shell.display_formatter.format(done.result)
        shown |= {kind: str(form) for kind, form in forms.items()}
    return shown


def main(arguments: list[str] | None = None) -> int:
    """Run the notebooks one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="print what each cell shows")
    options = parser.parse_args(arguments)
    for path in options.notebooks:
        notebook = path.resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            shown = run(notebook)
        if options.json:
            print(json.dumps(shown))
        else:
            print(f"{path}: {len(shown)} cells ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
