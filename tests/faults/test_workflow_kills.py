"""SIGKILL at every commit and inside every effect of the software epic: resumed to the end it would have had."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import attrs
import pytest

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.workflow.examples.software_epic.epics import SHIPPED
from orchestrator_events.record import Entry

VICTIM = Path(__file__).with_name("workflow_victim.py")
PLACES = ("before:1", "rename:2", "program:2", "phased:3", "after:40")
FURTHER_PLACES = ("after:1", "after:9", "generate:1", "phased:6", "rename:12")
"""Those around which most can go wrong: the rename to the id, a call, a suite, what a phase has done, the end."""
STEP = 12
"""Of the places of a workflow, one in so many is tried; all of them in the long mode."""
MOST_KILLS = 300


@attrs.frozen
class Ended:
    """How a process ended: its status, and what it printed, if it got that far."""

    code: int
    told: dict[str, Any]
    error: str

    @property
    def end(self) -> dict[str, Any]:
        """What must be the same, however often the workflow was cut off."""
        return {name: value for name, value in self.told.items() if name not in ("counts", "places")}


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


def findings(directory: Path) -> tuple[object, ...]:
    """What the audit of the workflow and the runs inside it finds."""

    async def exported() -> str:
        with SqliteJournal(directory / "journal.sqlite") as journal:
            return await export_json(journal, "victim")

    return audit(parse_export(asyncio.run(exported()))).findings


def prepared(directory: Path) -> Path:
    """A directory with an epic of the one story that takes the longest way: it comes back from its review."""
    shutil.copytree(SHIPPED, directory / "epic")
    (directory / "epic" / "epic.yaml").write_text("id: small-tools\ntitle: One small tool\nstories: [shares]\n")
    return directory


@pytest.fixture
def place_of_work(tmp_path: Path) -> Path:
    """Where a victim works."""
    return prepared(tmp_path)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """What a workflow comes to that nobody kills."""
    ended = victim(prepared(tmp_path_factory.mktemp("undisturbed")), "run")
    assert ended.code == 0, ended.error
    return ended


@pytest.mark.parametrize("place", PLACES + FURTHER_PLACES)
def test_killed_and_resumed(place: str, place_of_work: Path, undisturbed: Ended, is_long: bool) -> None:
    """Resume comes to the same end; nothing recorded changes; at most the phase in flight is executed again."""
    if place in FURTHER_PLACES and not is_long:
        pytest.skip("the shorter list; all of them with ORCHESTRATOR_FAULTS=long")
    assert victim(place_of_work, "run", place).code == -9
    before = entries(place_of_work)
    if not before:
        assert "no run" in victim(place_of_work, "resume").error
        return
    ended = victim(place_of_work, "resume")
    if before[-1].record.event.name == "execution:end":
        assert "it is done: there is nothing left to do" in ended.error
        return
    assert (ended.code, ended.end) == (0, undisturbed.end), ended.error
    after = entries(place_of_work)
    assert after[: len(before)] == before
    executed = [entry.record.event.name for entry in after].count("phase:started")
    cut_off = [entry.record.event.name for entry in after].count("phase:abandoned")
    assert findings(place_of_work) == ()
    assert (executed - cut_off, cut_off <= 1) == (undisturbed.told["counts"]["phase"] + 1, True)


@pytest.mark.parametrize(
    ("side", "kinds"),
    [
        ("before", {"before"}),
        ("after", {"after"}),
        ("inside", {"phase", "phased", "generate", "program", "rename"}),
    ],
)
def test_killed_at_every_place_of_one_workflow(
    side: str, kinds: set[str], place_of_work: Path, undisturbed: Ended, is_long: bool
) -> None:
    """One workflow, killed once at each boundary of its events or inside each of its effects, comes to the same end.

    Every process dies at the first place that none before it died at, so that the last one goes through undisturbed.
    Outside the long mode, one place in twelve is tried.
    """
    step = 1 if is_long else STEP
    place = f"new:{side}:{step}"
    ended = victim(place_of_work, "run", place)
    kills = 0
    while ended.code == -9:
        kills += 1
        assert kills < MOST_KILLS, (place_of_work / "killed").read_text()
        ended = victim(place_of_work, "resume" if entries(place_of_work) else "run", place)
    killed = (place_of_work / "killed").read_text().splitlines()
    places = [key for key in undisturbed.told["places"] if key.partition(":")[0] in kinds]
    known = {key for key in places if crc32(key.encode()) % step == 0}
    assert (len(set(killed)), set(killed) >= known, {key.partition(":")[0] for key in killed} <= kinds) == (
        kills,
        True,
        True,
    )
    if "there is nothing left to do" in ended.error:  # the last place is after the last append
        ended = attrs.evolve(ended, code=0, told=undisturbed.told)
    assert (ended.code, ended.end) == (0, undisturbed.end), ended.error
    assert [entry.record.event.name for entry in entries(place_of_work)].count("workflow:completed") == 1
    assert findings(place_of_work) == ()


def test_a_call_that_was_paid_for_is_not_made_again(place_of_work: Path) -> None:
    """Killed after a phase file was executed, its answer is not bought anew for the phases that follow."""
    victim(place_of_work, "run", "phase:3")  # 02-plan is executed by the generator and is no callable
    before = (place_of_work / "calls").read_text().splitlines()
    assert victim(place_of_work, "resume").code == 0
    calls = (place_of_work / "calls").read_text().splitlines()
    assert (calls[: len(before)], len(set(calls))) == (before, len(calls))


DOMAIN = """
domain: twins
phases: [{id: begin, callable: "twins_phases:begin"}, {id: rest, callable: "twins_phases:rest"}, done]
"""
PHASES = """
from pathlib import Path
from orchestrator.workflow import PhaseOutcome

def begin(state, components):
    name = state["parameters"]["name"]
    return PhaseOutcome("rest", {"workflow_id": Path(name).read_text()}, name)

def rest(state, components):
    raise RuntimeError("wait for me")
"""


@pytest.mark.parametrize(
    ("ids", "names"), [(("red", "blue"), ["blue", "red"]), (("red", "red"), ["red", "workflow-new"])]
)
def test_two_starts_at_once(tmp_path: Path, ids: tuple[str, str], names: list[str]) -> None:
    """Two processes that begin workflows of one domain at once stand in each other's way only over one id."""
    (tmp_path / "domain.yaml").write_text(DOMAIN)
    (tmp_path / "twins_phases.py").write_text(PHASES)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    with ExitStack() as ended:
        processes = []
        for name in ("first", "second"):
            os.mkfifo(tmp_path / name)
            arguments = ("workflow", "run", ".", "--param", f"name={name}", "--display", "quiet")
            command = [sys.executable, "-m", "orchestrator", *arguments]
            processes.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL))
            ended.callback(processes[-1].wait)
            ended.callback(processes[-1].kill)  # one that waits for a pipe nobody opens would wait for good
        pipes = [opened(tmp_path / name, each) for name, each in zip(("first", "second"), processes, strict=True)]
        for pipe, workflow_id in zip(pipes, ids, strict=True):  # both are in their phase now
            os.write(pipe, workflow_id.encode())
            os.close(pipe)
        codes = [process.wait(60) for process in processes]
    files = [path.name.removesuffix("-state.json") for path in (tmp_path / "state").glob("*-state.json")]
    assert (codes, sorted(name.partition("+")[0] for name in files)) == ([8, 8], names)


def opened(pipe: Path, reader: subprocess.Popen[bytes]) -> int:
    """The writing end of a pipe, once the process has the reading one open; a process that ended never will."""
    while reader.poll() is None:
        with suppress(OSError):
            descriptor = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            os.set_blocking(descriptor, True)
            return descriptor
        with suppress(subprocess.TimeoutExpired):
            reader.wait(0.05)
    raise AssertionError(f"it ended with status {reader.returncode} before its phase")


def test_two_resumes_of_one_workflow(place_of_work: Path) -> None:
    """One goes on, the other is refused and writes nothing."""
    victim(place_of_work, "run", "phase:3")
    with SqliteJournal(place_of_work / "journal.sqlite") as journal, journal.hold("victim"):
        before = len(entries(place_of_work))
        refused = victim(place_of_work, "resume")
    assert (refused.code, len(entries(place_of_work))) == (1, before)
    assert "RunHeldError" in refused.error
    assert victim(place_of_work, "resume").code == 0
