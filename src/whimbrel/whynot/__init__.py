"""Why a query detected something, or did not: a slower reading of the same operators over the same events."""

from whimbrel.engine.session import Session
from whimbrel.whynot.delivered import DELIVERY_KINDS, Delivered
from whimbrel.whynot.explaining import why, why_of_session
from whimbrel.whynot.explanation import KINDS, Explanation, Finding, Miss, Reason, Unprocessed

__all__ = [
    "DELIVERY_KINDS",
    "KINDS",
    "Delivered",
    "Explanation",
    "Finding",
    "Miss",
    "Reason",
    "Unprocessed",
    "why",
    "why_of_session",
]

# Imports point down: a session cannot know who explains it.
Session.explainer = why_of_session
