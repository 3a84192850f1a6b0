"""Parts that a message has no place for, kept whole for the model that made them.

The model wants everything back that it signed, on the part it came with
(https://ai.google.dev/gemini-api/docs/thought-signatures): a text of no characters, code that the server ran
(``executableCode``, ``codeExecutionResult``), calls of the server's own tools (``toolCall``, ``toolResponse``),
media (``inlineData``, ``fileData``). Each is a redacted :class:`~rx_agent.messages.ThinkingContent`, whose signature
is the signature where that is all there is, else the part as JSON; base64 has no brace, so the two differ.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def kept_part(part: Mapping[str, Any]) -> str:
    """What stands for ``part`` in a redacted block.

    >>> kept_part({"text": "", "thoughtSignature": "c2ln"})
    'c2ln'
    >>> kept_part({"executableCode": {"code": "1 + 1"}})
    '{"executableCode": {"code": "1 + 1"}}'
    """
    alone = {name: value for name, value in part.items() if value}
    signature = alone.get("thoughtSignature")
    return signature if len(alone) == 1 and isinstance(signature, str) else json.dumps(part)


def restored_part(kept: str) -> dict[str, Any]:
    """The part that :func:`kept_part` was given.

    >>> restored_part("c2ln")
    {'text': '', 'thoughtSignature': 'c2ln'}
    """
    return json.loads(kept) if kept.startswith("{") else {"text": "", "thoughtSignature": kept}
