"""Random motions, and samples on a small lattice that often lie on the borders of regions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import strategies as st

from whimbrel.graph.expressions import GROUP, Attribute, Binary, Call, Literal
from whimbrel.graph.operators import (
    Derive,
    DeriveCase,
    Filter,
    Graph,
    JoinPattern,
    Operator,
    PatternPart,
    Source,
    TimeOrder,
)
from whimbrel.graph.operators.encounter import Encounter, Meeting
from whimbrel.graph.operators.motion import AT_ONCE, MOTION, Motion, NamedRegion, Settling, Verb
from whimbrel.graph.policies import WHOLE, Assign, Key, Partitioning
from whimbrel.model.schema import Type
from whimbrel.model.time import END_OF_TIME, SECOND

from .data import Event

_REGIONS = (
    NamedRegion("Box", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"),
    NamedRegion("Slope", "POLYGON ((3 3, 7 3, 3 7, 3 3))"),
    NamedRegion(None, "POLYGON ((-2 1, 6 1, 6 2, -1 2, -1 5, -2 5, -2 1))"),
    NamedRegion("Round", "CIRCLE (1.0 2.0 2.0)"),
    NamedRegion("Large", "CIRCLE (8.0 8.0 5.0)"),
    NamedRegion("Far", "POLYGON ((6 -2, 8 0, 6 2, 4 0, 6 -2))"),
)
_BY_SOURCE = Partitioning((Key("source", "source"),))
_BY_K = Partitioning((Key("attribute", "k"),))
_SETTLINGS = (AT_ONCE, Settling(events=2), Settling(events=3), Settling(duration=SECOND))
_LENGTHS = (1.0, 2.0, 3.0)
_MEASURED = (Verb.COMES_WITHIN, Verb.STAYS_BEYOND, Verb.STOPS)
_SIDES = (Verb.ENTERS, Verb.LEAVES, Verb.CROSSES, Verb.REACHES, Verb.COMES_WITHIN)


@st.composite
def motions(draw: st.DrawFn) -> Motion:
    """Draw a motion that the language could say, over the stream `T`."""
    verb = draw(st.sampled_from(tuple(Verb)))
    alone = verb in (Verb.STOPS, Verb.IS_SILENT)
    regions = (
        () if alone else tuple(draw(st.lists(st.sampled_from(_REGIONS), min_size=1, max_size=4, unique=True)))
    )
    between = verb in (Verb.ENTERS, Verb.LEAVES, Verb.CROSSES) and draw(st.booleans())
    settling = AT_ONCE
    if verb in _SIDES and not between:
        settling = draw(st.sampled_from(_SETTLINGS))
    accurate = not alone and verb is not Verb.APPROACHES and not between
    takes_margin = not alone and (verb is not Verb.REACHES)
    margin = draw(st.sampled_from((0.0, *_LENGTHS))) if takes_margin else 0.0
    return Motion(
        "D.motion",
        "T",
        "t",
        verb,
        draw(st.sampled_from((100, 5, 2))) * SECOND,
        regions,
        near_m=draw(st.sampled_from(_LENGTHS)) if verb in _MEASURED else 0.0,
        margin_m=draw(st.sampled_from(_LENGTHS)) if verb is Verb.REACHES else margin,
        duration=draw(st.integers(1, 4)) * SECOND if verb.waits else 0,
        by_m=draw(st.sampled_from(_LENGTHS)) if verb is Verb.APPROACHES else 0.0,
        settling=settling,
        accuracy=draw(st.sampled_from((None, "w"))) if accurate else None,
        between=between,
        partitioning=draw(st.sampled_from((_BY_SOURCE, _BY_K, WHOLE))),
    )


@st.composite
def motion_graphs(draw: st.DrawFn) -> Graph:
    """Draw a motion, perhaps of selected events, and perhaps with a pattern made of what it finds."""
    motion = draw(motions())
    operators: list[Operator] = [Source("T", "T")]
    if draw(st.booleans()):
        operators.append(Filter("T[v > 0]", "T", Binary(">", Attribute(None, "v"), Literal(0, Type.INT))))
        motion = replace(motion, input="T[v > 0]")
    operators.append(motion)
    stream = motion.name
    if draw(st.booleans()):
        condition = Binary(">", Attribute("t", "v"), Literal(1, Type.INT))
        stream = "D.match"
        parts = (PatternPart(motion.name, None),)
        operators.append(
            JoinPattern(stream, parts, END_OF_TIME, conditions=(condition,), partitioning=motion.partitioning)
        )
    operators.append(Derive("D", "D", (DeriveCase(stream, None, _assigned(motion), motion.partitioning),)))
    if not draw(st.booleans()):
        return Graph(tuple(operators), ("D",))
    pair = JoinPattern(
        "P.match", (PatternPart("D", "a"), PatternPart("D", "b")), 3 * SECOND, (TimeOrder(0, 1),)
    )
    values = (Assign("v", Attribute("b", "v")), Assign("region", Attribute("a", "region")))
    operators += [pair, Derive("P", "P", (DeriveCase(pair.name, None, values),))]
    return Graph(tuple(operators), ("D", "P"))


def _assigned(motion: Motion) -> tuple[Assign, ...]:
    found = [Assign("v", Attribute("t", "v")), Assign("when", Attribute("t", "end"))]
    found += [Assign(key.name, Attribute(GROUP, key.name)) for key in motion.partitioning.keys]
    for name, kind in motion.verb.attributes.items():
        value = Attribute(MOTION, name)
        # Sums of products come out alike but for the last digits.
        rounded = Call("round", (Binary("*", value, Literal(1e6, Type.FLOAT)),))
        found.append(Assign(name, rounded if kind is Type.FLOAT else value))
    return tuple(found)


@st.composite
def encounter_graphs(draw: st.DrawFn) -> Graph:
    """Draw what two movers do, of one stream or of two that may share events."""
    verb = draw(st.sampled_from(tuple(Meeting)))
    operators: list[Operator] = [Source("T", "T")]
    other = draw(st.sampled_from(("T", "T[v > 1]", "U")))
    if other == "T[v > 1]":
        operators.append(Filter(other, "T", Binary(">", Attribute(None, "v"), Literal(1, Type.INT))))
    elif other == "U":
        operators.append(Source("U", "U"))
    keys = draw(st.sampled_from((_BY_SOURCE, _BY_K, Partitioning((*_BY_SOURCE.keys, *_BY_K.keys))))).keys
    changes = not verb.waits and verb is not Meeting.APPROACHES
    between = changes and draw(st.booleans())
    exact = between or verb is Meeting.APPROACHES
    made = Encounter(
        "D.encounter",
        "T",
        "a",
        other,
        "b",
        verb,
        0.0 if verb.reads_shapes else draw(st.sampled_from((1.0, 3.0))),
        draw(st.sampled_from((100, 4, 1))) * SECOND,
        keys,
        draw(st.sampled_from((0.0, 2.0))),
        draw(st.integers(1, 4)) * SECOND if verb.waits else 0,
        draw(st.sampled_from((1.0, 2.0))) if verb is Meeting.APPROACHES else 0.0,
        draw(st.sampled_from(_SETTLINGS)) if changes and not between else AT_ONCE,
        None if exact else draw(st.sampled_from((None, "w"))),
        between,
    )
    rounded = Call("round", (Binary("*", Attribute(MOTION, "distance"), Literal(1e6, Type.FLOAT)),))
    values = [Assign(f"{part}{name}", Attribute(part, name)) for part in "ab" for name in ("v", "id", "end")]
    values.append(Assign("d", rounded))
    values += [Assign("since", Attribute(MOTION, "since"))] if "since" in verb.attributes else []
    stream = made.name
    operators.append(made)
    if draw(st.booleans()):
        condition = Binary(">", Attribute("a", "v"), Literal(1, Type.INT))
        operators.append(
            JoinPattern("D.match", (PatternPart(stream, None),), END_OF_TIME, conditions=(condition,))
        )
        stream = "D.match"
    operators.append(Derive("D", "D", (DeriveCase(stream, None, tuple(values)),)))
    return Graph(tuple(operators), ("D",))


_SAMPLE = st.tuples(
    st.integers(0, 12),
    st.sampled_from(("s", "s", "s", "s", "t", None)),
    st.sampled_from(("x", "x", "x", "y", None)),
    st.sampled_from((*product((-9, -3, 1, 3, 4, 5, 12), (-8, 1, 2, 5)), None)),
    st.sampled_from((3, 2, 2, 2, 1, 0, None)),
    st.sampled_from((None, 0.0, 0.0, 1.0, 2.0, -1.0)),
)


_AREAS = (((-1, -1), (1, -1), (1, 1), (-1, 1)), ((-2, -1), (4, -1), (-2, 2)))
_MOVERS = (("s", "x"), ("s", "x"), ("t", "y"), ("t", "y"), ("t", "x"), (None, "y"), ("u", None))
_STEP = st.tuples(
    st.sampled_from((0, 1, 1, 2)),
    st.sampled_from(_MOVERS),
    st.sampled_from(("T", "T", "T", "U")),
    st.sampled_from((*product((0, 1, 2, 4, 7), (0, 0, 1)), None)),
    st.sampled_from((None, None, None, *_AREAS)),
    st.sampled_from((3, 2, 2, 2, 1, None)),
    st.sampled_from((None, 0.0, 0.0, 0.0, 1.0, -1.0)),
)


@st.composite
def crowds(draw: st.DrawFn, max_size: int = 16) -> list[Event]:
    """Draw samples of movers that often come close to each other, perhaps in a wind that takes all along.

    Some are areas around their places.
    """
    found: list[Event] = []
    second, wind = 0, draw(st.sampled_from((0, 0, 2)))
    for number, drawn in enumerate(draw(st.lists(_STEP, min_size=4, max_size=max_size))):
        later, (source, k), kind, lattice, area, v, w = drawn
        second += later
        place = lattice
        if lattice is not None and wind:
            place = lattice[0] % 2 + wind * second, lattice[1]
        time = second * SECOND
        made = Event(f"e{number}", kind, time, time, source, attributes={"v": v, "w": w, "k": k})
        if place is not None and area is not None:
            corners = tuple((float(place[0] + dx), float(place[1] + dy)) for dx, dy in area)
            made = replace(made, polygon=corners)
        elif place is not None:
            made = replace(made, x=float(place[0]), y=float(place[1]))
        found.append(made)
    return found


@st.composite
def sample_lists(draw: st.DrawFn, max_size: int = 14) -> list[Event]:
    """Draw samples of a few movers, in no order of time, some without a place."""
    perhaps = st.one_of(st.none(), *(_SAMPLE for _ in range(5)))
    drawn = [draw(perhaps) for _ in range(max_size)]
    return [
        Event(
            id=f"e{number}",
            type="T",
            start=chosen[0] * SECOND,
            end=chosen[0] * SECOND,
            source=chosen[1],
            x=None if chosen[3] is None else float(chosen[3][0]),
            y=None if chosen[3] is None else float(chosen[3][1]),
            attributes={"v": chosen[4], "w": chosen[5], "k": chosen[2]},
        )
        for number, chosen in enumerate(drawn)
        if chosen is not None
    ]
