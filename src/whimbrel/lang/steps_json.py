"""Patterns of steps as JSON: written with what says something, read with the place of what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from whimbrel.errors import QueryError, did_you_mean
from whimbrel.lang.steps import FOLLOWING, STRATEGIES, Pattern, Skipping, StepOf, StepQuantity, no_end

WITHIN = ("first_to_last", "previous_to_current")
DEEPEST = 20


def pattern_to_dict(pattern: Pattern) -> dict[str, Any]:
    """Write the JSON form of a pattern; what says nothing is left out."""
    written: dict[str, Any] = {"steps": [_step_to_dict(step) for step in pattern.steps]}
    if pattern.key:
        written["key"] = list(pattern.key)
    if pattern.within_ms is not None:
        written["within"] = {"ms": _plain(pattern.within_ms), "type": pattern.within_type}
    if pattern.gap_ms is not None:
        written["within_gaps_ms"] = _plain(pattern.gap_ms)
    if pattern.skip != Skipping():
        written["after_match_skip"] = _said(pattern.skip, Skipping()) | {"strategy": pattern.skip.strategy}
    others = {"timeouts": pattern.timeouts, "max_runs": pattern.runs}
    written |= {name: value for name, value in others.items() if value is not None}
    if pattern.drop != "oldest":
        written["drop_runs"] = pattern.drop
    if pattern.counts:
        written["count"] = True
    return written


def pattern_from_dict(document: Mapping[str, Any]) -> Pattern:
    """Read the JSON form of a pattern; see `Pattern.from_dict`."""
    return _Reader().pattern(document)


def read_pattern(text: str, name: str, file: str | None = None) -> Pattern:
    """Read a pattern from the text of a JSON file."""
    shown = file or name
    try:
        document = json.loads(text)
    except ValueError as error:
        raise QueryError(f"{shown} is no JSON: {error}") from None
    except RecursionError:
        raise QueryError(f"{shown} is nested too deeply") from None
    try:
        return pattern_from_dict(document)
    except QueryError as error:
        raise QueryError(f"{shown}: {error.message}", hint=error.hint) from None


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else number


def _said(value: Any, default: Any) -> dict[str, Any]:
    """List the fields of a record that differ from their defaults."""
    return {
        name: getattr(value, name)
        for name in value.__slots__
        if getattr(value, name) != getattr(default, name)
    }


def _step_to_dict(step: StepOf) -> dict[str, Any]:
    written = _said(step, StepOf())
    written.pop("quantifier", None)
    branches = written.pop("branches", ())
    written = {"name": step.name, "contiguity": step.contiguity} | written
    if step.name is None:
        del written["name"]
    if len(branches) == 1:
        written["group"] = [_step_to_dict(each) for each in branches[0]]
    elif branches:
        written["either"] = [[_step_to_dict(each) for each in branch] for branch in branches]
    if step.within_previous_ms is not None:
        written["within_previous_ms"] = _plain(step.within_previous_ms)
    if step.quantifier != StepQuantity():
        limits = {"min": step.quantifier.min, "max": step.quantifier.max}
        written["quantifier"] = limits | _said(step.quantifier, StepQuantity())
        if step.quantifier.window_ms is not None:
            written["quantifier"]["window_ms"] = _plain(step.quantifier.window_ms)
    return written


# -- reading ----------------------------------------------------------------------------------------------


@dataclass
class _Reader:
    """Reads the JSON form; `path` is the place at hand, for messages."""

    path: list[str] = field(default_factory=list)

    def pattern(self, document: Any) -> Pattern:
        known = ("steps", "key", "within", "within_gaps_ms", "after_match_skip", "timeouts", "max_runs",
                 "drop_runs", "count")  # fmt: skip
        members = self.members(document, known, "a pattern")
        steps = self.at("steps", members, self.steps, required=True)
        within = self.at("within", members, self.within) or (None, "first_to_last")
        return Pattern(
            steps,
            key=self.at("key", members, self.key) or (),
            within_ms=within[0],
            within_type=within[1],
            gap_ms=self.at("within_gaps_ms", members, self.time),
            skip=self.at("after_match_skip", members, self.skip) or Skipping(),
            timeouts=self.at("timeouts", members, self.string),
            runs=self.at("max_runs", members, self.whole),
            drop=self.at("drop_runs", members, self.one_of("oldest", "newest")) or "oldest",
            counts=bool(self.at("count", members, self.flag)),
        )

    def fail(self, what: str, hint: str | None = None) -> QueryError:
        where = "".join(self.path).lstrip(".") or "the pattern"
        return QueryError(f"{where}: {what}", hint=hint)

    def members(self, value: Any, known: tuple[str, ...], what: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self.fail(f"{what} is an object, not {_kind(value)}")
        for name in value:
            if name not in known:
                raise self.fail(
                    f"{what} has no member {name!r}",
                    did_you_mean(str(name), known) or f"it has {', '.join(known)}",
                )
        return value

    def at(
        self, name: str, members: Mapping[str, Any], read: Callable[[Any], Any], *, required: bool = False
    ) -> Any:
        """Read a member, if it is there; null counts as not there."""
        if members.get(name) is None:
            if required:
                raise self.fail(f"the member {name!r} is missing")
            return None
        self.path.append(f".{name}")
        member = read(members[name])
        self.path.pop()
        return member

    def group(self, value: Any) -> tuple[StepOf, ...]:
        """Read the steps of a group; the first follows as the group does, whatever it says itself."""
        first, *rest = self.steps(value)
        return (replace(first, contiguity=None), *rest)

    def steps(self, value: Any) -> tuple[StepOf, ...]:
        if not isinstance(value, list) or not value:
            raise self.fail("a list of at least one step is wanted")
        if len(self.path) > 2 * DEEPEST:
            raise self.fail("groups are nested too deeply")
        read = []
        for number, each in enumerate(value):
            self.path.append(f"[{number}]")
            read.append(self.step(each))
            self.path.pop()
        return tuple(read)

    def step(self, value: Any) -> StepOf:
        known = (
            "name",
            "type",
            "condition",
            "contiguity",
            "quantifier",
            "within_previous_ms",
            "group",
            "either",
        )
        members = self.members(value, known, "a step")
        branches = self.branches(members)
        if branches:
            for name in ("type", "condition", "within_previous_ms"):
                if members.get(name) is not None:
                    raise self.fail(f"a group has no {name!r} of its own", "give it to the steps inside")
        elif members.get("name") is None:
            raise self.fail("a step needs a name, or a group of steps")
        return StepOf(
            None if branches else self.at("name", members, self.name),
            self.at("type", members, self.string),
            self.at("condition", members, self.string),
            self.at("contiguity", members, self.one_of(*FOLLOWING)),
            self.at("quantifier", members, self.quantifier) or StepQuantity(),
            self.at("within_previous_ms", members, self.time),
            branches,
        )

    def branches(self, members: Mapping[str, Any]) -> tuple[tuple[StepOf, ...], ...]:
        if members.get("group") is not None:
            return (self.at("group", members, self.group),)
        if members.get("either") is None:
            return ()

        def read(value: Any) -> tuple[tuple[StepOf, ...], ...]:
            if not isinstance(value, list) or len(value) < 2:
                raise self.fail("at least two lists of steps are wanted")
            return tuple(self.group(each) for each in value)

        found: tuple[tuple[StepOf, ...], ...] = self.at("either", members, read)
        return found

    def quantifier(self, value: Any) -> StepQuantity:
        known = tuple(StepQuantity.__slots__)
        members = self.members(value, known, "a quantifier")
        least = self.at("min", members, self.whole)
        most = self.at("max", members, self.whole)
        if "max" not in members and least is not None:
            most = max(1, least)
        marks = {name: bool(self.at(name, members, self.flag)) for name in known[2:6]}
        quantity = StepQuantity(
            1 if least is None else least,
            1 if "max" not in members and least is None else most,
            until=self.at("until", members, self.string),
            window_ms=self.at("window_ms", members, self.time),
            **marks,
        )
        if quantity.until is not None:
            self.at("until", members, lambda _: self.ends(quantity))
        return quantity

    def ends(self, quantity: StepQuantity) -> None:
        """Refuse `until` where there is no loop to end."""
        wrong = no_end(quantity)
        if wrong is not None:
            raise self.fail(f"until ends a loop, and this {wrong}", 'write "max": null, or leave until out')

    def within(self, value: Any) -> tuple[float, str]:
        members = self.members(value, ("ms", "type"), "within")
        kind = self.at("type", members, self.one_of(*WITHIN)) or WITHIN[0]
        return self.at("ms", members, self.time, required=True), kind

    def skip(self, value: Any) -> Skipping:
        members = self.members(value, ("strategy", "step", "throw_on_miss"), "after_match_skip")
        return Skipping(
            self.at("strategy", members, self.one_of("no_skip", *STRATEGIES), required=True),
            self.at("step", members, self.string),
            bool(self.at("throw_on_miss", members, self.flag)),
        )

    def key(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise self.fail('a list of attributes is wanted, such as ["vehicle"]')
        return tuple(value)

    def name(self, value: Any) -> str:
        text = self.string(value)
        if not text.isidentifier():
            raise self.fail(
                f"{text!r} is no name", "a name has letters, digits and _, and begins with no digit"
            )
        return text

    def string(self, value: Any) -> str:
        if not isinstance(value, str) or not value:
            raise self.fail(f"a text is wanted, not {_kind(value)}")
        return value

    def whole(self, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.fail(f"a whole number is wanted, not {_kind(value)}")
        return value

    def time(self, value: Any) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e15:
            raise self.fail(f"a number of milliseconds is wanted, not {_kind(value)}")
        return value

    def flag(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise self.fail(f"true or false is wanted, not {_kind(value)}")
        return value

    def one_of(self, *choices: str) -> Callable[[Any], str]:
        def read(value: Any) -> str:
            if value not in choices:
                near = did_you_mean(str(value), choices)
                raise self.fail(f"{value!r} is none of {', '.join(choices)}", near)
            return str(value)

        return read


def _kind(value: Any) -> str:
    return "null" if value is None else json.dumps(value, default=str)[:60]
