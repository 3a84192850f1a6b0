"""What kind of callable something is: its function, its name, its annotations, how its body has to be run."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import AsyncIterable, Awaitable, Callable
from types import FrameType, FunctionType
from typing import Any, cast

from reactivex import Observable

from rx_agent.errors import ToolDefinitionError
from rx_agent.tools.context import ToolContext
from rx_agent.tools.execution import BodyKind

_NAMESPACE = {"ToolContext": ToolContext, "Observable": Observable}  # also if imported for type checkers only


def implementation(function: Any) -> Any:
    """The plain function at the bottom of a partial, a bound method, a tool, an object with ``__call__``."""
    while not (inspect.isfunction(function) or inspect.isbuiltin(function)):
        if isinstance(function, functools.partial):
            function = cast(Any, function).func
        elif inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):  # a tool, or what functools.cache makes
            function = function.__wrapped__
        else:
            inner = getattr(cast(Any, type(function)), "__call__", None)  # noqa: B004
            return inner if inspect.isfunction(inner) else function
    return function


def name_of_callable(function: Any) -> str:
    """A function's name; that of the class for an object with ``__call__``."""
    inner = implementation(function)
    name = str(getattr(inner, "__name__", ""))
    if name == "__call__":
        while isinstance(function, functools.partial):
            function = cast(Any, function).func
        return type(function).__name__
    return name


def docstring_of(function: Any) -> str | None:
    """A function's docstring; the class's for an object whose ``__call__`` has none."""
    inner = implementation(function)
    doc = cast("str | None", getattr(inner, "__doc__", None))
    if getattr(inner, "__name__", "") == "__call__" and not doc:
        while isinstance(function, functools.partial):
            function = cast(Any, function).func
        return type(function).__doc__
    return doc


def signature_of(function: Any) -> inspect.Signature:
    """The signature, annotations not evaluated. Raises ``ToolDefinitionError`` where Python knows none."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError, NameError) as error:
        raise ToolDefinitionError(
            f"{name_of_callable(function) or function!r} has no readable signature ({error}). "
            "Wrap it in a function with annotated parameters."
        ) from error
    if isinstance(function, functools.partial):
        # What a partial fixes by keyword is not the model's to choose.
        fixed = set(cast(Any, function).keywords)
        kept = [each for name, each in signature.parameters.items() if name not in fixed]
        signature = signature.replace(parameters=kept)
    return signature


def evaluated(function: Any, name: str, annotation: Any) -> Any:
    """``annotation`` with its strings evaluated where ``function`` was written. Raises ``NameError``.

    Names of an enclosing function are found while that still runs, so tools may be defined inside functions.
    """
    inner = inspect.unwrap(implementation(function))
    known = getattr(inner, "__globals__", {})
    nonlocals = _closed_over(inner) if inspect.isfunction(inner) else {}

    def carrier() -> None: ...

    carrier.__annotations__ = {name: annotation}
    frame: FrameType | None = inspect.currentframe()
    local = {**_NAMESPACE, **nonlocals}
    while True:
        try:
            return typing.get_type_hints(carrier, known, local, include_extras=True)[name]
        except NameError:
            frame = _next_outside(frame)
            if frame is None:
                raise
            local = {**frame.f_locals, **_NAMESPACE, **nonlocals}


def _closed_over(function: FunctionType) -> dict[str, Any]:
    """The variables of enclosing functions that ``function`` uses and that have a value yet.

    A tool often speaks of the agent that it is about to be given to; ``inspect.getclosurevars`` raises for that.
    """
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # still empty
            found[name] = cell.cell_contents
    return found


def _next_outside(frame: FrameType | None) -> FrameType | None:
    """The next calling function outside of this package."""
    package = __name__.rpartition(".")[0]
    frame = frame and frame.f_back
    while frame is not None and (
        frame.f_locals is frame.f_globals or str(frame.f_globals.get("__name__", "")).startswith(package)
    ):
        frame = frame.f_back
    return frame


def kind_of(function: Callable[..., Any]) -> BodyKind:
    """How the body has to be run."""
    inner = implementation(function)
    if inspect.iscoroutinefunction(inner):
        return BodyKind.COROUTINE
    if inspect.isasyncgenfunction(inner):
        return BodyKind.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(inner):
        return BodyKind.GENERATOR
    returned = _returned(function, inner)
    origin = typing.get_origin(returned) or returned
    if isinstance(origin, type) and issubclass(origin, Observable | Awaitable | AsyncIterable):
        return BodyKind.INLINE
    return BodyKind.BLOCKING


def _returned(function: Any, inner: Any) -> Any:
    annotation: Any = getattr(inspect.unwrap(inner), "__annotations__", {}).get("return")
    # Of a name that is there for type checkers only, the part before the bracket may do; if that is unknown
    # too, the call's value will tell.
    for candidate in (annotation, annotation.partition("[")[0] if isinstance(annotation, str) else None):
        try:
            return evaluated(function, "return", candidate)
        except NameError:
            continue
    return None
