"""What the tests of tools on a real loop promise."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def nothing_left(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No thread of a tool survives a test, and asyncio had nothing to complain about."""
    yield
    until = time.monotonic() + 2
    while (left := [each for each in threading.enumerate() if each.name.startswith("rx_agent")]) and (
        time.monotonic() < until
    ):
        time.sleep(0.005)
    assert left == []
    gc.collect()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
