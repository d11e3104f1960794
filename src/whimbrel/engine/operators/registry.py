"""Which class runs each kind of operator of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whimbrel.engine.operators.aggregate import AggregateOperator
from whimbrel.engine.operators.base import OperatorSetup, RunningOperator
from whimbrel.engine.operators.change import ChangeOperator
from whimbrel.engine.operators.custom.runtime import CustomRuntime
from whimbrel.engine.operators.derive import DeriveOperator
from whimbrel.engine.operators.encounter import EncounterOperator
from whimbrel.engine.operators.filter import FilterOperator
from whimbrel.engine.operators.join_pattern import JoinPatternOperator
from whimbrel.engine.operators.merge import MergeOperator
from whimbrel.engine.operators.motion import MotionOperator
from whimbrel.engine.operators.repeat import RepeatOperator
from whimbrel.engine.operators.step_pattern import StepPatternOperator, TimeoutOperator
from whimbrel.errors import QueryError
from whimbrel.graph.operators import Aggregate, Custom, Derive, Filter, JoinPattern, Merge, Operator, Repeat
from whimbrel.graph.operators.change import Change
from whimbrel.graph.operators.encounter import Encounter
from whimbrel.graph.operators.motion import Motion
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut

Kinds = Mapping[type[Operator], type[RunningOperator[Any]]]
"""The class that runs each kind of operator."""

KINDS: Kinds = {
    Aggregate: AggregateOperator,
    Change: ChangeOperator,
    Custom: CustomRuntime,
    Derive: DeriveOperator,
    Encounter: EncounterOperator,
    Filter: FilterOperator,
    JoinPattern: JoinPatternOperator,
    Merge: MergeOperator,
    Motion: MotionOperator,
    Repeat: RepeatOperator,
    StepPattern: StepPatternOperator,
    TimedOut: TimeoutOperator,
}


def start(op: Operator, setup: OperatorSetup, kinds: Kinds = KINDS) -> RunningOperator[Any]:
    """Build what runs an operator.

    Raises
    ------
    QueryError
        If no class runs operators of its kind.
    """
    if type(op) not in kinds:
        raise QueryError(f"the embedded engine cannot run {type(op).__name__} ({op.name!r})")
    return kinds[type(op)].started(op, setup)


def looks_back(op: Operator) -> bool:
    """Tell whether an operator reads rows of its inputs later than in the step that brings them."""
    return type(op) not in KINDS or KINDS[type(op)].looks_back


def is_worth_sharing(op: Operator) -> bool:
    """Tell whether queries that have an operator in common gain by running it once."""
    return type(op) in KINDS and KINDS[type(op)].is_worth_sharing
