"""Lower phrases of change: `Position as p changes status from 'moored' within 1 h`."""

from __future__ import annotations

from dataclasses import dataclass, field

from whimbrel.errors import QueryError, UnboundedError
from whimbrel.graph.expressions import conjuncts
from whimbrel.graph.operators.change import PREVIOUS, Change
from whimbrel.graph.policies import Key, Partitioning
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.details import Details, Takes
from whimbrel.lang.wbl.movers import MotionPhrase
from whimbrel.lang.wbl.pattern import Occurring, PartName, Scope
from whimbrel.lang.wbl.resolve import VisibleNames

CHANGES = "changes"
_TAKES = Takes((), ("from", "to", "by more than", "within"))


@dataclass(slots=True)
class ChangeLowering:
    """Make the operators of one phrase of change."""

    mover: MotionPhrase
    horizon: int | None
    leaf: Occurring = field(init=False)
    attribute: str = field(init=False)
    details: Details = field(init=False)
    parts: dict[str, PartName] = field(init=False)

    def __post_init__(self) -> None:
        phrase = self.mover.motion
        self.mover.refuse_clauses()
        self.details = Details.read(phrase, _TAKES, self.mover.scope.params)
        self.leaf = self.mover.leaf(phrase.mover, phrase.alias, phrase.at)
        if self.leaf.name == PREVIOUS:
            raise QueryError(
                f"{PREVIOUS!r} is the event before the change", phrase.at, "choose another name behind 'as'"
            )
        self.attribute = _attribute(phrase)
        self.parts = {
            name: PartName(name, self.leaf.info, Scope(), [self.leaf], phrase.at)
            for name in (PREVIOUS, self.leaf.name)
        }

    def lower(self, keys: dict[str, Key]) -> str:
        """Add the operator and all that it reads; name the stream of what is found."""
        change = Change(
            self.mover.free_name("change"),
            self.mover.samples(self.leaf, keys),
            self.leaf.name,
            self.attribute,
            self._within(),
            tuple(
                clause
                for condition in self._conditions()
                for clause in conjuncts(VisibleNames(self.mover.scope, self.parts, keys).condition(condition))
            ),
            Partitioning(tuple(keys.values())),
        )
        return self.mover.operators.add(change)

    def known(self) -> list[t.Assignment]:
        """Assign what is known of a change: the values before and after it."""
        values = {"before": self._value(PREVIOUS), "after": self._value(self.leaf.name)}
        return [t.Assignment(name, value) for name, value in values.items()]

    def _value(self, part: str) -> t.Dotted:
        return t.Dotted(part, self.attribute, at=self.mover.motion.at)

    def _within(self) -> int:
        within = self.details.duration("within") or self.horizon
        if within is None:
            raise UnboundedError(
                f"`{CHANGES} {self.attribute}` would have to remember for ever what was before",
                self.mover.motion.at,
                "add 'within 1 h' (older values are not compared with), or give a horizon: --horizon 1h",
            )
        return within

    def _conditions(self) -> list[t.Expression]:
        """Write what the phrase asks for as conditions; what does not fit the attribute is refused there."""
        before, after = (each.value for each in self.known())
        changed: t.Expression = t.Infix("-", after, before, at=before.at)
        conditions: list[t.Expression] = []
        for word, what, operator in (
            ("from", before, "="),
            ("to", after, "="),
            ("by more than", t.Apply("abs", (changed,), at=before.at), ">"),
        ):
            value = self.details.value(word)
            if value is not None:
                conditions.append(t.Compare((what, value), (operator,), at=value.at))
        return conditions if self.mover.case.where is None else [*conditions, self.mover.case.where]


def _attribute(phrase: t.MotionNode) -> str:
    target = phrase.target
    if target is None or target.name is None or target.arguments is not None or target.alias is not None:
        raise QueryError(
            f"`{CHANGES}` is said of one attribute",
            phrase.at,
            f"write for example '{CHANGES} status within 1 h'",
        )
    return target.name
