"""What an explanation says of deliveries: who was told of a detection, and why others were not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from whimbrel.model.schema import Value
from whimbrel.whynot.events import Seen

DELIVERY_KINDS: Mapping[str, str] = {
    "told": "the object was told of it",
    "unfollowed": "the query does not follow the object",
    "own": "an event is the object's own, and the query is excluding itself",
    "away": "an event lay outside the interest",
    "old": "it was older than the lifetime when the interest began",
    "ended": "the interest had ended when it was known",
    "other": "the events in the interest alone gave another result",
}
"""Why somebody is told of a detection or is not, and what each means."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """Whether an object was told of a detection of the plain query; `kind` is one of `DELIVERY_KINDS`."""

    query: str
    key: str
    focal: Value
    definition: str
    detection: Seen
    kind: str
    text: str

    @property
    def is_told(self) -> bool:
        """Whether it was told."""
        return self.kind == "told"

    def __str__(self) -> str:
        verdict = "" if self.is_told else "not told: "
        what = f"{self.query}, {self.key} = {self.focal}, {self.definition} {self.detection}"
        return f"{what}\n  -> {verdict}{self.text}"

    def to_dict(self) -> dict[str, object]:
        """Convert it to plain data."""
        return {
            "query": self.query,
            "focal": self.focal,
            "definition": self.definition,
            "detection": self.detection.to_dict(),
            "told": self.is_told,
            "kind": self.kind,
            "text": self.text,
        }
