"""Killed anywhere and resumed, a workflow comes to the same end, and nothing that is recorded is done twice."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ScriptedGenerator
from orchestrator.workflow import Phase, Policy, StateFile, WorkflowDone, WorkflowPaused
from orchestrator.workflow.resuming import load_workflow
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.journal import Batch


@attrs.define(eq=False)
class Moment:
    """What a kill would leave behind: the batches of the journal, and the state directory."""

    batches: tuple[Batch, ...]
    state: Path
    executed: tuple[str, ...]


@attrs.define(eq=False)
class WatchedJournal(MemoryJournal):
    """A journal that takes a picture of everything before and after each append."""

    bench: Any
    moments: list[Moment] = attrs.Factory(list)
    batches: list[Batch] = attrs.Factory(list)

    def __attrs_post_init__(self) -> None:
        MemoryJournal.__init__(self)

    async def append(self, batch: Batch) -> None:
        """Store it between two pictures."""
        self.picture()
        await super().append(batch)
        self.batches.append(batch)
        self.picture()

    def picture(self) -> None:
        """Keep what there is now."""
        kept = self.bench.directory / f"moment-{len(self.moments)}"
        kept.mkdir()
        if (self.bench.directory / "state").exists():
            shutil.copytree(self.bench.directory / "state", kept / "state")
        self.moments.append(Moment(tuple(self.batches), kept, tuple(self.bench.phases.executed)))


def restored(bench: Any, moment: Moment) -> MemoryJournal:
    """The journal of a moment, its state directory put into place and its phases executed as often as then."""
    shutil.rmtree(bench.directory / "state", ignore_errors=True)
    if (moment.state / "state").exists():
        shutil.copytree(moment.state / "state", bench.directory / "state")
    bench.phases.executed[:] = moment.executed
    journal = MemoryJournal()
    for batch in moment.batches:
        asyncio.run(journal.append(batch))
    return journal


def kills(bench: Any, **options: Any) -> Iterator[tuple[MemoryJournal, Moment]]:
    """Every moment of a whole run from its first record on."""
    watched = WatchedJournal(bench=bench)
    result = bench.workflow(journal=watched, **options).run(run_id="r1")
    assert type(result) in (WorkflowDone, WorkflowPaused)
    bench.end = result
    for moment in watched.moments:
        if moment.batches:
            yield restored(bench, moment), moment


@pytest.fixture
def failing(bench: Any, make_outcome: Any) -> Any:
    """A workflow with a failure on the way, which a policy has retried."""
    worked = make_outcome("02-check", "worked", files=["a.py"])
    bench.phases.script["01-work"] = [lambda state, _: worked if state["error"] else ValueError("no network")]
    return bench


def test_killed_at_every_step(failing: Any) -> None:
    """From every moment a resume comes to the same state, in the journal and in the file."""
    options: dict[str, Any] = {"policy": Policy(phase_error="retry")}
    ends = []
    for journal, moment in kills(failing, **options):
        run = asyncio.run(load_workflow(journal, "r1"))
        if run.state == "done":
            continue
        result = failing.workflow(journal=journal, **options).resume("r1")
        again = len(failing.phases.executed) - len(failing.end.executions)
        ends.append((result.status, result.state == failing.end.state, failing.file().read_text(), again <= 2))
        told = [each.event.phase for each in result.records if each.event.name == "phase:abandoned"]
        assert told == ([run.started.phase] if run.is_in_flight and run.started else [])
        del moment
    text = failing.file().read_text()
    assert len(ends) > 20
    assert set(ends) == {("done", True, text, True)}


def test_a_finished_phase_is_not_executed_again(bench: Any) -> None:
    """A phase whose outcome is recorded is never executed again; one in flight is, once."""
    for journal, moment in kills(bench):
        run = asyncio.run(load_workflow(journal, "r1"))
        if run.state == "done":
            continue
        finished = list(run.executions) if not run.is_in_flight else list(run.executions)[:-1]
        bench.phases.executed.clear()
        bench.workflow(journal=journal).resume("r1")
        assert bench.phases.executed == [phase for phase in bench.domain.ids[:-1] if phase not in finished], moment


def test_paused_and_killed(failing: Any) -> None:
    """A workflow killed while somebody decides still waits for the decision."""
    for journal, _ in kills(failing):
        run = asyncio.run(load_workflow(journal, "r1"))
        result = failing.workflow(journal=journal).resume("r1")
        assert type(result) in (WorkflowPaused, WorkflowDone)
        if run.state == "paused":
            assert result.decision == failing.end.decision


def test_killed_while_the_file_is_decided_on(bench: Any) -> None:
    """Killed anywhere after an edit of the file, a workflow asks for what is left and comes to one end."""
    bench.phases.script["01-work"] = [ValueError("no network")]
    watched = WatchedJournal(bench=bench)
    bench.workflow(journal=watched).run(run_id="r1")
    begun = len(watched.moments)
    bench.file().write_text(bench.file().read_text().replace("no network", "the cable"))
    for choice in ("skip", "use file", "skip"):
        bench.end = bench.workflow(journal=watched).resume("r1", choice)
    choices = {"state mismatch": "use file", "phase error": "skip"}
    ends = []
    for moment in watched.moments[begun:]:
        journal = restored(bench, moment)
        if asyncio.run(load_workflow(journal, "r1")).state != "done":
            result = bench.workflow(journal=journal, decide=lambda asked: choices[asked.about]).resume("r1")
            ends.append((result.status, result.state == bench.end.state, result.executions["01-work"]))
    assert bench.end.status == "done"
    assert len(ends) > 10
    assert set(ends) == {("done", True, 1)}


ANSWERS = (
    '{"metrics_collector": {"action": "record_count", "metric": "files_modified", "value": 2}}',
    "no JSON",
    '{"next_phase": "done", "state_updates": {"files": ["a.py"]}, "output": "worked"}',
)


def test_a_conversation_goes_on(bench: Any) -> None:
    """A phase file that a kill cut off goes on after its last answer: no finished call is made again."""
    directory = bench.directory / "phases"
    directory.mkdir()
    (directory / "01-work.md").write_text("Do the work.\n")
    domain = bench.domain_with(phases=("00-init", Phase(id="01-work"), "done"), phase_directory=directory)
    del bench.phases.script["01-work"], bench.phases.script["02-check"]
    for journal, _ in kills(bench, domain=domain, generator=ScriptedGenerator(ANSWERS)):
        run = asyncio.run(load_workflow(journal, "r1"))
        if run.state == "done":
            continue
        answered = len([call for call in run.calls if call.answer is not None])
        rest = ScriptedGenerator(ANSWERS[answered:])
        result = bench.workflow(journal=journal, domain=domain, generator=rest).resume("r1")
        asked = [each.event.call for each in result.records if each.event.name == "phase:answered"]
        assert (result.status, result.state, asked) == ("done", bench.end.state, [1, 2, 3])


def test_killed_in_the_middle_of_a_rename(bench: Any) -> None:
    """A kill between the file's new name and its new content is no other workflow with the same id."""
    names = []
    for journal, _ in kills(bench):
        run = asyncio.run(load_workflow(journal, "r1"))
        if run.state == "writing" and StateFile(bench.directory / "state").is_there:
            names.append(StateFile(bench.directory / "state").rename("epic-1").path.name)
            result = bench.workflow(journal=journal).resume("r1")
            assert (result.status, result.state) == ("done", bench.end.state)
    assert set(names) == {"epic-1-state.json"}


def test_a_phase_that_wakes_too_late(bench: Any) -> None:
    """A phase that was given up and goes on all the same records nothing into the next execution."""
    late: list[str] = []

    async def stubborn(_: object, components: Any) -> object:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.3)
        try:
            await components.metrics.count("files_modified", 1)
        except OrchestratorError as error:
            late.append(type(error).__name__)
        return None

    async def patient(_: object, components: Any) -> object:
        await asyncio.sleep(0.4)
        await components.metrics.count("files_modified", 2)
        return {"next_phase": "done", "state_updates": {}, "output": ""}

    phases = (Phase(id="00-init", seconds=0.02), "02-check", "done")
    calls = {"00-init": stubborn, "02-check": patient}
    domain = bench.domain_with(phases=phases)
    result = bench.workflow(domain=domain, phases=calls, policy=Policy(phase_error="skip")).run()
    counted = [each.event.value for each in result.records if each.event.name == "metric:recorded"]
    assert (result.status, late, counted) == ("done", ["PhaseClosedError"], [2])
