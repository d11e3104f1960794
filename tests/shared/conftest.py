"""One suite, every backend: each test here runs on all of them, or on the one that --backend names."""

from __future__ import annotations

import pytest
from tests.shared.backends import BACKENDS, Backend

GAPS = ("not_yet", "upstream", "never")


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


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """A way of running queries; where a mark says that this one lacks something, the test must fail."""
    for mark in (mark for gap in GAPS for mark in request.node.iter_markers(gap)):
        if mark.args[0] == request.param:
            request.applymarker(pytest.mark.xfail(strict=True, **mark.kwargs))
    return BACKENDS[request.param]()
