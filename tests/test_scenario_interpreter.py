"""The interpreter of the scenarios, put to the test: a file whose expectation is wrong must fail."""

from __future__ import annotations

import copy
import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import reactivex

from tests.scenario import MODES, Mode, Outcome, ScenarioFailed, check, play, scenario_files, scenario_folders
from tests.scenario.files import OWN, VARIABLE, ScenarioFile
from tests.scenario.mutations import FILES, MUTATIONS, Mutation, events


@functools.cache
def played(label: str, mode: Mode) -> Outcome:
    return play(FILES[label].load(), mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name.replace(" ", "-"))
def test_spoiled_file_fails(mutation: Mutation, mode: Mode, tmp_path: Path) -> None:
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps(mutation.spoiled()), encoding="utf-8")
    scenario = ScenarioFile(path, "spoiled").load()
    if mutation.only_in not in (None, mode):
        check(scenario, play(scenario, mode), mode)  # only ticks are wrong, and they do not count here
        return
    with pytest.raises(ScenarioFailed):
        check(scenario, play(scenario, mode), mode)


# --- every word of an expectation counts ---------------------------------------------------------------------

EVERY_WORD = (
    "after-details",
    "after-terminate",
    "continue-while-busy",
    "convert-custom-as-user",
    "error-after-tool-call",
    "next-turn-model-and-thinking",
    "steer-message-with-image",
    "system-prompt-and-thinking",
    "thinking-then-text",
    "tool-args-in-deltas",
    "tool-details-and-images",
    "tool-updates-interleaved",
)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value that is neither an object nor a list, and to each list."""
    match value:
        case dict():
            for key, item in value.items():
                yield from leaves(item, (*path, key))
        case list():
            yield path
            for position, item in enumerate(value):
                yield from leaves(item, (*path, position))
        case _:
            yield path


def another(value: Any) -> Any:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return value + "!"
        case None:
            return "something"
        case list():
            return value[:-1] if value else ["something"]


def replaced(value: Any, path: tuple[Any, ...]) -> Any:
    """``value`` with another one at the end of ``path``; copied only along the way."""
    if not path:
        return another(value)
    changed = copy.copy(value)
    changed[path[0]] = replaced(value[path[0]], path[1:])
    return changed


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("label", EVERY_WORD)
def test_every_word_of_an_expectation_counts(label: str, mode: Mode) -> None:
    scenario = FILES[label].load()
    outcome = played(label, mode)
    unnoticed: list[tuple[Any, ...]] = []
    count = 0
    for name, section in scenario["expect"].items():
        for path in leaves(section):
            if mode is Mode.ASYNCIO and path[-1:] == ("t",):
                continue
            if path == () and not section:  # an empty list: what is invented has to be of its kind
                wrong: Any = [{"t": 0, "do": "prompt"}]
            else:
                wrong = replaced(section, path)
            count += 1
            try:
                check({"expect": {name: wrong}}, outcome, mode)
            except ScenarioFailed:
                continue
            unnoticed.append((name, *path))
    assert count > 30
    assert unnoticed == []


# --- reports -------------------------------------------------------------------------------------------------


def test_report_shows_both_sides_and_marks_the_first_difference() -> None:
    scenario = FILES["tool-one"].load()
    events(scenario, update="text_delta")[1]["delta"] = "finished"
    with pytest.raises(ScenarioFailed) as caught:
        check(scenario, played("tool-one", Mode.VIRTUAL), Mode.VIRTUAL)
    report = str(caught.value)
    assert report.startswith("tool-one (virtual-time): one tool call, then the answer")
    assert "events: expected 25 lines, got 25; they differ from line 21 on" in report
    lines = report.splitlines()
    marked = [line for line in lines if line.endswith("<== the first difference")]
    assert len(marked) == 1
    assert marked[0].startswith("  -   21 ")
    assert '"delta": "finished"' in marked[0]
    came = lines[lines.index(marked[0]) + 1]
    assert came.startswith("  +   21 ")
    assert '"delta": "done"' in came


def test_report_names_what_went_wrong_beside_the_comparison() -> None:
    scenario = FILES["tool-one"].load()
    scenario["actions"].append({"do": "dance"})
    with pytest.raises(ScenarioFailed, match="problem: tick 6: 'dance' raised ValueError"):
        check(scenario, play(scenario, Mode.VIRTUAL), Mode.VIRTUAL)


@pytest.mark.parametrize("mode", MODES)
def test_run_that_never_ends_fails_instead_of_hanging(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.scenario.player.observed", lambda *_: reactivex.never())
    scenario = FILES["tool-one"].load()
    with pytest.raises(ScenarioFailed, match=r"problem: .*(never ended|nothing is ready)"):
        check(scenario, play(scenario, mode), mode)


# --- files of other folders ----------------------------------------------------------------------------------


def test_folders_of_the_environment_are_read_too(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
        (folder / "b.json").write_text("{}")
        (folder / "a.json").write_text("{}")
        (folder / "README.md").write_text("")
    folders = scenario_folders({VARIABLE: os.pathsep.join([str(one), "", str(two)])})
    assert folders == [*OWN, one, two]
    assert [file.label for file in scenario_files(two)] == ["two/a", "two/b"]
    assert scenario_folders({}) == list(OWN)


def test_pytest_run_fails_for_wrong_broken_and_missing_files(tmp_path: Path) -> None:
    folder = tmp_path / "others"
    folder.mkdir()
    right = FILES["tool-one"].load()
    wrong = copy.deepcopy(right)
    wrong["expect"]["messages"].pop()
    (folder / "right.json").write_text(json.dumps(right))
    (folder / "wrong.json").write_text(json.dumps(wrong))
    (folder / "broken.json").write_text("{")
    missing = tmp_path / "missing"
    root = Path(__file__).parent.parent
    tests = str(root / "tests" / "test_scenarios.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "others or missing", tests],
        cwd=root,
        env={**os.environ, VARIABLE: os.pathsep.join([str(folder), str(missing)])},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = {line.split(" - ")[0] for line in run.stdout.splitlines() if line.startswith("FAILED")}
    names = {line.partition("::")[2] for line in failed}
    assert names == {
        "test_scenario[others/wrong-virtual-time]",
        "test_scenario[others/wrong-asyncio]",
        "test_scenario[others/broken-virtual-time]",
        "test_scenario[others/broken-asyncio]",
        "test_folder_was_read[0 files in missing]",
    }, run.stdout
    assert "3 scenario files read from" in run.stdout
