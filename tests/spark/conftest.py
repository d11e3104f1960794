"""One Spark session for all tests that need one; they are skipped, visibly, where there is no Java."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """A local Spark session with two cores."""
    from whimbrel.spark.session import java, local_session

    if java() is None:
        pytest.skip("Spark needs Java, and there is none")
    session = local_session("whimbrel-tests", cores=2, settings={"spark.sql.shuffle.partitions": "3"})
    yield session
    session.stop()
