"""``rx-agent -q``: the answer and nothing else on standard output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_the_offline_models_notice_is_no_part_of_the_answer(tmp_path: Path) -> None:
    env = {**os.environ, "RX_AGENT_MODEL": "", "PYTHONPATH": str(Path(__file__).parents[2])}
    env = {name: value for name, value in env.items() if not name.endswith("_API_KEY")}
    done = subprocess.run(
        [sys.executable, "-m", "rx_agent.cli", "-q", "hello"],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("I follow a few rules")
    assert done.stderr.startswith("Built-in offline model")
