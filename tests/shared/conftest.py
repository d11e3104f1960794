"""One suite, every backend: each test here runs on all of them, or on the one that --backend names.

It runs twice: with the ids that the test gives its events, and without any, when each event must get the id
that the reference makes for it. Tests that speak of ids, or of what comes first among events of the same
times, which ids decide, are marked `given_ids` and run with them only.

Spark takes about a second for each test and a stream several, and kernels without machine code are slow, so
a plain run takes samples there: the same ones every time. `make suite` runs every test on every backend.
"""

from __future__ import annotations

import zlib

import pytest
from tests.shared.backends import BACKENDS, Backend

GAPS = ("not_yet", "upstream", "never")
WITHOUT_IDS = "-without-ids"
SAMPLED = {
    "plain": 4,
    f"plain{WITHOUT_IDS}": 8,
    f"session{WITHOUT_IDS}": 4,
    "spark-batch": 8,
    f"spark-batch{WITHOUT_IDS}": 12,
    "spark-stream": 48,
    f"spark-stream{WITHOUT_IDS}": 64,
}
"""Of how many tests one runs, if the backend is not asked for by name; of others, all."""


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
        if metafunc.definition.get_closest_marker("given_ids") is None:
            names += [name + WITHOUT_IDS for name in names]
        metafunc.parametrize("backend", names, indirect=True)


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_asked_for = config.getoption("--backend", default="all") != "all"
    kept, left_out = [], []
    for item in items:
        name = getattr(item, "callspec", None) and item.callspec.params.get("backend")
        one_in = 1 if is_asked_for else SAMPLED.get(name or "", 1)
        (left_out if zlib.crc32(item.nodeid.encode()) % one_in else kept).append(item)
    items[:] = kept
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def _backend_of(name: str | None) -> str:
    return (name or "").removesuffix(WITHOUT_IDS)


@pytest.fixture
def backend(request: pytest.FixtureRequest) -> Backend:
    """A way of running queries; where a mark says that this one lacks something, the test must fail."""
    name = _backend_of(request.param)
    if name.startswith("spark"):
        request.getfixturevalue("spark")
    for mark in (mark for gap in GAPS for mark in request.node.iter_markers(gap)):
        if mark.args[0] == name:
            request.applymarker(pytest.mark.xfail(strict=True, **mark.kwargs))
    chosen = BACKENDS[name]()
    chosen.gives_ids = request.param == name
    return chosen
