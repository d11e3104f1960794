"""Windows: over which events an aggregate is computed, and when."""

from __future__ import annotations

from tests.shared.backends import expect


def counted(backend, window: str, data: str, detect: str = "A", rest: str = "") -> list:
    return backend.detect(f"define D {window} detect {detect} assign n = count(A) {rest}", data)


# At fixed times.


def test_each_window_counts_its_events(backend):
    found = counted(backend, "every 10 s", "A@1s A@9s A@10s")
    assert found == expect("D@1..9s:n=2: a1 a2 ; D@10s:n=1: a3")


def test_windows_begin_at_1970(backend):
    found = counted(backend, "every 10 s", "A@-1s A@0s A@-10s")
    assert found == expect("D@-10..-1s:n=2: a3 a1 ; D@0s:n=1: a2")


def test_an_event_counts_by_its_end(backend):
    found = counted(backend, "every 10 s", "A@5..10s A@12s A@3..9s")
    assert found == expect("D@3..9s:n=1: a3 ; D@5..12s:n=2: a1 a2")


def test_a_window_without_events_gives_nothing(backend):
    assert counted(backend, "every 10 s", "A@1s A@95s") == expect("D@1s:n=1: a1 ; D@95s:n=1: a2")


def test_an_event_may_lie_in_several_windows(backend):
    found = counted(backend, "over 20 s every 10 s", "A@5s A@15s")
    assert found == expect("D@5s:n=1: a1 ; D@5..15s:n=2: a1 a2 ; D@15s:n=1: a2")


def test_two_windows_of_the_same_events_are_two_detections(backend):
    found = counted(backend, "over 20 s every 10 s", "A@5s")
    assert found == expect("D@5s:n=1: a1 ; D@5s:n=1: a1")
    assert len(set(found.ids)) == 2


def test_windows_may_leave_gaps(backend):
    # [5, 10), [15, 20), ...
    assert counted(backend, "over 5 s every 10 s", "A@4s A@5s A@9s A@12s") == expect("D@5..9s:n=2: a2 a3")


def test_an_odd_length_is_cut_at_its_own_bounds(backend):
    # [-5, 10), [5, 20), [15, 30)
    found = counted(backend, "over 15 s every 10 s", "A@5s A@15s")
    assert found == expect("D@5s:n=1: a1 ; D@5..15s:n=2: a1 a2 ; D@15s:n=1: a2")


def test_the_upper_bound_of_a_window_is_left_out(backend):
    assert counted(backend, "every 10 s", "A@9999999us A@10s") == expect(
        "D@9999999us:n=1: a1 ; D@10s:n=1: a2"
    )


# At each event.


def test_the_last_seconds_are_counted_at_each_event(backend):
    found = counted(backend, "over 5 s", "A@1s A@6s A@7s")
    assert found == expect("D@1s:n=1: a1 ; D@1..6s:n=2: a1 a2 ; D@6..7s:n=2: a2 a3")


def test_of_equal_times_the_earlier_in_order_counts_first(backend):
    assert counted(backend, "over 5 s", "A@1s A@1s") == expect("D@1s:n=1: a1 ; D@1s:n=2: a1 a2")


def test_the_last_events_are_counted_at_each_event(backend):
    found = counted(backend, "over 2 events within 1 min", "A@1s A@2s A@3s")
    assert found == expect("D@1s:n=1: a1 ; D@1..2s:n=2: a1 a2 ; D@2..3s:n=2: a2 a3")


def test_the_last_events_may_not_be_too_old(backend):
    found = counted(backend, "over 2 events within 5 s", "A@1s A@6s A@12s")
    assert found == expect("D@1s:n=1: a1 ; D@1..6s:n=2: a1 a2 ; D@12s:n=1: a3")


def test_every_so_many_events(backend):
    found = counted(backend, "over 3 events every 2 events within 1 min", "A@1s A@2s A@3s A@4s A@5s")
    assert found == expect("D@1..2s:n=2: a1 a2 ; D@2..4s:n=3: a2 a3 a4")


def test_events_are_counted_in_each_group(backend):
    data = "A@1s:k=x A@2s:k=y A@3s:k=x A@4s:k=x A@5s:k=y A@6s:k=x"
    found = counted(
        backend, "over 2 events every 2 events within 1 min", data, rest=", k = group.k group by k"
    )
    assert found == expect("D@1..3s:n=2,k=x: a1 a3 ; D@2..5s:n=2,k=y: a2 a5 ; D@4..6s:n=2,k=x: a4 a6")


# Groups and several inputs.


def test_each_group_has_its_own_result(backend):
    data = "A@1s:k=x A@2s:k=y A@3s:k=x A@4s"
    found = backend.detect("define D every 10 s detect A assign n = count(A), k = group.k group by k", data)
    assert found == expect("D@2s:n=1,k=y: a2 ; D@1..3s:n=2,k=x: a1 a3 ; D@4s:n=1: a4")


BOTH = "assign n = count(A), m = count(B)"


def test_every_input_must_have_an_event(backend):
    found = backend.detect(f"define D every 10 s detect A and B {BOTH}", "A@1s A@2s B@3s A@11s B@21s")
    assert found == expect("D@1..3s:n=2,m=1: a1 a2 b1")


def test_an_outer_input_may_have_none(backend):
    data = "A@1s B@3s A@11s B@21s"
    found = backend.detect(f"define D every 10 s detect A and outer B {BOTH}", data)
    assert found == expect("D@1..3s:n=1,m=1: a1 b1 ; D@11s:n=1,m=0: a2")
    found = backend.detect(f"define D every 10 s detect outer A and outer B {BOTH}", data)
    assert found == expect("D@1..3s:n=1,m=1: a1 b1 ; D@11s:n=1,m=0: a2 ; D@21s:n=0,m=1: b2")


def test_inputs_are_joined_group_by_group(backend):
    data = "A@1s:k=x B@2s:k=y A@3s:k=y"
    found = backend.detect(f"define D every 10 s detect A and B {BOTH}, k = group.k group by k", data)
    assert found == expect("D@2..3s:n=1,m=1,k=y: b1 a2")


def test_at_each_event_of_any_input(backend):
    found = backend.detect(f"define D over 5 s detect outer A and outer B {BOTH}", "A@1s B@2s B@7s")
    assert found == expect("D@1s:n=1,m=0: a1 ; D@1..2s:n=1,m=1: a1 b1 ; D@2..7s:n=0,m=2: b1 b2")


def test_only_events_that_meet_the_condition_count(backend):
    assert counted(backend, "every 10 s", "A@1s:v=1 A@2s:v=5", "A(v > 2)") == expect("D@2s:n=1: a2")


def test_a_window_over_combinations_counts_these(backend):
    text = "define D every 10 s detect A as a then B as b within 5 s assign n = count(a), top = max(b.v)"
    found = backend.detect(text, "A@1s A@2s B@3s:v=4 B@4s:v=7 A@9s B@11s:v=1")
    # a1 and a2 each with b1 and b2 end in the first window, a3 with b3 in the second.
    assert found == expect("D@1..4s:n=4,top=7: a1 a2 b1 b2 ; D@9..11s:n=1,top=1: a3 b3")


def test_having_chooses_among_the_results(backend):
    found = counted(backend, "every 10 s", "A@1s A@2s A@11s", rest="having n > 1")
    assert found == expect("D@1..2s:n=2: a1 a2")


def test_partial_results_are_put_together(backend):
    text = """
        define D(k, mean, n) aggr every 10 s
        <pre> detect A assign total = sum(A.v), n = count(A)
        <post> where k = group.k, mean = sum(total) / sum(n), n = sum(n)
        group by k
    """
    found = backend.detect(text, "A@1s:k=x,v=1 A@2s:k=x,v=4 A@3s:k=y,v=7")
    assert found == expect("D@1..2s:k=x,mean=2.5,n=2: a1 a2 ; D@3s:k=y,mean=7,n=1: a3")


def test_a_window_may_count_what_another_found(backend):
    text = """
        define Big detect A(v > 2)
        define D over 20 s every 10 s detect Big assign n = count(Big)
    """
    found = backend.detect(text, "A@1s:v=3 A@2s:v=1 A@11s:v=5")
    assert found == expect("D@1s:n=1: a1 ; D@1..11s:n=2: a1 a3 ; D@11s:n=1: a3")


def test_a_window_over_windows(backend):
    text = """
        define Ten every 10 s detect A assign n = count(A)
        define D every 1 min detect Ten assign most = max(Ten.n), all = sum(Ten.n)
    """
    found = backend.detect(text, "A@1s A@2s A@11s A@61s")
    assert found == expect("D@1..11s:most=2,all=3: a1 a2 a3 ; D@61s:most=1,all=1: a4")


def test_the_older_form_counts_at_each_event(backend):
    text = "define D(mean: FLOAT) from A() range 5 secs where mean = avg(A.v)"
    assert backend.detect(text, "A@1s:v=1 A@6s:v=4") == expect("D@1s:mean=1: a1 ; D@1..6s:mean=2.5: a1 a2")
