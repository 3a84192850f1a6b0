"""No test may leave a thread behind, and the whole no socket; warnings are errors (see pyproject.toml)."""

from __future__ import annotations

import gc
import os
import threading
import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    """A worker whose run is gone may finish what it is at, for a second."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 1
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == set(), f"threads left behind: {left}"


def open_sockets() -> set[str]:
    """The sockets of this process, where the system tells."""
    folder = "/proc/self/fd"
    found: set[str] = set()
    for descriptor in os.listdir(folder) if os.path.isdir(folder) else ():
        try:
            target = os.readlink(f"{folder}/{descriptor}")
        except OSError:
            continue  # the listing's own descriptor
        if target.startswith("socket:"):
            found.add(target)
    return found


@pytest.fixture(autouse=True, scope="module")
def no_socket_is_left() -> Iterator[None]:
    before = open_sockets()
    yield
    gc.collect()
    assert open_sockets() - before == set(), "sockets left behind"
