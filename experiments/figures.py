"""What came of a simulation as figures: totals, and how delays are spread."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from whimbrel.sim.outcome import Floats, Outcome
from whimbrel.sim.traffic import Traffic


def figures(outcome: Outcome) -> dict[str, Any]:
    """Return the figures as plain data."""
    delays = np.concatenate([np.zeros(0), *outcome.delays_s.values()])
    downs = [move.down_s for move in outcome.moves if move.down_s is not None]
    found: dict[str, Any] = {
        "seconds": outcome.seconds,
        "steps": outcome.steps,
        "detections": sum(table.num_rows for table in outcome.detections.values()),
        "late": outcome.late,
        "rejected": outcome.rejected,
        "delay_s": _spread(delays),
        "moves": len(outcome.moves),
        "unfinished_moves": sum(move.started_s is None for move in outcome.moves),
        "down_s": _spread(np.array(downs, np.float64)),
        "state_b": sum(move.state_b + move.fixed_b for move in outcome.moves),
        **traffic_figures(outcome.traffic),
    }
    return found | dict(outcome.notes)


def traffic_figures(traffic: Traffic) -> dict[str, Any]:
    """Return the totals as plain data."""
    whole = traffic.whole
    return {
        "bytes": whole.bytes,
        "messages": whole.messages,
        "cost": whole.cost,
        "bdp": whole.bdp,
        "held": whole.held,
        "repeated": whole.repeated,
        "sent": traffic.sent,
        "arrived": traffic.arrived,
        "on_their_way": traffic.on_their_way,
        "dropped": dict(Counter(drop.reason for drop in traffic.drops for _ in drop.message.contents)),
        "bytes_by_kind": {kind: used.bytes for kind, used in sorted(traffic.by_kind.items())},
        "bdp_by_kind": {kind: used.bdp for kind, used in sorted(traffic.by_kind.items())},
    }


def _spread(values: Floats) -> dict[str, float | None]:
    if not len(values):
        return {"mean": None, "median": None, "p95": None, "largest": None}
    return {
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "p95": float(np.quantile(values, 0.95)),
        "largest": float(values.max()),
    }
