"""OpenRouter's ``reasoning_details``: thinking with the signatures that it wants back in the next request.

https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
"""

from __future__ import annotations

from typing import Any

from rx_agent.providers.wire_json import wire_json


class ReasoningDetails:
    """Joins the fragments of one thinking block.

    >>> details = ReasoningDetails()
    >>> details.feed([{"type": "reasoning.text", "text": "so", "index": 0}])
    'so'
    >>> details.feed([{"type": "reasoning.text", "signature": "abc", "index": 0}])
    ''
    >>> details.take()
    '[{"type":"reasoning.text","text":"so","index":0,"signature":"abc"}]'
    """

    def __init__(self) -> None:
        self._joined: list[dict[str, Any]] = []
        self._pieces: list[dict[str, list[str]]] = []

    def feed(self, fragments: list[Any]) -> str:
        """Takes the fragments of one delta; their readable text, for servers that say it nowhere else."""
        said: list[str] = []
        for fragment in fragments:
            last = self._joined[-1] if self._joined else None
            place = (fragment.get("type"), fragment.get("index"))
            if last is None or (last.get("type"), last.get("index")) != place:
                last = dict[str, Any]()
                self._joined.append(last)
                self._pieces.append({})
            for name, value in fragment.items():
                if name in ("text", "summary", "data") and isinstance(value, str):
                    last.setdefault(name, "")
                    self._pieces[-1].setdefault(name, []).append(value)
                    if name != "data":
                        said.append(value)
                elif value is not None:
                    last[name] = value
        return "".join(said)

    def take(self) -> str | None:
        """The block as JSON to be sent back, if there is anything in it that only its maker can read; then
        forgets it.
        """
        joined = [
            fields | {name: "".join(pieces) for name, pieces in texts.items()}
            for fields, texts in zip(self._joined, self._pieces, strict=True)
        ]
        self._joined, self._pieces = [], []
        signed = any(detail.get("signature") or detail.get("data") for detail in joined)
        return wire_json(joined).decode() if signed else None
