"""What a running tool knows of its call, and how it says how far it has come."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, cast

from typing_extensions import TypeVar

from rx_agent.abort import AbortSignal
from rx_agent.asyncio_edge import TaskScope
from rx_agent.messages import ToolResult
from rx_agent.tools.results import to_result

DepsT = TypeVar("DepsT", default=Any)


def _nobody_listens(_: ToolResult) -> None:
    """Where updates of a context go that no run is behind (a tool's function called by hand)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext(Generic[DepsT]):
    """Given to every tool that has a parameter annotated ``ToolContext`` (or ``ToolContext[MyDeps]``).

    ``deps`` is whatever the agent was given as its dependencies. ``signal`` is set when this call is to stop:
    the run was aborted or disposed, or the tool's ``timeout`` has passed; a blocking function should look at
    it.
    ``tasks`` owns the asyncio tasks that the call starts.

    >>> from rx_agent.tools import tool
    >>> @tool
    ... def copy_files(paths: list[str], context: ToolContext) -> str:
    ...     for number, path in enumerate(paths):
    ...         if context.signal.aborted:
    ...             break
    ...         context.update(f"{number} of {len(paths)} copied")
    ...         shutil.copy(path, "backup")
    ...     return "done"

    A bare ``ToolContext()`` serves for calling such a function by hand; its updates go nowhere.
    """

    tool_call_id: str = ""
    tool_name: str = ""
    signal: AbortSignal = field(default_factory=AbortSignal, repr=False)
    deps: DepsT = field(default=cast(Any, None), repr=False)
    tasks: TaskScope = field(default_factory=TaskScope, repr=False)
    _announce: Callable[[ToolResult], None] = field(default=_nobody_listens, repr=False, compare=False)

    def update(self, partial: Any) -> None:
        """Announces a partial result at once: anything that a tool may return, from any thread.

        From another thread than the run's it hops there, in order with the tool's result. Once the tool has
        ended (result, error, abort, timeout) an update is ignored. Raises ``TypeError`` for what cannot be a
        result.
        """
        self._announce(to_result(partial))

    def bound(self, announce: Callable[[ToolResult], None], signal: AbortSignal) -> ToolContext[DepsT]:
        """The same context with its updates going to ``announce``, and with a signal of its own."""
        return dataclasses.replace(self, _announce=announce, signal=signal)
