"""Errors for wrong use. Failures of models, tools and hooks are data, not exceptions."""

from __future__ import annotations


class RxAgentError(Exception):
    """Base of every exception that this package raises or signals itself."""


class AgentBusyError(RxAgentError):
    """A run is active. Use ``steer`` or ``follow_up``, wait for it, or work on a ``fork()``."""


class ContinueError(RxAgentError):
    """There is nothing to continue from."""


class ConfigurationError(RxAgentError, ValueError):
    """Something was given that cannot work; the message names it and the way out."""


class NoEventLoopError(RxAgentError, RuntimeError):
    """Something needs a running asyncio event loop and there is none."""


class EventLoopRunningError(RxAgentError, RuntimeError):
    """A blocking call was made where an event loop runs and would be stalled."""


class ToolDefinitionError(ConfigurationError, TypeError):
    """A function cannot be made a tool; the message names the parameter."""


class ToolArgumentsError(RxAgentError, ValueError):
    """A model's arguments do not fit a tool; the message is written for the model."""


class ToolTimeoutError(RxAgentError, TimeoutError):
    """A tool took longer than its ``timeout``."""


class RunFailedError(RxAgentError):
    """Signalled by ``raise_on_error()``: a run ended in an error or an abort (``reason``)."""

    def __init__(self, message: str, reason: str = "error") -> None:
        super().__init__(message)
        self.reason = reason
