"""Find the common beginning of several sequences once.

`A then B then C` and `A then B then D` both look for `A then B`. Cut off, the beginning is a pattern of its
own, whose composites the longer patterns go on from; equal beginnings are then one. A sequence is cut only
where that provably means the same: every combination counts (context each, no `first`, `last`, `consuming`),
each part ends before the next begins, and what is tested about the beginning concerns nothing behind it. The
whole still has to lie within its bound, which the longer pattern goes on testing.

It pays if few combinations begin a sequence, compared with the events that every pattern would have to keep:
see `worth_sharing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from whimbrel.graph.estimate import worth_sharing
from whimbrel.graph.expressions import GROUP, PLACE_RELATIONS, Call, Expr, PartRef, parts_of, walk
from whimbrel.graph.fingerprints import fingerprint, fingerprints
from whimbrel.graph.operators import Absent, Graph, JoinPattern, Operator, PatternPart
from whimbrel.graph.passes.share_common_parts import share_common_parts
from whimbrel.graph.wiring import free_name
from whimbrel.model.time import END_OF_TIME

Worth = Callable[[Graph, JoinPattern, int], bool]
"""Tells whether a beginning is worth being found once for so many patterns."""
LEVELS = 4
"""Beginnings may begin alike themselves; so often they are cut again."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a pattern of a query is cut: behind so many of its parts."""

    query: str
    match: str
    length: int
    level: int = 0
    """How many other cuts of the same queries came before it."""


@dataclass(frozen=True, slots=True)
class Marked:
    """The graph of a query, and the fingerprints of its operators."""

    graph: Graph
    marks: Mapping[str, str | None]
    is_own: Callable[[Operator], bool] = lambda operator: False
    """Tells whether an operator does what only its query knows."""

    @staticmethod
    def of(graph: Graph, is_own: Callable[[Operator], bool] = lambda operator: False) -> Marked:
        """Work the fingerprints out."""
        return Marked(graph, fingerprints(graph, is_own), is_own)

    def with_cuts(self, cuts: Iterable[Cut]) -> Marked:
        """Cut some sequences of one level; what is equal then becomes one."""
        graph = self.graph
        for each in cuts:
            graph = cut(graph, each.match, each.length)
        found = Marked.of(graph, self.is_own)
        known = [mark for mark in found.marks.values() if mark is not None]
        return found if len(set(known)) == len(known) else Marked.of(share_common_parts(graph), self.is_own)


def share_prefixes(graph: Graph, worth: Worth = worth_sharing) -> Graph:
    """Cut off the beginnings that several sequences of a graph have in common, and find them once."""
    whole = {"": Marked.of(graph)}
    cuts = find_cuts(whole, worth)
    return whole[""].graph if cuts else graph


def find_cuts(graphs: dict[str, Marked], worth: Worth = worth_sharing) -> list[Cut]:
    """Cut the sequences of several queries so that they have as much as possible in common; say where."""
    found: list[Cut] = []
    for level in range(LEVELS):
        more = [replace(each, level=level) for each in _best_cuts(graphs, worth)]
        if not more:
            break
        found += more
        by_query: dict[str, list[Cut]] = {}
        for each in more:
            by_query.setdefault(each.query, []).append(each)
        for query, cuts in by_query.items():
            graphs[query] = graphs[query].with_cuts(cuts)
    return found


def _best_cuts(graphs: Mapping[str, Marked], worth: Worth) -> list[Cut]:
    """Find for every sequence the longest beginning that another one has, too."""
    possible: list[tuple[Cut, str, str]] = []
    patterns: dict[str, set[str]] = {}
    beginnings: dict[str, tuple[Graph, JoinPattern]] = {}
    for query, marked in graphs.items():
        graph, below = marked.graph, marked.marks
        for match in graph.operators:
            whole = below[match.name]
            if not isinstance(match, JoinPattern) or whole is None:
                continue
            patterns.setdefault(whole, set()).add(whole)  # it may be the beginning of another
            for length in range(2, len(match.parts)):
                beginning = beginning_of(match, length, "")
                name = None if beginning is None else fingerprint(graph, beginning, below)
                if beginning is not None and name is not None:
                    possible.append((Cut(query, match.name, length), name, whole))
                    patterns.setdefault(name, set()).add(whole)
                    beginnings.setdefault(name, (graph, beginning))
    shared = {
        name
        for name, beginning in beginnings.items()
        if len(patterns[name]) > 1 and worth(*beginning, len(patterns[name]))
    }
    longest: dict[tuple[str, str], Cut] = {}
    for each, name, _ in possible:
        if name in shared:
            longest[each.query, each.match] = each  # lengths come in ascending order
    return list(longest.values())


def cut(graph: Graph, name: str, length: int) -> Graph:
    """Let a pattern go on from its first parts, which a pattern of their own finds."""
    match = graph[name]
    assert isinstance(match, JoinPattern)
    taken = {operator.name for operator in graph.operators}
    beginning = beginning_of(match, length, free_name(f"{name}.first{length}", taken))
    assert beginning is not None
    operators: list[Operator] = []
    for operator in graph.operators:
        operators += [beginning, _rest(match, beginning)] if operator.name == name else [operator]
    return replace(graph, operators=tuple(operators))


def beginning_of(match: JoinPattern, length: int, name: str) -> JoinPattern | None:
    """Give the pattern of the first parts of a sequence; None if that does not mean the same."""
    if not _is_plain_sequence(match) or not _can_be_cut(match, length):
        return None
    names = {part.alias for part in match.parts[:length]}
    return JoinPattern(
        name,
        match.parts[:length],
        match.within,
        tuple(order for order in match.orders if order.second < length),
        tuple(absent for absent in match.absent if _is_inside(absent, length)),
        tuple(condition for condition in match.conditions if _concerns(condition, names)),
        match.partitioning,
        joins=match.joins,
        continues=match.continues,
    )


def _rest(match: JoinPattern, beginning: JoinPattern) -> JoinPattern:
    length = len(beginning.parts)
    return replace(
        match,
        parts=(PatternPart(beginning.name, None), *match.parts[length:]),
        orders=tuple(
            replace(order, first=max(order.first - length + 1, 0), second=order.second - length + 1)
            for order in match.orders
            if order.second >= length
        ),
        absent=tuple(_moved(absent, length) for absent in match.absent if absent not in beginning.absent),
        conditions=tuple(c for c in match.conditions if c not in beginning.conditions),
        continues=True,
    )


def _moved(absent: Absent, length: int) -> Absent:
    """Give the parts between which an absent part lies the numbers they have behind the cut."""
    after, before = (
        None if part is None else max(part - length + 1, 0) for part in (absent.after, absent.before)
    )
    return replace(absent, after=after, before=before)


def _is_plain_sequence(match: JoinPattern) -> bool:
    """Tell whether every combination of parts that follow each other counts."""
    named = [part.alias for part in match.parts if part.alias is not None]
    # Only what goes on from a beginning has a part without a name here, its first.
    whole = len(named) == len(match.parts) - match.continues and len(set(named)) == len(named)
    keys = {key.name for key in match.partitioning.keys if key.kind != "attribute"}
    return (
        match.is_free
        and whole
        and match.is_chain
        and match.within < END_OF_TIME
        and not (keys & set(match.joins))
    )


def _can_be_cut(match: JoinPattern, length: int) -> bool:
    inside = [part.alias for part in match.parts[:length]]
    names = set(inside)
    if None in names:
        return False
    for order in match.orders:
        # From behind the cut, only the end of the beginning can be seen.
        if order.first < length - 1 and order.second >= length:
            return False
    if not all(_is_inside(absent, length) or _is_behind(absent, length) for absent in match.absent):
        return False
    for absent in match.absent:
        around = names | {absent.alias}
        if _is_inside(absent, length) and not all(_concerns(c, around) for c in absent.conditions):
            return False
    left = [c for c in match.conditions if not _concerns(c, names)]
    left += [c for absent in match.absent if not _is_inside(absent, length) for c in absent.conditions]
    return not any(_reads_whole(condition, names) for condition in left)


def _is_inside(absent: Absent, length: int) -> bool:
    """Tell whether an absent part lies between two parts of the beginning."""
    return absent.after is not None and absent.before is not None and absent.before < length


def _is_behind(absent: Absent, length: int) -> bool:
    """Tell whether an absent part is placed by what can be seen of the beginning: its start and its end."""
    if absent.after is None:
        return absent.before == 0 or (absent.before is not None and absent.before >= length)
    return absent.after >= length - 1


def _concerns(condition: Expr, names: Iterable[str | None]) -> bool:
    """Tell whether a condition reads parts of those named, and nothing else."""
    read = parts_of(condition) - {GROUP}
    return bool(read) and read <= set(names)


def _reads_whole(condition: Expr, names: set[str | None]) -> bool:
    """Tell whether a condition takes one of some parts as a whole, not only attributes of it."""
    whole = [
        argument
        for node in walk(condition)
        if isinstance(node, Call) and node.function not in PLACE_RELATIONS
        for argument in node.arguments
    ]
    return any(isinstance(argument, PartRef) and argument.name in names for argument in whole)
