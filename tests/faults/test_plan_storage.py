"""Storage that breaks at any append of a plan: what is left goes on, over an amendment, to the same outcome."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.history import UnknownRunError
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.difference import AmendmentError
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.outcome import PlanInterruptedError
from orchestrator.plan.plan import Plan, read_plan
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import Policy, Treatment
from orchestrator.ports import Request
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Batch
from orchestrator_events.plan import FollowUpAdded, PlanAmended, StepSettled, StepStarted

CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))
MEMORY = Path("/dev/shm")
SHORT = 5
"""Outside of the long mode, storage breaks at one append in so many."""
MOST_INVOCATIONS = 40


def plan_of(*ids: str) -> Plan:
    """A plan of steps that depend on nothing."""
    base = {"role": "Writer", "risk_level": "low", "acceptance_criteria": ["it is written"], "rollback_plan": "undo"}
    steps = [{**base, "id": each, "task": f"write {each}"} for each in ids]
    return read_plan({"plan_id": "p", "goal": "write", "steps": steps}, "plan.json")


BEFORE, AFTER = plan_of("one"), plan_of("one", "two")


class BreakingJournal(MemoryJournal):
    """Breaks once, at the append of which it is told."""

    def __init__(self, is_there: Callable[[int, Batch], bool]) -> None:
        super().__init__()
        self.is_there = is_there
        self.appends = 0
        self.has_broken = False

    async def append(self, batch: Batch) -> None:
        """Append, or break."""
        self.appends += 1
        if not self.has_broken and self.is_there(self.appends, batch):
            self.has_broken = True
            raise JournalError("the disk is full")
        await super().append(batch)


@attrs.define(eq=False)
class Course:
    """A plan whose release manager is blocked until a second step is there."""

    root: Path
    journal: BreakingJournal
    calls: Counter[str] = attrs.Factory(Counter[str])

    def answer(self, request: Request) -> str:
        """What models say."""
        run_id = request.run_id.removeprefix("p.")
        self.calls[run_id] += 1
        is_early = run_id.startswith("release-manager.review") and "two" not in request.prompt
        if ".review" not in run_id:
            return f"text of {run_id}"
        return json.dumps({"status": "blocked" if is_early else "approved", "checklist": CHECKLIST})

    def orchestrator(self, plan: Plan) -> PlanOrchestrator:
        """An orchestrator as another process would make it."""
        names = ("writer", "reviewer", "StrongReasoningModel")
        return PlanOrchestrator(
            plan,
            models=dict.fromkeys(names, self.answer),
            policy=Policy(default=Treatment(primary="writer", reviewer="reviewer")),
            studio=ContextBus(root=self.root),
            journal=self.journal,
        )

    def go_on(self) -> dict[str, Any]:
        """One command after another, as the lifecycle says, until nothing is left to do; what came of it."""
        for _ in range(MOST_INVOCATIONS):
            with suppress(JournalError, PlanInterruptedError):
                if not self.has_more():
                    return self.outcome()
        raise AssertionError("it comes to no end")

    def has_more(self) -> bool:
        """Do the command that comes next, if any does."""
        orchestrator = self.orchestrator(BEFORE)
        try:
            standing = orchestrator.status()
        except UnknownRunError:
            return bool(orchestrator.review(YES, "Ada"))
        if "two" in standing.plan.by_id:
            orchestrator.plan = AFTER
        commands: dict[str, Callable[[], object]] = {
            "plan review": lambda: orchestrator.review(YES, "Ada"),
            "plan lock": orchestrator.lock,
            "plan run": orchestrator.run,
            "plan resume": orchestrator.resume,
            "plan amend": lambda: orchestrator.amend(AFTER, "a step to undo it"),
        }
        return bool(standing.next_command and commands[standing.next_command]())

    def outcome(self) -> dict[str, Any]:
        """What must be the same, wherever storage broke."""
        streams = self.journal.streams.values()
        records = sorted((record for stream in streams for record in stream.records), key=lambda each: each.at)
        events = [record.event for record in records]
        text = asyncio.run(export_json(self.journal, "p"))
        return {
            "executions": [(each.step, each.number) for each in events if isinstance(each, StepStarted)],
            "settled": [(each.step, each.state) for each in events if isinstance(each, StepSettled)],
            "followups": [each.followup for each in events if isinstance(each, FollowUpAdded)],
            "amendments": [each.reason for each in events if isinstance(each, PlanAmended)],
            "findings": [str(finding) for finding in audit(parse_export(text)).findings],
            "calls": sorted(self.calls),
        }


def is_number(wanted: int, number: int, _: Batch) -> bool:
    """Whether it is the append of this number."""
    return number == wanted


def settles(state: str) -> Callable[[int, Batch], bool]:
    """Whether a batch tells that a step came to this."""

    def is_there(_: int, batch: Batch) -> bool:
        events = [record.event for record in batch.records]
        return any(isinstance(event, StepSettled) and event.state == state for event in events)

    return is_there


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory whose writes cost nothing, where the machine has one: a plan syncs a lot."""
    found = Path(tempfile.mkdtemp(prefix="studio-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    yield found
    shutil.rmtree(found)


@pytest.fixture(scope="module")
def undisturbed(place: Path) -> tuple[int, dict[str, Any]]:
    """Appends and outcome where nothing breaks."""
    course = Course(place / "undisturbed", BreakingJournal(lambda *_: False))
    outcome = course.go_on()
    assert outcome["executions"] == [("one", 1), ("release-manager", 1), ("two", 1), ("release-manager", 2)]
    assert (outcome["findings"], set(course.calls.values())) == ([], {1})
    return course.journal.appends, outcome


def test_storage_that_breaks_anywhere(place: Path, undisturbed: tuple[int, dict[str, Any]], is_long: bool) -> None:
    """The same outcome, whatever was cut off; one call at most is made again, the one whose answer was lost."""
    appends, outcome = undisturbed
    for broken in range(1, appends + 1, 1 if is_long else SHORT):
        journal = BreakingJournal(partial(is_number, broken))
        course = Course(place / str(broken), journal)
        assert (broken, course.go_on()) == (broken, outcome)
        assert (journal.has_broken, course.calls.total() - len(course.calls) <= 1) == (True, True)


def test_a_block_that_was_not_told(place: Path, undisturbed: tuple[int, dict[str, Any]]) -> None:
    """A step that was blocked as storage broke is one that was blocked before the amendment: it begins anew."""
    course = Course(place / "blocked", BreakingJournal(settles("blocked")))
    assert (course.go_on(), course.journal.has_broken) == (undisturbed[1], True)


def test_a_completion_that_was_not_told(place: Path) -> None:
    """A step that was completed as storage broke is completed: no amendment changes it."""
    course = Course(place / "completed", BreakingJournal(settles("completed")))
    orchestrator = course.orchestrator(BEFORE)
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    with pytest.raises(PlanInterruptedError, match="the disk is full"):
        orchestrator.run()
    changed = attrs.evolve(BEFORE, steps=(attrs.evolve(BEFORE.steps[0], task="write less"),))
    with pytest.raises(AmendmentError, match="one is completed"):
        orchestrator.amend(changed, "too much")
    assert orchestrator.resume().status == "blocked"
