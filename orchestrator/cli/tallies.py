"""How far a run has come, counted in what its lifecycle goes by: attempts, turns, steps, executions."""

from __future__ import annotations

from orchestrator.cli.wording import count_of
from orchestrator.execution import Execution

__all__ = ["tally", "tally_data"]


def tally(run: Execution) -> str:
    """`3 attempts`, `1 turn`, `5 of 8 steps`, `2 executions`."""
    counts = tally_data(run)
    done = counts.pop("completed_steps", None)
    (name, number), *_ = counts.items()
    counted = count_of(number, name.removesuffix("s"))
    return counted if done is None else f"{done} of {counted}"


def tally_data(run: Execution) -> dict[str, int]:
    """The same as data: what is counted, in the plural."""
    match run.lifecycle:
        case "plan":
            from orchestrator.plan.planrun import PlanRun

            assert isinstance(run, PlanRun)
            steps = () if run.plan is None else run.effective.steps
            return {"steps": len(steps), "completed_steps": len(run.completed)}
        case "step":
            from orchestrator.plan.steprun import StepRun

            assert isinstance(run, StepRun)
            return {"executions": run.number}
        case "agent":
            return {"turns": run.ledger.attempts}
        case _:
            return {"attempts": run.ledger.attempts}
