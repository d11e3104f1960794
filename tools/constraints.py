"""Write constraints.txt: the exact version of every package in the environment this runs in."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path

HEADER = """\
# The exact version of every package, direct or not, that the checks and tests are known to pass with,
# on Python 3.11, 3.12 and 3.13. `make` installs with it. To refresh: `make constraints`, then `make test`.
"""
NOT_OURS_TO_PIN = {"pip", "setuptools", "wheel", "whimbrel"}
"""What an environment is born with, and Whimbrel itself."""


def main() -> None:
    pins = {_normal(each.name): f"{each.name}=={each.version}" for each in distributions()}
    lines = [pins[name] for name in sorted(pins) if name not in NOT_OURS_TO_PIN]
    target = Path(__file__).parents[1] / "constraints.txt"
    target.write_text(HEADER + "\n".join(lines) + "\n")
    print(f"{target.name}: {len(lines)} packages")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
