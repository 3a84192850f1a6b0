"""Tool-call ids in the alphabet and length that an API takes.

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
