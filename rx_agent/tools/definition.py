"""What a tool is to the loop: a name, a schema, a check of arguments, and a cold observable of results."""

from __future__ import annotations

import copy
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias, cast

from reactivex import Observable

from rx_agent.errors import ToolArgumentsError, ToolDefinitionError
from rx_agent.reporting import reason_of
from rx_agent.tools.context import ToolContext
from rx_agent.tools.execution import ToolEmission, execution
from rx_agent.tools.problems import Misfit, arguments_error

PrepareArguments: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Mends a model's raw arguments before they are validated; gets a copy, returns the arguments to validate."""


class ToolExecutionMode(StrEnum):
    """Whether the calls of one answer run together or one after another."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


EXECUTION_PARALLEL = ToolExecutionMode.PARALLEL
EXECUTION_SEQUENTIAL = ToolExecutionMode.SEQUENTIAL

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every provider accepts


@dataclass(frozen=True, eq=False, kw_only=True)
class Tool:
    """Something that a model may call. Made by :func:`tool`, :func:`as_tool` or :func:`tool_from_schema`.

    ``parameters`` is a JSON schema of type object. ``execution_mode`` None leaves the order to the agent; one
    sequential tool makes its whole batch sequential. ``timeout`` is in seconds, None for ever.
    """

    name: str
    description: str
    parameters: dict[str, Any] = field(repr=False)
    execution_mode: ToolExecutionMode | None = None
    timeout: float | None = None
    prepare_arguments: PrepareArguments | None = field(default=None, repr=False)
    check: Callable[[dict[str, Any]], dict[str, Any]] = field(repr=False)
    """Arguments in, values out; raises ``Misfit``. Use :meth:`validated`."""
    body: Callable[[dict[str, Any], ToolContext[Any]], Observable[ToolEmission]] = field(repr=False)
    """The work itself, without timeout and updates. Use :meth:`run`."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ToolDefinitionError(
                f"{self.name!r} is no name for a tool: providers accept 1 to 64 of a-z, A-Z, 0-9, _ and -. "
                "Give one with name=..."
            )
        object.__setattr__(self, "execution_mode", _mode(self.name, self.execution_mode))
        prepare: Any = self.prepare_arguments
        if prepare is not None and (not callable(prepare) or inspect.iscoroutinefunction(prepare)):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: prepare_arguments={prepare!r:.80} must be a plain function (not a coroutine) "
                "that takes the raw arguments and returns a dict"
            )
        timeout: Any = self.timeout
        if timeout is not None and not (
            isinstance(timeout, int | float) and math.isfinite(timeout) and timeout > 0
        ):
            raise ToolDefinitionError(
                f"Tool {self.name!r}: timeout={timeout!r} is not a positive number of seconds. "
                "Leave it out for no limit."
            )

    def validated(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``arguments`` as a model sent them, mended by ``prepare_arguments``, checked and converted.

        Raises ``ToolArgumentsError``, whose text tells a model what to do better. ``arguments`` stays as it
        is.

        >>> from rx_agent.tools import tool
        >>> @tool
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> add.validated({"a": "1", "b": 2})
        {'a': 1, 'b': 2}
        """
        prepared = copy.deepcopy(arguments)
        if self.prepare_arguments is not None:
            try:
                prepared = self.prepare_arguments(prepared)
            except Exception as error:
                reason = reason_of(error)
                raise arguments_error(self.name, [f"could not be prepared: {reason}"], arguments) from error
        if not isinstance(cast(Any, prepared), dict):
            problem = f"must be a JSON object, not {type(prepared).__name__}"
            raise arguments_error(self.name, [problem], arguments)
        try:
            return self.check(prepared)
        except Misfit as misfit:
            raise arguments_error(self.name, misfit.problems, arguments) from misfit.__cause__
        except ToolArgumentsError:
            raise
        except Exception as error:  # a validator of the user's own that raises something else
            reason = f"{type(error).__name__}: {reason_of(error)}"
            raise arguments_error(self.name, [f"could not be validated: {reason}"], arguments) from error

    def run(self, args: dict[str, Any], context: ToolContext[Any]) -> Observable[ToolEmission]:
        """Cold: partial results, then one final, then completion. ``args`` are what :meth:`validated` gave.

        A body that raises is ``on_error`` with its exception. After ``timeout`` seconds on the scheduler
        subscribed with it is ``ToolTimeoutError``, and the body is disposed. Disposing cancels the body and
        sets its signal; a function in a worker thread cannot be killed, what it returns later is dropped.
        """
        return execution(lambda own: self.body(args, own), context, tool_name=self.name, timeout=self.timeout)


def _mode(name: str, mode: str | None) -> ToolExecutionMode | None:
    try:
        return None if mode is None else ToolExecutionMode(mode)
    except ValueError as error:
        known = ", ".join(repr(str(item)) for item in ToolExecutionMode)
        raise ToolDefinitionError(
            f"Tool {name!r}: execution_mode={mode!r} is unknown; known are {known}"
        ) from error
