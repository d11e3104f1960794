"""Which ways the messages of a stream take, and when, while those who send and read it change brokers.

A mover that comes to another broker asks to be sent to there. What is sent to its old broker until that is
known is sent on from there, to wherever the mover went, and on again if it has moved on. A task that moves
is asked for at another broker; what was sent to its old one is still worked on there. As long as such news
may be on their way, both ways count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from whimbrel.plan.timeline import BrokerInterval, Steps


@dataclass(frozen=True, slots=True)
class MessagePath:
    """A way that messages may take which are sent between two times: from a broker to others, in order."""

    start_s: float
    end_s: float
    places: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Participant:
    """Who sends or reads a stream: where it is when."""

    stays: tuple[BrokerInterval, ...]
    is_task: bool = False

    @property
    def changes(self) -> list[tuple[float, str, str]]:
        """When it changes brokers: (time, from, to)."""
        return [(a.end_s, a.broker, b.broker) for a, b in zip(self.stays, self.stays[1:], strict=False)]


def participant(steps: Steps, until_s: float, *, is_task: bool = False) -> Participant:
    """Return the stays of someone up to the end of the time; the first has no beginning, the last no end."""
    times: list[float] = []
    brokers: list[str] = []
    for number, (time, broker) in enumerate(steps):
        if not number or time <= 0:
            times, brokers = [-math.inf], [broker]
        elif time < until_s and broker != brokers[-1]:
            times.append(time)
            brokers.append(broker)
    ends = [*times[1:], math.inf]
    return Participant(tuple(map(BrokerInterval, times, ends, brokers)), is_task)


def message_paths(sender: Participant, reader: Participant, slack_s: float) -> list[MessagePath]:
    """Return the ways from one to the other.

    Parameters
    ----------
    slack_s
        How long after a change messages may still be sent or under way as they were before. What is sent on
        may be so for as long again.
    """
    paths = []
    for one in _widened(sender, slack_s):
        for number, other in enumerate(_widened(reader, slack_s)):
            start, end = max(one.start_s, other.start_s), min(one.end_s, other.end_s)
            if start <= end:
                paths.append(MessagePath(start, end, (one.broker, other.broker)))
            if reader.is_task or math.isinf(other.end_s):
                continue
            start = max(one.start_s, other.start_s, other.end_s - slack_s)
            end = min(one.end_s, other.end_s + slack_s)
            if start <= end:
                after = forwarded_to(reader, number, end + slack_s)
                paths.append(MessagePath(start, end, (one.broker, other.broker, *after)))
    return paths


def _widened(participant: Participant, slack_s: float) -> Iterable[BrokerInterval]:
    """Return the stays; those of a task begin and end when its move does, which is not known exactly."""
    if not participant.is_task:
        return participant.stays
    return [
        BrokerInterval(stay.start_s - slack_s, stay.end_s + slack_s, stay.broker)
        for stay in participant.stays
    ]


def forwarded_to(participant: Participant, number: int, until_s: float) -> tuple[str, ...]:
    """Return the brokers that a message is sent on to when it comes too late for someone, one by one."""
    return tuple(
        after.broker
        for before, after in zip(participant.stays[number:], participant.stays[number + 1 :], strict=False)
        if before.end_s <= until_s
    )
