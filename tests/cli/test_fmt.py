"""`whimbrel fmt`."""

from __future__ import annotations

UGLY = "define  Warm detect Temp( val>25 )  # hot\n"
TIDY = "define Warm\n  detect Temp(val > 25)  # hot\n"


def test_files_are_rewritten_in_place(folder):
    folder.write("warm.wbl", UGLY)
    done = folder.run("fmt", "warm.wbl", "late.wbl")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "warm.wbl changed\n")
    assert folder.read("warm.wbl") == TIDY


def test_standard_input_goes_to_standard_output(folder):
    done = folder.run("fmt", "-", stdin=UGLY)
    assert (done.exit_code, done.stdout) == (0, TIDY)


def test_check_changes_nothing_and_tells_with_its_status(folder):
    folder.write("warm.wbl", UGLY)
    done = folder.run("fmt", "--check", "warm.wbl", "late.wbl")
    assert (done.exit_code, done.stdout) == (1, "warm.wbl would change\n")
    assert folder.read("warm.wbl") == UGLY
    assert folder.run("fmt", "--check", "late.wbl").exit_code == 0


def test_diff_shows_what_would_change(folder):
    folder.write("warm.wbl", UGLY)
    done = folder.run("fmt", "--diff", "warm.wbl")
    assert done.exit_code == 1
    assert "-define  Warm detect Temp( val>25 )  # hot\n+define Warm\n" in done.stdout
    assert folder.read("warm.wbl") == UGLY


def test_a_query_that_does_not_parse_stays_as_it_is(folder):
    folder.write("bad.wbl", "define\n")
    folder.write("warm.wbl", UGLY)
    done = folder.run("fmt", "bad.wbl", "warm.wbl")
    assert done.exit_code == 1
    assert done.stderr.startswith("error: bad.wbl: line ")
    assert (folder.read("bad.wbl"), folder.read("warm.wbl")) == ("define\n", TIDY)
