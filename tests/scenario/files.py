"""Which scenario files there are: the project's own, and those of the folders in ``RX_AGENT_SCENARIOS``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TESTS = Path(__file__).parent.parent
OWN = (_TESTS / "scenarios", _TESTS / "scenarios_more")
VARIABLE = "RX_AGENT_SCENARIOS"


@dataclass(frozen=True)
class ScenarioFile:
    """One file; ``label`` names it in test ids."""

    path: Path
    label: str

    def load(self) -> dict[str, Any]:
        """What it says. Raises ``ValueError``, naming the file, for what is no JSON object."""
        try:
            scenario = json.loads(self.path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from error
        if not isinstance(scenario, dict):
            raise ValueError(f"{self.path}: holds a {type(scenario).__name__}, not an object")
        return scenario


def scenario_folders(environment: Mapping[str, str] = os.environ) -> list[Path]:
    """The project's own folders first, then those of the environment variable."""
    named = environment.get(VARIABLE, "").split(os.pathsep)
    return [*OWN, *(Path(name) for name in named if name.strip())]


def scenario_files(folder: Path) -> Sequence[ScenarioFile]:
    """Every ``*.json`` of ``folder``, by name."""
    prefix = "" if folder in OWN else f"{folder.name}/"
    return [ScenarioFile(path, f"{prefix}{path.stem}") for path in sorted(folder.glob("*.json"))]
