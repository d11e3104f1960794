"""Geometry by its address: compiled once, when the first shape is met, and not into every kernel that might.

A kernel that calls another takes all of its code in and optimises it again. The machine that tests conditions
is in nearly every kernel, and hardly any condition asks how two shapes lie; so it is told where the compiled
code stands, as a number among its constants, and jumps there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from whimbrel.engine.kernels.ordering import mix
from whimbrel.space.kernels.jit import Kernel, Native


def address_of_related() -> int:
    """Give where the code of `related` stands in this process."""
    from whimbrel.engine.kernels.native import address_of_related as compiled_address

    return compiled_address()


class RelationKernel(Kernel[[], int]):
    """The geometry, as something to compile ahead; calling it gives its address."""

    def __init__(self) -> None:
        super().__init__(address_of_related)

    @property
    def machine(self) -> Any:
        """A kernel in the same folder, to ask where machine code is kept."""
        return mix.machine

    @property
    def compiled(self) -> Any:
        """What compiles it."""
        return address_of_related

    @property
    def plainly(self) -> Any:
        """What does not."""
        return int

    def is_kept(self, args: tuple[Any, ...]) -> bool:  # noqa: ARG002 - there is one form of it
        """Tell whether its machine code is on disk."""
        return any(Path(self.machine.stats.cache_path).glob("native._related_at-*.nbi"))


def _only_compiled(*_arguments: Any) -> float:
    raise NotImplementedError("how shapes lie to each other is asked of compiled kernels only")


call_related: Any = Native("whimbrel.engine.kernels.native", "call_related", plain=_only_compiled)
"""Call `related` at an address; `data` is the address of the shapes."""
