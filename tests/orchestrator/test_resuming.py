"""Resuming through the API: what is refused, what is recorded, what is counted on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator import Budget, GeneratorUnavailableError, MergedSpec, Orchestrator, RunInterruptedError, Verdict
from orchestrator.history import UnknownRunError
from orchestrator.journal import MemoryJournal
from orchestrator.resuming import ResumeRefusedError
from orchestrator.testing import ManualClock, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events import BudgetRaised
from orchestrator_events.errors import JournalConflictError, RunHeldError
from orchestrator_events.journal import Batch
from orchestrator_events.record import Record

SPEC = MergedSpec(name="resumed", intent="Anything.")
FAILS = Verdict.of({"a": "wrong"})
PASSES = Verdict.of({"a": True})


def engine(journal: MemoryJournal | None, answers: list[Any], verdicts: list[Any], **options: Any) -> Orchestrator:
    """An orchestrator with scripted parts of fixed names."""
    return Orchestrator(
        generator=ScriptedGenerator(answers, name="script"),
        evaluator=ScriptedEvaluator(verdicts, name="judge"),
        journal=journal,
        **options,
    )


def recorded(journal: MemoryJournal) -> list[Record]:
    """Everything in the journal."""

    async def read() -> list[Record]:
        return [entry.record async for entry in journal.read("r")]

    return asyncio.run(read())


def test_after_an_unavailable_generator() -> None:
    """The attempt is made again when the generator is back: two calls, one attempt."""
    journal = MemoryJournal()
    with pytest.raises(RunInterruptedError):
        engine(journal, [GeneratorUnavailableError("gone")], []).run(SPEC, run_id="r")
    result = engine(journal, ["x"], [PASSES]).resume("r")
    names = [record.event.name for record in recorded(journal)]
    assert (result.status, result.attempts, result.generator_invocations) == ("passed", 1, 2)
    assert names.count("execution:start") == names.count("execution:end") == 2
    assert "execution:interrupted" not in names


def test_limits_that_change_are_recorded() -> None:
    """Raised limits reopen an exhausted run and are in its history; equal ones are not recorded again."""
    journal = MemoryJournal()
    engine(journal, ["x"], [FAILS], budget=Budget(attempts=1)).run(SPEC, run_id="r")
    raised = Budget(attempts=2, seconds=60)
    result = engine(journal, ["y"], [PASSES], budget=raised).resume("r")
    events = [record.event for record in recorded(journal) if isinstance(record.event, BudgetRaised)]
    assert (result.status, result.attempts, events) == ("passed", 2, [BudgetRaised(budget=raised)])


def test_time_is_counted_on_and_downtime_is_not() -> None:
    """Active time continues from where it was, whatever the clocks did in between."""
    journal, clock = MemoryJournal(), ManualClock()

    def slow(_: object) -> str:
        clock.advance(4)
        return f"{clock.monotonic()}"

    budget = Budget(attempts=1, seconds=10)
    first = engine(journal, [slow], [FAILS], budget=budget, clock=clock).run(SPEC, run_id="r")
    clock.advance(1_000)
    second = engine(journal, [slow], [PASSES], budget=Budget(attempts=2, seconds=10), clock=clock).resume("r")
    assert (first.usage.active_us, second.usage.active_us) == (4_000_000, 8_000_000)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"language": "go"}, ("language", '"python"', '"go"')),
        ({"parameters": {"temperature": 1}}, ("parameters", "{}", '{"temperature": 1}')),
    ],
)
def test_another_identity_is_refused(changed: dict[str, Any], field: tuple[str, str, str]) -> None:
    """The differing field is named with both values, and nothing is written."""
    journal = MemoryJournal()
    engine(journal, ["x"], [FAILS], budget=Budget(attempts=1)).run(SPEC, run_id="r")
    before = recorded(journal)
    with pytest.raises(ResumeRefusedError) as caught:
        engine(journal, ["y"], [PASSES], budget=Budget(attempts=2), **changed).resume("r")
    assert caught.value.differences == (field,)
    assert recorded(journal) == before


def test_what_cannot_be_resumed() -> None:
    """A passed run, an unknown one, and an orchestrator without a journal each say so."""
    journal = MemoryJournal()
    made = engine(journal, ["x"], [PASSES])
    made.run(SPEC, run_id="r")
    with pytest.raises(ResumeRefusedError, match="it passed"):
        made.resume("r")
    with pytest.raises(UnknownRunError):
        made.resume("nonsense")
    with pytest.raises(ResumeRefusedError, match="has no journal"):
        engine(None, ["x"], [PASSES]).resume("r")


def test_a_run_is_worked_on_by_one_orchestrator_at_a_time() -> None:
    """Whoever comes second is refused and writes nothing."""
    journal = MemoryJournal()
    engine(journal, ["x"], [FAILS], budget=Budget(attempts=1)).run(SPEC, run_id="r")
    before = recorded(journal)
    with journal.hold("r"), pytest.raises(RunHeldError, match="held by this process"):
        engine(journal, ["y"], [PASSES], budget=Budget(attempts=2)).resume("r")
    assert recorded(journal) == before


def test_a_resume_fences_the_writer_before_it() -> None:
    """A batch of an earlier invocation is refused, even where its place in the stream would be free."""
    journal = MemoryJournal()
    engine(journal, ["x"], [FAILS], budget=Budget(attempts=1)).run(SPEC, run_id="r")
    first = recorded(journal)[-1]
    engine(journal, ["y"], [PASSES], budget=Budget(attempts=2)).resume("r")
    after = recorded(journal)
    late = Batch("r", (first._replace(sequence=len(after) + 1),), epoch=1)
    with pytest.raises(JournalConflictError, match="epoch 1 was replaced by one of epoch 2"):
        asyncio.run(journal.append(late))
    assert recorded(journal) == after
