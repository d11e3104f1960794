"""Compile the kernels before hypothesis watches, and trucks that leave and arrive."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _kernels(compiled_kernels: None) -> None:
    """Compiling is slow where hypothesis watches."""
