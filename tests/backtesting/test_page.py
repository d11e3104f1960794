"""The picture on the page about backtests is the one that its program draws."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.repo.test_docs import ROOT, examples_of

PAGE = ROOT / "docs" / "backtest.md"


@pytest.mark.slow
def test_the_picture_is_what_the_program_of_the_page_draws(tmp_path):
    code = examples_of(PAGE.read_text(encoding="utf-8")).code
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)
    drawn = (tmp_path / "backtest.svg").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "images" / "backtest.svg").read_text(encoding="utf-8") == drawn
