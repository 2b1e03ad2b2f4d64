"""Whatever phases do, a workflow ends at rest, its journal tells the same story, and its file says the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import read_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ManualClock
from orchestrator.workflow import Domain, PhaseOutcome, Policy, Workflow, WorkflowPaused
from orchestrator.workflow.resuming import load_workflow
from orchestrator_events.budget import Budget

PHASES = ("a", "b", "c", "done")
DEEDS = st.lists(
    st.sampled_from(["a", "b", "c", "done", "nowhere", "raise", "error", "nonsense", "meddle", "name"]), max_size=14
)
CHOICES = st.lists(st.sampled_from(["retry", "skip", "fix", "go on", "use journal", "use file", "abort"]), max_size=6)


class Doing:
    """Phases that do one deed after the other, and end the workflow after the last."""

    def __init__(self, deeds: list[str], file: Path) -> None:
        self.deeds = iter(deeds)
        self.file = file

    async def __call__(self, state: dict[str, Any], _: object) -> Any:
        """The next deed."""
        deed = next(self.deeds, "done")
        if deed == "raise":
            raise ValueError("no network")
        if deed == "nonsense":
            return {"next_phase": 7}
        if deed == "error":
            return PhaseOutcome(str(state["phase"]), {"error": "no plan"}, "")
        if deed == "meddle":
            self.file.write_text("{}")
            return PhaseOutcome("b")
        if deed == "name":
            return PhaseOutcome("b", {"workflow_id": "x"})
        return PhaseOutcome(deed, {"last": deed}, deed)


@given(DEEDS, CHOICES, st.sampled_from(["", "retry", "skip", "abort"]))
@settings(max_examples=60, deadline=None)
def test_any_phases(deeds: list[str], choices: list[str], policy: Any) -> None:
    """It comes to rest, a fold is the run, the audit finds nothing, and a file that was written is what it says."""
    with TemporaryDirectory() as folder:
        directory, journal = Path(folder), MemoryJournal()
        domain = Domain(name="demo", phases=PHASES, state_directory=directory)
        doing = Doing(deeds, directory / "workflow-new-state.json")
        workflow = Workflow(
            domain,
            phases=dict.fromkeys(PHASES[:-1], doing),
            journal=journal,
            clock=ManualClock(),
            policy=Policy(phase_error=policy),
            budget=Budget(attempts=30, repeats=None),
        )
        result = workflow.run(run_id="r1")
        for choice in choices:
            if isinstance(result, WorkflowPaused) and choice in result.decision.options:
                result = workflow.resume("r1", choice)
        run = asyncio.run(load_workflow(journal, "r1"))
        assert (run.current, run.phase, tuple(run.records)) == (result.state, result.phase, result.records)
        path = directory / "export.json"
        path.write_text(asyncio.run(export_json(journal, "r1")))
        assert audit(read_export(path)).findings == ()
        if result.status == "done":
            name = result.workflow_id or "workflow-new"
            assert json.loads((directory / f"{name}-state.json").read_text()) == result.state
