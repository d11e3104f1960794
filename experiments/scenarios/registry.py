"""Named scenarios: a function, its parameters with their defaults, and one line of help for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from whimbrel.errors import SimulationError, did_you_mean
from whimbrel.sim.results import Results

Value = int | float | str | tuple[float, ...] | tuple[str, ...]
Progress = Callable[[int, int | None], None]
"""Called with how many runs are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What can be changed in a scenario."""

    default: Value
    help: str

    def parse(self, name: str, text: str) -> Value:
        """Read a value that was given as text: as the default is, lists with commas."""
        try:
            if isinstance(self.default, tuple):
                texts = tuple(part.strip() for part in text.split(",") if part.strip())
                return texts if isinstance(self.default[0], str) else tuple(map(float, texts))
            return type(self.default)(text)
        except ValueError:
            many = isinstance(self.default, tuple)
            wanted = "numbers with commas between" if many else f"of type {type(self.default).__name__}"
            raise SimulationError(
                f"{name}={text!r} is not {wanted}; it is {self.default!r} by default"
            ) from None


Run = Callable[[Mapping[str, Any], Progress], Results]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario that can be run by name."""

    name: str
    help: str
    parameters: Mapping[str, Parameter]
    run: Run

    def settings(self, given: Mapping[str, str | Value]) -> dict[str, Any]:
        """Return all parameters, those that were given in place of the defaults."""
        for name in given:
            if name not in self.parameters:
                hint = did_you_mean(name, self.parameters)
                raise SimulationError(
                    f"the scenario {self.name!r} has no parameter {name!r}" + (f"; {hint}" if hint else "")
                )
        values: dict[str, Any] = {name: each.default for name, each in self.parameters.items()}
        for name, value in given.items():
            values[name] = self.parameters[name].parse(name, value) if isinstance(value, str) else value
        return values


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, help: str, **parameters: tuple[Value, str]) -> Callable[[Run], Run]:  # noqa: A002
    """Register a function as a scenario; every scenario has a `seed`."""

    def register(run: Run) -> Run:
        known = {key: Parameter(*about) for key, about in parameters.items()}
        known.setdefault("seed", Parameter(0, "the seed of all that is drawn"))
        SCENARIOS[name] = Scenario(name, help, known, run)
        return run

    return register


def find(name: str) -> Scenario:
    """Return the scenario of a name."""
    if name not in SCENARIOS:
        hint = did_you_mean(name, SCENARIOS)
        raise SimulationError(f"no scenario is named {name!r}" + (f"; {hint}" if hint else ""))
    return SCENARIOS[name]
