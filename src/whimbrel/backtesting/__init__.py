"""Try queries out before they are relied on: over history, and beside the live one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whimbrel.backtesting.backtest import Backtest
    from whimbrel.backtesting.collect import collected
    from whimbrel.backtesting.shadow import Changes, Shadow

_HOMES = {
    "Backtest": "backtest",
    "Changes": "shadow",
    "Shadow": "shadow",
    "collected": "collect",
}

__all__ = ["Backtest", "Changes", "Shadow", "collected"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'whimbrel.backtesting' has no attribute {name!r}")
    found: object = getattr(import_module(f"whimbrel.backtesting.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
