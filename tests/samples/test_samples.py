"""The specifications that were published for smart rooms run as printed.

`house.csv` holds ten minutes of a house with a hall and a lab. The tracking sensor stands in the door between
them, the hall on its left. Two people go to the lab (k1, k2), one comes back (k3), another goes (k4). What
the paper names but does not print (MoveOut and the averages) is written in the style of what it prints.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import whimbrel as wb
from whimbrel.testing import detections

HERE = Path(__file__).parent
ROOMS = ["move_in", "move_out", "people_count"]
SAMPLES = [
    *ROOMS, "avg_temp", "avg_humid", "subscription_1", "subscription_2", "subscription_3", "monitor_avg_temp",
]  # fmt: skip


@wb.function(name="FaceDetect", returns="string")
def face_detect(video):
    """Stands for the recognition: the frames of the data hold a name instead of a picture."""
    return video["frame"].capitalize()


def sample(*names: str) -> str:
    return "\n".join((HERE / f"{name}.wbl").read_text(encoding="utf-8") for name in names)


def found(text: str, **settings) -> list[dict]:
    """What a text detects in the house, in the form of `whimbrel.testing.detections`."""
    query = wb.compile(text, functions=[face_detect], **settings)
    return [plain(row) for row in wb.detect(query, HERE / "house.csv").to_pylist()]


def plain(row: dict) -> dict:
    times = {name: seconds(row[name]) for name in ("start", "end", "timestamp") if row.get(name) is not None}
    kept = {
        name: value for name, value in row.items() if value is not None and name not in ("id", "geometry")
    }
    return kept | times | {"events": tuple(row["events"])}


def seconds(time) -> int:
    return round(time.timestamp() * 1_000_000)


def in_seconds(text: str) -> list[dict]:
    """Detections with `at`, in seconds, for the attribute `timestamp`."""
    rows = detections(text)
    return [
        {("timestamp" if name == "at" else name): (value * 1_000_000 if name == "at" else value)
         for name, value in row.items()}
        for row in rows
    ]  # fmt: skip


def test_someone_moves_in_where_the_direction_points():
    assert found(sample("move_in")) == in_seconds("""
        MoveIn@10s:location=lab,at=10: k1
        MoveIn@20s:location=lab,at=20: k2
        MoveIn@25s:location=hall,at=25: k3
        MoveIn@130s:location=lab,at=130: k4
    """)


def test_who_moves_in_moves_out_on_the_other_side():
    assert found(sample("move_out")) == in_seconds("""
        MoveOut@10s:location=hall,at=10: k1
        MoveOut@20s:location=hall,at=20: k2
        MoveOut@25s:location=lab,at=25: k3
        MoveOut@130s:location=hall,at=130: k4
    """)


def test_people_are_counted_every_two_minutes():
    # In the first window 2 come to the lab and 1 leaves; in the second nobody leaves it, so no timestamp.
    counted = found(sample(*ROOMS))
    assert sorted(counted, key=lambda row: (row["end"], row["location"])) == in_seconds("""
        PeopleCount2Mins@10..25s:location=hall,count=-1,at=20: k1 k2 k3
        PeopleCount2Mins@10..25s:location=lab,count=1,at=25: k1 k2 k3
        PeopleCount2Mins@130s:location=hall,count=-1,at=130: k4
        PeopleCount2Mins@130s:location=lab,count=1: k4
    """)


def test_temperatures_are_averaged_in_each_place():
    assert found(sample("avg_temp")) == in_seconds("""
        AvgTemp5Mins@40s:location=hall,avg=22,at=40: t2
        AvgTemp5Mins@30..90s:location=lab,avg=28,at=90: t1 t3
        AvgTemp5Mins@310s:location=lab,avg=18,at=310: t4
    """)


def test_humidities_are_averaged_in_each_place():
    assert found(sample("avg_humid")) == in_seconds("""
        AvgHumid5Mins@50..80s:location=lab,avg=52,at=80: h1 h2
        AvgHumid5Mins@320s:location=lab,avg=40,at=320: h3
        AvgHumid5Mins@330s:location=hall,avg=20,at=330: h4
    """)


SUBSCRIBED = {
    # The count of the last window before the average is taken: k4, not k1 to k3.
    "subscription_1": """
        User1-1@10..90s:location=lab,humid=28,at=25: k1 k2 k3 t1 t3
        User1-1@130..310s:location=lab,humid=18: k4 t4
    """,
    # 40 is fine, and where it is too dry, in the hall, nobody is.
    "subscription_2": "User1-2@10..80s:location=lab,avg=52,at=25: k1 k2 k3 h1 h2",
    # Each frame is used once, with the oldest arrival; v4 comes more than 5 minutes after the last one.
    "subscription_3": """
        User1-3@10..60s:location=lab,face=Anna,at=10: k1 v1
        User1-3@25..70s:location=hall,face=Bert,at=25: k3 v2
        User1-3@130..400s:location=lab,face=Cleo,at=130: k4 v3
    """,
}


@pytest.mark.parametrize("name", SUBSCRIBED)
def test_a_subscription_is_answered(name):
    assert found(sample(*ROOMS, "avg_temp", "avg_humid", name)) == in_seconds(SUBSCRIBED[name])


@pytest.mark.parametrize("name", ["subscription_1", "subscription_2"])
def test_the_printed_slip_is_understood_and_told(name):
    query = wb.compile(sample(*ROOMS, "avg_temp", "avg_humid", name))
    assert [warning.partition(": ")[2] for warning in query.warnings] == [
        "no part is named 'PropleCount'; read as 'PeopleCount'"
    ]


def test_a_subscription_knows_who_asked_and_who_acts():
    (asked,) = wb.compile(sample("move_in", "subscription_3"), functions=[face_detect]).subscriptions
    assert (asked.sequence, asked.subscriber, asked.actor) == (3, "User1", "Gateway")


@pytest.mark.parametrize(
    ("x", "averages"), [(60, [30, 26, 26, 18]), (50, [30, 26, 24, 18]), (5, [30, 22, 26, 18])]
)
def test_the_last_x_seconds_are_monitored(x, averages):
    monitored = found(sample("monitor_avg_temp"), params={"x": x})
    assert [(row["end"] // 1_000_000, row["avgTemp"]) for row in monitored] == list(
        zip([30, 40, 90, 310], averages, strict=True)
    )


def test_the_monitor_asks_for_its_parameter():
    with pytest.raises(wb.QueryError, match="x"):
        wb.compile(sample("monitor_avg_temp"))


def test_one_file_holds_all_samples():
    assert (HERE / "all.wbl").read_text(encoding="utf-8") == sample(*SAMPLES)


def test_all_samples_together_answer_the_three_subscriptions():
    expected = [row for text in SUBSCRIBED.values() for row in in_seconds(text)]
    assert found(sample("all"), params={"x": 60}) == sorted(
        expected, key=lambda row: (row["end"], row["start"])
    )


def test_all_samples_together_say_the_same_of_each_definition():
    together = found(sample("all"), params={"x": 60}, emit="all")
    for name in ("move_in", "move_out", "avg_temp", "avg_humid"):
        alone = found(sample(name))
        assert [row for row in together if row["type"] == alone[0]["type"]] == alone


@pytest.mark.parametrize("name", SAMPLES)
def test_layout_changes_no_sample(name):
    wanted = [name] if name not in ("people_count", *SUBSCRIBED) else [*ROOMS, "avg_temp", "avg_humid", name]
    text = sample(*dict.fromkeys(wanted))
    params = {"x": 60} if name == "monitor_avg_temp" else None
    laid_out = str(wb.compile(text, functions=[face_detect], params=params))
    assert found(laid_out, params=params) == found(text, params=params)
