"""The pytest plugin: the fixture ``marbles``, in any project that has rx_agent installed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rx_agent.testing.stage import Marbles


@pytest.fixture
def marbles() -> Iterator[Marbles]:
    """A stage for one test; see :class:`rx_agent.testing.Marbles`. A test that says what plays must play it."""
    from rx_agent.testing.stage import (
        Marbles,
    )  # imported where it is used: pytest loads this in every project

    stage = Marbles()
    try:
        yield stage
        if not stage.played:
            stage.play()
    finally:
        stage.close()
