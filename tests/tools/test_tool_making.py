"""Anything callable can be a tool, and stays what it was."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from rx_agent.errors import ToolDefinitionError
from rx_agent.tools import (
    EXECUTION_PARALLEL,
    EXECUTION_SEQUENTIAL,
    FunctionTool,
    Tool,
    ToolContext,
    ToolExecutionMode,
    as_tool,
    tool,
    tool_from_schema,
)
from tests.tools.tool_plays import in_virtual_time


class Shop:
    """Sells."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def buy(self, item: str, count: int = 1) -> str:
        """Buys something.

        Args:
            item: What to buy.
        """
        return f"{count} {item} from {self.name}"

    @tool(name="greet_shop")
    async def greet(self, context: ToolContext) -> str:
        return f"{context.tool_call_id}: hello {self.name}"

    @staticmethod
    @tool
    def hours(day: str) -> str:
        return f"open on {day}"

    @tool
    @staticmethod
    def street(day: str) -> str:
        return f"here on {day}"

    @tool
    @classmethod
    def kind(cls, polite: bool) -> str:
        return f"{cls.__name__} {polite}"

    @classmethod
    @tool
    def other_kind(cls, polite: bool) -> str:
        return f"{cls.__name__} {polite}"

    def plain(self, item: str) -> str:
        """A method that nobody decorated."""
        return f"{item} at {self.name}"


def result(ready: Any, **args: Any) -> str:
    ready = as_tool(ready)
    return in_virtual_time(ready, ready.validated(args), ToolContext(tool_call_id="c"))[0][2]


def test_methods_are_tools_of_their_instance() -> None:
    one, two = Shop("one"), Shop("two")
    assert list(one.buy.parameters["properties"]) == ["item", "count"]
    assert one.buy.description == "Buys something."
    assert result(one.buy, item="milk", count="2") == "2 milk from one"
    assert result(two.buy, item="milk") == "1 milk from two"
    assert one.buy("tea") == "1 tea from one"
    assert Shop.buy(two, "tea") == "1 tea from two"
    assert one.greet.name == "greet_shop"
    assert result(one.greet) == "c: hello one"
    assert result(one.plain, item="x") == "x at one"
    assert as_tool(one.plain).description == "A method that nobody decorated."


def test_static_and_class_methods_are_tools_too() -> None:
    assert result(Shop.hours, day="Monday") == result(Shop("x").hours, day="Monday") == "open on Monday"
    assert result(Shop.street, day="Monday") == result(Shop("x").street, day="Monday") == "here on Monday"
    assert result(Shop.kind, polite=True) == result(Shop("x").kind, polite=True) == "Shop True"
    assert result(Shop.other_kind, polite=True) == "Shop True"


def test_a_method_without_its_object_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match=r"Shop\.buy is a method without .* `instance\.buy`"):
        as_tool(Shop.buy)


def test_partials_and_callable_objects_are_tools() -> None:
    class Greeter:
        """Greets people."""

        def __call__(self, name: str) -> str:
            return f"hello {name}"

    class AsyncGreeter:
        async def __call__(self, name: str) -> str:
            """Greets, in time."""
            return f"hello {name}"

    @tool
    def add(a: int, b: int, context: ToolContext) -> str:
        """Adds."""
        return f"{a + b} for {context.tool_call_id}"

    greeter = as_tool(Greeter())
    assert (greeter.name, greeter.description) == ("Greeter", "Greets people.")
    assert result(greeter, name="ada") == result(AsyncGreeter(), name="ada") == "hello ada"
    assert as_tool(AsyncGreeter()).description == "Greets, in time."
    assert result(functools.partial(add, 1), b=2) == result(functools.partial(add, b=2), a=1) == "3 for c"
    assert as_tool(functools.partial(add, 1)).name == "add"


def test_wrappers_show_what_they_wrap() -> None:
    def loud(function: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> str:
            return function(*args, **kwargs).upper()

        return wrapper

    @tool
    @loud
    def say(text: str) -> str:
        """Says it."""
        return text

    assert say.description == "Says it."
    assert result(say, text="hello") == "HELLO"

    @functools.cache
    def slow(n: int) -> int:
        return n

    assert result(slow, n="3") == "3"


def test_the_tool_still_looks_like_its_function() -> None:
    @tool
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(1, b=2) == 3
    assert (add.__name__, add.__doc__) == ("add", "Adds.")  # type: ignore[attr-defined]
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 1) -> 'int'"
    assert as_tool(add) is add
    assert isinstance(add, Tool)
    assert isinstance(add, FunctionTool)
    with pytest.raises(AttributeError):
        add.name = "other"  # type: ignore[misc]


def test_options_are_kept() -> None:
    def mend(arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    @tool(name="n", description="d", execution_mode="sequential", timeout=5, prepare_arguments=mend)
    def function() -> None:
        """Not this."""

    bare = tool_from_schema("n", "d", {}, lambda args: None, execution_mode=EXECUTION_SEQUENTIAL, timeout=5)
    for each in (function, bare):
        assert (each.name, each.description, each.timeout) == ("n", "d", 5)
        assert each.execution_mode is ToolExecutionMode.SEQUENTIAL
    assert function.prepare_arguments is mend
    assert bare.parameters == {"type": "object", "properties": {}}
    assert EXECUTION_PARALLEL is ToolExecutionMode.PARALLEL
    with pytest.raises(ToolDefinitionError, match="known are 'parallel', 'sequential'"):
        tool(execution_mode="both")(mend)  # type: ignore[call-overload]


def test_a_schema_that_changes_later_does_not_change_the_tool() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "integer"}}}
    ready = tool_from_schema("n", "", schema, lambda args: args)
    schema["properties"]["a"]["type"] = "string"
    assert ready.parameters["properties"]["a"]["type"] == "integer"


@pytest.mark.parametrize("thing", [5, None, "add", Shop, Shop("x"), object()])
def test_what_is_no_tool_is_refused(thing: Any) -> None:
    with pytest.raises(ToolDefinitionError):
        as_tool(thing)


def test_options_given_by_position_are_refused_in_words() -> None:
    with pytest.raises(ToolDefinitionError, match=r"@tool\(name="):
        tool("add")  # type: ignore[call-overload]
    with pytest.raises(ToolDefinitionError, match="body must be callable"):
        tool_from_schema("n", "", {}, 5)  # type: ignore[arg-type]
