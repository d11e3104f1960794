"""What every test may use: hypothesis profiles, golden files, the real recordings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("WHIMBREL_DATA") or ROOT.parent / "shared" / "data")

SPARK_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",  # planning again costs more than these jobs
    "spark.sql.codegen.wholeStage": "false",  # and so does compiling
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# Java processes that live for a minute: compiling their code well costs more than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData")

# Few events run without machine code, and tests have few: the compiled engine is what they test. The shared
# suite and tests/engine/test_plain_kernels.py run the plain kernels, too.
os.environ.setdefault("WHIMBREL_KERNELS", "compiled")
# Spark's log is not for the folder of whoever runs the tests.
os.environ["XDG_STATE_HOME"] = str(Path(tempfile.gettempdir()) / f"whimbrel-tests-{os.getuid()}")

# No deadlines: the first example of a test may wait for a kernel to compile. No explaining: it traces
# every line, which makes compiling take minutes.
_PHASES = [phase for phase in Phase if phase is not Phase.explain]
_COMMON = {
    "deadline": None,
    "phases": _PHASES,
    "report_multiple_bugs": False,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("default", max_examples=15, **_COMMON)
# A gate says the same twice: its examples follow from the test. New ones are drawn by the other profiles.
settings.register_profile("ci", max_examples=60, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("hunt", max_examples=200, print_blob=True, **_COMMON)
settings.register_profile("soak", max_examples=5_000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
if settings.get_current_profile_name() == "ci":
    # Hypothesis also draws constants that it finds in those modules of ours that happen to be loaded: a
    # number somewhere in the code would change the examples of all tests, and so would their order.
    providers._get_local_constants = Constants


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files with what the code says now; review the diff",
    )


@pytest.hookimpl(tryfirst=True)  # before -m chooses by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skip(reason=f"no recordings in {DATA}; set WHIMBREL_DATA to their folder")
    for item in items:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("property")
        if "update_golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")
        if item.get_closest_marker("needs_data") and not DATA.is_dir():
            item.add_marker(missing)
        if _uses_spark(item):
            item.add_marker("spark")
            item.add_marker("slow")  # whichever comes first waits for Java


def _uses_spark(item: pytest.Item) -> bool:
    backend = getattr(item, "callspec", None) and item.callspec.params.get("backend")
    return "spark" in getattr(item, "fixturenames", ()) or str(backend).startswith("spark")


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def compiled_kernels() -> None:
    """Compile kernels now: it is slow where hypothesis watches, and on Spark's workers."""
    from tests.kernels import compile_kernels

    compile_kernels()


@pytest.fixture(scope="session")
def java(compiled_kernels: None) -> None:
    """All that programs with a Spark session of their own need; where there is no Java, they are skipped."""
    from whimbrel.spark.session import java

    if java() is None:
        pytest.skip("Spark needs Java, and there is none")


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[object]:
    """A local Spark session with two cores."""
    from whimbrel.spark.session import local_session

    session = local_session("whimbrel tests", cores=2, settings=SPARK_SETTINGS)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real recordings; tests that use it are marked `needs_data`."""
    return DATA


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return ROOT
