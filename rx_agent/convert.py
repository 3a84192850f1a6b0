"""From transcript to model: which messages a model sees, and as what."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from rx_agent.messages import (
    AgentMessage,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    ToolResultMessage,
    UserMessage,
)


@singledispatch
def convert_to_llm_message(message: AgentMessage) -> Message | None:
    """What a model is shown for ``message``; None keeps it from the model.

    User, assistant and tool result messages stand for themselves. A custom message is dropped unless its class
    is registered here:

    >>> from typing import Literal
    >>> class Reminder(CustomMessage):
    ...     role: Literal["reminder"] = "reminder"
    ...     about: str
    >>> @convert_to_llm_message.register
    ... def _(message: Reminder) -> UserMessage:
    ...     return UserMessage(content=f"Remember: {message.about}", timestamp=message.timestamp)
    >>> convert_to_llm_message(Reminder(about="the milk")).text
    'Remember: the milk'
    """
    raise TypeError(
        f"{type(message).__name__} is not a message: derive it from CustomMessage, or register a conversion "
        "with convert_to_llm_message.register"
    )


@convert_to_llm_message.register(UserMessage)
@convert_to_llm_message.register(AssistantMessage)
@convert_to_llm_message.register(ToolResultMessage)
def _(message: Message) -> Message:
    return message


@convert_to_llm_message.register(CustomMessage)
def _(message: CustomMessage) -> None:
    return None


def bash_execution_to_text(message: BashExecutionMessage) -> str:
    """A shell command for a model: what ran, what it printed, how it ended, what is missing.

    >>> print(bash_execution_to_text(BashExecutionMessage(command="ls", output="a", exit_code=0)))
    Ran `ls`
    ```
    a
    ```
    """
    parts = [f"Ran `{message.command}`"]
    if message.output:
        # A fence longer than any inside, or the output could end the block early.
        fence = "```"
        while fence in message.output:
            fence += "`"
        parts.append(f"{fence}\n{message.output.rstrip(chr(10))}\n{fence}")
    else:
        parts.append("(no output)")
    if message.truncated:
        where = f" The full output is in {message.full_output_path}." if message.full_output_path else ""
        parts.append(f"(output truncated.{where})")
    if message.cancelled:
        parts.append("(command cancelled)")
    elif message.exit_code:
        parts.append(f"Command exited with code {message.exit_code}")
    return "\n".join(parts)


@convert_to_llm_message.register(BashExecutionMessage)
def _(message: BashExecutionMessage) -> UserMessage | None:
    if message.exclude_from_context:
        return None
    return UserMessage(content=bash_execution_to_text(message), timestamp=message.timestamp)


@convert_to_llm_message.register(CompactionSummaryMessage)
def _(message: CompactionSummaryMessage) -> UserMessage:
    return UserMessage(
        content="The conversation before this point was compacted into this summary:\n\n"
        f"<summary>\n{message.summary}\n</summary>",
        timestamp=message.timestamp,
    )


@convert_to_llm_message.register(BranchSummaryMessage)
def _(message: BranchSummaryMessage) -> UserMessage:
    return UserMessage(
        content="This conversation came back from a branch, of which this is a summary:\n\n"
        f"<summary>\n{message.summary}\n</summary>",
        timestamp=message.timestamp,
    )


def convert_to_llm(messages: Iterable[AgentMessage]) -> list[Message]:
    """The default conversion: each message by :func:`convert_to_llm_message`, the dropped ones left out."""
    return [shown for message in messages if (shown := convert_to_llm_message(message)) is not None]
