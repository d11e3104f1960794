"""The patterns of steps that are measured, in the JSON form that both systems are given."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cases import SPARSE, TYPES, Stream
from flink_program import PeerMissing

from whimbrel import Pattern, Query

Json = dict[str, Any]

BUSY = Stream("busy", 10_000, (1 / 3, 1 / 3, 1 / 3), 13, 200, has_ids=True)
"""Every event an A, B or C, each object once in ten seconds: nothing can be left out beforehand."""
SPARSE_WITH_IDS = replace(SPARSE, name="sparse-ids", has_ids=True)


@dataclass(frozen=True)
class StepsCase:
    """One pattern of steps over one stream."""

    name: str
    title: str
    stream: Stream
    document: Json
    """The pattern in JSON."""
    most_events: int
    """How many events Flink does in well under a minute."""

    @property
    def steps(self) -> list[str]:
        """The steps that take events, in order."""
        return list(_taking(self.document["steps"]))

    @property
    def has_others(self) -> bool:
        """Whether the stream has events of other types than the steps; they only are skipped, then."""
        return len(self.stream.shares) > len("ABC")

    def compiled(self) -> Query:
        """Give the query that Whimbrel runs."""
        return Pattern.from_dict(self.document).compile("S")

    def kept(self, names: list[str]) -> list[str]:
        """Choose the columns of the detections that say which events a match has."""
        return [name for name in self.steps if name in names]

    def number_of(self, events: int) -> int:
        """Give how many events are taken where so many are asked for."""
        return min(events, self.most_events)

    def asked_of_flink(self, folder: Path) -> str:
        """Write what the Java program reads, and give the first words of its line."""
        try:
            from oracle import with_trees
        except ImportError:
            raise PeerMissing("tools/flink has no oracle.py; take it from Whimbrel's repository") from None
        path = folder / f"{self.name}.json"
        asked = {"pattern": with_trees(self.document), "types": list(TYPES), "steps": self.steps}
        path.write_text(json.dumps(asked))
        return f"{path} 0"


def _taking(steps: list[Json]) -> list[str]:
    names: list[str] = []
    for step in steps:
        if "group" in step:
            names += _taking(step["group"])
        elif not str(step.get("contiguity")).startswith("not"):
            names.append(step["name"])
    return names


def step(kind: str, contiguity: str | None = None, condition: str | None = None, **quantifier: Any) -> Json:
    """Make a step of events of a type, called after it."""
    made: Json = {"name": kind.lower(), "contiguity": contiguity, "type": kind, "condition": condition}
    return made | ({"quantifier": quantifier} if quantifier else {})


def pattern(*steps: Json, seconds: int, skip: str = "no_skip") -> Json:
    """Make a pattern, per object, with a time from the first event to the last."""
    return {
        "steps": list(steps),
        "key": ["source"],
        "within": {"ms": seconds * 1_000, "type": "first_to_last"},
        "after_match_skip": {"strategy": skip},
    }


STEPS_CASES = (
    StepsCase(
        "steps-strict",
        "A next B next C within 100 s",
        BUSY,
        pattern(step("A"), step("B", "next"), step("C", "next"), seconds=100),
        2_000_000,
    ),
    StepsCase(
        "steps-relaxed",
        "A followed by B followed by C within 100 s, where 5 % of the events are an A, B or C",
        SPARSE_WITH_IDS,
        pattern(step("A"), step("B", "followedBy"), step("C", "followedBy"), seconds=100),
        10_000_000,
    ),
    StepsCase(
        "steps-any",
        "A followed by any B with value > first(a.value) followed by any C within 100 s",
        BUSY,
        pattern(
            step("A"),
            step("B", "followedByAny", "value > first(a.value)"),
            step("C", "followedByAny"),
            seconds=100,
        ),
        500_000,
    ),
    StepsCase(
        "steps-greedy",
        "A followed by B+ greedy followed by C within 100 s, skip past last event",
        BUSY,
        pattern(
            step("A"),
            step("B", "followedBy", min=1, max=None, greedy=True),
            step("C", "followedBy"),
            seconds=100,
            skip="skip_past_last_event",
        ),
        1_000_000,
    ),
    StepsCase(
        "steps-combinations",
        "A followed by any B{2,4} combinations followed by C within 50 s",
        BUSY,
        pattern(
            step("A"),
            step("B", "followedByAny", min=2, max=4, combinations=True),
            step("C", "followedBy"),
            seconds=50,
        ),
        1_000_000,
    ),
    StepsCase(
        "steps-absence",
        "A followed by B not followed by C within 30 s",
        BUSY,
        pattern(step("A"), step("B", "followedBy"), step("C", "notFollowedBy"), seconds=30),
        1_000_000,
    ),
    StepsCase(
        "steps-group",
        "(A followed by B){2,} followed by C within 100 s",
        BUSY,
        pattern(
            {"group": [step("A"), step("B", "followedBy")], "quantifier": {"min": 2, "max": None}},
            step("C", "followedBy"),
            seconds=100,
        ),
        1_000_000,
    ),
)
