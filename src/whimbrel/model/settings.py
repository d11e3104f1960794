"""Settings that are handed on as keywords: which there are, and what to say of others."""

from __future__ import annotations

from collections.abc import Mapping

from whimbrel.errors import did_you_mean


def check_settings(settings: Mapping[str, object], known: type, function: str) -> None:
    """Refuse settings that a function does not know; `known` is the `TypedDict` of those that it does.

    Type checkers see a misspelt setting before; this is for those who call without one.

    >>> from whimbrel.model.reading import ReadSettings
    >>> check_settings({"time_unt": "s"}, ReadSettings, "read_events()")
    Traceback (most recent call last):
    TypeError: read_events() has no setting 'time_unt'; did you mean 'time_unit'?
    """
    names = list(known.__annotations__)
    for name in settings:
        if name not in names:
            hint = did_you_mean(name, names)
            raise TypeError(f"{function} has no setting {name!r}; {hint}")
