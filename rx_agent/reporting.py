"""Where exceptions go that have no caller to raise to: ``sys.unraisablehook``, with the culprit's name."""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace
from typing import Any, cast


def name_of(thing: object) -> str:
    """A readable name for a callable or object."""
    if isinstance(thing, str):
        return thing
    named = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", None)
    return str(named) if named else type(thing).__qualname__


def report(error: BaseException, role: str, culprit: object) -> None:
    """Reports ``error`` raised by ``culprit`` in its ``role`` (such as "listener"), without raising.

    A hook set by the application (or by pytest) gets the usual fields; Python's own hook takes no
    hand-made argument, so its format is printed here.
    """
    message = f"Exception in rx_agent {role} {name_of(culprit)}"
    if sys.unraisablehook is not sys.__unraisablehook__:
        sys.unraisablehook(
            cast(
                Any,
                SimpleNamespace(
                    exc_type=type(error),
                    exc_value=error,
                    exc_traceback=error.__traceback__,
                    err_msg=message,
                    object=culprit,
                ),
            )
        )
        return
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]  (None under pythonw)
        print(f"{message}:", file=sys.stderr)
        traceback.print_exception(error, file=sys.stderr)
