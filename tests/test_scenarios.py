"""Every golden scenario, in virtual time and on asyncio.

The files are those of ``tests/scenarios`` and of each folder named in the environment variable
``RX_AGENT_SCENARIOS`` (paths separated as in ``PATH``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario import MODES, Mode, ScenarioFile, check, play, scenario_files, scenario_folders

FOLDERS = [(folder, scenario_files(folder)) for folder in scenario_folders()]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "file", [file for _, files in FOLDERS for file in files], ids=lambda file: file.label
)
def test_scenario(file: ScenarioFile, mode: Mode) -> None:
    scenario = file.load()
    check(scenario, play(scenario, mode), mode)


@pytest.mark.parametrize(
    ("folder", "files"), FOLDERS, ids=[f"{len(files)} files in {folder.name}" for folder, files in FOLDERS]
)
def test_folder_was_read(folder: Path, files: list[ScenarioFile], capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.is_dir(), f"{folder} is no folder; RX_AGENT_SCENARIOS names folders"
    assert files, f"{folder} holds no *.json"
    with capsys.disabled():
        print(f"\n{len(files)} scenario files read from {folder}")
