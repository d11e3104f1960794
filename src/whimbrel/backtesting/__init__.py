"""Try queries out before they are relied on: over history, and beside the live one."""

from whimbrel.backtesting.backtest import Backtest
from whimbrel.backtesting.collect import collected
from whimbrel.backtesting.shadow import Changes, Shadow

__all__ = ["Backtest", "Changes", "Shadow", "collected"]
