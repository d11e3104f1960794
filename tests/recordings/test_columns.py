"""Real recordings with the columns that they have: nothing is renamed."""

from __future__ import annotations

from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import whimbrel as wb

pytestmark = [pytest.mark.needs_data, pytest.mark.slow]

STOPPED = """\
coordinates lonlat
define Stopped
  detect Position stops for 20 min within 100 m gap 10 min
  group by object_id
"""
RECORDINGS = {
    "taxis": "taxi_sf_2008/2008-06-06.parquet",
    "buses": "bus_austin_2016/2016-11-24.parquet",
    "ships": "ais_us_2022/positions.parquet",
}


@pytest.mark.parametrize("which", RECORDINGS)
def test_a_recording_runs_as_it_is(which: str, data_dir: Path) -> None:
    path = data_dir / RECORDINGS[which]
    found = wb.run(wb.compile(STOPPED), path)
    names = {"object_id": "source", "t": "time"}
    table = pq.read_table(path)
    renamed = table.rename_columns([names.get(name, name) for name in table.column_names])
    by_source = wb.compile(STOPPED.replace("object_id", "source"))
    expected = wb.run(by_source, renamed, default_type="Position")
    assert found.detections.num_rows == expected.detections.num_rows > 0
    assert found.detections["events"].to_pylist() == expected.detections["events"].to_pylist()
    assert found.counts == expected.counts
    assert found.columns_taken == {"time": "t", "lon": "lon", "lat": "lat", "source": "object_id"}
    assert found.notes[0] == "columns: time from 't', source from 'object_id'"
    assert found.warnings == ()


def test_the_same_in_a_text_file_with_other_names(data_dir: Path, tmp_path: Path) -> None:
    table = pq.read_table(data_dir / RECORDINGS["buses"], columns=["object_id", "t", "lon", "lat"])
    expected = wb.detect(wb.compile(STOPPED), table)
    local = table["t"].cast(pyarrow.timestamp("s", "America/Chicago"))
    texts = pyarrow.compute.strftime(local, format="%d.%m.%Y %H:%M:%S")
    odd = pyarrow.table(
        {"Bus #": table["object_id"], "Local time": texts, "LNG": table["lon"], "Latitude": table["lat"]}
    )
    pyarrow.csv.write_csv(odd, tmp_path / "odd.csv")
    found = wb.run(
        wb.compile(STOPPED),
        tmp_path / "odd.csv",
        columns={"time": "Local time", "object_id": "Bus #", "source": "Bus #"},
        time_format="%d.%m.%Y %H:%M:%S",
        time_zone="America/Chicago",
    )
    assert found.counts.rejected == 0
    assert found.detections["id"].to_pylist() == expected["id"].to_pylist()
