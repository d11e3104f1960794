"""Random patterns of steps in JSON form, and random events for them, made so that many have matches.

Everything is drawn from a `random.Random`: a seeded one gives the same pattern on every run, and the one of
hypothesis (`st.randoms()`) lets failing examples shrink. Patterns that make no sense are not made, so that
neither Flink nor the engine has a reason to refuse them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

Json = dict[str, Any]

LETTERS = "ab"
TYPES = "AB"
ABSENT = ("notNext", "notFollowedBy")
SKIPS = ("skip_to_next", "skip_past_last_event", "skip_to_first", "skip_to_last")
DEEPEST = 2


@dataclass
class Features:
    """What a pattern may have, each with how often: 0 is never, 1 is always."""

    groups: float = 0.2
    absences: float = 0.15
    alternatives: float = 0.0
    """Flink has none."""
    repeats: float = 0.5
    optional: float = 0.2
    greedy: float = 0.25
    until: float = 0.2
    reading: float = 0.25
    """Conditions about what was taken before."""
    within: float = 0.5
    previous: float = 0.1
    gaps: float = 0.0
    """Flink has none either."""
    windows: float = 0.0
    """Between the events of a loop; Flink bounds other gaps."""
    skips: float = 0.5
    keys: float = 0.15


PLAIN = Features()
FULL = Features(alternatives=0.15, gaps=0.15, windows=0.3)


def pattern(rng: Random, features: Features = PLAIN) -> Json:
    """Draw a pattern."""
    return _Draft(rng, features).whole()


def events(rng: Random, most: int = 9, *, ties: bool = True) -> list[Json]:
    """Draw events with `v` (0 to 4, seldom null), `k` (a letter) and `car` (a key), with `ties` in time."""
    made, time = [], 0
    for number in range(rng.randint(4, most)):
        time += rng.choice((0 if ties else 1000, 1000, 1000, 1000, 2000))
        facts = {"v": rng.randint(0, 4), "k": rng.choice(LETTERS), "car": rng.choice("xxy")}
        if _perhaps(rng, 0.04):
            facts["v"] = None
        made.append({"id": f"e{number}", "type": rng.choice(TYPES), "time": time, "attributes": facts})
    return made


def for_flink(rng: Random) -> tuple[Json, list[Json]]:
    """Draw a pattern and events about which Flink says what it means.

    Where a step is bounded by the event before it, Flink does not look at the clock while events of one time
    come in, so then no two have the same. It also loses such bounds where it copies states: behind greedy
    loops with an end, and behind absences before optional steps.
    """
    while True:
        drawn = pattern(rng)
        words = repr(drawn)
        copies = ("greedy", "until"), ("notFollowedBy", "optional")
        if "previous" not in words:
            return drawn, events(rng)
        if not any(all(word in words for word in pair) for pair in copies):
            return drawn, events(rng, ties=False)


def _perhaps(rng: Random, how_often: float) -> bool:
    """Tell whether something is so; the simplest that can be drawn, a zero, says that it is not."""
    return 1 - rng.random() < how_often


@dataclass
class _Draft:
    rng: Random
    features: Features
    names: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    at_top: list[str] = field(default_factory=list)

    def whole(self) -> Json:
        made: Json = {"steps": self.steps(0)}
        self._time(made)
        if self.chance("skips"):
            made["after_match_skip"] = self._skip()
        if self.chance("keys"):
            made["key"] = ["car"]
        return made

    def chance(self, feature: str) -> bool:
        return _perhaps(self.rng, getattr(self.features, feature))

    # -- steps ---------------------------------------------------------------------------------------------

    def steps(self, depth: int) -> list[Json]:
        made: list[Json] = []
        for place in range(self.rng.choice((1, 2, 2, 3, 3, 4) if depth == 0 else (1, 2, 2))):
            made.append(self._step(depth, made[-1] if place else None))
        while depth and made[-1].get("contiguity") == "notFollowedBy":
            made.pop()
        return made

    def _step(self, depth: int, before: Json | None) -> Json:
        contiguity = None
        if before is not None:
            contiguity = self.rng.choice(("next", "followedBy", "followedBy", "followedByAny"))
            if self.chance("absences") and self._always_occurs(before):
                contiguity = self.rng.choice(ABSENT)
        if contiguity not in ABSENT and depth < DEEPEST and self.chance("groups"):
            return self._group(depth, contiguity, before)
        name = f"s{len(self.names)}"
        self.names.append(name)
        made: Json = {"name": name, "contiguity": contiguity}
        if contiguity not in ABSENT:
            self._quantify(made, before)
        if not _perhaps(self.rng, 0.1):
            made["condition"] = self.condition(name if quantity(made, "min") else None)
        if contiguity not in ABSENT:
            self.taken.append(name)
            self.at_top += [name] if depth == 0 else []
        if _perhaps(self.rng, 0.1):
            made["type"] = self.rng.choice(TYPES)
        if before is not None and self.chance("previous"):
            made["within_previous_ms"] = self.rng.choice((2000, 3000))
        return made

    def _always_occurs(self, step: Json) -> bool:
        """Absences after what may be missing are refused, and so are several of one kind in a row."""
        return (
            not quantity(step, "optional")
            and step["contiguity"] != "notFollowedBy"
            and not may_be_empty(step)
        )

    def _group(self, depth: int, contiguity: str | None, before: Json | None) -> Json:
        made: Json = {"contiguity": contiguity}
        if self.chance("alternatives"):
            made["either"] = [self.steps(depth + 1), self.steps(depth + 1)]
        else:
            made["group"] = self.steps(depth + 1)
        self._quantify(made, before)
        return made

    def _quantify(self, step: Json, before: Json | None) -> None:
        made: Json = {}
        if self.chance("repeats") and not may_be_empty(step):
            choices = ((1, None), (1, None), (1, None), (2, 2), (1, 2), (1, 3), (2, 3), (2, None))
            made["min"], made["max"] = self.rng.choice(choices)
            how = self.rng.choice((None, None, "consecutive", "combinations"))
            if how:
                made[how] = True
            if "name" in step and how != "combinations" and self.chance("greedy"):
                made["greedy"] = True
            if made["max"] is None and self.chance("until"):
                made["until"] = self.condition()
            if "name" in step and self.chance("windows"):
                made["window_ms"] = self.rng.choice((1000, 2000, 3000))
        unclear = "greedy" in made and "window_ms" in made  # together with optional it is refused
        if self.chance("optional") and not unclear and not (before and quantity(before, "greedy")):
            made["optional"] = True
        if made:
            step["quantifier"] = made

    def condition(self, own: str | None = None) -> str:
        rng = self.rng
        if own and self.chance("reading"):
            return rng.choice(READING_ITSELF).format(own)
        if self.taken and self.chance("reading"):
            return rng.choice(READING).format(rng.choice(self.taken))
        return rng.choice(ALONE)

    # -- the whole -----------------------------------------------------------------------------------------

    def _time(self, made: Json) -> None:
        needs = made["steps"][-1].get("contiguity") == "notFollowedBy"
        if needs or self.chance("within"):
            kinds = ("first_to_last",) * 5 + ("previous_to_current",)
            kind = "first_to_last" if needs else self.rng.choice(kinds)
            made["within"] = {"ms": self.rng.choice((3000, 5000, 8000, 20000)), "type": kind}
        if self.chance("gaps"):
            made["within_gaps_ms"] = self.rng.choice((2000, 3000))

    def _skip(self) -> Json:
        made: Json = {"strategy": self.rng.choice(SKIPS if self.at_top else SKIPS[:2])}
        if made["strategy"] in ("skip_to_first", "skip_to_last"):
            made["step"] = self.rng.choice(self.at_top)
        return made


ALONE = (
    "k = 'a'", "k = 'b'", "k = 'a'", "k = 'b'", "k != 'a'", "v > 0", "v > 1", "v < 3", "v < 4", "v != 2",
    "v in (1, 2, 3)", "k in ('a', 'c') or v = 1", "v % 2 = 0", "k = 'a' and v > 0",
)  # fmt: skip
READING = (
    "v >= first({0}.v)", "v >= last({0}.v)", "v <= avg({0}.v)", "count({0}) < 3", "sum({0}.v) < 9",
    "v > min({0}.v)", "v <= max({0}.v)", "v <= first({0}.v) + 1 and k != 'z'", "k = last({0}.k)",
    "count({0}.v) = 0 or v > 0", "k != first({0}.k) or v = sum({0}.v)",
)  # fmt: skip


READING_ITSELF = (
    "count({0}) = 0 or v >= last({0}.v)", "count({0}) < 2", "first({0}.v) is null or v > first({0}.v) - 1",
    "count({0}) = 0 or k != last({0}.k)", "count({0}.v) < 3 and v > 0", "not (sum({0}.v) > 5)",
)  # fmt: skip


def quantity(step: Json, name: str) -> Any:
    """Give one word of a step's quantifier, None where it is not there."""
    return step.get("quantifier", {}).get(name)


def may_be_empty(step: Json) -> bool:
    """Tell whether a group can be gone through without an event."""
    branches = [step["group"]] if "group" in step else step.get("either", [])
    return any(all(_may_be_missing(each) for each in branch) for branch in branches)


def _may_be_missing(step: Json) -> bool:
    return bool(quantity(step, "optional")) or step["contiguity"] in ABSENT or may_be_empty(step)
