"""Compile the kernels before hypothesis watches, which would make compiling very slow."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def kernels(compiled_kernels: None) -> None:
    """Have them compiled before the first test."""
