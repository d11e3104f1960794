"""The Whimbrel language (`.wbl`): grammar, tree, lowering to the operator graph, formatter."""

from __future__ import annotations

from whimbrel.lang.wbl.compile import compile_text, compile_tree
from whimbrel.lang.wbl.format import format_text, format_tree
from whimbrel.lang.wbl.parse import parse

__all__ = ["compile_text", "compile_tree", "format_text", "format_tree", "parse"]
