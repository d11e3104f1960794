"""A backtest as an SVG picture, written by hand: bars over time and over the hours of the day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whimbrel.backtesting.compare import ADDED, CHANGE, CHANGED, DROPPED, SAME
from whimbrel.backtesting.counting import Bins, Int64Array, TimeZone, bin_numbers, bins_over, made_at
from whimbrel.model.words import many

if TYPE_CHECKING:
    from whimbrel.backtesting.backtest import Backtest

WIDTH, HEIGHT = 860, 250
"""Of one chart, in pixels."""
BINS = 120
MOST_TYPES = 6
"""Types with a colour of their own; the others share one."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 48, 30
_PALETTE = ("#2f6f9f", "#d98032", "#5c9a4c", "#9b6bb3", "#c25757", "#4aa5a5")
_OTHERS = "#9aa0a6"
_COLOURS = {SAME: "#9aa0a6", CHANGED: "#e0a93b", ADDED: "#4c9a5c", DROPPED: "#c25757"}
_LINES = 4
"""About how many lines behind the bars."""


@dataclass(frozen=True)
class BarSeries:
    """Bars of one colour, on top of those before; what was dropped hangs below the line."""

    name: str
    colour: str
    counts: Int64Array

    @property
    def hangs(self) -> bool:
        """Whether the bars go down."""
        return self.name == DROPPED


def picture(result: Backtest) -> str:
    """Draw a backtest: how often over time, and by the hour of the day."""
    groups, zone = _groups(result), result.zone
    title = "What the new query changes" if result.is_comparison else "Detections"
    bins = bins_over([table for _, _, table in groups], zone, BINS)
    if bins is None:
        return _svg(title, [_text(WIDTH / 2, HEIGHT / 2, "no detections", anchor="middle")])
    charts = [
        Chart(f"{title} by {axis.unit} ({zone.name})", axis.labels, _series(groups, axis)).drawn()
        for axis in (bins, _hours(zone))
    ]
    return _svg(title, charts)


def _hours(zone: TimeZone) -> Bins:
    labels = tuple(f"{hour:02}:00" for hour in range(24))
    return Bins("hour of day", labels, lambda table: bin_numbers(zone.local(made_at(table)), "hour") % 24)


def _groups(result: Backtest) -> list[tuple[str, str, pa.Table]]:
    """Split what is drawn into series with a colour each: by change, or by type."""
    both = result.detection_counts.both
    if both is not None:
        kinds = both.column(CHANGE)
        return [(kind, colour, both.filter(pc.equal(kinds, kind))) for kind, colour in _COLOURS.items()]
    table = result.detection_counts.old
    types = result.by_type().sort_by([("detections", "descending"), ("type", "ascending")])
    names, kinds = types.column("type").to_pylist(), table.column("type")
    groups = [
        (name, colour, table.filter(pc.equal(kinds, name)))
        for name, colour in zip(names, _PALETTE, strict=False)
    ]
    if more := names[MOST_TYPES:]:
        rest = table.filter(pc.is_in(kinds, pa.array(more, pa.string())))
        groups.append((many(len(more), "other type"), _OTHERS, rest))
    return groups


def _series(groups: Sequence[tuple[str, str, pa.Table]], bins: Bins) -> list[BarSeries]:
    return [BarSeries(name, colour, bins.counts(table)) for name, colour, table in groups]


@dataclass(frozen=True)
class Chart:
    """Bars with a title, a legend and two axes."""

    title: str
    labels: Sequence[str]
    series: Sequence[BarSeries]

    @property
    def highest(self) -> int:
        """How many the tallest bar stands for."""
        return int(sum(bars.counts for bars in self.series if not bars.hangs).max(initial=0))  # type: ignore[union-attr]

    @property
    def lowest(self) -> int:
        """How many hang below the line where it is most."""
        return max((int(bars.counts.max(initial=0)) for bars in self.series if bars.hangs), default=0)

    @property
    def scale(self) -> float:
        """Pixels for one detection."""
        return (HEIGHT - _TOP - _BOTTOM) / max(self.highest + self.lowest, 1)

    @property
    def line(self) -> float:
        """How far down the line is on which bars stand."""
        return _TOP + self.highest * self.scale

    @property
    def step(self) -> float:
        """Pixels from one bar to the next."""
        return (WIDTH - _LEFT - _RIGHT) / len(self.labels)

    def drawn(self) -> str:
        """Write the chart."""
        head = _text(_LEFT, 18, self.title, weight="600")
        return "\n".join([head, *self._legend(), *self._grid(), *self._bars(), *self._below()])

    def _legend(self) -> Iterator[str]:
        x = float(_LEFT)
        for bars in self.series:
            total = int(bars.counts.sum())
            words = f"{bars.name} ({total:,})"
            yield f'<rect x="{x:.1f}" y="27" width="10" height="10" rx="2" fill="{bars.colour}"/>'
            yield _text(x + 14, 36, words)
            x += 30 + 6.6 * len(words)

    def _grid(self) -> Iterator[str]:
        step = _round_step((self.highest + self.lowest) / _LINES)
        for count in range(-(self.lowest // step) * step, self.highest + 1, step):
            y = self.line - count * self.scale
            colour = "#555555" if count == 0 else "#e3e3e3"
            yield f'<path d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}" stroke="{colour}" stroke-width="1"/>'
            yield _text(_LEFT - 6, y + 4, f"{abs(count):,}", anchor="end")

    def _bars(self) -> Iterator[str]:
        gap = min(self.step * 0.15, 4)
        tops = np.zeros(len(self.labels))
        for bars in self.series:
            for number in np.flatnonzero(bars.counts).tolist():
                count = int(bars.counts[number])
                height = count * self.scale
                y = self.line if bars.hangs else self.line - tops[number] - height
                tops[number] += 0 if bars.hangs else height
                title = f"{self.labels[number]}: {count:,} {bars.name}"
                yield (
                    f'<rect x="{_LEFT + number * self.step + gap / 2:.1f}" y="{y:.1f}" '
                    f'width="{self.step - gap:.1f}" height="{height:.1f}" fill="{bars.colour}">'
                    f"<title>{escape(title)}</title></rect>"
                )

    def _below(self) -> Iterator[str]:
        """Write as many labels as there is room for."""
        room = 7.2 * max(len(label) for label in self.labels) + 12
        every = max(1, math.ceil(room / self.step))
        for number in range(0, len(self.labels), every):
            x = _LEFT + (number + 0.5) * self.step
            is_cut_off = x + room / 2 > WIDTH
            yield _text(x, HEIGHT - 10, self.labels[number], anchor="end" if is_cut_off else "middle")


def _round_step(least: float) -> int:
    """Round up to one of 1, 2, 5, 10, 20 and so on.

    >>> [_round_step(least) for least in (0.3, 3, 17, 501)]
    [1, 5, 20, 1000]
    """
    power = 10 ** max(0, math.floor(math.log10(max(least, 1))))
    return int(next(power * step for step in (1, 2, 5, 10) if power * step >= least))


def _text(x: float, y: float, words: str, *, anchor: str = "start", weight: str = "400") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="#333333">'
        f"{escape(words)}</text>"
    )


def _svg(title: str, charts: Sequence[str]) -> str:
    height = HEIGHT * len(charts)
    moved = [
        f'<g transform="translate(0 {HEIGHT * row})">\n{chart}\n</g>' for row, chart in enumerate(charts)
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="12" role="img" '
        f'aria-label="{escape(title)}">'
    )
    background = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, background, *moved, "</svg>", ""])
