"""Which selections of one query may stand for those of another one (RECEP), from the definitions alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from math import comb

from .quality import quality_of
from .query import Quality

Atoms = Collection[str]
"""The ids of the atomic events that a selection depends on."""


def may_cover(covering: Atoms, covered: Atoms, threshold: Quality) -> bool:
    """Tell whether a selection may stand for another; the threshold is that of the one that is covered."""
    if set(covering) == set(covered):
        return True
    found = quality_of(covered, covering)
    return found.precision > threshold.precision and found.recall > threshold.recall


def disparity(places: Sequence[object], areas: Sequence[Callable[[object], bool]]) -> float:
    """Tell how far the interests that made a selection differ on its events (equation 5.3); 0: not at all."""
    if not places or not areas:
        return 0.0
    held = sum(holds(place) for place in places for holds in areas)
    return 1.0 - held / (len(places) * len(areas))


def similarity_by_common(common: float, own: float, others: float) -> Quality:
    """Estimate, by events in common, how well another selection would stand for one's own."""
    return Quality(precision=common / others, recall=common / own)


def at_least(k: int, drawn: int, common: int, known: int) -> float:
    """The chance that k or more of those missing lie in the overlap, as `common` of `known` did."""
    ways = sum(comb(common, j) * comb(known - common, drawn - j) for j in range(k, drawn + 1))
    return ways / comb(known, drawn)


def serves(
    cover: Mapping[str, str], atoms: Mapping[str, Atoms], owners: Mapping[str, Quality], exact: bool
) -> bool:
    """Tell whether a choice is allowed: `cover` names for each selection the one that is processed.

    What is processed stands for itself; with `exact`, nothing but equal selections stand for each other.
    """
    return all(
        cover[other] == other
        and (
            set(atoms[name]) == set(atoms[other])
            if exact
            else may_cover(atoms[other], atoms[name], owners[name])
        )
        for name, other in cover.items()
    )


def fewest(atoms: Mapping[str, Atoms], owners: Mapping[str, Quality]) -> int:
    """The least number of selections that have to be processed, by trying every set of them."""
    names = sorted(atoms)
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            if all(any(may_cover(atoms[one], atoms[name], owners[name]) for one in chosen) for name in names):
                return size
    raise AssertionError("every selection covers itself")
