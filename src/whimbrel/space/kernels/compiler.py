"""How Numba compiles kernels that other kernels call; loaded when something is compiled.

Numba optimises every function that it compiles, twice, and makes machine code of it. It then takes the result
into each function that calls it, and there all of it is optimised once more. Of kernels that call each other
five deep, the innermost goes through that six times. A *part* is compiled only as far as its callers need it:
to the compiler's intermediate language. With it, the kernels of a query are ready in two thirds of the time.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc, types  # type: ignore[attr-defined]  # compiled: it has no types
from numba.core import targetconfig
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.types.functions import BaseFunction
from numba.extending import models, register_model


class Callee(types.Dispatcher):
    """The type of a part where it is called, which does not tell one constant from another.

    Numba compiles a function anew for each constant that it is called with: `walk(run, 0)`, `walk(run, -1)`
    and `walk(run, n)` would be three functions. Here they are one.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Resolve a call by the types of what is passed, constants or not."""
        plain = {name: types.unliteral(kind) for name, kind in kws.items()}
        return super().get_call_type(context, tuple(map(types.unliteral, args)), plain)


register_model(Callee)(models.OpaqueModel)


class PartLibrary(JITCodeLibrary):
    """Code that is taken into that of its callers, and never runs by itself."""

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        """Make no machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lower a function as a part."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower it, and tell its callers where to find it: by an entry that cannot be called."""
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        of = lowered.fndesc
        no_address = 0
        entry = _dynfunc.make_function(
            of.lookup_module(), of.qualname, of.qualname, no_address, lowered.env, (state.library,)
        )
        state.targetctx.insert_user_function(entry, of, [state.library])
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class PartCompiler(CompilerBase):
    """Compiles a function as a part."""

    def define_pipelines(self) -> list[Any]:
        """List the usual steps, but for the last."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.add_pass_after(PartLowering, NativeLowering)
        steps.passes = [step for step in steps.passes if step[0] is not NativeLowering]
        steps.finalize()
        return [steps]


def take_shortcuts() -> None:
    """Let Numba remember what it works out again and again: for processes that do nothing but compile.

    It changes Numba for the whole process: two classes get other methods, which answer as before. Saves a
    sixth of the time.
    """
    _compare_settings_quickly()
    _remember_types_of_calls()


def _compare_settings_quickly() -> None:
    """Compare settings by what was set: Numba puts all of them together whenever it looks something up."""
    settings: Any = targetconfig.TargetConfig

    def equal(one: Any, other: Any) -> Any:
        if not isinstance(other, settings):
            return NotImplemented
        return one._values == other._values or one.values() == other.values()  # noqa: SLF001

    # Numba hashes the names of settings alone: one number for all of them, too.
    settings.__hash__ = lambda _: 0
    settings.__eq__ = equal


_PLAIN_TYPES = frozenset({types.Array, types.Boolean, types.Float, types.Integer})


def _remember_types_of_calls() -> None:
    """Find what `array[i]` or `a + b` gives once: Numba tries all that it knows of, wherever it stands."""
    functions: Any = BaseFunction
    resolve = functions.get_call_type
    known: dict[Any, Any] = {}

    def resolve_once(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(type(kind) in _PLAIN_TYPES for kind in args):
            return resolve(function, context, args, kws)
        key = (function, context, tuple(args))
        if key not in known:
            signature = resolve(function, context, args, kws)
            if signature is None:
                return None
            known[key] = signature
        return known[key]

    functions.get_call_type = resolve_once
