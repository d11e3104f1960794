"""Tell, without loading the engine, whether its kernels have to be compiled first."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "engine" / "kernels"


def must_be_compiled(folder: Path = FOLDER) -> bool:
    """Tell whether no machine code newer than the kernels is kept beside them.

    Where it is kept elsewhere (`NUMBA_CACHE_DIR`, a folder that cannot be written to), nothing is known
    cheaply, and the answer is no.
    """
    if os.environ.get("NUMBA_CACHE_DIR") or not os.access(folder, os.W_OK):
        return False
    sources = [path.stat().st_mtime for path in folder.glob("*.py")]
    kept = [path.stat().st_mtime for path in folder.glob("__pycache__/*.nbi")]
    return not kept or max(kept) < max(sources, default=0.0)
