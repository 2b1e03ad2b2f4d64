"""The loop: every step is recorded and committed before its effect, and two machines share one stream."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import read_export
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.workflow import (
    ParametersError,
    PhaseOutcome,
    WorkflowAborted,
    WorkflowDone,
    WorkflowInterruptedError,
    WorkflowPaused,
)
from orchestrator.workflow.resuming import find_workflow, load_workflow
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.decision import Deny
from orchestrator_events.errors import JournalError, RunHeldError
from orchestrator_events.execution import ExecutionEnd
from orchestrator_events.workflow import PhaseRequested

ONE_PHASE = [
    "state:read",
    "todos:updated",
    "phase:started",
    "phase:finished",
    "state:merged",
    "phase:entered",
    "state:written",
    "summary:reported",
]


def events(records: Any) -> list[str]:
    """Names of the events of records."""
    return [record.event.name for record in records]


def test_steps(bench: Any) -> None:
    """Every phase goes through the same steps in the same order, and the last one ends the workflow."""
    result = bench.workflow().run()
    assert type(result) is WorkflowDone
    start = ["execution:start", "isolation:established", "state:written", "state:read", "phase:entered"]
    expected = [*start, *ONE_PHASE[1:], "workflow:continued", *ONE_PHASE, "workflow:continued", *ONE_PHASE]
    assert events(result.records) == [*expected, "workflow:completed", "orchestrator:complete", "execution:end"]


def test_two_machines(bench: Any) -> None:
    """Moves of the domain's phases are recorded under the domain's name, apart from the loop's own."""
    result = bench.workflow().run()
    moves = [(each.source, each.target) for each in result.records if each.lifecycle == "demo"]
    assert moves == [("begun", "00-init"), ("00-init", "01-work"), ("01-work", "02-check"), ("02-check", "done")]
    assert {each.lifecycle for each in result.records} == {"demo", "workflow"}


def test_the_result(bench: Any) -> None:
    """A result holds the state, what is told, and a head that fits its records."""
    result = bench.workflow().run()
    told = ("The epic is parsed.", "The work is done.", "All is well.", "Workflow complete!")
    assert (result.lines, result.phase, result.workflow_id) == (told, "done", "epic-1")
    assert result.journal_head == asyncio.run(bench.journal.head(result.run_id))
    assert result.state == json.loads(bench.file().read_text())


def test_a_fold_is_the_run(bench: Any) -> None:
    """What is read back from the journal is what the run was."""
    result = bench.workflow().run()
    loaded = asyncio.run(load_workflow(bench.journal, result.run_id))
    assert (loaded.current, loaded.phase, loaded.state) == (result.state, "done", "done")
    assert (loaded.executions, loaded.outcomes) == (result.executions, [True, True, True])


def test_the_audit(bench: Any, tmp_path: Any) -> None:
    """An export of a workflow that failed, was paused and resumed has nothing to find."""
    bench.phases.script["01-work"].insert(0, ValueError("no network"))
    paused = bench.workflow().run()
    done = bench.workflow().resume("epic-1", "retry")
    path = tmp_path / "export.json"
    path.write_text(asyncio.run(export_json(bench.journal, done.run_id)))
    report = audit(read_export(path))
    assert (type(paused), report.findings, report.state) == (WorkflowPaused, (), "done")


def test_phases_get_copies(bench: Any) -> None:
    """A phase that changes the state it was given, or what it returned, changes nothing."""
    updates: dict[str, Any] = {"workflow_id": "epic-1", "files": ["a"]}

    def meddle(state: dict[str, Any], _: object) -> PhaseOutcome:
        state["phase"] = "done"
        return PhaseOutcome("01-work", updates)

    def later(_: dict[str, Any], __: object) -> PhaseOutcome:
        updates["files"].append("b")
        return PhaseOutcome("done")

    bench.phases.script |= {"00-init": [meddle], "01-work": [later]}
    assert bench.workflow().run().state["files"] == ["a"]


def test_plain_callables(bench: Any) -> None:
    """A plain function runs in a thread and may return a mapping with the contract's keys; it can use components."""

    def plain(_: dict[str, Any], components: Any) -> dict[str, Any]:
        components.wait(components.metrics.count("files_modified", 2))
        return {"next_phase": "done", "state_updates": {}, "output": "fine"}

    calls = {**bench.phases.calls(), "01-work": plain}
    result = bench.workflow(phases=calls).run()
    assert "metric:recorded" in events(result.records)


def test_parameters(bench: Any) -> None:
    """Parameters are checked by the domain's schemas, have defaults, are journaled and in the initial state."""
    domain = bench.domain_with(parameters={"epic_id": {"type": "string"}, "limit": {"type": "integer", "default": 3}})
    result = bench.workflow(domain=domain).run({"epic_id": "7"})
    assert result.state["parameters"] == {"limit": 3, "epic_id": "7"}
    assert json.loads(result.records[0].event.prompt.text) == {"limit": 3, "epic_id": "7"}
    with pytest.raises(ParametersError) as caught:
        bench.workflow(domain=domain).run({"epicid": 1, "limit": "x"})
    assert len(caught.value.faults) == 3


def test_a_budget_pauses(bench: Any) -> None:
    """An execution of a phase is an attempt; the limit pauses the workflow, a higher one lets it go on."""
    paused = bench.workflow(budget=Budget(attempts=1, repeats=None)).run()
    assert (paused.decision.about, paused.decision.options) == ("budget", ("go on", "abort"))
    still = bench.workflow(budget=Budget(attempts=1, repeats=None)).resume("epic-1", "go on")
    assert (still.decision.about, bench.phases.executed) == ("budget", ["00-init"])
    done = bench.workflow(budget=Budget(attempts=9, repeats=None)).resume("epic-1", "go on")
    assert (done.status, bench.phases.executed) == ("done", ["00-init", "01-work", "02-check"])


def test_time_is_up(bench: Any) -> None:
    """A phase that outlasts the budget is abandoned and the workflow pauses."""

    async def hang(*_: object) -> None:
        await asyncio.sleep(60)

    calls = {**bench.phases.calls(), "01-work": hang}
    result = bench.workflow(phases=calls, budget=Budget(seconds=0.05, attempts=None, repeats=None)).run()
    assert (result.decision.about, events(result.records).count("phase:abandoned")) == ("budget", 1)


def test_a_phase_of_its_own_time(bench: Any) -> None:
    """A phase that outlasts its own time has failed, whatever it does."""
    from orchestrator.workflow import Phase

    async def stubborn(*_: object) -> None:
        for _again in range(3):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                continue

    domain = bench.domain_with(phases=("00-init", Phase(id="01-work", seconds=0.03), "02-check", "done"))
    calls = {**bench.phases.calls(), "01-work": stubborn}
    result = bench.workflow(domain=domain, phases=calls).run()
    assert (result.decision.about, result.state["error"]) == (
        "phase error",
        "the phase did not end within 0.03 s",
    )


def test_a_denial_aborts(bench: Any) -> None:
    """A gate that denies a phase ends the workflow; nothing of the phase is executed."""
    bus = Bus()
    bus.answer(PhaseRequested, lambda _: Deny("no"))
    result = bench.workflow(bus=bus).run()
    assert (type(result), result.reason, bench.phases.executed) == (WorkflowAborted, "no", [])
    ended = result.records[-1].event
    assert (ended.status, ended.reason) == ("error", "no")


def test_a_cancelled_task(bench: Any) -> None:
    """Cancelling the task ends the invocation in order; the phase is executed again on a resume."""

    async def cancelled() -> None:
        begun = asyncio.Event()

        async def hang(*_: object) -> None:
            begun.set()
            await asyncio.sleep(60)

        task = asyncio.ensure_future(bench.workflow(phases={**bench.phases.calls(), "01-work": hang}).arun(run_id="r1"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    run = asyncio.run(load_workflow(bench.journal, "r1"))
    ended = run.records[-1].event
    assert isinstance(ended, ExecutionEnd)
    assert (run.state, ended.status) == ("executing", "cancelled")
    assert bench.workflow().resume("epic-1").status == "done"


def test_storage_fails(bench: Any) -> None:
    """A journal that fails interrupts the workflow: nothing is done that is not recorded."""

    class Full:
        """A journal that takes two batches."""

        def __init__(self) -> None:
            self.taken = 0

        async def append(self, batch: Any) -> None:
            """Store it, or fail."""
            self.taken += 1
            if self.taken > 2:
                raise JournalError("no space left", run_id=batch.run_id)
            await bench.journal.append(batch)

        def hold(self, run_id: str) -> Any:
            """As the other one."""
            return bench.journal.hold(run_id)

    with pytest.raises(WorkflowInterruptedError, match="no space left"):
        bench.workflow(journal=Full()).run()
    assert bench.phases.executed == ["00-init"]


def test_names(bench: Any) -> None:
    """A workflow is found by its id, its run's id, and as workflow-new before it has an id."""
    bench.phases.script["00-init"].insert(0, ValueError("no network"))
    run_id = bench.workflow().run().run_id
    assert asyncio.run(find_workflow(bench.journal, "workflow-new")) == run_id
    bench.workflow().resume("workflow-new", "retry")
    assert asyncio.run(find_workflow(bench.journal, "epic-1")) == run_id


def test_one_process_at_a_time(bench: Any, tmp_path: Any) -> None:
    """While a workflow is run, nobody else can run it; afterwards its durable journal goes on with it."""
    journal = SqliteJournal(tmp_path / "journal.sqlite")
    other = SqliteJournal(tmp_path / "journal.sqlite")
    held: list[str] = []

    def meddle(_: object, __: object) -> Any:
        try:
            bench.workflow(journal=other).resume("r1")
        except RunHeldError as error:
            held.append(str(error))
        return ValueError("no network")

    bench.phases.script["01-work"] = [meddle, PhaseOutcome("done")]
    paused = bench.workflow(journal=journal).run(run_id="r1")
    done = bench.workflow(journal=other).resume("epic-1", "retry")
    assert (paused.status, done.status, len(held)) == ("paused", "done", 1)
    assert asyncio.run(journal.head("r1")) == done.journal_head
    journal.close()
    other.close()


def test_once_more(bench: Any) -> None:
    """The file of a workflow that is done makes room for the next one of the same id, and is kept."""
    first = bench.workflow().run()
    bench.phases.executed.clear()
    bench.clock.advance(1)
    second = bench.workflow().run()
    kept = json.loads(bench.file().with_name("epic-1-state.json.finished").read_text())
    assert (first.status, second.status, second.run_id != first.run_id) == ("done", "done", True)
    assert (json.loads(bench.file().read_text()), kept) == (second.state, first.state)
