"""Count what makes the package easy or hard to take over: lines, names, imports, who knows an operator.

    python tools/house.py [FOLDER]     # of a checkout; this one, if none is named

The figures of docs/decisions are made with it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from functools import cache
from pathlib import Path

MOST_PARAMETERS = 8
OPERATORS = (
    *("Source", "Clock", "Filter", "Merge", "Repeat", "JoinPattern", "StepPattern", "TimedOut"),
    *("Motion", "Encounter", "Aggregate", "Custom", "Derive"),
)
FORMER_NAMES = {"JoinPattern": "Match", "StepPattern": "Sequence"}

CROSSING = """
import sys, tempfile, pathlib
seen = set()
def note(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and "/whimbrel/" in name and frame.f_code.co_name not in ("<module>", "<lambda>"):
        seen.add(name.split("/src/whimbrel/")[-1])
import whimbrel as wb
query = wb.compile("define Late detect Leave as a then Arrive as b within 1 h group by source")
rows = ["id,type,time,source,x,y"]
for number in range(40):
    kind = ("Leave", "Arrive")[number % 2]
    rows.append(f"e{number},{kind},2024-05-01T08:{number:02}:00Z,truck-{number % 4 // 2},1,2")
path = pathlib.Path(tempfile.mkdtemp()) / "events.csv"
path.write_text("\\n".join(rows) + "\\n")
assert wb.detect(query, path).num_rows
sys.setprofile(note)
wb.detect(query, path)
sys.setprofile(None)
print(len(seen))
if "-v" in sys.argv:
    print(*sorted(seen), sep="\\n", file=sys.stderr)
"""


def main(root: Path) -> None:
    """Print the figures of a checkout, a row each."""
    package = root / "src" / "whimbrel"
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    rows = {
        "lines in the wheel": sum(_lines(path) for path in _shipped(root)),
        "files that an event crosses, from CSV to detection": _crossed(root),
        "files that know one operator: median, most": _files_that_know(trees),
        "class names taken more than once": _repeated_classes(trees),
        "longest chain of imports inside engine": _longest_chain(package / "engine", trees),
        f"functions of more than {MOST_PARAMETERS} parameters": _long_signatures(trees),
        "comment lines in kernels": _comments(package),
    }
    for title, figure in rows.items():
        print(f"| {title} | {figure} |")


def _shipped(root: Path) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z", "src"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    return [root / name for name in names.split("\0") if name and (root / name).is_file()]


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _crossed(root: Path) -> int:
    """Count the files that have a call while `wb.detect` takes a small CSV file to its detections."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", CROSSING, *sys.argv[2:]],
            env={"PYTHONPATH": str(root / "src"), "NUMBA_CACHE_DIR": folder, "PATH": ""},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return int(done.stdout)


def _files_that_know(trees: dict[Path, ast.Module]) -> str:
    """Count the modules that name each operator of the graph, other than by importing it."""
    names = {path: _names(tree) for path, tree in trees.items()}
    counts = []
    for operator in OPERATORS:
        same = {operator, FORMER_NAMES.get(operator, operator)}
        counts.append(sum(bool(same & used) for used in names.values()))
    counts.sort()
    return f"{counts[len(counts) // 2]}, {counts[-1]}"


def _names(tree: ast.Module) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | {
        node.name for node in tree.body if isinstance(node, ast.ClassDef)
    }


def _repeated_classes(trees: dict[Path, ast.Module]) -> int:
    homes: dict[str, int] = defaultdict(int)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name] += 1
    return sum(count > 1 for count in homes.values())


def _longest_chain(folder: Path, trees: dict[Path, ast.Module]) -> int:
    """Count the modules on the longest way from import to import within a folder."""
    modules = {_module(path): path for path in trees if folder in path.parents}
    below: dict[str, set[str]] = {}
    for name, path in modules.items():
        imported = {
            node.module for node in trees[path].body if isinstance(node, ast.ImportFrom) and node.module
        }
        below[name] = {each for each in imported if each in modules and each != name}

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(each) for each in below[name]), default=0)

    return max(depth(name) for name in modules)


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    own = parts[parts.index("src") + 1 :]
    return ".".join(own[:-1] if own[-1] == "__init__" else own)


def _long_signatures(trees: dict[Path, ast.Module]) -> int:
    count = 0
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and not _is_kernel(node):
                given = node.args
                count += len(given.posonlyargs + given.args + given.kwonlyargs) > MOST_PARAMETERS
    return count


def _is_kernel(node: ast.FunctionDef) -> bool:
    """Tell whether Numba compiles a function: those take their columns one by one."""
    return any("kernel" in ast.unparse(each) or "jit" in ast.unparse(each) for each in node.decorator_list)


def _comments(package: Path) -> str:
    lines = [
        line
        for path in package.rglob("kernels/*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    comments = sum(bool(re.match(r"\s*#", line) or re.search(r"\S  # ", line)) for line in lines)
    return f"{100 * comments / len(lines):.1f} %"


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
