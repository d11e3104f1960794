"""The tree that a composite event is detected in: ways that are both cheap and quick, and where they meet."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from whimbrel.plan.network import Link, Network, unknown
from whimbrel.plan.pushpull.composite import Composite, PrimitiveEvent
from whimbrel.plan.routes import Routes, Weight

BALANCE = 0.5
"""How much cost counts against delay when ways are chosen (alpha of the paper)."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Events of one part, and the way from where they occur to the junction above."""

    part: PrimitiveEvent
    cost: float = 0.0
    """What a byte costs on the way."""
    delay_s: float = 0.0
    """The longest time that a message takes."""
    path: tuple[str, ...] = ()
    """The brokers on the way, both ends included."""
    parts: frozenset[str] = field(init=False, compare=False, repr=False)
    """The names of the parts that come from here."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", frozenset({self.part.name}))


@dataclass(frozen=True, slots=True)
class Junction:
    """A broker where ways meet, and the way from it to the junction above (none for the uppermost)."""

    at: str
    inputs: tuple[Leaf | Junction, ...]
    cost: float = 0.0
    delay_s: float = 0.0
    path: tuple[str, ...] = ()
    parts: frozenset[str] = field(init=False, compare=False, repr=False)
    """The names of the parts that come together here."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", frozenset().union(*(each.parts for each in self.inputs)))

    def below(self) -> Iterator[Junction]:
        """Iterate over the junctions below this one, the lowest first."""
        for each in self.inputs:
            if isinstance(each, Junction):
                yield from each.below()
                yield each

    @property
    def height(self) -> int:
        """Count the junctions on the longest way down, this one included."""
        return 1 + max((each.height for each in self.inputs if isinstance(each, Junction)), default=0)


Input = Leaf | Junction


def leaves_of(each: Input) -> Iterator[Leaf]:
    """Iterate over the leaves below an input, in the order of the tree; a leaf is its own."""
    if isinstance(each, Leaf):
        yield each
    else:
        for below in each.inputs:
            yield from leaves_of(below)


def h_value(network: Network, balance: float = BALANCE) -> Weight:
    """Weigh links by cost and delay, each as a share of the largest in the network: the h-value."""
    most_cost = max((link.cost for link in network.links), default=0.0) or 1.0
    most_delay = max((link.delay_s for link in network.links), default=0.0) or 1.0

    def weigh(link: Link) -> float:
        return balance * link.cost / most_cost + (1 - balance) * link.delay_s / most_delay

    return weigh


def detection_tree(network: Network, composite: Composite, balance: float = BALANCE) -> Junction:
    """Put the best ways from all parts together to a tree, and find its junctions (Comet, section IV-A).

    One run of Dijkstra's algorithm from where the event is wanted, by the h-value of links: O(links log
    brokers).

    Parts that must not occur go to the uppermost junction by themselves: only who has all others can tell.

    Raises
    ------
    NetworkError
        If a part occurs where no way leads from.
    """
    routes = Routes(network, h_value(network, balance))
    for at in (composite.at, *(part.at for part in composite.parts)):
        if at not in network.number:
            raise unknown("broker", at, network.number, f"{composite.name!r} needs it")
    above: dict[str, str] = {}
    for part in composite.parts:
        path = routes.path(composite.at, part.at)
        above.update(zip(path[1:], path, strict=False))
    links = {
        node: min((link for link in network.neighbours[node] if link.other(node) == up), key=routes.weigh)
        for node, up in above.items()
    }
    return _grown(composite.at, composite, above, links)


def _grown(at: str, composite: Composite, above: dict[str, str], links: dict[str, Link]) -> Junction:
    """Build the junction at a broker from what comes up to it."""
    inputs: list[Input] = [Leaf(part, path=(at,)) for part in composite.parts if part.at == at]
    for node in sorted(node for node, up in above.items() if up == at):
        below = _grown(node, composite, above, links)
        way, link = (node, at), links[node]
        delay_s = delay_on(link, composite)
        inputs += [_extended(each, way, link.cost, delay_s) for each in _going_on(below)]
    return Junction(at, tuple(inputs))


def _going_on(below: Junction) -> list[Input]:
    """Say what goes up from a broker: what is found there, and past it what must not occur."""
    negated = [each for each in below.inputs if is_negated(each)]
    rest = tuple(each for each in below.inputs if not is_negated(each))
    if len(rest) > 1:
        return [replace(below, inputs=rest, path=(below.at,)), *negated]
    return [*rest, *negated]


def is_negated(each: Input) -> bool:
    """Tell whether an input is a part that must not occur."""
    return isinstance(each, Leaf) and each.part.is_negated


def delay_on(link: Link, composite: Composite) -> float:
    """Bound the time that a message takes over a link: the wait, the way, and what goes before it.

    All events of the composite event that occur during the longest wait may go first: as many as come by
    chance in all but about one of 30,000 cases (four standard deviations above the mean).
    """
    waiting = sum(part.rate_hz for part in composite.parts) * link.contacts.longest_wait_s
    largest = max(part.size_b for part in composite.parts)
    events = waiting + 4 * math.sqrt(waiting) + 1 if math.isfinite(waiting) else 0.0
    return link.delay_s + events * largest / link.bandwidth_b_s


def _extended(each: Input, way: tuple[str, ...], cost: float, delay_s: float) -> Input:
    path = (*each.path, *way[1:]) if each.path else way
    return replace(each, cost=each.cost + cost, delay_s=each.delay_s + delay_s, path=path)


class VirtualTrees:
    """A tree with any of its junctions taken out (*shorted*: virtual topologies, Comet, section IV-C).

    What came together at one that is out goes on to the one above singly. A tree is made in O(its junctions).

    What is the same in two of them is the same object, so that what is known of it holds in both.
    """

    def __init__(self, tree: Junction) -> None:
        self.tree = tree
        self.names = tuple(junction.at for junction in tree.below())
        self._junctions = {each.at: each for each in (tree, *tree.below())}
        self._below = {at: frozenset(one.at for one in each.below()) for at, each in self._junctions.items()}
        self.above = dict(_ways_up(tree, ()))
        """For each junction, those above it, from the next one to the uppermost."""
        self._known: dict[tuple[str, frozenset[str]], Junction] = {}

    def without(self, away: Collection[str]) -> Junction:
        """Return the tree without these junctions."""
        return self._without(self.tree, frozenset(away))

    def at(self, name: str, away: frozenset[str]) -> Junction:
        """Return the tree from one junction on, without these."""
        return self._without(self._junctions[name], away)

    def _without(self, junction: Junction, away: frozenset[str]) -> Junction:
        key = (junction.at, away & self._below[junction.at])
        if key not in self._known:
            self._known[key] = self._cut(junction, key[1])
        return self._known[key]

    def _cut(self, junction: Junction, away: frozenset[str]) -> Junction:
        if not away:
            return junction
        inputs: list[Input] = []
        for each in junction.inputs:
            if isinstance(each, Leaf):
                inputs.append(each)
            elif each.at in away:
                below = self._without(each, away)
                inputs += [_extended(one, each.path, each.cost, each.delay_s) for one in below.inputs]
            else:
                inputs.append(self._without(each, away))
        return replace(junction, inputs=tuple(inputs))

    def from_level(self, level: int) -> frozenset[str]:
        """Name the junctions that lie so many steps or more below the uppermost."""
        return frozenset(junction.at for depth, junction in _depths(self.tree, 0) if depth >= level)


def _depths(tree: Junction, depth: int) -> Iterator[tuple[int, Junction]]:
    if depth:
        yield depth, tree
    for each in tree.inputs:
        if isinstance(each, Junction):
            yield from _depths(each, depth + 1)


def _ways_up(tree: Junction, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield tree.at, above
    for each in tree.inputs:
        if isinstance(each, Junction):
            yield from _ways_up(each, (tree.at, *above))
