"""SIGKILL of a process that executes a plan, at any point: what is left goes on to the outcome it would have had."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.audit import audit
from orchestrator.importing import parse_export
from orchestrator.journal.sqlite import SqliteJournal

VICTIM = Path(__file__).with_name("plan_victim.py")
MEMORY = Path("/dev/shm")
PLACES = (
    "before:1", "after:4", "before:9", "model:4", "after:23", "before:61", "model:13", "after:146", "before:189",
    "after:206", "after:238",
)  # fmt: skip
"""Appends and calls of models; an undisturbed run has about 240 of the one and 30 of the other."""


@attrs.frozen
class Ended:
    """How a process ended, and what it printed, if it got that far."""

    code: int
    told: dict[str, Any]
    error: str


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory whose writes cost nothing, where the machine has one: a plan syncs a lot."""
    place = Path(tempfile.mkdtemp(prefix="plan-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    yield place
    shutil.rmtree(place)


def victim(directory: Path, place: str = "nowhere") -> Ended:
    """Run the victim to its end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    command = [sys.executable, str(VICTIM), str(directory), place]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return Ended(ended.returncode, json.loads(ended.stdout) if ended.stdout else {}, ended.stderr)


def outcome(directory: Path) -> dict[str, Any]:
    """What a plan came to: what each step made, word for word, and what the state says of it."""
    state = json.loads((directory / "studio/STATE/state.json").read_text())
    made = {name: artifact["sha256"] for name, artifact in state["artifacts"].items()}
    told = {name: state[name] for name in ("lifecycle", "plan_digest", "failure_history", "open_risks")}
    return {**told, "made": made, "completed": sorted(state["completed_steps"])}


def answered(directory: Path) -> set[str]:
    """Runs whose model has answered, as the journal has it."""
    path = directory / "journal.sqlite"

    async def read() -> set[str]:
        with SqliteJournal(path) as journal:
            return {
                run_id
                for run_id in await journal.run_ids()
                async for entry in journal.read(run_id)
                if entry.record.event.name == "turn:answered"
            }

    return asyncio.run(read()) if path.exists() else set()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the plan comes to that nobody kills."""
    place = tmp_path_factory.mktemp("undisturbed")
    ended = victim(place)
    assert (ended.code, ended.told.get("status")) == (0, "completed"), ended.error
    return outcome(place)


@pytest.mark.parametrize("place", PLACES)
def test_killed_and_resumed(place: str, directory: Path, undisturbed: dict[str, Any]) -> None:
    """The same outcome; no answer is bought twice; an audit of what lies in the studio finds nothing."""
    assert victim(directory, place).code == -9
    had = answered(directory)
    ended = victim(directory)
    assert (ended.code, ended.told.get("status")) == (0, "completed"), ended.error
    assert outcome(directory) == undisturbed
    calls = Counter((directory / "calls").read_text().split())
    assert {run_id for run_id in had if calls[run_id] > 1} == set()
    report = audit(parse_export((directory / "studio/RUNS/shop/journal.json").read_text()))
    assert [str(finding) for finding in report.findings] == []
