"""The languages: each becomes one and the same operator graph.

The names below load on first use, so that importing this package stays cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whimbrel.lang.wbl import compile_text, format_text, parse

__all__ = ["compile_text", "format_text", "parse"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from whimbrel.lang import wbl

        return getattr(wbl, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
