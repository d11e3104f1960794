"""Random trees of the language, for properties."""

from __future__ import annotations

from hypothesis import strategies as st

from whimbrel.graph.expressions import RELATIONS
from whimbrel.lang.wbl import tree as t
from whimbrel.model.time import time_point

NAMES = ("a", "b", "speed", "lane", "Position", "Stop", "location", "first", "from", "min", "über", "x1")
TYPES = ("Position", "Stop", "Boat", "b", "when", "über")

names = st.sampled_from(NAMES)
types = st.sampled_from(TYPES)
floats = st.floats(min_value=0, allow_nan=False, allow_infinity=False)
wholes = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
time_units = st.sampled_from(["us", "ms", "s", "min", "h", "d", "w"])
length_units = st.sampled_from(["m", "km", "mi", "nmi"])
times = (
    st.lists(st.tuples(wholes | floats, time_units), min_size=1, max_size=3).map(tuple).map(t.QuantityNode)
)
lengths = st.tuples(wholes | floats, length_units).map(lambda pair: t.QuantityNode((pair,)))
amounts = times | st.builds(t.NamedAmount, names, st.none() | time_units)

constants = st.one_of(st.none(), st.booleans(), wholes, floats, texts).map(t.Constant)
shapes = st.one_of(
    names.map(lambda name: t.ShapeNode(name=name)),
    texts.map(lambda text: t.ShapeNode(text=text)),
    st.lists(constants, max_size=3).map(lambda items: t.ShapeNode(function="circle", arguments=tuple(items))),
)
atoms = st.one_of(
    constants,
    times,
    lengths,
    st.just(t.InstantNode("2024-05-01T12:00:00Z")),
    names.map(t.Name),
    st.builds(t.Dotted, names, st.sampled_from([*NAMES, "where", "null", "not"])),
)


def _larger(inner: st.SearchStrategy) -> st.SearchStrategy:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    flags = st.booleans()
    return st.one_of(
        st.builds(t.Not, inner),
        st.builds(t.Negative, inner),
        st.builds(t.Logic, st.sampled_from(["and", "or"]), several),
        st.builds(t.Infix, st.sampled_from(list("+-*/%")), inner, inner),
        several.flatmap(_compare),
        st.builds(t.Among, inner, some, flags),
        st.builds(t.BetweenNode, inner, inner, inner, flags),
        st.builds(t.IsNullNode, inner, flags),
        st.builds(t.InRegionNode, inner, shapes, flags),
        st.builds(t.Relation, inner, st.sampled_from(sorted(RELATIONS)), inner),
        st.builds(
            t.Apply,
            st.sampled_from(["count", "min", "contains", "knots"]),
            st.lists(inner, max_size=2).map(tuple),
        ),
    )


def _compare(operands: tuple) -> st.SearchStrategy:
    signs = st.lists(
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        min_size=len(operands) - 1,
        max_size=len(operands) - 1,
    )
    return signs.map(lambda chosen: t.Compare(operands, tuple(chosen)))


expressions = st.recursive(atoms, _larger, max_leaves=8)
time_points = st.integers(-(10**15), 10**15).map(time_point).map(t.TimePoint)
occurrences = st.one_of(
    st.builds(t.Occurrence, types, st.lists(expressions, max_size=2).map(tuple)),
    st.builds(t.Occurrence, types, st.lists(expressions, max_size=2).map(tuple)),
    time_points,
)
repetitions = st.tuples(st.integers(1, 4), st.none() | st.integers(4, 9)).map(lambda pair: t.TimesNode(*pair))
gaps = st.lists(st.builds(t.Gap, amounts, names), max_size=2).map(tuple)


@st.composite
def parts(draw, inner: st.SearchStrategy, *, plain: bool = False):
    """One part; with parentheses only where they say something."""
    what = draw(occurrences if plain else occurrences | inner)
    if draw(st.booleans()):
        lasting = draw(st.none() | amounts)
        return t.PatternPartNode(what, negated=True, alias=draw(st.none() | names), lasting=lasting)
    repeated = draw(st.none() | repetitions)
    return t.PatternPartNode(
        what,
        outer=draw(st.booleans()),
        select=draw(st.none() | st.sampled_from(["each", "first", "last"])),
        times=repeated,
        until=draw(st.none() | occurrences) if repeated else None,
        alias=draw(st.none() | names),
        gaps=draw(gaps),
    )


@st.composite
def patterns(draw, depth: int = 2):
    """A pattern; inner ones have several parts, as single ones need no parentheses."""
    inner = patterns(depth - 1).filter(lambda pattern: pattern.connective is not None) if depth else None
    one = parts(inner, plain=inner is None) if inner is not None else parts(occurrences, plain=True)
    members = tuple(draw(st.lists(one, min_size=1, max_size=3)))
    connective = draw(st.sampled_from(["then", "and", "or"])) if len(members) > 1 else None
    only = members[0]
    if connective is None and only == t.PatternPartNode(only.what) and isinstance(only.what, t.PatternNode):
        return only.what
    return t.PatternNode(connective, members, draw(st.none() | amounts))


measures = amounts | lengths | st.integers(1, 99).map(t.Count)
details = st.one_of(
    st.builds(
        t.Detail, st.sampled_from(["for", "within", "from", "by", "beyond", "margin", "gap"]), measures
    ),
    st.builds(t.Detail, st.just("accuracy"), names.map(t.Name)),
    st.just(t.Detail("between samples")),
)
targets = st.one_of(
    texts.map(lambda text: t.TargetNode(text=text)),
    st.builds(
        t.TargetNode,
        names,
        st.none(),
        st.none() | st.lists(expressions, max_size=2).map(tuple),
        st.none() | names,
    ),
)


_MEASURED = ("comes within", "stays beyond")


@st.composite
def motions(draw):
    """How something moves, whether it makes sense or not."""
    verb = draw(
        st.sampled_from(["enters", "travels with", "stays outside", *_MEASURED, "stops", "is silent"])
    )
    near = draw(lengths) if verb in _MEASURED else None
    target = None if verb in ("stops", "is silent") else draw(targets)
    said = tuple(draw(st.lists(details, max_size=3)))
    return t.MotionNode(draw(occurrences), draw(st.none() | names), verb, target, near, said)


assignments = st.lists(st.builds(t.Assignment, names, expressions), max_size=3).map(tuple)
keys = st.lists(
    st.builds(t.GroupKey, names) | st.builds(t.GroupKey, st.just("cell"), lengths), max_size=2
).map(tuple)


@st.composite
def cases(draw, label: str | None, *, aggregate: bool = False):
    optional = st.none() | expressions
    return t.CaseNode(
        draw(patterns() if aggregate else patterns() | motions()),
        label=label,
        where=draw(optional),
        assign=draw(assignments),
        consuming=tuple(t.Consuming(name) for name in draw(st.lists(names, max_size=2))),
        group_by=draw(keys),
        context=draw(st.none() | st.sampled_from(["each", "recent", "first-matching"]).map(t.Chosen)),
        pre=draw(st.booleans()) if aggregate else False,
        post=draw(assignments) if aggregate else (),
        having=draw(optional) if aggregate else None,
    )


@st.composite
def bodies(draw, *, aggregate: bool = False):
    count = draw(st.integers(1, 2))
    labels = [None] if count == 1 and draw(st.booleans()) else [str(n) for n in range(count)]
    return tuple(draw(cases(label, aggregate=aggregate)) for label in labels)


declared = st.lists(
    st.builds(t.Declared, names, st.none() | st.sampled_from(["int", "float"])), max_size=3
).map(tuple)
COLUMNS = names | st.sampled_from(["# Timestamp", "speed over ground", "it's", "0", "a+b"])
mapped = st.lists(
    st.builds(t.Mapped, names, st.lists(COLUMNS, min_size=1, max_size=3).map(tuple)),
    max_size=3,
).map(tuple)
lengths_of_windows = amounts | st.integers(1, 99).map(t.Count) | st.just(t.NamedAmount("n", "events"))
windows = st.one_of(
    st.builds(t.WindowClause, st.none(), lengths_of_windows, st.none() | amounts),
    st.builds(t.WindowClause, lengths_of_windows, st.none() | lengths_of_windows, st.none() | amounts),
)


@st.composite
def definitions(draw):
    window = draw(st.none() | windows)
    body = draw(bodies(aggregate=window is not None))
    aggr = window is not None and draw(st.booleans())
    return t.Definition(draw(names), body, draw(st.none() | declared), aggr, window)


interests = st.one_of(
    st.builds(t.InterestNode, st.just("within"), st.tuples(lengths), of_situations=st.booleans()),
    st.builds(t.InterestNode, st.just("box"), st.tuples(lengths, lengths)),
    st.builds(t.InterestNode, st.just("outline"), outline=texts, of_situations=st.booleans()),
    st.builds(t.InterestNode, st.just("ahead"), st.tuples(lengths), wholes | floats),
    st.builds(t.InterestNode, st.just("along"), st.tuples(lengths), route=st.builds(t.Dotted, names, names)),
    st.builds(t.InterestNode, st.just("shaped by"), function=st.sampled_from(["reach", "around", "all"])),
)
refreshes = st.one_of(
    st.just(t.RefreshNode("always")),
    st.builds(t.RefreshNode, st.just("every"), amounts),
    st.builds(t.RefreshNode, st.just("when moved"), lengths),
    st.builds(t.RefreshNode, st.just("when quality falls"), amounts),
)
completenesses = st.one_of(
    st.sampled_from(["weak", "strong", "best effort"]).map(t.CompletenessNode),
    st.builds(t.CompletenessNode, st.just("strong"), lengths),
)
predictions = st.one_of(
    st.builds(t.PredictionNode, wholes),
    st.builds(t.PredictionNode, wholes, wholes, st.sampled_from(["greedy", "location", "resource"])),
)


def _chosen(*words: str) -> st.SearchStrategy:
    return st.none() | st.sampled_from(words).map(t.Chosen)


mobile = st.builds(
    t.MobileNode,
    occurrences,
    interests,
    st.lists(names.map(t.Name), min_size=1, max_size=3).map(tuple),
    alias=st.none() | names,
    group_by=keys,
    listed=st.none() | texts.map(t.Constant),
    lifetime=st.none() | amounts,
    refresh=st.none() | refreshes,
    quality=st.none() | st.builds(t.QualityNode, wholes | floats, wholes | floats),
    order=_chosen("by arrival", "spatial", "spatio-temporal", "temporal"),
    completeness=st.none() | completenesses,
    prediction=st.none() | predictions,
    reuse=_chosen("off", "exact", "similar"),
    deliver=_chosen("all", "new", "changes"),
    excluding_itself=_chosen("excluding itself"),
    silent=st.none() | amounts,
    motion_within=_chosen("motion within the interest"),
)
statements = st.one_of(
    mobile,
    st.sampled_from(["plane", "lonlat"]).map(t.CoordinatesStatement),
    st.builds(t.ParamNode, names, expressions),
    st.builds(t.EventNode, names, declared, mapped),
    st.builds(t.RegionNode, names, shapes),
    definitions(),
    st.builds(t.SubscriptionNode, st.none() | types, st.integers(0, 9), names, names, bodies()),
)
files = st.lists(statements, max_size=3).map(tuple).map(t.WblFile)
