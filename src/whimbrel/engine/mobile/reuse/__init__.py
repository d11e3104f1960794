"""Reuse of selections between mobile queries (RECEP): some are processed, and stand for others.

For the operators of one type of many queries:

1. what waits for a decision: `Selections`, with the atomic events of each, and `Tolerance`, what each owner
   agrees to;
2. who may stand for whom: `managers` parts operators into groups, `coordinated_neighbours` chooses within
   one;
3. which pairs are similar enough: `coverable`; `coverable_batches` for batches; `coverable_by_estimate`,
   `coverable_by` and `per_neighbour` where the ids of events are not known, or not all have come;
4. which ones are processed: `maximum_similarity_cover` (MSH) or `maximum_neighbour_cover` (MNH). A `Cover`
   says who is processed, who gets the results, and how many pairs were compared.

Everything works on plain arrays, and nothing is kept between two decisions. A run time that reuses

- numbers the operators of one type, one for each query and interest, and collects their closed selections in
  the order of operators and time, with the rows of atomic events that each depends on;
- makes `Tolerance` of the policies: thresholds of quality, and `exact` unless reuse is similar. Who does not
  reuse at all has neither row nor column in the matrix of who may stand for whom;
- processes `cover.may_process` alone, and hands each result to `cover.readers`: by row, so that a reader puts
  what it gets in the order of its own rows;
- says of each delivery whose selection it was, with `similarity(atoms, rows, cover.by)` and `disparity`.

>>> import numpy as np
>>> waiting = Selections(np.array([0, 1, 1]), EventSets.of([{1, 2, 3}, {1, 2, 4}, {7, 8}]))
>>> cover = maximum_neighbour_cover_of(waiting, Tolerance.same(2, 0.5), priority=np.zeros(2))
>>> np.flatnonzero(cover.may_process).tolist()
[0, 2]
>>> [row.tolist() for row in np.split(cover.readers.ids, cover.readers.offsets[1:-1])]
[[0, 1], [], [2]]
"""

from whimbrel.engine.mobile.reuse.batches import (
    Batches,
    all_or_none,
    batches_by_number,
    batches_by_time,
    coverable_batches,
    mean_of,
    stand_ins,
)
from whimbrel.engine.mobile.reuse.covering import (
    Cover,
    maximum_neighbour_cover,
    maximum_neighbour_cover_of,
    maximum_similarity_cover,
    read_from,
    refined,
)
from whimbrel.engine.mobile.reuse.estimators import SpaceTimeGrid, by_area, joined, per_neighbour
from whimbrel.engine.mobile.reuse.grouping import managers
from whimbrel.engine.mobile.reuse.neighbours import (
    Neighbours,
    Reach,
    box_overlaps,
    circle_overlaps,
    coordinated_neighbours,
    priorities,
)
from whimbrel.engine.mobile.reuse.selections import EventSets, Selections, Tolerance, disparity, everybody
from whimbrel.engine.mobile.reuse.similarity import (
    Coverable,
    coverable,
    coverable_by,
    coverable_by_estimate,
    similarity,
)

__all__ = [
    "Batches",
    "Cover",
    "Coverable",
    "EventSets",
    "Neighbours",
    "Reach",
    "Selections",
    "SpaceTimeGrid",
    "Tolerance",
    "all_or_none",
    "batches_by_number",
    "batches_by_time",
    "box_overlaps",
    "by_area",
    "circle_overlaps",
    "coordinated_neighbours",
    "coverable",
    "coverable_batches",
    "coverable_by",
    "coverable_by_estimate",
    "disparity",
    "everybody",
    "joined",
    "managers",
    "maximum_neighbour_cover",
    "maximum_neighbour_cover_of",
    "maximum_similarity_cover",
    "mean_of",
    "per_neighbour",
    "priorities",
    "read_from",
    "refined",
    "similarity",
    "stand_ins",
]
