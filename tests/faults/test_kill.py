"""SIGKILL at every commit and inside every effect: the run is resumed to the end it would have had."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.errors import JournalError
from orchestrator_events.record import Entry

VICTIM = Path(__file__).with_name("victim.py")
ATTEMPTS = 3
APPENDS = 2 * ATTEMPTS + 1
PLACES = [
    *(f"{when}:{number}" for number in range(1, APPENDS + 1) for when in ("before", "after")),
    *(f"{effect}:{number}" for number in range(1, ATTEMPTS + 1) for effect in ("generate", "evaluate")),
]


@attrs.frozen
class Ended:
    """How a process ended: its status, and what it printed, if it got that far."""

    code: int
    told: dict[str, Any]
    error: str


def victim(directory: Path, action: str, place: str = "nowhere") -> Ended:
    """Run the victim to its end."""
    command = [sys.executable, str(VICTIM), str(directory), action, place]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return Ended(ended.returncode, json.loads(ended.stdout) if ended.stdout else {}, ended.stderr)


def entries(directory: Path) -> list[Entry]:
    """Everything in the journal; reading checks chain, sequence and blobs."""

    async def read() -> list[Entry]:
        with SqliteJournal(directory / "journal.sqlite") as journal:
            return [entry async for entry in journal.read("victim")]

    return asyncio.run(read())


def lines(path: Path) -> list[str]:
    """The lines of a log; none when nothing was logged."""
    return path.read_text().split() if path.exists() else []


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a run comes to that nobody kills."""
    ended = victim(tmp_path_factory.mktemp("undisturbed"), "run")
    assert (ended.code, ended.told["status"], ended.told["calls"]) == (0, "passed", ATTEMPTS)
    return ended.told


@pytest.mark.parametrize("place", PLACES)
def test_killed_and_resumed(place: str, tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    """Resume finishes with the same history; nothing acknowledged is lost; at most the call in flight is repeated."""
    assert victim(tmp_path, "run", place).code == -9
    before = entries(tmp_path)
    acknowledged = [int(line) for line in lines(tmp_path / "acknowledged")]
    assert len(before) >= max(acknowledged, default=0)
    if not before:
        assert "no run" in victim(tmp_path, "resume").error
        return
    if before[-1].record.event.name == "execution:end":
        assert "it passed: there is nothing left to do" in victim(tmp_path, "resume").error
        return
    ended = victim(tmp_path, "resume")
    after = entries(tmp_path)
    assert (ended.code, ended.told["status"], ended.told["history"]) == (0, "passed", undisturbed["history"])
    assert after[: len(before)] == before
    calls = lines(tmp_path / "calls")
    assert 0 <= len(calls) - ATTEMPTS <= in_flight(before) <= 1
    assert sorted(set(calls)) == [f"victim:{number}" for number in range(1, ATTEMPTS + 1)]
    names = [entry.record.event.name for entry in after[len(before) :]]
    assert names[:3] == ["execution:start", "execution:resumed", "execution:interrupted"]
    assert names[-2:] == ["orchestrator:complete", "execution:end"]


def in_flight(recorded: list[Entry]) -> int:
    """How many calls the journal knows as started and not as answered: the bound on what may be bought twice."""
    names = [entry.record.event.name for entry in recorded]
    return names.count("generation:started") - names.count("candidate:generated")


def test_a_lost_call_is_charged_and_made_again_under_the_same_key(tmp_path: Path) -> None:
    """The record says that the outcome is unknown; the second call has the key of the first."""
    victim(tmp_path, "run", "generate:2")
    victim(tmp_path, "resume")
    recorded = [entry.record.event for entry in entries(tmp_path)]
    (abandoned,) = [event for event in recorded if event.name == "generation:abandoned"]
    assert (abandoned.attempt, abandoned.key, abandoned.charge.estimated) == (2, "victim:2", True)  # type: ignore[attr-defined]
    assert "outcome unknown" in abandoned.reason  # type: ignore[attr-defined]
    assert lines(tmp_path / "calls") == ["victim:1", "victim:2", "victim:2", "victim:3"]


def test_a_finished_generation_is_judged_and_not_bought_again(tmp_path: Path) -> None:
    """Killed while the suite ran, the candidate in the journal is what the resumed run evaluates."""
    victim(tmp_path, "run", "evaluate:2")
    assert victim(tmp_path, "resume").told["status"] == "passed"
    assert lines(tmp_path / "calls") == ["victim:1", "victim:2", "victim:3"]


def test_two_resumes_of_one_run(tmp_path: Path) -> None:
    """One goes on, the other is refused and writes nothing."""
    victim(tmp_path, "run", "generate:2")
    with SqliteJournal(tmp_path / "journal.sqlite") as journal, journal.hold("victim"):
        before = len(entries(tmp_path))
        refused = victim(tmp_path, "resume")
    assert (refused.code, len(entries(tmp_path))) == (1, before)
    assert "RunHeldError" in refused.error
    assert victim(tmp_path, "resume").told["status"] == "passed"


def test_a_writer_that_was_overtaken_writes_nothing(tmp_path: Path) -> None:
    """A process that slept through another's resume finds that its place in the stream is taken."""
    victim(tmp_path, "run", "generate:2")
    stale = entries(tmp_path)[-1].record
    victim(tmp_path, "resume")
    after = entries(tmp_path)

    async def late() -> None:
        from orchestrator_events.journal import Batch

        with SqliteJournal(tmp_path / "journal.sqlite") as journal:
            await journal.append(Batch("victim", (stale._replace(sequence=stale.sequence + 1),)))

    with pytest.raises(JournalError, match="another writer"):
        asyncio.run(late())
    assert entries(tmp_path) == after
