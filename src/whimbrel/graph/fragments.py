"""Cut a query into pieces that run in different places: each finds the events of some definitions.

A piece is a query of its own. Where it reads a definition of another piece, it has a definition without
cases, whose events come from there. What stands between definitions (filters, patterns, windows) goes with
the one that reads it; what two pieces read is in both, so that pieces hand on events of definitions and
nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.graph.expressions import Binary, Expr
from whimbrel.graph.operators import Custom, Derive, Filter, Graph, Operator, Source
from whimbrel.graph.query import Query, refuse_mobile_parts
from whimbrel.graph.scope import selection
from whimbrel.graph.wiring import below, readers


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a query that runs in one place."""

    name: str
    query: Query
    """What it finds: its outputs are what other pieces read, or what the whole query reports."""
    reads: tuple[str, ...]
    """The types of atomic events that it reads."""
    takes: tuple[str, ...]
    """The definitions of other pieces that it reads."""
    reports: tuple[str, ...]
    """Which of its definitions the whole query reports."""

    @property
    def gives(self) -> tuple[str, ...]:
        """The definitions that others want of it."""
        return self.query.graph.outputs


def cut(query: Query, tasks: Iterable[Collection[str]] | None = None) -> tuple[Fragment, ...]:
    """Cut a query into pieces, in an order in which each comes after those it reads.

    Parameters
    ----------
    tasks
        Which definitions stay together, by their names in the graph; those that are not named are pieces of
        their own. A piece is named after its last definition.

    Raises
    ------
    QueryError
        If pieces would have to wait for each other, or an operator in Python reads what another piece finds.
    """
    refuse_mobile_parts(query, "cutting")
    needed = _needed(query.graph)
    groups = _groups(needed, [set(task) for task in tasks or ()])
    home = {name: number for number, group in enumerate(groups) for name in group}
    pieces = [_piece(query, needed, group, home, number) for number, group in enumerate(groups)]
    return tuple(_in_order(pieces, home))


def condition_at_source(piece: Fragment, event_type: str) -> tuple[bool, Expr | None]:
    """Give the condition that all events of a type have to fulfil to be of any use to a piece.

    The first value tells whether there is one; where not, every event is needed.
    """
    graph = piece.query.graph
    above = readers(graph)
    wanted: list[Expr] = []
    for source in (op for op in graph.operators if isinstance(op, Source) and op.event_type == event_type):
        for name in _last_filters(graph, above, source.name):
            _, condition = selection(graph, name)
            if condition is None:
                return False, None
            wanted.append(condition)
    if not wanted:
        return False, None
    either = wanted[0]
    for condition in dict.fromkeys(wanted[1:]):
        either = either if condition == either else Binary("or", either, condition)
    return True, either


def _last_filters(graph: Graph, above: dict[str, list[Operator]], name: str) -> list[str]:
    """Name the selections of a stream that something else than a selection reads."""
    filters = [each for each in above[name] if isinstance(each, Filter)]
    others = [each for each in above[name] if not isinstance(each, Filter)]
    found = [last for each in filters for last in _last_filters(graph, above, each.name)]
    return [name, *found] if others or name in graph.outputs else found


def _needed(graph: Graph) -> list[Operator]:
    """Give the operators that any output depends on, in order."""
    names = below(graph, graph.outputs)
    for name in graph.outputs:
        if not isinstance(graph[name], Derive):
            raise QueryError(f"the output {name!r} is no definition, so that the query cannot be cut")
    return [operator for operator in graph.operators if operator.name in names]


def _groups(needed: Sequence[Operator], tasks: list[set[str]]) -> list[list[str]]:
    definitions = [operator.name for operator in needed if isinstance(operator, Derive)]
    taken: set[str] = set()
    for task in tasks:
        for name in sorted(task):
            if name not in definitions:
                raise UnknownNameError("definition", name, definitions)
        if task & taken:
            raise QueryError(f"the definition {min(task & taken)!r} is in two tasks")
        taken |= task
    alone = [{name} for name in definitions if name not in taken]
    groups = [[name for name in definitions if name in task] for task in (*tasks, *alone) if task]
    return sorted(groups, key=lambda group: definitions.index(group[-1]))


def _piece(
    query: Query, needed: Sequence[Operator], group: list[str], home: dict[str, int], number: int
) -> Fragment:
    operators: dict[str, Operator] = {}
    names = set(group)
    for operator in reversed(needed):
        if operator.name not in names:
            continue
        if isinstance(operator, Derive) and home[operator.name] != number:
            operators[operator.name] = replace(operator, cases=())
            continue
        operators[operator.name] = operator
        names.update(operator.inputs)
    kept = tuple(operators[operator.name] for operator in needed if operator.name in operators)
    takes = tuple(operator.name for operator in kept if isinstance(operator, Derive) and not operator.cases)
    _check_custom(kept, takes)
    reports = tuple(name for name in query.graph.outputs if name in group)
    outputs = tuple(name for name in group if name in reports or _is_read_elsewhere(needed, name, home))
    return Fragment(
        group[-1],
        replace(query, graph=Graph(kept, outputs, query.graph.coordinates), text="", subscriptions=()),
        tuple(dict.fromkeys(op.event_type for op in kept if isinstance(op, Source))),
        takes,
        reports,
    )


def _is_read_elsewhere(needed: Sequence[Operator], name: str, home: dict[str, int]) -> bool:
    """Tell whether a definition of another piece depends on this one."""
    below = {name}
    for operator in needed:
        if below.intersection(operator.inputs):
            if isinstance(operator, Derive):
                if home[operator.name] != home[name]:
                    return True
            else:
                below.add(operator.name)
    return False


def _check_custom(kept: Sequence[Operator], takes: Collection[str]) -> None:
    """Refuse operators in Python over what another piece finds: they tell atomic events apart by number."""
    below = set(takes)
    for operator in kept:
        if below.intersection(operator.inputs):
            if isinstance(operator, Custom):
                raise QueryError(
                    f"the operator {operator.name!r} is written in Python and reads definitions",
                    hint=f"keep it together with them: {', '.join(sorted(takes))}",
                )
            below.add(operator.name)


def _in_order(pieces: list[Fragment], home: dict[str, int]) -> list[Fragment]:
    done: set[int] = set()
    found: list[Fragment] = []
    while len(found) < len(pieces):
        ready = [
            number
            for number, piece in enumerate(pieces)
            if number not in done and all(home[name] in done for name in piece.takes)
        ]
        if not ready:
            waiting = [piece.name for number, piece in enumerate(pieces) if number not in done]
            raise QueryError(
                f"the tasks {', '.join(waiting)} would have to wait for each other",
                hint="keep what lies between definitions of a task in that task, too",
            )
        done.add(ready[0])
        found.append(pieces[ready[0]])
    return found
