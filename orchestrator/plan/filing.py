"""A plan's run folder: the journal's export and the execution trace, beside the outputs (contract 5)."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.exports.document import export_json
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.planrun import PlanRun
from orchestrator.plan.reporting import trace_page
from orchestrator.plan.steprun import StepRun
from orchestrator_events.journal import Journal

__all__ = ["file_run"]


async def file_run(journal: Journal, bus: ContextBus, run: PlanRun, steps: Mapping[str, StepRun]) -> None:
    """Write journal.json and trace.md into the run's folder, as far as the run has come: audit and replay need no more.

    Raises RootFileError where they cannot be written, and JournalError where the journal cannot be read.
    """
    exported, page = await export_json(journal, run.run_id), trace_page(run, steps.values())
    bus.files.write(bus.run_path(run.run_id, "journal.json"), exported.encode())
    bus.files.write(bus.run_path(run.run_id, "trace.md"), page.encode())
