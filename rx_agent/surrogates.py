"""Surrogates in text: halves of one character that arrived apart are put together, lone ones stay as they are."""

from __future__ import annotations


def with_joined_pairs(text: str) -> str:
    """``text`` with each high surrogate that a low one follows turned into the one character they stand for.

    A stream may cut a character's escape in two (``"\\ud83d"`` in one chunk, ``"\\ude00"`` in the next), and JSON
    cannot tell such a pair from the character: only with the pair joined does text survive a round trip.

    >>> with_joined_pairs("a\\ud83d" + "\\ude00") == "a\\U0001f600"
    True
    >>> with_joined_pairs("lone \\ud83d stays") == "lone \\ud83d stays"
    True
    """
    if text.isascii():  # O(1), and nearly always
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text
