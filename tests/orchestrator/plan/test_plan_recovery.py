"""What a plan comes back from: a kill, a cause that was mended, an approval that nobody was there to give."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pytest

from orchestrator.adapter_errors import GenerationError
from orchestrator.asking import NobodyToAskError
from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.errors import AmendmentError, PlanStateError, RetryError
from orchestrator.plan.outcome import PlanInterruptedError
from orchestrator.plan.plan import read_plan
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import Policy, ReviewKind, Treatment
from orchestrator.ports import Request
from orchestrator.testing import ManualClock
from orchestrator_events.budget import Budget
from orchestrator_events.errors import JournalError
from orchestrator_events.event import Event
from orchestrator_events.execution import ApprovalAnswered, ExecutionInterrupted
from orchestrator_events.journal import Batch
from orchestrator_events.plan import StepSettled, StepUnblocked
from orchestrator_events.record import Record

CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
APPROVED = json.dumps({"status": "approved", "checklist": CHECKLIST})
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))
Kind = TypeVar("Kind", bound=Event)


class MortalJournal(MemoryJournal):
    """Takes nothing more once its process is dead."""

    is_dead = False

    async def append(self, batch: Batch) -> None:
        """Keep a batch, while alive."""
        if self.is_dead:
            raise JournalError("killed", run_id=batch.run_id)
        await super().append(batch)


def step(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    """A step of low risk."""
    base = {"id": step_id, "role": "Writer", "task": f"write {step_id}", "risk_level": "low"}
    return {**base, "acceptance_criteria": ["it is written"], "depends_on": list(after), **fields}


def made(place: Path, *steps: dict[str, Any], **options: Any) -> PlanOrchestrator:
    """An orchestrator with a locked plan, a writer, and a reviewer who approves."""
    models = {"writer": lambda _: "text", "reviewer": lambda _: APPROVED, **options.pop("models", {})}
    settings: dict[str, Any] = {
        "policy": Policy(default=Treatment(primary="writer", reviewer="reviewer")),
        "studio": ContextBus(root=place / "studio"),
        "has_release_manager": False,
        **options,
    }
    models.setdefault("StrongReasoningModel", models["writer"])
    plan = read_plan({"plan_id": "p", "goal": "write", "steps": list(steps)}, "plan.json")
    orchestrator = PlanOrchestrator(plan, models=models, **settings)
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    return orchestrator


def findings(orchestrator: PlanOrchestrator) -> list[str]:
    """What an audit of the plan finds."""
    text = asyncio.run(export_json(orchestrator.journal, orchestrator.run_id))
    return [str(finding) for finding in audit(parse_export(text)).findings]


def records(orchestrator: PlanOrchestrator) -> list[Record]:
    """Everything recorded, run by run."""
    assert isinstance(orchestrator.journal, MemoryJournal)
    return [record for stream in orchestrator.journal.streams.values() for record in stream.records]


def events(orchestrator: PlanOrchestrator, kind: type[Kind]) -> list[Kind]:
    """The events of a kind, in all runs."""
    return [record.event for record in records(orchestrator) if isinstance(record.event, kind)]


def test_a_kill_gives_no_time_back(tmp_path: Path) -> None:
    """What finished work took is charged though the invocation has no end; work side by side counts once."""
    clock, journal = ManualClock(), MortalJournal()
    both = asyncio.Barrier(2)

    async def writer(request: Request) -> str:
        if not request.run_id.startswith("p.three"):
            await both.wait()
        if request.run_id.startswith("p.two"):
            clock.advance(5)
        return "text"

    def reviewer(_: Request) -> str:
        journal.is_dead = is_killed
        return APPROVED

    is_killed = True
    steps = (step("one"), step("two"), step("three", "one", "two"))
    options: dict[str, Any] = {"clock": clock, "journal": journal, "budget": Budget(seconds=6, attempts=None)}
    orchestrator = made(tmp_path, *steps, models={"writer": writer, "reviewer": reviewer}, **options)
    with pytest.raises(PlanInterruptedError, match="killed"):
        orchestrator.run()
    journal.is_dead, is_killed = False, False
    assert orchestrator.status().usage.active_us == 5_000_000
    clock.advance(3_600)
    result = orchestrator.resume()
    assert (result.status, result.usage.active_us, findings(orchestrator)) == ("completed", 5_000_000, [])
    stream = journal.streams["p"]
    forged = [
        record._replace(event=attrs.evolve(record.event, active_us=0))
        if isinstance(record.event, ExecutionInterrupted)
        else record
        for record in stream.records
    ]
    journal.streams["p"] = attrs.evolve(stream, records=forged, entries=[])
    assert any("charges 0 microseconds, the steps' records show 5000000" in each for each in findings(orchestrator))


class Door:
    """A person who is there or is not."""

    def __init__(self) -> None:
        self.is_open = False

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
        """Yes, from whoever is there."""
        if not self.is_open:
            raise NobodyToAskError(prompt)
        return True


def test_nobody_is_there_to_approve(tmp_path: Path) -> None:
    """No refusal is recorded that nobody gave: the step waits, others go on, and the next invocation asks again."""
    reviews = frozenset({ReviewKind.MANUAL_APPROVAL})
    policy = Policy(default=Treatment(primary="writer", reviewer="reviewer", reviews=reviews))
    calls: list[str] = []
    door = Door()

    def writer(request: Request) -> str:
        calls.append(request.run_id)
        return "text"

    options: dict[str, Any] = {"policy": policy, "approver": door, "models": {"writer": writer}}
    orchestrator = made(tmp_path, step("one"), step("two"), most_at_once=1, **options)
    with pytest.raises(PlanInterruptedError, match="nobody is there to approve") as error:
        orchestrator.run()
    states = [each.state for each in error.value.report.steps]
    assert (states, findings(orchestrator)) == (["verifying", "verifying"], [])
    door.is_open = True
    assert orchestrator.resume().status == "completed"
    answers = [each.is_approved for each in events(orchestrator, ApprovalAnswered)]
    assert (calls, answers) == (["p.one.primary-1", "p.two.primary-1"], [True, True])
    assert findings(orchestrator) == []


def test_what_was_mended_is_tried_again(tmp_path: Path) -> None:
    """A step that failed by a generator's own fault begins anew under the plan as it is; who says so and why stays."""
    is_mended = False

    def writer(_: Request) -> str:
        if not is_mended:
            raise GenerationError("crashed")
        return "text"

    orchestrator = made(tmp_path, step("one"), models={"writer": writer})
    assert [orchestrator.run().status, orchestrator.resume().status] == ["blocked", "blocked"]
    is_mended = True
    before = len(records(orchestrator))
    for given, why in ((("two",), "x"), (("one",), " ")):
        with pytest.raises(RetryError):
            orchestrator.resume(given, why, "Ada")
    with pytest.raises(AmendmentError, match="plan resume --retry"):
        orchestrator.amend(orchestrator.plan, "try again")
    assert len(records(orchestrator)) == before
    result = orchestrator.resume(["one"], "its library was updated", "Ada")
    (begun_anew,) = events(orchestrator, StepUnblocked)
    assert (result.status, result.by_id["one"].failures, begun_anew.by) == ("completed", 0, "Ada")
    assert (begun_anew.reason, findings(orchestrator)) == ("its library was updated", [])
    assert [each.state for each in events(orchestrator, StepSettled)] == ["failed", "completed"]
    with pytest.raises(PlanStateError):
        orchestrator.resume(["one"], "once more", "Ada")


def test_a_retry_that_fails_again_is_told_again(tmp_path: Path) -> None:
    """The step rests once more, with its new reason and all that it cost, and can be tried once more."""
    orchestrator = made(tmp_path, step("one"), step("two", "one"), models={"reviewer": lambda _: "no review"})
    assert orchestrator.run().status == "blocked"
    assert orchestrator.resume(["one"], "the reviewer was reminded").status == "blocked"
    told = [(each.step, each.state) for each in events(orchestrator, StepSettled)]
    assert (told, findings(orchestrator)) == ([("one", "blocked")] * 2, [])
    costs = [each.charge.input_tokens for each in events(orchestrator, StepSettled)]
    assert costs[1] > costs[0]


def test_what_a_reviewer_blocked_waits_for_an_amendment(tmp_path: Path) -> None:
    """Blocked → amendment (contract 5): no retry passes it by."""
    blocked = json.dumps({"status": "blocked", "checklist": CHECKLIST, "diff_risk_notes": ["too much"]})
    orchestrator = made(tmp_path, step("one"), models={"reviewer": lambda _: blocked})
    assert orchestrator.run().status == "blocked"
    with pytest.raises(RetryError, match="amend the plan"):
        orchestrator.resume(["one"], "it is fine", "Ada")
