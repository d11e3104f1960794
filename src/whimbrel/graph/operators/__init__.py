"""The operators of the graph, one file for each kind: frozen data, a name each, inputs by name.

Every operator makes one stream, named as the operator is. Streams of `Source`, `Filter` and
`Derive` carry events with attributes of their own. Streams of `Merge`, `Repeat` and `JoinPattern` carry
composite events whose attributes are read through the names of their parts (`a.speed`); `Derive`
turns a composite into an event of a named type.
"""

from whimbrel.graph.operators.aggregate import Aggregate, AggregateInput
from whimbrel.graph.operators.base import ANY, Graph, Operator
from whimbrel.graph.operators.custom import Custom
from whimbrel.graph.operators.derive import Derive, DeriveCase
from whimbrel.graph.operators.encounter import Encounter, Meeting
from whimbrel.graph.operators.filter import Filter
from whimbrel.graph.operators.join_pattern import Absent, JoinPattern, PatternPart, TimeOrder
from whimbrel.graph.operators.merge import Branch, Merge
from whimbrel.graph.operators.motion import MOTION, Motion, NamedRegion, Settling, Verb
from whimbrel.graph.operators.repeat import Repeat
from whimbrel.graph.operators.source import Source, TimePoints, clock
from whimbrel.graph.operators.step_pattern import StepPattern, TimedOut

__all__ = [
    "ANY",
    "MOTION",
    "Absent",
    "Aggregate",
    "AggregateInput",
    "Branch",
    "Custom",
    "Derive",
    "DeriveCase",
    "Encounter",
    "Filter",
    "Graph",
    "JoinPattern",
    "Meeting",
    "Merge",
    "Motion",
    "NamedRegion",
    "Operator",
    "PatternPart",
    "Repeat",
    "Settling",
    "Source",
    "StepPattern",
    "TimeOrder",
    "TimePoints",
    "TimedOut",
    "Verb",
    "clock",
]
