"""What the built-in offline model makes of a question: a few patterns, no understanding."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Intent: TypeAlias = Literal["help", "largest", "count", "search", "read", "list"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question as far as the rules take it.

    ``subject`` is the text to find or the file to read; ``pattern`` a glob that narrows the files; ``path`` a
    folder; ``number`` how many files are asked for; ``in_full`` whether the text itself is wanted, ``counted``
    whether only how long it is.
    """

    intent: Intent
    subject: str = ""
    pattern: str = "*"
    path: str = "."
    number: int = 5
    in_full: bool = False
    counted: bool = False


_TYPES: tuple[tuple[str, str], ...] = (
    (r"python", "*.py"),
    (r"markdown", "*.{md,markdown}"),
    (r"jsonl", "*.jsonl"),
    (r"json", "*.json"),
    (r"ya?ml", "*.{yaml,yml}"),
    (r"toml", "*.toml"),
    (r"csvs?", "*.csv"),
    (r"notebooks?", "*.ipynb"),
    (r"javascript", "*.{js,mjs,jsx}"),
    (r"typescript", "*.{ts,tsx}"),
    (r"rust", "*.rs"),
    (r"html", "*.{html,htm}"),
    (r"css", "*.css"),
    (r"(?:shell|bash)", "*.{sh,bash}"),
    (r"logs?", "*.log"),
    (r"pdfs?", "*.pdf"),
    (r"(?:images?|pictures?|photos?)", "*.{png,jpg,jpeg,gif,webp,svg,bmp,tiff}"),
    (r"(?:archives?|zips?)", "*.{zip,tar,gz,tgz,xz,bz2,7z,whl}"),
)
_NUMBERS = {
    name: number
    for number, name in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], 1
    )
}
_MORE_OF_THE_SAME = re.compile(r"^\W*(?:only|just|and|but|now|what about|how about|the same)\b", re.I)

_HELP = re.compile(r"^\W*(help|hi|hello|hey|what can you do|who are you|what are you)\b", re.I)
_LARGEST = re.compile(
    r"\b(largest|biggest|heaviest|longest files?|(big|large|huge) files?|by size|(disk|most) space|take up)\b",
    re.I,
)
_COUNT = re.compile(r"\b(how many|how much code|count|number of|lines of code)\b", re.I)
_SEARCH = re.compile(
    r"\b(search|find|grep|look(?:ing)? for|locate|where|occurrences? of|mentions? of|uses? of|usages? of"
    r"|(?:which|what) (?:files? |modules? )?(?:uses?|mentions?|contains?|imports?|defines?|references?|calls?)"
    r"|who (?:uses?|calls?))\b",
    re.I,
)
_READ = re.compile(r"\b(read|summari[sz]e|explain|describe|tell me about|what(?:'s| is| does| are))\b", re.I)
_SHOW = re.compile(r"\b(show|open|print|cat|view|display|head)\b", re.I)
_LIST = re.compile(
    r"\b(list|ls|dir|tree|overview|what(?:'s| is| are) (?:here|in|this|there)|files?|folders?|director(?:y|ies)"
    r"|project|repo(?:sitory)?)\b",
    re.I,
)
_QUOTED = re.compile(r"\"([^\"]+)\"|`([^`]+)`|(?<!\w)'([^']+)'(?!\w)|“([^”]+)”")
_FILE = re.compile(
    r"(?<![\w*])(?:[\w.-]+/)*(?:[\w-][\w.-]*\.[A-Za-z]\w{0,7}|readme|licen[cs]e|makefile|dockerfile|changelog)(?![\w*/])",
    re.I,
)
_GLOB = re.compile(r"\S*\*\S*")
_SUFFIX = re.compile(r"(?<!\S)\.(\w{1,8})\b(?=\s+files?|\s*\?|\s*$)", re.I)
_FOLDER = re.compile(
    r"(?<![\w.])((?:\.?[\w-][\w.-]*/)+)(?!\S*\w)|\b(?:in|under|below|inside)\s+(?:the\s+)?([\w./-]+)\s+(?:folder|dir)",
    re.I,
)
_BEFORE_SUBJECT = re.compile(
    r"^(?:\s*\b(?:for|the|all|any|every|files?|places?|lines?|named|called|is|are|do|does|did|we|i|you|it|that|which|with|of"
    r"|text|word|string|uses?|used|mentions?|mentioning|contains?|containing|imports?|defines?|a|an|me|out|code)\b)*\s*",
    re.I,
)
_AFTER_SUBJECT = re.compile(
    r"\s*\b(?:in|inside|under|below|within|among)\s+(?:the\s+|all\s+|my\s+|these\s+|this\s+|any\s+)*"
    r"(?:[\w./*-]+\s+)?(?:files?|folders?|director(?:y|ies)|code|project|repo\w*|here|[\w.-]+/\S*|\S*\*\S*)?\s*$"
    r"|\s+(?:comments?|here|defined|used|mentioned|implemented|declared|configured|set|located|come from)\s*$",
    re.I,
)


def understand(text: str) -> Question | None:
    """The question in ``text``, or None where no rule fits.

    >>> understand("which files here are the largest, and what are they?").intent
    'largest'
    >>> understand("where is AbortSignal defined?").subject
    'AbortSignal'
    >>> understand("how are you?") is None
    True
    """
    text = " ".join(text.split())[:2000]
    pattern, path = _pattern(text), _path(text)
    quoted = next((group for match in _QUOTED.finditer(text) for group in match.groups() if group), "")
    files = [
        match[0] for match in _FILE.finditer(text) if match[0].lower() not in ("e.g", "i.e", "a.m", "p.m")
    ]
    searched = _SEARCH.search(text)
    if _HELP.match(text) and len(text) < 60:
        return Question("help")
    if searched and quoted:
        return Question("search", quoted, pattern, path)
    if _LARGEST.search(text):
        return Question("largest", pattern=pattern, path=path, number=_number(text))
    if _COUNT.search(text) and not files:
        return Question("count", pattern=pattern, path=path)
    if searched and (subject := _subject(text[searched.end() :])):
        if "*" in subject:
            return Question("list", pattern=pattern, path=path)
        return Question("search", subject, pattern, path)
    if files:
        counted = bool(_COUNT.search(text))
        return Question("read", files[0], in_full=bool(_SHOW.search(text)) and not counted, counted=counted)
    if _LIST.search(text) or pattern != "*" or path != ".":
        return Question("list", pattern=pattern, path=path)
    if quoted and (_READ.search(text) or _SHOW.search(text)):
        return Question("read", quoted, in_full=bool(_SHOW.search(text)))
    return None


def narrowing(text: str) -> str | None:
    """A glob, where ``text`` only narrows the question before: "only the Python files", "and in *.md?"."""
    return _pattern(text) if _MORE_OF_THE_SAME.match(text) and _pattern(text) != "*" else None


def _subject(rest: str) -> str:
    rest = _BEFORE_SUBJECT.sub("", rest.strip().rstrip("?!. "), count=1)
    for _ in range(2):  # "TODO comments in the Python files"
        rest = _AFTER_SUBJECT.sub("", rest)
    return rest.strip(" \"'`,:;?!")


def _pattern(text: str) -> str:
    if match := _GLOB.search(text):
        glob = match[0].strip("\"'`,;:?!()")
        return glob.removesuffix(".") or "*"
    if match := _SUFFIX.search(text):
        return f"*.{match[1]}"
    for words, pattern in _TYPES:
        if re.search(
            rf"(?<![\w.]){words}(?:\s+(?:source\s+)?(?:files?|code|scripts?|ones)\b|\s*$|\s*[?.,])",
            text,
            re.I,
        ):
            return pattern
    return "*"


def _path(text: str) -> str:
    match = _FOLDER.search(text)
    return (match[1] or match[2]).rstrip("/") if match else "."


def _number(text: str) -> int:
    match = re.search(r"\b(?:top|first)\s+(\w+)|\b(\w+)\s+(?:largest|biggest|heaviest)\b", text, re.I)
    word = (match[1] or match[2]).lower() if match else ""
    asked = int(word) if word.isdecimal() else _NUMBERS.get(word, 5)
    return max(1, min(asked, 10))
