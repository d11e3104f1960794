"""Plan where operators are when, and when their state must move: MigCEP.

B. Ottenwälder, B. Koldehofe, K. Rothermel, U. Ramachandran: MigCEP: Operator Migration for Mobility Driven
Distributed Complex Event Processing, DEBS 2013; and chapter 4 of B. Ottenwälder's thesis on mobile CEP.
"""

from whimbrel.plan.migration.attachments import attach, attached
from whimbrel.plan.migration.baselines import follow_greedily, stay
from whimbrel.plan.migration.coordination import Coordination, coordinate
from whimbrel.plan.migration.horizon import Horizon
from whimbrel.plan.migration.joint import plan_jointly
from whimbrel.plan.migration.latency import split_latency
from whimbrel.plan.migration.learned_mobility import LearnedMoves
from whimbrel.plan.migration.local_search import plan_migrations
from whimbrel.plan.migration.plan import NOWHERE, MigrationPlan, Move
from whimbrel.plan.migration.prediction import dead_reckoning, navigation
from whimbrel.plan.migration.problem import MigrationProblem, MigrationScore
from whimbrel.plan.migration.radius import brokers_within
from whimbrel.plan.migration.schedule import Action, ActionKind, schedule
from whimbrel.plan.migration.time_graph import TimeGraph
from whimbrel.plan.migration.uncertain import UncertainPlan

__all__ = [
    "NOWHERE",
    "Action",
    "ActionKind",
    "Coordination",
    "Horizon",
    "LearnedMoves",
    "MigrationPlan",
    "MigrationProblem",
    "MigrationScore",
    "Move",
    "TimeGraph",
    "UncertainPlan",
    "attach",
    "attached",
    "brokers_within",
    "coordinate",
    "dead_reckoning",
    "follow_greedily",
    "navigation",
    "plan_jointly",
    "plan_migrations",
    "schedule",
    "split_latency",
    "stay",
]
