"""Servers that nobody here wrote, each in a process of its own: llmock and aimock.

In a process of their own they leave no thread and no socket here, so that what is counted after a test is ours.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx

STARTUP = 30.0
"""Seconds until a server must listen; importing FastAPI takes one where nothing else runs."""


class Served:
    """A server's process, from ``with`` to the end of the block. Its output is kept in ``log``."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.command = command
        self.log = log
        self.environment = environment
        self.url = ""

    def __enter__(self) -> Self:
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                self.command, stdout=output, stderr=subprocess.STDOUT, env=dict(self.environment)
            )
        deadline = time.monotonic() + STARTUP
        while not (listens := re.search(r"(?:running|listening) on (http://\S+:\d+)", self.said())):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"{self.command} does not serve:\n{self.said()}")
            time.sleep(0.02)
        self.url = listens[1]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()  # it keeps nothing, and would wait for streams that nobody reads
        self._process.wait()

    def said(self) -> str:
        """All that it has printed."""
        return self.log.read_text(errors="replace")

    def call(self, method: str, path: str, **data: Any) -> Any:
        """Asks the server's control interface."""
        answer = httpx.request(method, self.url + path, timeout=10, trust_env=False, verify=False, **data)
        assert answer.is_success, answer.text
        return answer.json()


class Llmock(Served):
    """``llmock serve`` with ``flags`` (https://github.com/JulienRabault/LLMock), and its verdict on us."""

    def __init__(self, log: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "llmock.cli", "serve", "--port", "0", *flags]
        settings = {name: value for name, value in os.environ.items() if not name.startswith("LLMOCK_")}
        super().__init__(command, log, settings)

    def script(self, *behaviors: Mapping[str, Any]) -> None:
        """What the next requests get; see :mod:`llmock.scenarios`."""
        self.call("POST", "/_llmock/scenario", content=json.dumps({"behaviors": behaviors}))

    def reset(self) -> None:
        """Forgets requests, what was scripted and what quotas were used."""
        self.call("POST", "/_llmock/reset")

    def recover(self) -> None:
        """Ends what was scripted for ever."""
        self.call("DELETE", "/_llmock/scenario")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """All requests, once those in flight have ended (at most 2 s)."""
        return self.call("GET", "/_llmock/requests")["requests"]

    def verdict(self) -> dict[str, Any]:
        """What it thinks of its clients."""
        return self.call("GET", "/_llmock/verdict")

    def report(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """What ``llmock report`` prints, and its exit code: 1 if a client misbehaved."""
        command = [sys.executable, "-m", "llmock.cli", "report", "--url", self.url, *flags]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    def assert_resilient(self, *, strict: bool = True) -> None:
        """Fails with the verdict if there is anything to find fault with; ``strict`` counts warnings too."""
        verdict = self.verdict()
        found = [item for item in verdict["findings"] if strict or item["severity"] == "error"]
        assert found == [], json.dumps(found)
        assert verdict["attempts"] == len(self.requests) > 0


class Aimock(Served):
    """``@copilotkit/aimock`` (https://aimock.copilotkit.dev) with the answers in ``fixtures``."""

    def __init__(self, cli: Path, log: Path, fixtures: Path) -> None:
        command = ["node", str(cli), "--port", "0", "--fixtures", str(fixtures), "--strict"]
        command += ["--validate-on-load", "--log-level", "debug", "--chunk-size", "7"]
        settings = {name: value for name, value in os.environ.items() if not name.startswith("AIMOCK_")}
        super().__init__(command, log, settings)

    def forget(self) -> None:
        """Empties the journal."""
        self.call("POST", "/__aimock/reset/journal")

    @property
    def requests(self) -> list[dict[str, Any]]:
        """All requests since, as aimock understood them: whatever the API, ``body`` is a chat request."""
        return self.call("GET", "/__aimock/journal")


def aimock_cli() -> Path | None:
    """The command of an installed aimock: below RX_AGENT_AIMOCK, or where node finds the package from here."""
    if shutil.which("node") is None:
        return None
    places = [place] if (place := os.environ.get("RX_AGENT_AIMOCK")) else [os.getcwd(), *_global_modules()]
    script = "console.log(require.resolve('@copilotkit/aimock', {paths: process.argv.slice(1)}))"
    found = subprocess.run(
        ["node", "-e", script, *places], capture_output=True, text=True, check=False, timeout=30
    )
    return Path(found.stdout.strip()).with_name("cli.js") if found.returncode == 0 else None


def _global_modules() -> list[str]:
    if (npm := shutil.which("npm")) is None:
        return []
    found = subprocess.run([npm, "root", "-g"], capture_output=True, text=True, check=False, timeout=30)
    return [str(Path(found.stdout.strip()).parent)] if found.returncode == 0 else []
