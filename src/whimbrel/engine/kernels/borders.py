"""How far points lie from the borders of regions."""

from __future__ import annotations

import numpy as np

from whimbrel.engine.kernels.jit import kernel


@kernel
def border_distances(rings_of, corners_of, corners, region, x, y, metres_per_degree, found):
    """Give the distance of every point from the border of its region.

    The rings of region r are rings_of[r] to rings_of[r + 1], the corners of a ring likewise. With
    `metres_per_degree` above 0, coordinates are degrees, measured in a plane that touches the earth there.
    """
    for i in range(len(region)):
        across, up = 1.0, 1.0
        if metres_per_degree > 0.0:
            up = metres_per_degree
            across = metres_per_degree * np.cos(np.radians(y[i]))
        best = np.inf
        for ring in range(rings_of[region[i]], rings_of[region[i] + 1]):
            for corner in range(corners_of[ring], corners_of[ring + 1] - 1):
                ax = (corners[corner, 0] - x[i]) * across
                ay = (corners[corner, 1] - y[i]) * up
                dx = (corners[corner + 1, 0] - x[i]) * across - ax
                dy = (corners[corner + 1, 1] - y[i]) * up - ay
                length = dx * dx + dy * dy
                share = 0.0
                if length > 0.0:
                    share = min(1.0, max(0.0, -(ax * dx + ay * dy) / length))
                px = ax + share * dx
                py = ay + share * dy
                best = min(best, px * px + py * py)
        found[i] = np.sqrt(best)
