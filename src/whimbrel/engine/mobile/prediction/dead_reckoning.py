"""Dead reckoning: objects go on as they did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whimbrel.engine.mobile.prediction.places import LastSamples, PredictedPlaces, likeliest_first
from whimbrel.engine.values import FloatArray, Int64Array
from whimbrel.errors import QueryError
from whimbrel.model.time import SECOND
from whimbrel.space.local_plane import gone, mean_velocity

_SPREAD = 2.0
"""Places lie within so many standard deviations: 86 % of a normal error in two dimensions."""
_GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


@dataclass(frozen=True)
class DeadReckoning:
    """Objects go on straight at the mean velocity of their last samples, with a normal error that grows.

    Places lie evenly over a disc around where that leads to, as the seeds of a sunflower do; each is as
    likely as the error is there.
    """

    samples: int = 2
    error_m: float = 10.0
    """The standard deviation of the error at once."""
    error_m_s: float = 3.0
    """How much it grows each second."""
    route_attribute: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.samples < 2 or self.error_m <= 0 or self.error_m_s < 0:
            raise QueryError(
                f"dead reckoning needs two samples, an error above 0 m and a growth of 0 m/s or more, not "
                f"{self.samples}, {self.error_m:g} m and {self.error_m_s:g} m/s"
            )

    def predict(self, seen: LastSamples, ahead: Int64Array, most: int) -> PredictedPlaces:
        """Give at most so many places for each row of samples, `ahead` microseconds after its newest one."""
        seconds = ahead / SECOND
        east, north = mean_velocity(seen.seconds, seen.x, seen.y, seen.coordinates)
        off_east, off_north, weight = around(most)
        error = (self.error_m + self.error_m_s * np.abs(seconds))[:, None]
        x, y = gone(
            seen.x[:, -1:], seen.y[:, -1:],
            (east * seconds)[:, None] + error * off_east, (north * seconds)[:, None] + error * off_north,
            seen.coordinates,
        )  # fmt: skip
        row = np.repeat(np.arange(len(seen)), most)
        return likeliest_first(row, x.ravel(), y.ravel(), np.tile(weight, len(seen)), most)


def around(most: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return places around a point, in standard deviations of a normal error, and how likely each is."""
    number = np.arange(most)
    far = _SPREAD * np.sqrt(number / max(most - 1, 1)) if most > 1 else np.zeros(1)
    weight = np.exp(-far * far / 2)
    return far * np.cos(number * _GOLDEN_ANGLE), far * np.sin(number * _GOLDEN_ANGLE), weight / weight.sum()
