"""Lower `around` statements: mobile queries, and the objects, interests and policies that they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from whimbrel.errors import DataError, QueryError, Span, UnknownNameError
from whimbrel.graph.expressions import Expr, conjunction
from whimbrel.graph.mobile import (
    BoxInterest,
    CircleInterest,
    CorridorInterest,
    FocalObjects,
    FunctionInterest,
    Interest,
    ListedObject,
    MobilePolicy,
    MobileQuery,
    OutlineInterest,
    Prediction,
    Quality,
    Refresh,
    RefreshAlways,
    RefreshEvery,
    RefreshWhenMoved,
    RefreshWhenQualityFalls,
    SectorInterest,
)
from whimbrel.graph.mobile.interests import Sample
from whimbrel.graph.mobile.policy import CandidateChoice, Completeness, Deliver, Order, Reuse
from whimbrel.graph.mobile.refusals import MobileQueryError
from whimbrel.graph.mobile.traps import traps
from whimbrel.graph.operators import ANY
from whimbrel.graph.query import Query
from whimbrel.lang.wbl import tree as t
from whimbrel.lang.wbl.pattern import Occurring, PartName, Scope, TypeInfo
from whimbrel.lang.wbl.regions import outline_corners
from whimbrel.lang.wbl.resolve import QueryScope, VisibleNames
from whimbrel.lang.wbl.sequences import about_event
from whimbrel.lang.wbl.values import quantity
from whimbrel.model.schema import BUILT_IN_ATTRIBUTES, Type

Made = TypeVar("Made")
_SOURCES = ("source", "srcid")


def mobile_name(statement: t.MobileNode) -> str:
    """Name a mobile query: as it says, or after the type of what it follows."""
    return statement.alias or statement.focal.type


@dataclass(frozen=True, slots=True)
class MobileLowering:
    """Make the mobile query of one `around` statement."""

    statement: t.MobileNode
    scope: QueryScope
    info: TypeInfo
    """What is known of the type of the location updates."""
    folder: Path
    detect_of: Callable[[Sequence[str]], Query]
    """Gives the plain query that reports some definitions."""

    def lower(self) -> MobileQuery:
        """Give the mobile query; warnings go to the scope."""
        said = self.statement
        try:
            query = MobileQuery(
                self.detect_of([name.name for name in said.report]),
                self._focal(),
                self._interest(said.interest),
                self._lifetime(said.lifetime),
                self._policy(),
                name=mobile_name(said),
                of_situations=said.interest.of_situations,
                motion_within=said.motion_within is not None,
                excluding_itself=said.excluding_itself is not None,
                silent=None if said.silent is None else self.scope.params.duration(said.silent),
            )
        except QueryError as error:
            clause = error.clause if isinstance(error, MobileQueryError) else "report"
            error.at = error.at or self._place_of(clause)
            raise
        where = f"{said.at}: " if said.at else ""
        self.scope.warnings.extend(f"{where}{warning}" for warning in traps(query))
        return query

    def _place_of(self, clause: str) -> Span | None:
        said = self.statement
        nodes: Mapping[str, t.WblNode | None] = {
            "report": said.report[0],
            "interest": said.interest,
            "lifetime": said.lifetime,
            "refresh": said.refresh,
            "quality": said.quality,
            "order": said.order,
            "completeness": said.completeness,
            "predict": said.prediction,
            "listed in": said.listed,
            "excluding itself": said.excluding_itself,
        }
        node = nodes.get(clause)
        return said.at if node is None else node.at

    # Whom it follows

    def _focal(self) -> FocalObjects:
        focal = self.statement.focal
        if isinstance(focal, t.TimePoint) or focal.type == ANY:
            what = (
                "a time point is nowhere" if isinstance(focal, t.TimePoint) else "any event may be of anybody"
            )
            raise QueryError(what, focal.at, "write the type of the location updates of what is followed")
        key = self._key()
        listed = None if self.statement.listed is None else self._listed(self.statement.listed, key)
        return FocalObjects(focal.type, key, None, self._condition(), listed)

    def _key(self) -> str:
        keys = self.statement.group_by
        if not keys:
            return "source"
        first = keys[0]
        if len(keys) > 1 or first.size is not None:
            wrong = keys[1] if len(keys) > 1 else first
            raise QueryError(
                "one attribute tells the objects apart that a query follows",
                wrong.at,
                "write for example 'group by vehicle'",
            )
        if first.name in _SOURCES:
            return "source"
        self._check_attribute(first.name, first.at)
        return first.name

    def _check_attribute(self, name: str, at: Span | None) -> None:
        info = self.info
        if not info.is_open and name not in info.attributes:
            raise UnknownNameError(f"attribute of {info.name}", name, info.attributes, at)
        if info.is_open and name in BUILT_IN_ATTRIBUTES:
            raise QueryError(
                f"{name!r} is what every event has, and tells no objects apart", at, "name another"
            )

    def _condition(self) -> Expr | None:
        focal = self.statement.focal
        name = self.statement.alias or focal.type
        leaf = Occurring(focal, name, self.info, Scope())
        names = VisibleNames(
            self.scope, {name: PartName(name, self.info, Scope(), [leaf], focal.at)}, {}, own=leaf
        )
        conditions = [about_event(names.condition(written), name) for written in focal.conditions]
        return conjunction(tuple(conditions))

    def _listed(self, file: t.Constant, key: str) -> tuple[ListedObject, ...]:
        kind = Type.STRING if key == "source" else self.info.attributes.get(key)
        from whimbrel.lang.listed import listed_file

        try:
            return listed_file(self.folder / str(file.value), kind)
        except DataError as error:
            hint = "tables are looked up beside the query file" if self.folder != Path() else None
            raise QueryError(str(error), file.at, hint or "mend the table, or name another one") from error

    # Where and since when

    def _interest(self, said: t.InterestNode) -> Interest:
        return _placed(lambda: self._region(said), said.at)

    def _region(self, said: t.InterestNode) -> Interest:
        lengths = [self.scope.params.length(amount) for amount in said.amounts]
        match said.word:
            case "box":
                return BoxInterest(*lengths)
            case "ahead":
                return SectorInterest(lengths[0], float(said.degrees or 0))
            case "along":
                return CorridorInterest(self._route(cast("t.Dotted", said.route)), lengths[0])
            case "outline":
                return OutlineInterest(outline_corners(str(said.outline), said.at))
            case "shaped by":
                return self._shaped(str(said.function), said.at)
        return CircleInterest(lengths[0])

    def _route(self, route: t.Dotted) -> str:
        name = mobile_name(self.statement)
        if route.part != name:
            raise UnknownNameError("object that is followed", route.part, [name], route.at)
        self._check_attribute(route.name, route.at)
        kind = self.info.attributes.get(route.name)
        if kind not in (None, Type.STRING):
            raise QueryError(
                f"a route is a line in WKT, and {route.name!r} is no text", route.at, "name another attribute"
            )
        return route.name

    def _shaped(self, name: str, at: Span | None) -> FunctionInterest:
        functions = self.scope.functions
        if name not in functions:
            error = UnknownNameError("function", name, functions, at)
            if not (error.hint or "").startswith("did you"):
                error.hint = "write it in Python with @whimbrel.function: compile(..., functions=[...])"
            raise error
        if functions[name].vectorised or functions[name].aggregate:
            raise QueryError(
                f"{name!r} takes columns of values, and an interest is made of location updates",
                at,
                "leave out vectorised and aggregate where it is made a function",
            )
        made = cast("Callable[[Sequence[Sample]], object]", functions[name].call)
        return FunctionInterest(name, made)

    def _lifetime(self, amount: t.Amount | None) -> int:
        if amount is None or (isinstance(amount, t.QuantityNode) and quantity(amount).value == 0):
            return 0
        return self.scope.params.duration(amount)

    # The policy

    def _policy(self) -> MobilePolicy:
        said = self.statement
        grid = None if said.completeness is None else said.completeness.grid
        return MobilePolicy(
            self._refresh(said.refresh),
            self._quality(said.quality),
            cast("Order", said.order.name if said.order else "spatial"),
            cast("Completeness", said.completeness.word if said.completeness else "weak"),
            None if grid is None else self.scope.params.length(grid),
            self._prediction(said.prediction),
            cast("Reuse", said.reuse.name if said.reuse else "exact"),
            cast("Deliver", said.deliver.name if said.deliver else "all"),
        )

    def _refresh(self, said: t.RefreshNode | None) -> Refresh:
        if said is None or said.amount is None:
            return RefreshAlways()
        if said.word == "when moved":
            return RefreshWhenMoved(self.scope.params.length(said.amount))
        length = self.scope.params.duration(said.amount)
        return RefreshEvery(length) if said.word == "every" else RefreshWhenQualityFalls(length)

    def _quality(self, said: t.QualityNode | None) -> Quality:
        if said is None:
            return Quality()
        return _placed(lambda: Quality(float(said.precision), float(said.recall)), said.at)

    def _prediction(self, said: t.PredictionNode | None) -> Prediction | None:
        if said is None:
            return None
        by = cast("CandidateChoice", said.by or "location")
        return _placed(
            lambda: Prediction(said.steps, 1 if said.candidates is None else said.candidates, by), said.at
        )


def _placed(make: Callable[[], Made], at: Span | None) -> Made:
    """Make something; what it refuses stands at that place."""
    try:
        return make()
    except QueryError as error:
        error.at = error.at or at
        raise
