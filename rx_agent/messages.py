"""The transcript's vocabulary: content blocks and messages, frozen, JSON-ready.

Any Unicode is kept as it came, lone surrogates included (providers repair those only on the wire), which is why
``to_json`` and ``message_from_json`` go through escaped JSON rather than UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, cast

import pydantic_core
from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter

from rx_agent.models import Frozen, Usage

StopReason: TypeAlias = Literal["stop", "length", "tool_use", "error", "aborted"]
ErrorKind: TypeAlias = Literal[
    "auth",
    "rate_limit",
    "overloaded",
    "context_overflow",
    "invalid_request",
    "refused",
    "network",
    "timeout",
    "unknown",
]


class TextContent(Frozen):
    """Plain text. ``signature`` is an opaque provider token that goes back only to the model that made it."""

    type: Literal["text"] = "text"
    text: str
    signature: str | None = None


class ThinkingContent(Frozen):
    """A model's reasoning. ``redacted`` ones carry only a ``signature``."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str | None = None
    redacted: bool = False


class ImageContent(Frozen):
    """An image: ``data`` is base64, ``mime_type`` such as ``"image/png"``."""

    type: Literal["image"] = "image"
    data: str
    mime_type: str


class ToolCall(Frozen):
    """A model's wish to run a tool.

    ``arguments`` is the parsed JSON object. Where the model's text was no JSON object, ``arguments`` holds what
    could be saved of it and ``invalid_arguments`` the raw text; such a call is answered with an error, never run.
    """

    type: Literal["tool_call"] = "tool_call"
    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    invalid_arguments: str | None = None
    signature: str | None = None


UserContent: TypeAlias = Annotated[TextContent | ImageContent, Field(discriminator="type")]
AssistantContent: TypeAlias = Annotated[TextContent | ThinkingContent | ToolCall, Field(discriminator="type")]


def _as_blocks(value: Any) -> Any:
    """A bare string, or a single block, stands for a list of one block."""
    if isinstance(value, str):
        return (TextContent(text=value),)
    if isinstance(value, BaseModel):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, dict):
        items = cast("Iterable[Any]", value)
        return tuple(TextContent(text=item) if isinstance(item, str) else item for item in items)
    return cast(Any, value)


UserInput: TypeAlias = str | TextContent | ImageContent | Iterable[str | TextContent | ImageContent]
"""What may be given as content: text, a block, or several of them."""
UserBlocks: TypeAlias = Annotated[tuple[UserContent, ...], BeforeValidator(_as_blocks)]
AssistantBlocks: TypeAlias = Annotated[tuple[AssistantContent, ...], BeforeValidator(_as_blocks)]


def joined_text(content: Iterable[object]) -> str:
    """The text blocks of ``content``, joined without a separator."""
    return "".join(block.text for block in content if isinstance(block, TextContent))


class UserMessage(Frozen):
    """What the user says. ``content`` may be given as a plain string. ``timestamp`` in ms since the epoch.

    >>> UserMessage(content="hi").text
    'hi'
    """

    role: Literal["user"] = "user"
    content: UserBlocks
    timestamp: int = 0

    if TYPE_CHECKING:

        def __init__(self, *, content: UserInput, timestamp: int = 0) -> None: ...

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return joined_text(self.content)


class AssistantMessage(Frozen):
    """What a model answered.

    ``stop_reason`` is None only while the message still streams. ``error_message`` and ``error_kind`` say why a
    message of stop reason ``error`` or ``aborted`` ended.
    """

    role: Literal["assistant"] = "assistant"
    content: AssistantBlocks = ()
    api: str = ""
    provider: str = ""
    model: str = ""
    usage: Usage = Field(default_factory=Usage)
    stop_reason: StopReason | None = "stop"
    error_message: str | None = None
    error_kind: ErrorKind | None = None
    response_id: str | None = None
    timestamp: int = 0

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: str | Iterable[str | TextContent | ThinkingContent | ToolCall] = (),
            api: str = "",
            provider: str = "",
            model: str = "",
            usage: Usage = ...,
            stop_reason: StopReason | None = "stop",
            error_message: str | None = None,
            error_kind: ErrorKind | None = None,
            response_id: str | None = None,
            timestamp: int = 0,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return joined_text(self.content)

    @property
    def thinking(self) -> str:
        """The thinking blocks, joined."""
        return "".join(block.thinking for block in self.content if isinstance(block, ThinkingContent))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in source order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class ToolResult(Frozen):
    """What a tool gives back: ``content`` for the model, ``details`` for people and programs.

    ``terminate`` asks the run to end after this batch (it does if every result of the batch asks).

    >>> ToolResult(content="42").text
    '42'
    """

    content: UserBlocks = ()
    details: Any = None
    usage: Usage | None = None
    terminate: bool | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            content: UserInput = (),
            details: Any = None,
            usage: Usage | None = None,
            terminate: bool | None = None,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return joined_text(self.content)


class ToolResultMessage(Frozen):
    """A tool's result as the model sees it, answering the call ``tool_call_id``."""

    role: Literal["tool_result"] = "tool_result"
    tool_call_id: str
    tool_name: str
    content: UserBlocks = ()
    details: Any = None
    usage: Usage | None = None
    is_error: bool = False
    timestamp: int = 0

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tool_call_id: str,
            tool_name: str,
            content: UserInput = (),
            details: Any = None,
            usage: Usage | None = None,
            is_error: bool = False,
            timestamp: int = 0,
        ) -> None: ...

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return joined_text(self.content)


class CustomMessage(Frozen):
    """Base for messages of your own that live in the transcript beside the model's.

    Give the subclass a literal ``role``. The model does not see it unless a conversion is registered with
    ``convert_to_llm_message.register`` (see :mod:`rx_agent.convert`).

    >>> class Note(CustomMessage):
    ...     role: Literal["note"] = "note"
    ...     text: str
    """

    roles: ClassVar[dict[str, type[CustomMessage]]] = {}
    """Every subclass by its role, so that transcripts load back as what they were."""

    role: str
    timestamp: int = 0

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        default = cls.model_fields["role"].default
        if isinstance(default, str):
            if default in _LLM_ROLES:
                raise TypeError(
                    f"{cls.__name__}.role: {default!r} is a role of the runtime's own; choose another"
                )
            CustomMessage.roles[default] = cls


_LLM_ROLES = frozenset({"user", "assistant", "tool_result"})


class BashExecutionMessage(CustomMessage):
    """A shell command that the user ran beside the conversation, with what it printed.

    ``exit_code`` is None where the command was cancelled or never ended. ``exclude_from_context`` keeps it from
    the model.
    """

    role: Literal["bash_execution"] = "bash_execution"  # pyright: ignore[reportIncompatibleVariableOverride]
    command: str
    output: str = ""
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    exclude_from_context: bool = False


class CompactionSummaryMessage(CustomMessage):
    """Stands for the part of the conversation that was compacted away (``tokens_before`` tokens long)."""

    role: Literal["compaction_summary"] = "compaction_summary"  # pyright: ignore[reportIncompatibleVariableOverride]
    summary: str
    tokens_before: int = 0


class BranchSummaryMessage(CustomMessage):
    """Stands for a branch of the conversation that was left (``from_id``: the entry it forked from)."""

    role: Literal["branch_summary"] = "branch_summary"  # pyright: ignore[reportIncompatibleVariableOverride]
    summary: str
    from_id: str = ""


Message: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage
"""What a model understands."""

AgentMessage: TypeAlias = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage
"""What a transcript holds."""

_MESSAGE: TypeAdapter[Message] = TypeAdapter(Annotated[Message, Field(discriminator="role")])


def to_json(value: BaseModel | Iterable[BaseModel]) -> str:
    """One line of ASCII JSON for a message, a block, a ``Usage`` … or a list of them.

    Values inside ``details`` that JSON lacks (dataclasses, paths, dates …) are written as pydantic writes them,
    and what pydantic does not know, and keys that are no strings, as their ``repr``.

    >>> to_json(ToolResult(details={(1, 2): b"raw"}))
    '{"content": [], "details": {"(1, 2)": "raw"}, "usage": null, "terminate": null}'
    """
    data: Any = value.model_dump() if isinstance(value, BaseModel) else [item.model_dump() for item in value]
    try:
        return json.dumps(data, ensure_ascii=True, default=pydantic_core.to_jsonable_python)
    except (TypeError, ValueError):
        return json.dumps(_plain(data), ensure_ascii=True)


def _plain(value: Any) -> Any:
    """``value`` in what JSON has, whatever it is."""
    match value:
        case None | str() | bool() | int() | float():
            return value
        case dict():
            items = cast("dict[Any, Any]", value).items()
            return {key if isinstance(key, str) else _key(key): _plain(item) for key, item in items}
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in cast("Iterable[Any]", value)]
        case bytes() | bytearray():
            return value.decode(errors="backslashreplace")
        case _:
            return pydantic_core.to_jsonable_python(value, fallback=repr)


def _key(key: Any) -> str:
    return json.dumps(key) if key is None or isinstance(key, bool | int | float) else repr(key)


def message_from_dict(data: dict[str, Any]) -> AgentMessage:
    """The message that ``data`` describes, by its ``role``.

    Raises ``ValueError`` for a role nobody defined (import the module with your ``CustomMessage`` first) and
    pydantic's ``ValidationError``, a ``ValueError`` too, for fields that do not fit.
    """
    role = data.get("role")
    if role in _LLM_ROLES:
        return _MESSAGE.validate_python(data)
    kind = CustomMessage.roles.get(str(role))
    if kind is None:
        known = ", ".join(sorted([*_LLM_ROLES, *CustomMessage.roles]))
        raise ValueError(f"role: {role!r} is not a message kind known here; known are {known}")
    return kind.model_validate(data)


def message_from_json(text: str) -> AgentMessage:
    """The inverse of :func:`to_json` for one message."""
    return message_from_dict(json.loads(text))


def messages_from_json(text: str) -> list[AgentMessage]:
    """The inverse of :func:`to_json` for a list of messages."""
    return [message_from_dict(item) for item in json.loads(text)]
