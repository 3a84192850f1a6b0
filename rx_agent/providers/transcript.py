"""One transcript for any model: what another model said, signed or numbered becomes what this one can read.

Every wire API builds its request from :func:`transcript_for`; the stored transcript is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from rx_agent.messages import (
    AssistantMessage,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from rx_agent.models import Model
from rx_agent.providers.valid_transcript import valid_transcript
from rx_agent.providers.wire_json import IdentityCache

NO_IMAGE = "(an image was here; this model takes none)"

B = TypeVar("B")


def made_by(message: AssistantMessage, model: Model) -> bool:
    """Whether ``message`` is the model's own, so that its signatures mean something to it.

    >>> model = Model(id="m", api="openai_chat", provider="acme")
    >>> made_by(AssistantMessage(api="openai_chat", provider="acme", model="m"), model)
    True
    """
    return (message.api, message.provider, message.model) == (model.api, model.provider, model.id)


def transcript_for(model: Model, messages: Iterable[Message], *, merge_users: bool = False) -> list[Message]:
    """``messages`` as ``model`` may be sent them: :func:`~rx_agent.providers.valid_transcript.valid_transcript`
    of what it can read, in O(n).

    - Of another model's answer (another ``api``, ``provider`` or ``model``) thinking becomes text, redacted
      thinking is left out, and signatures are taken off. A model's own answers are unchanged.
    - For a model that takes no images (``model.input``), each run of them becomes a note.

    Messages that need no change are the same objects as before, and the same message becomes the same object
    each time, so that what was cached for them still serves.

    >>> other = AssistantMessage(content=[ThinkingContent(thinking="hm", signature="s")], model="other")
    >>> transcript_for(Model(id="m", api="openai_chat", provider="acme"), [other])[0].content
    (TextContent(type='text', text='hm', signature=None),)
    """
    sees = "image" in model.input

    def read(message: Message) -> Message:
        own = not isinstance(message, AssistantMessage) or made_by(message, model)
        return _READ.get(message, (own, sees), lambda: _readable(message, own, sees)) or message

    return valid_transcript(map(read, messages), merge_users=merge_users)


_READ: IdentityCache[Message | None] = IdentityCache()
"""The message as another model reads it, or None where it is fine as it is."""


def _readable(message: Message, own: bool, sees: bool) -> Message | None:
    match message:
        case AssistantMessage():
            return None if own else _changed(message, _foreign(message))
        case UserMessage() | ToolResultMessage():
            has_images = any(isinstance(block, ImageContent) for block in message.content)
            return _changed(message, _without_images(message.content)) if has_images and not sees else None


def _changed(message: B, content: Sequence[Any]) -> B | None:
    same = content == list(message.content)  # type: ignore[attr-defined]
    return None if same else message.model_copy(update={"content": tuple(content)})  # type: ignore[attr-defined]


def _foreign(message: AssistantMessage) -> list[Any]:
    content: list[Any] = []
    for place, block in enumerate(message.content, start=1):
        match block:
            case ThinkingContent(redacted=True):
                pass
            case ThinkingContent(thinking=thinking):
                followed = place < len(message.content) and isinstance(message.content[place], TextContent)
                content.append(TextContent(text=f"{thinking}\n\n" if thinking and followed else thinking))
            case TextContent(signature=str()) | ToolCall(signature=str()):
                content.append(block.model_copy(update={"signature": None}))
            case _:
                content.append(block)
    return content


def _without_images(content: Iterable[Any]) -> list[Any]:
    note = TextContent(text=NO_IMAGE)
    kept: list[Any] = []
    for block in content:
        if not isinstance(block, ImageContent):
            kept.append(block)
        elif not kept or kept[-1] is not note:
            kept.append(note)
    return kept
