"""The terminal program ``rx-agent``: one prompt, or a chat, with tools for the files below the current folder.

``main(["which files here are the largest?"])`` is what the console script calls.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from rx_agent.cli.arguments import parse
from rx_agent.cli.output import abandon
from rx_agent.cli.session import BROKEN_PIPE, INTERRUPTED, WRONG_USE, run_session
from rx_agent.errors import ConfigurationError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``rx-agent`` with ``argv`` (default: the command line) and returns its exit code (see ``--help``)."""
    _stand_in_for_closed_streams()
    on_interrupt = signal.getsignal(signal.SIGINT)
    try:
        code = asyncio.run(run_session(parse(argv)))
    except ConfigurationError as error:
        print(f"rx-agent: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = BROKEN_PIPE
    finally:
        # asyncio leaves its own handler behind where the session replaced it and a Ctrl-C ended the loop.
        signal.signal(signal.SIGINT, on_interrupt)
    if code == BROKEN_PIPE:
        abandon(sys.stdout)
    return code


def _stand_in_for_closed_streams() -> None:
    """Else the first thing that is opened, a socket perhaps, would be taken for standard input or output."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (open to the very end)
