"""Making tools: from functions, from callables of all kinds, from bare JSON schemas."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast, overload

from reactivex import Observable

from rx_agent.errors import ToolDefinitionError
from rx_agent.tools.callables import implementation, kind_of, name_of_callable, signature_of
from rx_agent.tools.context import ToolContext
from rx_agent.tools.definition import PrepareArguments, Tool, ToolExecutionMode
from rx_agent.tools.execution import ToolEmission, start_body
from rx_agent.tools.schema import CheckedSchema
from rx_agent.tools.signature import FunctionSpec, read_function
from rx_agent.tools.validation import schema_check

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")

ModeArgument: TypeAlias = ToolExecutionMode | Literal["parallel", "sequential"]
SchemaBody: TypeAlias = Callable[[dict[str, Any]], Any] | Callable[[dict[str, Any], ToolContext[Any]], Any]
"""The body of a tool from a bare schema, with or without the context."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionTool(Tool, Generic[P, R]):
    """A tool made of a function, which it still is: calling it calls ``function``.

    In a class body it is a method: read from an instance it is that instance's tool.
    """

    function: Callable[P, R] = field(repr=False)
    spec: FunctionSpec = field(repr=False)
    binds: Literal["nothing", "instance", "class"] = field(default="nothing", repr=False)
    """What the function's first parameter still waits for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for attribute in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(self.function, attribute):
                self.__dict__[attribute] = getattr(self.function, attribute)
        self.__dict__["__wrapped__"] = self.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, called as always."""
        return self.function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> FunctionTool[P, R]: ...
    @overload
    def __get__(
        self: FunctionTool[Concatenate[S, Q], R], instance: S, owner: type[Any] | None = None
    ) -> FunctionTool[Q, R]: ...
    def __get__(self, instance: Any, owner: type[Any] | None = None) -> FunctionTool[Any, R]:
        if self.binds == "class":
            return self.bound_to(owner if instance is None else type(instance))
        if self.binds == "nothing" or instance is None:
            return self
        return self.bound_to(instance)

    def bound_to(self, first: Any) -> FunctionTool[Any, R]:
        """The tool of a method whose first argument is ``first``."""
        function = MethodType(cast(Any, self.function), first)
        return dataclasses.replace(
            cast(Any, self),
            function=function,
            body=_function_body(function, self.spec, self.name),
            binds="nothing",
        )


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    execution_mode: ModeArgument | None = None,
    timeout: float | None = None,
    prepare_arguments: PrepareArguments | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    execution_mode: ModeArgument | None = None,
    timeout: float | None = None,
    prepare_arguments: PrepareArguments | None = None,
) -> Any:
    """Makes a function a tool, its schema and docs taken from signature, annotations and docstring.

    The function may be a plain one (it runs in a worker thread where there is an event loop, so it may
    block), a coroutine function, a generator or async generator function, or one that returns an Observable
    (annotate it ``-> Observable[...]`` and it is called where the run is, not in a thread). What generators
    and observables emit are partial results; a ``ToolResult`` ends them, without one the last item is the
    result. For what can be returned see :func:`to_result`. A parameter annotated ``ToolContext`` is given the
    call's context.

    An argument is documented by ``Annotated[int, "text"]``, ``Field(description=...)`` or the docstring.
    ``name`` and ``description`` stand in for the function's own; ``timeout`` is in seconds.

    Raises ``ToolDefinitionError``, naming function and parameter, for what cannot be a tool.

    >>> @tool
    ... def add(a: int, b: int = 1) -> int:
    ...     '''Adds two numbers.'''
    ...     return a + b
    >>> add(1, 2), add.name, add.description
    (3, 'add', 'Adds two numbers.')
    """
    options: dict[str, Any] = {
        "name": name,
        "description": description,
        "execution_mode": execution_mode,
        "timeout": timeout,
        "prepare_arguments": prepare_arguments,
    }
    if function is None:
        return functools.partial(_function_tool, options=options)
    return _function_tool(function, options=options)


def as_tool(candidate: Any) -> Tool:
    """``candidate`` as a tool: a tool itself, or a function or other callable, as :func:`tool` makes it.

    Raises ``ToolDefinitionError`` for anything else, and for the tool of a method that has no instance.
    """
    if inspect.ismethod(candidate) and isinstance(inner := cast(Any, candidate.__func__), FunctionTool):
        # What `@classmethod` above `@tool` gives from Python 3.13 on.
        return cast("FunctionTool[..., Any]", inner).bound_to(candidate.__self__)
    if not isinstance(candidate, Tool):
        return _function_tool(candidate, options={})
    if getattr(candidate, "binds", "nothing") != "nothing":
        name = getattr(candidate, "__name__", candidate.name)
        raise ToolDefinitionError(
            f"{getattr(candidate, '__qualname__', name)} is a method without its object. "
            f"Make an instance and give `instance.{name}`."
        )
    return candidate


def tool_from_schema(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    body: SchemaBody,
    *,
    execution_mode: ModeArgument | None = None,
    timeout: float | None = None,
    prepare_arguments: PrepareArguments | None = None,
) -> Tool:
    """A tool from a JSON schema and a callable, for sources with schemas of their own, such as MCP servers.

    ``body(args)`` or ``body(args, context)`` is of any kind that :func:`tool` takes. Arguments are checked by
    the schema (Draft 2020-12 unless its ``$schema`` says otherwise) after a model's usual slips are mended:
    ``"5"`` for 5, JSON text for an object, null for something optional, one value for a list.

    Raises ``ToolDefinitionError`` for a schema that is broken or not of type object.

    >>> shout = tool_from_schema(
    ...     "shout", "Says it loudly.", {"properties": {"text": {"type": "string"}}, "required": ["text"]},
    ...     lambda args: args["text"].upper(),
    ... )
    """
    if not callable(body):
        raise ToolDefinitionError(f"Tool {name!r}: body must be callable, not {type(body).__name__}.")
    if not isinstance(cast(object, parameters), Mapping):
        raise ToolDefinitionError(
            f"Tool {name!r}: parameters must be a JSON schema as a dict, not {type(parameters).__name__}."
        )
    schema = CheckedSchema(name, copy.deepcopy(dict(parameters)))
    kind = kind_of(body)
    with_context = _takes_context(body)
    call: Callable[..., Any] = body

    def start(args: dict[str, Any], context: ToolContext[Any]) -> Observable[ToolEmission]:
        return start_body(lambda: call(args, context) if with_context else call(args), kind, context, name)

    return Tool(
        name=name,
        description=description,
        parameters=schema.root,
        execution_mode=cast(Any, execution_mode),
        timeout=timeout,
        prepare_arguments=prepare_arguments,
        check=schema_check(schema),
        body=start,
    )


def _takes_context(body: Callable[..., Any]) -> bool:
    """Whether there is a second positional parameter that is the context's, not an option with a default."""
    try:
        parameters = list(signature_of(body).parameters.values())
    except ToolDefinitionError:  # a builtin that tells nothing of itself: body(args)
        return False
    positional = [
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(positional) < 2:
        return False
    return positional[1].default is inspect.Parameter.empty or "ToolContext" in str(positional[1].annotation)


def _function_tool(function: Any, *, options: Mapping[str, Any]) -> FunctionTool[..., Any]:
    binds: Literal["nothing", "instance", "class"] = "nothing"
    if isinstance(function, classmethod):
        function, binds = cast(Any, function).__func__, "class"
    elif isinstance(function, staticmethod):
        function = cast(Any, function).__func__
    elif _is_method_in_the_making(function):
        binds = "instance"
    if not callable(function) or isinstance(function, type):
        what = f"the class {function.__name__}" if isinstance(function, type) else repr(function)
        raise ToolDefinitionError(
            f"{what} is no tool. A tool is a function (or another callable), or what `@tool` or "
            "`tool_from_schema(...)` made. Options are given by name: `@tool(name=...)`."
        )
    name: str = options.get("name") or name_of_callable(function)
    spec = read_function(function, name, skip_first=binds != "nothing")
    given = options.get("description")
    return FunctionTool(
        name=name,
        description=spec.description if given is None else given,
        parameters=spec.parameters,
        execution_mode=options.get("execution_mode"),
        timeout=options.get("timeout"),
        prepare_arguments=options.get("prepare_arguments"),
        check=spec.check,
        body=_function_body(function, spec, name),
        function=function,
        spec=spec,
        binds=binds,
    )


def _function_body(
    function: Callable[..., Any], spec: FunctionSpec, name: str
) -> Callable[[dict[str, Any], ToolContext[Any]], Observable[ToolEmission]]:
    def start(args: dict[str, Any], context: ToolContext[Any]) -> Observable[ToolEmission]:
        def call() -> Any:
            positional, keywords = spec.arguments(args, context)
            return function(*positional, **keywords)

        return start_body(call, spec.kind, context, name)

    return start


def _is_method_in_the_making(function: Any) -> bool:
    """Whether ``function`` stands in a class body, where it is not bound yet, and begins with ``self``."""
    if not inspect.isfunction(function):
        return False
    inner = inspect.unwrap(implementation(function))
    outer = str(getattr(inner, "__qualname__", "")).rpartition(".")[0]
    parameters = list(inspect.signature(function).parameters)
    return bool(outer) and not outer.endswith("<locals>") and parameters[:1] in (["self"], ["cls"])
