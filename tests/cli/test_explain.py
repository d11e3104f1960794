"""`whimbrel explain`. What the explanations say is tested with the graph."""

from __future__ import annotations

import json


def test_text_is_a_tree(folder):
    done = folder.run("explain", "late.wbl")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[3:5] == ["derive Late (one event at a time)", "└─ match Late.match"]


def test_mermaid_is_a_flowchart(folder):
    assert folder.run("explain", "late.wbl", "--format", "mermaid").stdout.startswith("flowchart LR\n")


def test_rates_change_the_estimate(folder):
    done = folder.run(
        "explain", "late.wbl", "--format", "json", "--rate", "Leave=0.5", "--rate", "Arrive=0.5"
    )
    assert json.loads(done.stdout)["state_events"] == 3600


def test_a_rate_is_a_number_of_a_known_type(folder):
    wrong = folder.run("explain", "late.wbl", "--rate", "Leave=often")
    assert (wrong.exit_code, "'often' is no number of events a second" in wrong.stderr) == (2, True)
    unknown = folder.run("explain", "late.wbl", "--rate", "Leaf=1")
    assert (unknown.exit_code, "did you mean 'Leave'?" in unknown.stderr) == (1, True)


def test_a_bad_query_ends_with_status_1(folder):
    folder.write("bad.wbl", "define\n")
    done = folder.run("explain", "bad.wbl")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "^" in done.stderr


def test_before_and_after_the_rewrites(folder):
    folder.write("two.wbl", "define X detect A(v > 2 * 3) as a then B as b within 1 min where a.k = b.k\n")
    before, after, both = (
        folder.run("explain", "two.wbl", *flags).stdout
        for flags in (["--before"], ["--after"], ["--before", "--after"])
    )
    assert before == folder.run("explain", "two.wbl").stdout
    assert after.splitlines()[:3] == [
        "rewrites:",
        "  fold_constants: changes A[v > 2 * 3]",
        "  find_joins: changes X.match",
    ]
    assert both == f"before:\n\n{before.rstrip()}\n\n\nafter:\n\n{after}"
    found = json.loads(folder.run("explain", "two.wbl", "--after", "--format", "json").stdout)
    assert [each["rewrite"] for each in found["rewrites"]] == ["fold_constants", "find_joins"]
