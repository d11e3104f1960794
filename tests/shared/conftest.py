"""One suite, every backend: each test here runs on all of them, or on the one that --backend names.

Spark takes about a second for each test and a stream several, so a plain run takes samples there: the same
ones every time. `make suite` runs every test on every backend.
"""

from __future__ import annotations

import zlib

import pytest
from tests.shared.backends import BACKENDS, Backend

GAPS = ("not_yet", "upstream", "never")
SAMPLED = {"spark-batch": 5, "spark-stream": 32}
"""Of how many tests one runs, if the backend is not asked for by name."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--backend",
        default="all",
        choices=[*BACKENDS, "all"],
        help="the backend that the shared suite runs on",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "backend" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--backend", default="all")
        names = list(BACKENDS) if chosen == "all" else [chosen]
        metafunc.parametrize("backend", names, indirect=True)


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_asked_for = config.getoption("--backend", default="all") != "all"
    kept, left_out = [], []
    for item in items:
        if "backend" in getattr(item, "fixturenames", ()):
            item.add_marker("suite")
        name = getattr(item, "callspec", None) and item.callspec.params.get("backend")
        one_in = 1 if is_asked_for else SAMPLED.get(name, 1)
        (left_out if zlib.crc32(item.nodeid.encode()) % one_in else kept).append(item)
    items[:] = kept
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """A way of running queries; where a mark says that this one lacks something, the test must fail."""
    if request.param in SAMPLED:
        request.getfixturevalue("spark")
    for mark in (mark for gap in GAPS for mark in request.node.iter_markers(gap)):
        if mark.args[0] == request.param:
            request.applymarker(pytest.mark.xfail(strict=True, **mark.kwargs))
    return BACKENDS[request.param]()
