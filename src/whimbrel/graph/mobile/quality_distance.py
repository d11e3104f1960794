"""From quality to distance: how far an object may go before its interest has to follow it."""

from __future__ import annotations

from whimbrel.errors import QueryError
from whimbrel.graph.mobile.interests import BoxInterest, CircleInterest, Interest, OutlineInterest
from whimbrel.graph.mobile.policy import Quality


def distance_for_quality(interest: Interest, quality: Quality | float, degrees: float | None = None) -> float:
    """Return the distance for `refresh when moved` at which events that lie evenly still have a quality.

    An interest and the same one elsewhere have the same size, so precision and recall are both the share of
    it that is covered: of a circle a lens, of a box the product of what is left of its sides.

    Parameters
    ----------
    quality
        What precision and recall must not fall below; of two different ones the higher counts.
    degrees
        The direction in which the object goes, from east; left out, the quality holds in every direction.

    Raises
    ------
    QueryError
        If the interest depends on more than the place: then no distance says how much of it is covered.

    Examples
    --------
    >>> round(distance_for_quality(CircleInterest(500.0), 0.9), 1)
    78.6
    >>> round(distance_for_quality(BoxInterest(500.0, 500.0), 0.9, degrees=0), 9)
    50.0
    """
    from whimbrel.space.overlap import box_distance, circle_distance, polygon_distance

    wanted = quality if isinstance(quality, Quality) else Quality(quality, quality)
    share = max(wanted.precision, wanted.recall)
    match interest:
        case CircleInterest(radius_m):
            return circle_distance(radius_m, share)
        case BoxInterest(width_m, height_m):
            return box_distance(width_m, height_m, share, degrees)
        case OutlineInterest(corners):
            import shapely

            return polygon_distance(shapely.Polygon(corners), share, degrees)
    raise QueryError(
        "only for circles, boxes and outlines does a distance follow from a quality: other interests depend "
        "on more than the place of the object",
        hint="write `refresh when quality falls over 60 s`, which counts events instead",
    )
