"""Mend the named files: no spaces at the ends of lines, one newline at the end. Fails if it changed any."""

from __future__ import annotations

import sys
from pathlib import Path


def main(names: list[str]) -> int:
    changed = [name for name in names if mend(Path(name))]
    for name in changed:
        print(f"mended {name}")
    return 1 if changed else 0


def mend(path: Path) -> bool:
    """Rewrite `path` if its whitespace is not in order, and say whether that was needed."""
    before = path.read_text(encoding="utf-8")
    lines = "\n".join(line.rstrip() for line in before.split("\n")).rstrip("\n")
    after = f"{lines}\n" if lines else ""
    if after == before:
        return False
    path.write_text(after, encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
