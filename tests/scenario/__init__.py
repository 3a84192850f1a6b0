"""The interpreter of the golden scenarios; their format is described in ``tests/scenarios/README.md``.

- ``files``: which files there are.
- ``vocabulary``: messages and events, from and to the files' JSON.
- ``scripts``: what the model, the tools and the hooks of a file do, as generators that yield the ticks to wait.
- ``worlds``: where a file is played: in virtual time, or on asyncio with a fake clock.
- ``player``: the agent of a file, its user's actions, and what is noted down meanwhile.
- ``compare``: that against ``expect``.
"""

from __future__ import annotations

from tests.scenario.compare import ScenarioFailed, check
from tests.scenario.files import ScenarioFile, scenario_files, scenario_folders
from tests.scenario.player import Outcome
from tests.scenario.worlds import MODES, Mode, play

__all__ = [
    "MODES",
    "Mode",
    "Outcome",
    "ScenarioFailed",
    "ScenarioFile",
    "check",
    "play",
    "scenario_files",
    "scenario_folders",
]
