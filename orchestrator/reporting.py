"""From a run, live or read back, to the report of what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.outcome import Exhausted, Passed, RunReport
from orchestrator.recordedresult import UsageTotals
from orchestrator.run import Run
from orchestrator_states.run import RunState

__all__ = ["report_on"]

IDENTITY = ("language", "generator", "evaluator", "strategy")


def report_on(run: Run, identity: Mapping[str, Any]) -> RunReport:
    """Passed or Exhausted for a run that has a result, a plain report for one that has none (yet)."""
    fields = {**measures(run), **{name: str(identity.get(name, "")) for name in IDENTITY}}
    if run.state == RunState.PASSED and run.last is not None and run.last.candidate is not None:
        return Passed(**fields, candidate=run.last.candidate)
    if run.state == RunState.EXHAUSTED and run.exhausted is not None:
        return Exhausted(**fields, limit=run.exhausted.limit, detail=run.exhausted.detail)
    return RunReport(**fields)


def measures(run: Run) -> dict[str, Any]:
    """What the fold of the records says."""
    ledger = run.ledger
    return {
        "run_id": run.run_id,
        "state": run.state,
        "spec_name": run.spec.name,
        "spec_digest": run.spec.digest,
        "is_pinned": run.expectation.expected is not None,
        "attempts": ledger.attempts,
        "generator_invocations": ledger.calls,
        "usage": UsageTotals.of(ledger),
        "history": tuple(run.attempts),
        "isolation": run.isolation,
        "closest": run.closest,
        "records": tuple(run.records),
    }
