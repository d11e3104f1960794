"""The public interface has types: no setting without one, and misspelt settings are refused by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_overloads

import pytest

import whimbrel as wb
from whimbrel.store import Store

MODULES = ("whimbrel", "whimbrel.spark", "whimbrel.store", "whimbrel.testing", "whimbrel.spark.sinks")
ROWS = [{"type": "A", "time": 0}]
QUERY = wb.compile("define D detect A")


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for module in map(import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            elif inspect.isclass(value) and value.__module__.startswith("whimbrel"):
                for method, function in vars(value).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        yield f"{module.__name__}.{name}.{method}", function


def test_every_setting_has_a_name_and_a_type():
    loose = [
        name
        for name, function in public_functions()
        for signature in get_overloads(function) or [function]
        for parameter in inspect.signature(signature).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD and parameter.annotation == "Any"
        # these are handed on to pyarrow and pandas as they are
        if name.split(".")[-1] not in HANDED_ON
    ]
    assert loose == [], loose


HANDED_ON = {"join", "join_asof", "to_pandas"}


@pytest.mark.parametrize(
    "call",
    [
        lambda: wb.detect(QUERY, ROWS, time_unti="s"),
        lambda: wb.backtest(QUERY, ROWS, time_unti="s"),
    ],
)
def test_a_misspelt_setting_is_named_with_the_one_that_is_meant(call: Callable[[], object]):
    with pytest.raises(TypeError, match=r"has no setting 'time_unti'; did you mean 'time_unit'\?"):
        call()


def test_a_store_knows_its_settings(tmp_path: Path):
    store = Store.create(tmp_path / "store", cell_m=1_000)
    store.append(ROWS)
    with pytest.raises(TypeError, match=r"has no setting 'until_'; did you mean 'until'\?"):
        store.run(QUERY, until_=3)
