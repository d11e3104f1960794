"""What the degraded modes may tell: less than was asked for, never anything else."""

from __future__ import annotations

from collections.abc import Iterable

from .deliveries import Delivery
from .quality import ratio


def forbidden(full: Iterable[Delivery], told: Iterable[Delivery]) -> list[Delivery]:
    """Best effort may leave out deliveries of weak completeness; it may not make any, nor tell one twice."""
    allowed = [each.told for each in full]
    wrong = []
    for each in told:
        if each.told in allowed:
            allowed.remove(each.told)
        else:
            wrong.append(each)
    return wrong


def completeness(full: Iterable[Delivery], told: Iterable[Delivery]) -> float:
    """The share of what should have been told that was; of nothing, all."""
    asked, got = {each.told for each in full}, {each.told for each in told}
    return ratio(len(asked & got), len(asked))
