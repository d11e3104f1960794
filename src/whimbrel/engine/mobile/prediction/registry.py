"""Predictors by name: those that come with Whimbrel, those of other packages, and those of a program.

A package names its own under the entry point group `whimbrel.predictors`; a program calls `register`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from whimbrel.engine.mobile.prediction.along_route import AlongRoute
from whimbrel.engine.mobile.prediction.dead_reckoning import DeadReckoning
from whimbrel.engine.mobile.prediction.places import PlacePredictor
from whimbrel.errors import QueryError, did_you_mean

GROUP = "whimbrel.predictors"

Factory = Callable[..., PlacePredictor]

_registered: dict[str, Factory] = {"dead reckoning": DeadReckoning, "along a route": AlongRoute}


def register(name: str, factory: Factory) -> None:
    """Make a predictor known by a name; `factory` makes it of its settings.

    Raises
    ------
    QueryError
        If the name stands for another one.
    """
    if _registered.get(name, factory) is not factory:
        raise QueryError(f"a predictor named {name!r} is there already", hint="register it by another name")
    _registered[name] = factory


def names() -> list[str]:
    """Give the names of all predictors that are known."""
    return sorted({*_registered, *_of_packages()})


def predictor(name: str, **settings: object) -> PlacePredictor:
    """Make a predictor by its name; what a program registered goes before what a package brings.

    Raises
    ------
    QueryError
        If there is none of that name, or what the name stands for predicts nothing.

    Examples
    --------
    >>> predictor("dead reckoning", error_m=5.0).samples
    2
    """
    factory = _registered.get(name)
    if factory is None and name in _of_packages():
        factory = _of_packages()[name].load()
    if factory is None:
        hint = did_you_mean(name, names()) or f"there are {', '.join(names())}"
        raise QueryError(f"no predictor is named {name!r}", hint=hint)
    made = factory(**settings)
    if not isinstance(made, PlacePredictor):
        raise QueryError(
            f"what {name!r} stands for is no predictor: {type(made).__name__}",
            hint="a predictor has `samples`, `route_attribute` and `predict(seen, ahead, most)`",
        )
    return made


@cache
def _of_packages() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}
