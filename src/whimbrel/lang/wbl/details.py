"""Details of a phrase of motion, `margin 20 m settling 3 events`: which go with a verb, and what they say."""

from __future__ import annotations

from dataclasses import dataclass

from whimbrel.errors import QueryError, UnknownNameError
from whimbrel.graph.operators.motion import AT_ONCE, Settling
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.pattern import TypeInfo
from whimbrel.lang.wbl.values import Params
from whimbrel.model.schema import Type

_EXAMPLES = {
    "for": "for 10 min",
    "within": "within 20 m",
    "from": "from 500 m",
    "by": "by 100 m",
    "beyond": "beyond 500 m",
}


WORDS = (*_EXAMPLES, "margin", "settling", "accuracy", "between samples", "gap", "fresh")
"""All details there are."""


@dataclass(frozen=True, slots=True)
class Takes:
    """Which details a verb needs, and which it may have."""

    needed: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Details:
    """The details of one phrase, by their words."""

    params: Params
    given: dict[str, t.Detail]

    @classmethod
    def read(cls, motion: t.MotionNode, takes: Takes, params: Params) -> Details:
        """Collect the details of a phrase; what is missing, doubled or does not belong there is refused."""
        given: dict[str, t.Detail] = {}
        for detail in motion.details:
            if detail.word in given:
                raise QueryError(f"`{detail.word}` is given twice", detail.at, "leave out one of them")
            if detail.word not in (*takes.needed, *takes.allowed):
                listed = ", ".join((*takes.needed, *takes.allowed))
                raise QueryError(
                    f"`{detail.word}` does not go with `{motion.verb}`",
                    detail.at,
                    f"it takes {listed}" if listed else "leave it out",
                )
            given[detail.word] = detail
        for word in takes.needed:
            if word not in given:
                raise QueryError(
                    f"`{motion.verb}` needs `{word}`", motion.at, f"add for example '{_EXAMPLES[word]}'"
                )
        return cls(params, given)

    def __contains__(self, word: str) -> bool:
        return word in self.given

    def get(self, word: str) -> t.Detail | None:
        """Look up a detail, if there is one."""
        return self.given.get(word)

    def length(self, word: str) -> float:
        """Look up a length in metres, 0 if nothing is said."""
        amount = self.amount(word)
        return 0.0 if amount is None else self.params.length(amount)

    def duration(self, word: str) -> int:
        """Look up a time in microseconds, 0 if nothing is said."""
        amount = self.amount(word)
        return 0 if amount is None else self.params.duration(amount)

    def amount(self, word: str) -> t.Amount | None:
        """Tell how much is said behind a word."""
        detail = self.given.get(word)
        value = None if detail is None else detail.value
        return value if isinstance(value, t.QuantityNode | t.NamedAmount | t.Count) else None

    def value(self, word: str) -> t.Expression | None:
        """Look up the value behind a word, if there is one."""
        detail = self.given.get(word)
        value = None if detail is None else detail.value
        return None if isinstance(value, t.NamedAmount | t.Count) else value

    # -- against jitter --------------------------------------------------------------------------------------

    def settling(self) -> Settling:
        """Tell how long a change must hold before it counts."""
        given = self.amount("settling")
        if given is None:
            return AT_ONCE
        kind, amount = self.params.window(given)
        return Settling(events=amount) if kind == "counting" else Settling(duration=amount)

    def accuracy(self, *movers: TypeInfo) -> str | None:
        """Find the attribute that says by how much a location may be wrong, of at least one of the movers."""
        detail = self.get("accuracy")
        if detail is None or not isinstance(detail.value, t.Name):
            return None
        name = detail.value.name
        if not any(info.is_open or name in info.attributes for info in movers):
            known = {attribute for info in movers for attribute in info.attributes}
            shown = " or ".join(dict.fromkeys(info.name for info in movers))
            raise UnknownNameError(f"attribute of {shown}", name, known, detail.value.at)
        if any(info.attributes.get(name) not in (None, Type.FLOAT, Type.INT) for info in movers):
            raise QueryError(
                f"the accuracy {name!r} must be a number of metres", detail.at, "name another attribute"
            )
        return name

    def between(self, *, by_default: bool) -> bool:
        """Tell whether the ways between samples count."""
        given = self.get("between samples")
        clash = next((word for word in ("settling", "accuracy") if word in self), None)
        if given is not None and clash is not None:
            raise QueryError(
                f"`between samples` does not go with `{clash}`",
                given.at,
                "a line between two samples neither settles nor has an accuracy; leave out one of them",
            )
        return given is not None or (by_default and clash is None)
