"""How the built-in offline model says in a few words what a text is about: its heading, its parts."""

from __future__ import annotations

import re
from typing import Any

from rx_agent.cli.file_tree import human_size

_NOISE = re.compile(r"^[\s\"'#/*<>!;=%\-{}\[\](),|.~`+:]+|[\s\"'*<>{}\[\](]+$")
_DEFINITION = re.compile(
    r"^(?:export\s+|pub\s+|async\s+|public\s+|static\s+)*(class|def|func|function|fn|struct|interface|trait|enum)\s+(\w+)"
)
_LONGEST = 110


def file_line(details: dict[str, Any]) -> str:
    """What a ``read_file`` result says of its file, in one line, the name left out."""
    lines = details.get("lines")
    parts = [str(details.get("kind", "file"))]
    if isinstance(lines, int) and details.get("text"):
        parts.append(f"{lines:,} line{'' if lines == 1 else 's'}")
    text = str(details.get("text", ""))
    begins = gist(text)
    return f"{', '.join(parts)}{f'; it begins: {begins}' if begins else ''}"


def gist(text: str) -> str:
    """The first line that says something: a heading, a docstring, a comment, else whatever comes first.

    >>> gist('#!/usr/bin/env python' + chr(10) + '# Sorts mail.')
    'Sorts mail.'
    """
    lines = text.splitlines()[:40]
    for place, line in enumerate(lines):
        if line.startswith("#!") or "coding:" in line:
            continue
        # A line of JSON keeps its quotes, which are half of its sense.
        stripped = line.strip(" \t{}[],") if '":' in line else _NOISE.sub("", line)
        if sum(char.isalnum() for char in stripped) < 3:
            continue
        if (
            line.startswith("# ")
            and not any(lines[place + 1 : place + 2])
            and (below := gist("\n".join(lines[place + 1 :])))
        ):
            return shortened(f"{stripped}: {below}")  # a heading alone is often but a name
        return shortened(stripped)
    return ""


def outline(text: str, most: int = 12) -> list[str]:
    """Headings and definitions of a text, in order."""
    found: list[str] = []
    for line in text.splitlines():
        if re.match(r"#{1,3} \S", line):
            found.append(line.lstrip("# ").strip())
        elif match := _DEFINITION.match(line):
            found.append(f"{match[1]} {match[2]}")
    shown = [shortened(item) for item in found[:most]]
    return shown + ([f"… and {len(found) - most} more"] if len(found) > most else [])


def shortened(text: str, most: int = _LONGEST) -> str:
    """``text`` in one line of at most ``most`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def sized(entry: dict[str, Any]) -> str:
    """``name, size`` of a listed file."""
    return f"{entry['path']}, {human_size(int(entry['size']))}"


def plural(count: int, thing: str) -> str:
    """``3 files``.

    >>> plural(1, "file"), plural(2048, "line")
    ('1 file', '2,048 lines')
    """
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
