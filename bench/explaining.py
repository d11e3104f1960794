"""Measure what explaining costs: nothing unless asked, and how much if asked."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import pyarrow as pa
from loops import LOOP
from measuring import median
from workloads import SEQUENCE, dense_events

import whimbrel as wb

EVENTS = 100_000
KEY = "veh-7"
QUERIES = (("A then B then C", SEQUENCE), ("A followed by B+ followed by C", LOOP))


def explaining(options: argparse.Namespace) -> Iterator[str]:
    """Measure (i): detecting before anything was explained and afterwards, and explaining one object."""
    events = dense_events(EVENTS)
    queries = [wb.compile(text) for _, text in QUERIES]
    before = [detecting(query, events, options.repeat) for query in queries]
    if "whimbrel.whynot" in sys.modules:
        raise RuntimeError("detecting has loaded what explains; it should do so only if it is asked")
    for (what, _), query, unasked in zip(QUERIES, queries, before, strict=True):
        spent = median(lambda query=query: wb.why(query, events, key=KEY), options.repeat)
        asked = detecting(query, events, options.repeat)
        line = f"(i) {what}, {EVENTS:,} events"
        cost = f"{unasked * 1e3:,.0f} ms; {asked * 1e3:,.0f} ms after wb.why"
        yield f"| {line}: detecting, without explaining | {cost} | {asked / unasked:.2f} x as before |"
        cost = f"{spent * 1e3:,.0f} ms for one object of 5,000"
        yield f"| {line}: wb.why | {cost} | {spent / unasked:.1f} x the time of detecting |"


def detecting(query: wb.Query, events: pa.Table, repeat: int) -> float:
    """Give the median time of detecting, once everything is loaded and compiled."""
    wb.detect(query, events)
    return median(lambda: wb.detect(query, events), repeat)
