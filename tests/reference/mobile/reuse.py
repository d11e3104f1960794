"""Which selections of one query may stand for those of another one (RECEP), from the definitions alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, dist

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


# Algorithms 5.1 to 5.3, as printed but for the slips that decision 38 names.


@dataclass(frozen=True)
class Waiting:
    """A selection that waits for a decision, of an operator."""

    owner: int
    atoms: frozenset[int]


@dataclass(frozen=True)
class Owner:
    """What the owner of an operator agrees to, and for which operators its selections may stand."""

    threshold: Quality
    neighbours: frozenset[int]
    exact: bool = False


@dataclass(frozen=True)
class Choice:
    """For each selection the one that is processed for it, and how many pairs were compared."""

    by: list[int]
    compared: int


def allowed(selections: Sequence[Waiting], owners: Sequence[Owner], covering: int, covered: int) -> bool:
    """Tell whether a selection may stand for another one, neighbours aside: they are compared."""
    one, other = selections[covering].atoms, selections[covered].atoms
    owner = owners[selections[covered].owner]
    return one == other if owner.exact else may_cover(one, other, owner.threshold)


def greedy(selections: Sequence[Waiting], owners: Sequence[Owner]) -> Choice:
    """Algorithm 5.1 (MSH). Of subsets of the same size, the first; what is chosen stands for itself."""
    subsets: list[set[int]] = []
    compared = 0
    for number, one in enumerate(selections):
        subset = {number}
        for other, waiting in enumerate(selections):
            if other != number and waiting.owner in owners[one.owner].neighbours:
                compared += 1
                if allowed(selections, owners, number, other):
                    subset.add(other)
        subsets.append(subset)
    left, by = set(range(len(selections))), [-1] * len(selections)
    while left:
        best = max(range(len(subsets)), key=lambda number: (len(subsets[number] & left), -number))
        for number in subsets[best] & left:
            by[number] = best
        by[best] = best
        left -= subsets[best]
    return Choice(by, compared)


def in_turn(selections: Sequence[Waiting], owners: Sequence[Owner], priority: Sequence[float]) -> Choice:
    """Algorithm 5.2 (MNH). Operators of one priority go by their numbers."""
    by, chosen, compared = [-1] * len(selections), list[int](), 0
    for owner in sorted(range(len(owners)), key=lambda owner: (-priority[owner], owner)):
        for number, one in enumerate(selections):
            if one.owner != owner:
                continue
            by[number] = number
            for other in chosen:
                if owner not in owners[selections[other].owner].neighbours:
                    continue
                compared += 1
                if allowed(selections, owners, other, number):
                    by[number] = other
                    break
            if by[number] == number:
                chosen.append(number)
    return Choice(by, compared)


@dataclass(frozen=True)
class Bounds:
    """dist_n, dist_o and k of an operator."""

    nearest: float
    apart: float
    most: int


def coordinated(
    places: Sequence[tuple[float, float]], overlaps: Sequence[Sequence[float]], bounds: Sequence[Bounds]
) -> tuple[list[int], list[set[int]]]:
    """Algorithm 5.3, all operators at once: their references, and for each those for whom it may stand."""
    size = range(len(places))

    def apart(a: int, b: int) -> float:
        return dist(places[a], places[b])

    reference = []
    for graph in size:
        near = [other for other in size if apart(graph, other) <= bounds[graph].nearest]
        reference.append(max(near, key=lambda one: (sum(overlaps[one][other] for other in near), -one)))
    neighbours: list[set[int]] = [set() for _ in size]
    for graph in size:
        centre, own = reference[graph], bounds[graph]
        within = [
            other
            for other in size
            if other != graph and apart(centre, other) <= own.apart and apart(graph, other) <= own.nearest
        ]
        within.sort(key=lambda other: (apart(centre, other), apart(graph, other), other))
        for other in within[: own.most]:
            if own.apart >= bounds[other].apart and apart(centre, reference[other]) < own.apart:
                neighbours[other].add(graph)
    return reference, neighbours


# Estimates.


def by_cells(actual: Sequence[object], used: Sequence[object]) -> Quality:
    """Estimate from the cells of the events that one should depend on and of those that another does."""
    one, other = Counter(actual), Counter(used)
    common = sum((one & other).values())
    return Quality(
        precision=common / len(used) if used else 1.0, recall=common / len(actual) if actual else 1.0
    )


def by_annotations(own: Mapping[int, Quality], others: Collection[int], atoms: Mapping[int, int]) -> Quality:
    """Estimate from the events that both read; `own` says how similar each is for the one to be covered."""
    common = set(own) & set(others)
    weight, others_weight = sum(atoms[e] for e in own), sum(atoms[e] for e in others)
    return Quality(
        precision=sum(atoms[e] * own[e].precision for e in common) / others_weight,
        recall=sum(atoms[e] * own[e].recall for e in common) / weight,
    )


def batch_quality(
    own: Sequence[tuple[int, frozenset[int]]], others: Sequence[tuple[int, frozenset[int]]]
) -> Quality:
    """Average over the selections of a batch, (end, atoms) in order: each against what was known last."""
    found = []
    for end, atoms in own:
        before = [each for each in others if each[0] <= end]
        found.append(quality_of(atoms, (before[-1] if before else others[0])[1]))
    return Quality(
        precision=sum(each.precision for each in found) / len(found),
        recall=sum(each.recall for each in found) / len(found),
    )


def exact_at_least(k: int, drawn: int, good: int, known: int) -> Fraction:
    """The chance of k or more good ones among those drawn, as a fraction."""
    ways = sum(comb(good, j) * comb(known - good, drawn - j) for j in range(k, drawn + 1))
    return Fraction(ways, comb(known, drawn))
