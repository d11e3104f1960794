"""Where detections go, and how long after their last event they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from whimbrel.sim.endpoints import Endpoint
from whimbrel.sim.packets import Packet
from whimbrel.sim.work import DefinitionOutput

if TYPE_CHECKING:
    from whimbrel.sim.world import World

Floats = npt.NDArray[np.float64]


class Receiver(Endpoint):
    """Takes detections, or bytes, and takes note of their delay."""

    def __init__(self, world: World, name: str, broker: str, *, since_us: int = 0) -> None:
        super().__init__(world, name, broker)
        self.since_us = since_us
        self.tables: list[pa.Table] = []
        self._delays: list[Floats] = []

    def take(self, packets: list[Packet]) -> None:
        """Keep detections, and how late they are."""
        now = self.world.clock.now
        for packet in packets:
            content = (
                packet.content.detections if isinstance(packet.content, DefinitionOutput) else packet.content
            )
            if isinstance(content, pa.Table):
                self.tables.append(content)
                ends = content.column("end").cast(pa.int64()).to_numpy()
                self._delays.append(now - (ends - self.since_us) / 1e6)
            elif content is not None:
                self._delays.append(np.array([now - packet.born_s]))

    @property
    def delays_s(self) -> Floats:
        """The time from the end of each detection until it was here."""
        return np.concatenate([np.zeros(0), *self._delays])
