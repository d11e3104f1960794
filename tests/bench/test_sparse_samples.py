"""The picture of sparse samples in the docs shows what the engine finds."""

from __future__ import annotations

from pathlib import Path

from tests.bench.loading import load

ROOT = Path(__file__).parents[2]
