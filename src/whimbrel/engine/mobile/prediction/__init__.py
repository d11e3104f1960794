"""Prediction for mobile queries: runs that are prepared for places where focal objects may come to.

Everything follows from event time and from what is given; nothing looks at a clock or draws by chance. With
each location update `PreparedSteps.update` says for which of the switches that `expected_switches` tells runs
are to be prepared, and at which places; `choose_candidates` which of these places are worth a run;
`ProcessingTimes` when it has to begin; and `taking_over`, at the switch, which of the runs takes over, if any
does.
"""

from __future__ import annotations

from whimbrel.engine.mobile.prediction.along_route import AlongRoute
from whimbrel.engine.mobile.prediction.candidates import AreaEvents, choose_candidates
from whimbrel.engine.mobile.prediction.counted_runs import CountedRuns
from whimbrel.engine.mobile.prediction.dead_reckoning import DeadReckoning
from whimbrel.engine.mobile.prediction.learned_places import LearnedPlaces
from whimbrel.engine.mobile.prediction.places import (
    LastSamples,
    PlacePredictor,
    PredictedPlaces,
    SampleMemory,
)
from whimbrel.engine.mobile.prediction.prepared_steps import PreparedInterests, PreparedSteps, Renewal
from whimbrel.engine.mobile.prediction.processing_time import ProcessingTimes
from whimbrel.engine.mobile.prediction.registry import names, predictor, register
from whimbrel.engine.mobile.prediction.rhythm import LastSwitches, expected_switches
from whimbrel.engine.mobile.prediction.taking_over import NONE, PreparedAreas, may_take_over, taking_over

__all__ = [
    "NONE",
    "AlongRoute",
    "AreaEvents",
    "CountedRuns",
    "DeadReckoning",
    "LastSamples",
    "LastSwitches",
    "LearnedPlaces",
    "PlacePredictor",
    "PredictedPlaces",
    "PreparedAreas",
    "PreparedInterests",
    "PreparedSteps",
    "ProcessingTimes",
    "Renewal",
    "SampleMemory",
    "choose_candidates",
    "expected_switches",
    "may_take_over",
    "names",
    "predictor",
    "register",
    "taking_over",
]
