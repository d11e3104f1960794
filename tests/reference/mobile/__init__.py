"""What a mobile query means, in slow plain Python, as docs/decisions/0038-what-a-mobile-query-means.md says.

`deliveries` recomputes every interest from scratch. All ways of running mobile queries are compared with it.
"""

from .deliveries import Delivery, deliveries, found_in
from .query import (
    Ahead,
    Along,
    Always,
    Box,
    Circle,
    Every,
    Focal,
    Made,
    MobileQuery,
    Moved,
    Outline,
    Quality,
    Refused,
    WhenQualityFalls,
)
from .timelines import Interest, timelines

__all__ = [
    "Ahead",
    "Along",
    "Always",
    "Box",
    "Circle",
    "Delivery",
    "Every",
    "Focal",
    "Interest",
    "Made",
    "MobileQuery",
    "Moved",
    "Outline",
    "Quality",
    "Refused",
    "WhenQualityFalls",
    "deliveries",
    "found_in",
    "timelines",
]
