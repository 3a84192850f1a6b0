"""Tools: what a model may call. See :func:`tool`, :func:`tool_from_schema`, :class:`ToolContext`."""

from __future__ import annotations

from rx_agent.tools.context import ToolContext
from rx_agent.tools.decorator import FunctionTool, as_tool, tool, tool_from_schema
from rx_agent.tools.definition import (
    EXECUTION_PARALLEL,
    EXECUTION_SEQUENTIAL,
    PrepareArguments,
    Tool,
    ToolExecutionMode,
)
from rx_agent.tools.execution import ToolEmission
from rx_agent.tools.results import to_result

__all__ = [
    "EXECUTION_PARALLEL",
    "EXECUTION_SEQUENTIAL",
    "FunctionTool",
    "PrepareArguments",
    "Tool",
    "ToolContext",
    "ToolEmission",
    "ToolExecutionMode",
    "as_tool",
    "to_result",
    "tool",
    "tool_from_schema",
]
