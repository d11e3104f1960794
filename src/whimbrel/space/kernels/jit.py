"""One way to compile a kernel, so that all of them are cached and release the interpreter lock.

A kernel is a plain function that Numba can compile, and it can run either way. Compiling takes seconds and
even loading Numba takes half of one, so neither happens before it pays: `Kernel.at` gives the plain function
while little work is asked for, and the machine code from then on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from functools import cached_property, wraps
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

ALLOWANCE = 150_000
"""Turns of loops that may run as plain Python in one process, at about a microsecond or two each."""
SETTING = "WHIMBREL_KERNELS"
"""Environment variable: `compiled` or `plain` for one way only; otherwise as it pays."""


class Allowance:
    """How much work may still be done without machine code, in all kernels of this process together."""

    def __init__(self, left: float = ALLOWANCE) -> None:
        self.left = left

    @classmethod
    def from_environment(cls) -> Allowance:
        """Read what `WHIMBREL_KERNELS` says."""
        known = {"compiled": -1.0, "plain": float("inf")}
        return cls(known.get(os.environ.get(SETTING, ""), ALLOWANCE))

    @property
    def is_endless(self) -> bool:
        """Whether nothing is to be compiled that need not be."""
        return self.left == float("inf")

    @contextmanager
    def set_to(self, left: float) -> Iterator[None]:
        """Allow for another amount of work for a while."""
        before, self.left = self.left, left
        try:
            yield
        finally:
            self.left = before

    def covers(self, work: float) -> bool:
        """Tell whether work is still allowed for; if so, it is used up."""
        if work > self.left:
            return False
        self.left -= work
        return True


ALLOWED = Allowance.from_environment()


class TrialRun:
    """A run whose results nobody wants: it shows which kernels are called, and compiles some of them.

    The others run plainly. One trial at a time, in a process that does nothing else meanwhile.
    """

    def __init__(
        self, compiles: Callable[[str], bool], meet: Callable[[Kernel[..., Any], Any], None]
    ) -> None:
        self._compiles = compiles
        self._meet = meet

    def __enter__(self) -> TrialRun:
        _TRIALS.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _TRIALS.pop()

    def call(self, kernel: Kernel[..., Any], *args: Any) -> Any:
        """Run a kernel in the way that this trial wants, and tell of it."""
        result = kernel.compiled(*args) if self._compiles(kernel.name) else kernel.plainly(*args)
        self._meet(kernel, args)
        return result


_TRIALS: list[TrialRun] = []


class Kernel(Generic[P, R]):
    """A function that runs as machine code, or plainly.

    Calling it runs machine code. Kernels that call it are compiled with it, or run plainly with it.
    """

    def __init__(self, function: Callable[P, R], **options: Any) -> None:
        self.function = function
        self.options = options
        wraps(function)(self)

    @property
    def name(self) -> str:
        """Where it is: module and name."""
        return f"{self.function.__module__}.{self.function.__name__}"

    @cached_property
    def machine(self) -> Any:
        """The compiled function: a dispatcher of Numba, which compiles on its first call, or loads."""
        machine = self._dispatcher(cache=True, nogil=True)
        _pass_over_what_is_gone(machine)
        return machine

    def _dispatcher(self, **options: Any) -> Any:
        import numba

        options |= {"error_model": "numpy", "no_cfunc_wrapper": True} | self.options
        return numba.njit(**options)(self.function)

    @cached_property
    def plain(self) -> Callable[P, R]:
        """The same function in plain Python; so are all kernels that it calls."""
        function = self.function
        assert isinstance(function, FunctionType)
        return FunctionType(
            function.__code__, _plain_names(function.__globals__), function.__name__, function.__defaults__
        )

    @cached_property
    def plainly(self) -> Callable[P, R]:
        """The plain function without warnings: whole numbers wrap around, 0 / 0 is no number, as compiled."""
        return np.errstate(all="ignore")(self.plain)

    @property
    def is_loaded(self) -> bool:
        """Whether machine code is in use already."""
        return "machine" in self.__dict__ and bool(self.machine.overloads)

    def is_kept(self, args: tuple[Any, ...]) -> bool:
        """Tell whether machine code for such arguments is on disk; no, where Numba does not say so."""
        machine = self.machine
        try:
            cache = machine._cache  # noqa: SLF001
            key = cache._index_key(tuple(map(machine.typeof_pyval, args)), machine.targetctx.codegen())  # noqa: SLF001
            return key in cache._cache_file._load_index()  # noqa: SLF001
        except (AttributeError, TypeError, OSError):  # private parts of Numba, which another version may lack
            return False

    @cached_property
    def _part(self) -> Any:
        """The function as kernels that call it compile it into themselves."""
        from whimbrel.space.kernels.compiler import PartCompiler

        return self._dispatcher(pipeline_class=PartCompiler, no_cpython_wrapper=True)

    @cached_property
    def _numba_type_(self) -> Any:
        """What Numba takes this for where another kernel calls it."""
        from whimbrel.space.kernels.compiler import Callee

        return Callee(self._part)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the machine code."""
        if _TRIALS:
            return _TRIALS[-1].call(self, *args)
        return self.compiled(*args, **kwargs)

    @property
    def compiled(self) -> Callable[P, R]:
        """The function that runs machine code."""
        return self.machine if self.is_loaded else self._first_call

    def _first_call(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Load the machine code or compile it, while other processes that want to do the same wait."""
        with _one_at_a_time(Path(self.machine.stats.cache_path), self.name):
            return self.machine(*args, **kwargs)

    def at(self, work: float) -> Callable[P, R]:
        """Choose the function to call for about so many turns of loops: plain if they are few, else compiled.

        To be used for kernels that add, compare and move only, where both ways give the same to the last bit.
        """
        if _TRIALS:
            return self
        if (ALLOWED.is_endless or not self.is_loaded) and ALLOWED.covers(work):
            return self.plainly
        return self.compiled


def _pass_over_what_is_gone(machine: Any) -> None:
    """Compile anew where the machine code on disk calls for a module that a newer version no longer has."""
    cache = getattr(machine, "_cache", None)
    load = getattr(cache, "load_overload", None)
    if load is None:  # a private part of Numba, which another version may lack
        return

    def load_if_whole(*of: Any) -> Any:
        with suppress(ImportError):
            return load(*of)
        return None

    cache.load_overload = load_if_whole  # type: ignore[union-attr]


class Native:
    """What only compiled code can call; its module is imported when it is first compiled into a kernel."""

    def __init__(self, module: str, name: str, plain: Callable[..., Any]) -> None:
        self._module = module
        self._name = name
        self.plain = plain

    @cached_property
    def _numba_type_(self) -> Any:
        from numba.core.registry import cpu_target

        made = getattr(import_module(self._module), self._name)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(made)


@contextmanager
def _one_at_a_time(folder: Path, name: str) -> Iterator[None]:
    """Let one process of a machine compile a kernel; the others then find it on disk."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / f"{name}.lock").open("w")
    except OSError:  # the folder cannot be written to; neither can machine code
        yield
        return
    with lock:
        with suppress(OSError):  # not every shared file system has locks
            flock(lock, LOCK_EX)
        yield


_PLAIN: dict[str, dict[str, Any]] = {}


def _plain_names(names: dict[str, Any]) -> dict[str, Any]:
    """Copy the names of a module with every kernel replaced by its plain function."""
    module = names["__name__"]
    if module not in _PLAIN:
        replaced = _PLAIN[module] = dict(names)
        for name, value in names.items():
            if isinstance(value, Kernel | Native):
                replaced[name] = value.plain
    return _PLAIN[module]


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Compile `function` on its first call and keep the machine code on disk."""
    return Kernel(function)


def inlined(function: Callable[P, R]) -> Kernel[P, R]:
    """Compile `function` like a kernel, and write it out wherever another one calls it: for small ones."""
    return Kernel(function, forceinline=True)


prefetch: Any = Native("whimbrel.space.kernels.native", "prefetch", plain=lambda _array, _place: None)
"""Ask for the memory at a place of an array (as if it had one dimension), without waiting for it.

The place may lie beyond the array: nothing is read.
"""
