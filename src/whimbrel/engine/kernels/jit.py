"""How the kernels of the engine are compiled: as those of `whimbrel.space` are."""

from __future__ import annotations

from whimbrel.space.kernels.jit import kernel

__all__ = ["kernel"]
