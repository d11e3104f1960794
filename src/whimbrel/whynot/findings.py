"""What findings of all operators have: what was found of the key and time, and the nearest misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from whimbrel.graph.policies import Partitioning
from whimbrel.whynot.asking import EngineView
from whimbrel.whynot.explanation import Finding, Miss
from whimbrel.whynot.nothing import nothing_at_all


def finding_of(
    view: EngineView,
    name: str,
    definition: str,
    partitioning: Partitioning,
    misses: Sequence[Miss] = (),
    *,
    begins_with: Sequence[tuple[str, str]] = (),
    more: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> Finding:
    """Put the finding of an operator together.

    Parameters
    ----------
    misses
        All misses, nearest first; those beyond the limit are counted by kind, unless `more` has counted them.
    begins_with
        Names and streams of the parts that are to blame where there are neither detections nor misses.
    """
    rows = view.rows_asked_for(name, partitioning)
    if begins_with and not len(rows) and not misses:
        misses = [nothing_at_all(view, definition, name, begins_with)]
    left = Counter(miss.reasons[0].kind for miss in misses[view.limit :])
    return Finding(
        definition,
        name,
        detections=len(rows),
        examples=view.examples(name, rows),
        misses=tuple(misses[: view.limit]),
        more=left if more is None else Counter(more),
        notes=tuple(notes),
    )
