"""The public interface has types: no setting without one, and misspelt settings are refused by name."""

from __future__ import annotations

import inspect
import re
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


HANDED_ON = {
    "whimbrel.Detections.to_pandas": {"args", "options"},
    "whimbrel.Detections.join": {"args", "options"},
    "whimbrel.Detections.join_asof": {"args", "options"},
    "whimbrel.detect": {"events", "settings", "return"},
}
"""What may be of any type: arguments that pyarrow gets as they are, and the one behind the overloads."""


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for module in map(import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isfunction(value):
                yield f"{module.__name__}.{name}", value
            elif inspect.isclass(value) and value.__module__.startswith("whimbrel"):
                for method, member in vars(value).items():
                    function = _function_of(member)
                    if function is not None and (method == "__init__" or not method.startswith("_")):
                        yield f"{module.__name__}.{value.__name__}.{method}", function


def _function_of(member: object) -> Callable[..., Any] | None:
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    if isinstance(member, property):
        return member.fget
    return member if inspect.isfunction(member) else None


def annotations(function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    for signature in get_overloads(function) or [function]:
        said = inspect.signature(signature)
        for parameter in said.parameters.values():
            yield parameter.name, str(parameter.annotation)
        yield "return", str(said.return_annotation)


def test_everything_public_has_a_type():
    loose = sorted(
        {
            f"{name}({what}: {said})"
            for name, function in public_functions()
            for what, said in annotations(function)
            if re.search(r"\bAny\b", said) and what not in HANDED_ON.get(name, ())
        }
    )
    assert loose == [], "\n".join(loose)


def test_what_is_handed_on_is_still_there():
    known = dict(public_functions())
    named = {name: {what for what, _ in annotations(known[name])} for name in HANDED_ON if name in known}
    assert named.keys() == HANDED_ON.keys()


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
