"""The fewest selections that have to be processed, as a set cover: for cases that are small enough."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from whimbrel.engine.mobile.reuse import Coverable
from whimbrel.plan.milp import LinearProgram


def fewest_processed(
    pairs: Coverable, weights: npt.NDArray[np.int64] | None = None, *, limit_s: float = 60.0
) -> npt.NDArray[np.int64] | None:
    """Choose the fewest selections so that each is processed, or stood for by one that is.

    With `weights`, the choice with the least sum: batches weigh as much as they have selections. One binary
    variable for each selection. None if nothing was proven best within `limit_s` seconds.
    """
    size = len(pairs.owner)
    program = LinearProgram("the fewest selections")
    costs = np.ones(size) if weights is None else weights
    processed = [program.variable(float(cost), is_integer=True) for cost in costs]
    offsets, covering = pairs.by_covered()
    for number, variable in enumerate(processed):
        others = covering[offsets[number] : offsets[number + 1]].tolist()
        program.require([(variable, 1.0), *((processed[other], 1.0) for other in others)], least=1.0)
    solution = program.solve(limit_s, threads=1)
    if solution is None or solution.gap:
        return None
    return np.flatnonzero([solution[variable] > 0.5 for variable in processed]).astype(np.int64)
