"""CPSL (`.cpsl`): grammar, tree, printer, and the way to the Whimbrel language and back."""

from __future__ import annotations

from whimbrel.lang.cpsl.compile import compile_text, from_wbl, to_wbl
from whimbrel.lang.cpsl.parse import parse
from whimbrel.lang.cpsl.printer import print_file

__all__ = ["compile_text", "from_wbl", "parse", "print_file", "to_wbl"]
