"""Tool-call ids, and names, in the alphabet and length that an API takes.

Stateless: the same id always becomes the same, so a call and its result agree without a table, and requests
of the same transcript stay byte for byte the same (which prompt caches need).
"""

from __future__ import annotations

import hashlib
import re


def wire_call_id(id: str, allowed: str, digest: int, prefix: str = "") -> str:
    """``id`` where the whole of it matches the regular expression ``allowed``, else ``prefix`` and a digest of
    it, ``digest`` hexadecimal characters long (at most 64).

    >>> wire_call_id("toolu_01A", r"[A-Za-z0-9_-]{1,64}", 24)
    'toolu_01A'
    >>> wire_call_id("call|fc:7", r"[A-Za-z0-9_-]{1,64}", 24, "call_")
    'call_0aeae9750711ec7a0b1b19fd'
    """
    if re.fullmatch(allowed, id):
        return id
    return prefix + hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:digest]


def wire_name(name: str) -> str:
    """The name of a call in the transcript, as OpenAI takes it. A model may have called what no tool is named.

    >>> wire_name("files.read")
    'files_read'
    """
    return name if _NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "_"


def accepted_name(name: str, api: str) -> str:
    """The name of a tool that is offered; raises ``ValueError`` for one that OpenAI takes not."""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{api} takes no tool of the name {name!r}: letters, digits, _ and -, at most 64 in all."
        )
    return name


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
