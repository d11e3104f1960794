"""Results of a scenario as files: figures as JSON, a table as text, plots."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whimbrel.errors import MissingDependency
from whimbrel.sim.results import Plot, Results

Annotate = Callable[[Plot, Any, list[Any] | None], None]
"""Draws more on the axes of a plot; bars stand at the places of these values."""


def write_report(
    name: str,
    parameters: Mapping[str, Any],
    results: Results,
    out: Path,
    *,
    drawn: Sequence[tuple[Plot, Sequence[Mapping[str, Any]]]] = (),
    more: Mapping[str, Any] | None = None,
    annotate: Annotate = lambda plot, axes, ticks: None,
) -> list[Path]:
    """Write `results.json`, `table.txt` and one picture a plot into a folder; return the files.

    `drawn` are plots of other rows than those of the results, `more` is written beside them.
    """
    out.mkdir(parents=True, exist_ok=True)
    content = {
        "scenario": name,
        "parameters": dict(parameters),
        "rows": results.rows,
        "notes": dict(results.notes),
        **(more or {}),
    }
    files = [out / "results.json", out / "table.txt"]
    files[0].write_text(json.dumps(content, indent=1, default=_plain) + "\n", encoding="utf-8")
    files[1].write_text(table(results.rows) + "\n", encoding="utf-8")
    every = [*((plot, results.rows) for plot in results.plots), *drawn]
    return files + [_draw(plot, rows, out, annotate) for plot, rows in every]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Lay rows out as a table of text, numbers to the right.

    >>> print(table([{"plan": "static", "bytes": 1200}, {"plan": "moving", "bytes": 90.25}]))
    plan    bytes
    static  1,200
    moving  90.25
    """
    if not rows:
        return "no results"
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = [[_text(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(text[n]) for text in texts)) for n, name in enumerate(names)]
    is_number = [all(not isinstance(row.get(name), str) for row in rows) for name in names]

    def line(cells: Sequence[str]) -> str:
        laid = [
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(cells, widths, is_number, strict=True)
        ]
        return "  ".join(laid).rstrip()

    return "\n".join(line(cells) for cells in [names, *texts])


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


_ROOM = 60
"""Characters that fit below the bars of a plot side by side."""
_FEW = 8
"""Up to so many lines have colours of their own, and a legend among them."""


def _draw(plot: Plot, rows: Sequence[Mapping[str, Any]], out: Path, annotate: Annotate) -> Path:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingDependency("matplotlib", "drawing results", "plan") from error
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    groups = list(dict.fromkeys(row.get(plot.by) for row in rows)) if plot.by else [None]
    if len(groups) > _FEW:
        many: Any = mpl.colormaps["tab20"]
        axes.set_prop_cycle(color=many.colors)
    ticks: list[Any] | None = None
    for number, group in enumerate(groups):
        chosen = [row for row in rows if plot.by is None or row.get(plot.by) == group]
        chosen = [row for row in chosen if row.get(plot.y) is not None]
        if plot.by and not chosen:
            continue
        x, y = [row[plot.x] for row in chosen], [row[plot.y] for row in chosen]
        if plot.kind == "bar":
            ticks = x
            _draw_bars(axes, x, y, group, number, len(groups))
        else:
            axes.plot(x, y, marker="o", markersize=4, label=group)
    annotate(plot, axes, ticks)
    _set_axes(axes, plot)
    if axes.get_legend_handles_labels()[0]:
        # Many lines leave no room among them.
        beside: dict[str, Any] = (
            {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if len(groups) > _FEW else {}
        )
        axes.legend(title=plot.by, fontsize="small", **beside)
    file = out / f"{plot.name}.png"
    figure.savefig(file, dpi=120)
    plt.close(figure)
    return file


def _draw_bars(axes: Any, x: list[Any], y: list[float], label: Any, number: int, groups: int) -> None:
    """Draw the bars of one group beside those of the others."""
    width = 0.8 / groups
    axes.bar([place + number * width for place in range(len(x))], y, width, label=label)
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(x))], [str(each) for each in x])
    if sum(len(str(each)) for each in x) > _ROOM:
        axes.tick_params(axis="x", labelrotation=20)


def _set_axes(axes: Any, plot: Plot) -> None:
    axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
    if plot.logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0, top=max(axes.get_ylim()[1], 1.05 * axes.dataLim.y1))
    if plot.x_logarithmic:
        axes.set_xscale("log")
    axes.grid(visible=True, alpha=0.3)
