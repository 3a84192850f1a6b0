"""Every example in a docstring works."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rx_agent

MODULES = [
    "rx_agent",
    *(module.name for module in pkgutil.walk_packages(rx_agent.__path__, "rx_agent.")),
]


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("__main__")])
def test_the_examples_of_a_module_work(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
