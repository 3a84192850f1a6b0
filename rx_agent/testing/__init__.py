"""Agents tested with marbles, in virtual time. See the guide in the README.

pytest gives the fixture ``marbles`` (a :class:`Marbles`) without an import.
"""

from rx_agent.providers.scripted import call, say, think
from rx_agent.testing.actions import Action, abort, continue_, dispose, do, follow_up, prompt, reset, steer
from rx_agent.testing.checks import (
    Guard,
    assert_brackets,
    assert_state_is_fold,
    assert_transcript_valid,
)
from rx_agent.testing.diagram import DiagramError
from rx_agent.testing.fakes import FakeModel, FakeTool, error
from rx_agent.testing.interleavings import InterleavingError, check_interleavings
from rx_agent.testing.stage import Marbles
from rx_agent.testing.virtual_loop import NetworkError, VirtualLoop, VirtualScheduler, WallClockError

__all__ = [
    "Action",
    "DiagramError",
    "FakeModel",
    "FakeTool",
    "Guard",
    "InterleavingError",
    "Marbles",
    "NetworkError",
    "VirtualLoop",
    "VirtualScheduler",
    "WallClockError",
    "abort",
    "assert_brackets",
    "assert_state_is_fold",
    "assert_transcript_valid",
    "call",
    "check_interleavings",
    "continue_",
    "dispose",
    "do",
    "error",
    "follow_up",
    "prompt",
    "reset",
    "say",
    "steer",
    "think",
]
