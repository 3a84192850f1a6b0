"""Each notebook runs from top to bottom offline, and shows what its saved outputs show."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def outputs(notebook: Any) -> list[list[str]]:
    """Per code cell: what is printed, displayed or raised, put together by kind."""
    shown: list[list[str]] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
            results = [output.data.get("text/plain", "") for output in cell.outputs if "data" in output]
            shown.append([printed, *results])
    return shown


@pytest.mark.filterwarnings("default")  # the kernel's own libraries are not ours to mend
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_was_saved(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(path.parent.parent))
    saved = nbformat.read(path, as_version=4)
    fresh = nbformat.from_dict(json.loads(json.dumps(saved)))
    client = NotebookClient(
        fresh, timeout=60, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    )
    asyncio.run(client.async_execute())
    assert outputs(fresh) == outputs(saved)


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
