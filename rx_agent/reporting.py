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


def reason_of(error: BaseException) -> str:
    """What ``error`` says, or its type's name; whatever its ``__str__`` does.

    >>> reason_of(ValueError("too big")), reason_of(KeyError())
    ('too big', 'KeyError')
    """
    try:
        return str(error) or type(error).__name__
    except Exception:
        return type(error).__name__


def as_exception(error: BaseException, what: str) -> Exception:
    """``error`` as one that Rx carries: its operators let a ``BaseException`` through, past every ``on_error``.

    A ``CancelledError`` out of a user's synchronous code is the common one. Raises it again where it is
    meant to end the program (``KeyboardInterrupt``, ``SystemExit``).
    """
    if isinstance(error, Exception):
        return error
    if isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
    name, reason = type(error).__name__, reason_of(error)
    return RuntimeError(f"{what} raised {name}" if reason == name else f"{what} raised {name}: {reason}")


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
