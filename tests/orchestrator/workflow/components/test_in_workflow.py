"""Components inside a real workflow: their events are its journal, and a crash anywhere changes nothing in the end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ManualClock, ScriptedGenerator
from orchestrator.workflow import Domain, PhaseOutcome, Workflow
from orchestrator.workflow.components.bundle import Components
from orchestrator.workflow.components.retry import OperationError
from orchestrator.workflow.components.subagents import SubagentTask
from orchestrator_events.journal import Batch

PLANNED = json.dumps({"status": "success", "chunks": [{"id": "1", "description": "add"}]})
BUILT = json.dumps({"status": "success", "files_changed": ["a.py"]})


class KilledJournal(MemoryJournal):
    """Takes so many batches, then writes nothing any more, as if the process had been killed."""

    def __init__(self, takes: int = 10**9) -> None:
        super().__init__()
        self.takes = takes
        self.batches: list[Batch] = []

    async def append(self, batch: Batch) -> None:
        """Keep the batch, or raise."""
        if len(self.batches) >= self.takes:
            raise OSError("killed")
        await super().append(batch)
        self.batches.append(batch)


async def work(_: object, components: Components) -> PhaseOutcome:
    """A phase that uses all of them: plan, do both chunks, test until it gives up, learn from it."""
    plan = await components.subagents.spawn("PLANNER", {"story": "add"})
    tasks = [SubagentTask(role="IMPLEMENTER", context={"chunk": plan.output["chunks"][0]}, files=["a.py"])]
    await components.subagents.spawn_parallel(tasks)
    await components.metrics.count("tests_failed")

    def attempt() -> None:
        raise OperationError("2 tests fail")

    tested = await components.retry.run("test", attempt, fix=lambda failure: f"patched after {failure.attempt}")
    assert tested.learning_record_id
    return PhaseOutcome("done", {"workflow_id": "epic", "attempts": tested.attempts}, tested.learning_record_id)


def workflow(directory: Path, journal: MemoryJournal, generator: ScriptedGenerator) -> Workflow:
    """A workflow of that one phase."""
    domain = Domain(name="demo", phases=("01-work", "done"), state_directory=directory)
    return Workflow(domain, phases={"01-work": work}, journal=journal, clock=ManualClock(), generator=generator)


def names(result: Any) -> Counter[str]:
    """How many records of each component's events there are."""
    counted = Counter(record.event.name for record in result.records)
    return Counter({name: number for name, number in counted.items() if name.startswith(FAMILIES)})


FAMILIES = ("subagent:", "metric:", "retry:", "learning:")
WHOLE = Counter(
    {
        "subagent:spawned": 2,
        "subagent:finished": 2,
        "metric:recorded": 1,
        "retry:attempted": 3,
        "learning:recorded": 1,
        "retry:exhausted": 1,
    }
)


def test_every_action_of_a_component_is_a_record_of_the_run(tmp_path: Path) -> None:
    """The workflow's own table allows them all; what subagents were charged is in the run's usage."""
    journal = KilledJournal()

    result: Any = workflow(tmp_path, journal, ScriptedGenerator([PLANNED, BUILT])).run()

    assert (result.status, result.state["attempts"], names(result)) == ("done", 3, WHOLE)
    charged = [record.event.charge for record in result.records if record.event.name == "subagent:finished"]
    finished = next(record.event for record in result.records if record.event.name == "phase:finished")
    assert finished.charge.input_tokens == sum(charge.input_tokens for charge in charged)


def test_a_workflow_killed_at_any_commit_counts_and_pays_once(tmp_path: Path) -> None:
    """Resumed from whatever was committed: three attempts in all, and no answer that came is bought again."""
    whole = KilledJournal()
    workflow(tmp_path / "whole", whole, ScriptedGenerator([PLANNED, BUILT])).run()
    ends = [any(record.event.name == "phase:finished" for record in batch.records) for batch in whole.batches].index(
        True
    )
    for takes in range(1, ends):
        directory, generator = tmp_path / str(takes), ScriptedGenerator([PLANNED, BUILT])
        journal = KilledJournal(takes=takes)
        run = workflow(directory, journal, generator)
        killed = False
        try:
            run.run()
        except Exception:  # noqa: BLE001 -- however it says that the journal is gone
            killed = True
        answered = sum(
            record.event.name == "subagent:finished" for batch in journal.batches for record in batch.records
        )
        journal.takes = 10**9
        (run_id,) = asyncio.run(journal.run_ids())
        rest = ScriptedGenerator([PLANNED, BUILT][answered:])

        result: Any = workflow(directory, journal, rest).resume(run_id)

        counted = names(result)
        lost = counted["subagent:spawned"] - 2
        expected = WHOLE + Counter({"subagent:spawned": lost, "subagent:finished": lost})
        again = counted["metric:recorded"] - 1
        expected["metric:recorded"] += again
        assert (killed, result.status, result.state["attempts"], counted) == (True, "done", 3, expected), takes
        assert (lost in (0, 1), again in (0, 1), len(rest.requests)) == (True, True, 2 - answered), takes
