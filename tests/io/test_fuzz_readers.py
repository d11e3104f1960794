"""A short run of the fuzzer; `fuzz_readers.py` runs for longer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_readers import fuzz


@pytest.mark.slow
def test_damaged_files_give_events_or_a_whimbrel_error() -> None:
    assert fuzz(200, seed=1) > 0
