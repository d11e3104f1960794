"""The recorded answers of Flink."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parent / "golden" / "flink.jsonl.gz"


def recorded() -> list[dict[str, Any]]:
    """All of them: each with `seed`, `pattern`, `events`, `matches` and `timeouts`."""
    return [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]
