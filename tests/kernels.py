"""Compile the kernels that nearly every test needs: processes that start together then find them on disk."""

from __future__ import annotations

from whimbrel.warming import CompileWork

KINDS = ("common", "match", "absence", "choice", "repeat", "aggregate")


def compile_kernels() -> None:
    """Compile what is not on disk, in several processes."""
    CompileWork.of(KINDS).run()


if __name__ == "__main__":
    compile_kernels()
