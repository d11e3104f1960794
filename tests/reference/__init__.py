"""The slow reference implementation of docs/meaning.md, and random graphs and events to compare with it."""

from .reference import Admitted, Detection, Event, TooLarge, admit, detect

__all__ = ["Admitted", "Detection", "Event", "TooLarge", "admit", "detect"]
