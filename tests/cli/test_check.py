"""`whimbrel check`."""

from __future__ import annotations


def test_a_good_query_is_told_in_a_line(folder):
    done = folder.run("check", "late.wbl")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "late.wbl: fine: detects Late (from Leave, Arrive), reaches back 1 h\n"


def test_every_query_is_reported_and_one_bad_one_makes_status_1(folder):
    folder.write("bad.wbl", "define Late detect Leave then\n")
    folder.write("warm.wbl", "define Warm detect Temp(val > 25)\n")
    done = folder.run("check", "late.wbl", "bad.wbl", "missing.wbl", "warm.wbl")
    assert done.exit_code == 1
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["late.wbl", "warm.wbl"]
    assert "detects Warm (from Temp), needs one event at a time" in done.stdout
    assert "error: bad.wbl: line " in done.stderr
    assert "error: there is no query file missing.wbl" in done.stderr


def test_an_error_shows_the_line_with_a_caret_and_a_hint(folder):
    folder.write("bad.wbl", "define A\n  detect B as brake then C within 5 s\n  where brek.speed < C.speed\n")
    done = folder.run("check", "bad.wbl")
    place, line, caret, hint = done.stderr.splitlines()
    assert place.startswith("error: bad.wbl: line 3, col 9: ")
    assert (line, caret) == ("    where brek.speed < C.speed", "          " + "^" * caret.count("^"))
    assert hint == "hint: did you mean 'brake'?"


def test_warnings_are_printed_and_do_no_harm(folder):
    done = folder.run("check", "late.wbl", "--param", "x=1")
    assert done.exit_code == 0
    assert done.stderr == "late.wbl: warning: the query has no parameter 'x', so its value is not used\n"


def test_a_query_comes_from_standard_input(folder):
    done = folder.run("check", "-", stdin="define Warm detect Temp(val > 25)")
    assert done.stdout.startswith("standard input: fine: detects Warm")


def test_a_horizon_lets_an_unbounded_query_pass(folder):
    folder.write("pair.wbl", "define Pair detect Leave as a then Arrive as b\n")
    assert folder.run("check", "pair.wbl").exit_code == 1
    done = folder.run("check", "pair.wbl", "--horizon", "2 h")
    assert "reaches back 2 h" in done.stdout


def test_text_that_is_not_utf8_is_refused(folder):
    (folder.path / "bad.wbl").write_bytes(b"define \xff")
    done = folder.run("check", "bad.wbl")
    assert done.exit_code == 1
    assert "not UTF-8" in done.stderr


def test_a_query_is_needed(folder):
    done = folder.run("check")
    assert done.exit_code == 2
    assert "Missing argument 'QUERY...'" in done.stderr


def test_an_empty_file_is_refused(folder):
    for name in ("empty.wbl", "empty.cpsl"):
        (folder.path / name).write_text("\n")
        done = folder.run("check", name)
        assert done.exit_code == 1
        assert "the file is empty" in done.stderr
    assert folder.run("translate", "empty.cpsl", "--to", "wbl").exit_code == 1


MOBILE = """\
define Slow
  detect Car(speed < 3)

around Car(kind = 'ambulance') as rescue
  group by plate
  listed in 'cars.csv'
  within 500 m
  report Slow
  lifetime 30 min
"""


def test_a_query_that_follows_objects_is_told_with_its_table_checked(folder):
    folder.write("cars.csv", "key,radius\n7,1 km\n")
    folder.write("rescue.wbl", MOBILE)
    done = folder.run("check", "rescue.wbl")
    assert done.stdout == (
        "rescue.wbl: fine: around Car(kind = 'ambulance') as rescue within 500 m, lifetime 30 min: "
        "detects Slow (from Car), needs one event at a time\n"
    )
    assert folder.run("fmt", "--check", "rescue.wbl").exit_code == 0
    assert "1 object of a table" in folder.run("explain", "rescue.wbl").stdout
    folder.write("cars.csv", "key,radius\n7,far\n")
    done = folder.run("check", "rescue.wbl")
    assert done.exit_code == 1
    assert "rescue.wbl: line 6, col 13: cars.csv: row 1: 'far' is no length" in done.stderr
