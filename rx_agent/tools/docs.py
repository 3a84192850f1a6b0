"""What a docstring says of a function and of its arguments."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

import docstring_parser


@dataclass(frozen=True, slots=True)
class Docs:
    """``description`` is summary and details without the sections, ``arguments`` a text by name."""

    description: str = ""
    arguments: dict[str, str] = field(default_factory=dict[str, str])


def docs_of(docstring: str | None) -> Docs:
    """Reads a docstring in Google, NumPy, reST or epydoc style, or in none.

    >>> docs_of("Adds.\\n\\nArgs:\\n    a: The first.").arguments
    {'a': 'The first.'}
    """
    if not docstring:
        return Docs()
    text = inspect.cleandoc(docstring)
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:  # none of the styles: all of it is description
        return Docs(text)
    arguments: dict[str, str] = {}
    for parameter in parsed.params:
        for name in parameter.arg_name.split(","):  # NumPy: "x, y : int"
            if parameter.description:
                arguments[name.strip().lstrip("*")] = parameter.description.strip()
    return Docs((parsed.description or "").strip(), arguments)
