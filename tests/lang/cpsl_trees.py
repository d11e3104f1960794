"""Random trees of CPSL."""

from __future__ import annotations

from hypothesis import strategies as st

from whimbrel.lang.cpsl import tree as c

# Few names, so that variables are often bound and names often taken.
names = st.sampled_from(
    ["a", "b", "x", "first", "not", "type", "E-A", "b_1", "Speed", "x-1", "S1", "timestamp"]
)
plain_names = st.sampled_from(["a", "n", "first", "N_1", "IN1", "String"])
whole = st.integers(-(10**6), 10**6)
numbers = st.one_of(whole, st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3) + 0.0))
positive = st.one_of(st.integers(1, 10**6), st.floats(0.001, 1e6).map(lambda value: round(value, 3) or 0.5))
texts = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=6)
times = st.builds(c.Amount, positive, st.sampled_from([None, "ms", "s", "min", "h", "d"]))
lengths = st.builds(c.Amount, positive, st.sampled_from([None, "m", "km"]))
instants = st.builds(c.CpslInstant, numbers)
bounds = st.one_of(
    st.builds(c.CpslBound, names), st.builds(c.CpslBound, names, st.sampled_from("+-*/"), numbers)
)


_pairs = st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))
_intervals = st.builds(
    lambda name, pair, opening, closing, outside: c.Interval(name, *pair, opening, closing, outside),
    names, _pairs, st.sampled_from("[("), st.sampled_from("])"), st.booleans(),
)  # fmt: skip
_compared = st.builds(c.CpslComparison, names, st.sampled_from(["<", ">", "=", "<=", ">=", "!"]), numbers)
_texts_compared = st.builds(
    c.CpslComparison, names, st.sampled_from(["=", "!", ">*", "*>", "*=", "*<", "<*", "=*"]), texts
)
_listed = st.builds(c.CpslList, names, st.lists(texts, min_size=1, max_size=3).map(tuple), st.booleans())
_bits = st.builds(
    lambda name, sign, places, code: c.Bits(name, sign, *places, code),
    st.sampled_from(["PRODUCT", "READER"]),
    st.sampled_from(["<", ">", "=", "<=", ">=", "!"]),
    st.sampled_from([(1, 4, 8), (5, 12, 63), (60, 63, 63)]),
    st.sampled_from(["1b", "0101b", "0xf", "0x0"]),
)
_numbers_bound = st.builds(c.CpslComparison, names, st.sampled_from(["<", ">", "=", "!"]), bounds)
_texts_bound = st.builds(
    c.CpslComparison, names, st.sampled_from(["=", "!", ">*", "=*"]), st.builds(c.CpslBound, names)
)


def _predicates(kind: c.Kind, tests: st.SearchStrategy, bound: st.SearchStrategy) -> st.SearchStrategy:
    several = st.lists(st.lists(tests, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple)
    with_variables = st.lists(st.one_of(tests, bound), min_size=1, max_size=2).map(
        lambda each: (tuple(each),)
    )
    return st.builds(c.Predicate, st.just(kind), st.one_of(several, with_variables))


predicates = st.one_of(
    _predicates("ARITH", st.one_of(_compared, _intervals), _numbers_bound),
    _predicates("STRING", st.one_of(_texts_compared, _listed), _texts_bound),
    _predicates("RFID", _bits, _bits),
)
primitives = st.builds(c.Primitive, st.lists(predicates, min_size=1, max_size=3).map(tuple))
corners = st.tuples(numbers, numbers)
regions = st.builds(c.CpslRegion, st.lists(corners, min_size=1, max_size=5).map(tuple))
points = st.builds(c.CpslPoint, numbers, numbers)
leaves = st.one_of(primitives, st.builds(c.CpslReference, names), st.builds(c.Variable, names))


def _composites(inner: st.SearchStrategy[c.Sub]) -> st.SearchStrategy[c.Sub]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    timed = st.sampled_from(["=|", "|=", "!"])
    counts = st.integers(1, 9)
    return st.one_of(
        st.builds(c.Timed, timed, inner, times, inner),
        st.builds(c.Timed, timed, inner, inner, inner),
        st.builds(c.Timed, timed, instants, times, inner),
        st.builds(c.Concurrent, inner, inner),
        st.builds(c.Inside, regions, inner),
        st.builds(c.CpslRelation, st.sampled_from(["IN", "OVLP", "SPL"]), inner, inner),
        st.builds(c.CpslRelation, st.sampled_from(["OVLP", "SPL"]), regions, inner),
        st.builds(c.Distance, st.one_of(inner, regions, points), st.sampled_from("<=>"), lengths, inner),
        st.builds(c.Successive, counts, inner),
        st.builds(c.Recurring, times, inner),
        st.builds(c.CpslGroups, counts, times, counts, inner),
        st.builds(c.All, several),
        st.builds(c.Any, several),
    )


subs = st.recursive(leaves, _composites, max_leaves=4)
subscriptions = st.builds(
    c.CpslSubscription,
    plain_names,
    subs,
    st.lists(st.builds(c.Binding, names, subs), max_size=2).map(tuple),
    st.one_of(st.none(), instants),
)
files = st.builds(c.CpslFile, st.lists(subscriptions, max_size=2).map(tuple))
