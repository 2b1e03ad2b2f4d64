"""The run is the fold of its records: applying them to a fresh one gives the same run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator import (
    Budget,
    Candidate,
    Exhausted,
    Generation,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    RunReport,
    Usage,
)
from orchestrator.journal.memory import MemoryJournal
from orchestrator.outcome import RunEndedError
from orchestrator.run import Run
from orchestrator.testing import ManualClock, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.codec import decode, encode
from orchestrator_events.ledger import Ledger
from orchestrator_events.record import Record
from orchestrator_events.run import AttemptPassed, CandidateGenerated, PromptReady
from orchestrator_states.machine import IllegalTransitionError, machine_of
from orchestrator_states.run import RUN

SPEC = MergedSpec(intent="Set x to 1.")
USED = Usage(input_tokens=40, output_tokens=7, money_micro=3)
SCRIPTS: dict[str, tuple[list[Any], list[Any], Budget]] = {
    "passed at once": (["x"], [{"a": True}], Budget()),
    "passed later": (["x", OSError("no"), "y"], [{"a": "no"}, {"a": True}], Budget()),
    "exhausted": (["x", "y", "x"], [{"a": True, "b": "no"}, {"a": "no"}], Budget(attempts=3)),
    "repeats": (["x"], [{"a": "no"}], Budget(attempts=9, repeats=2)),
    "metered": (
        [Generation(candidate=Candidate("x"), usage=USED), "y"],
        [{"a": "no"}],
        Budget(attempts=3, tokens=5_000),
    ),
    "overrun": (
        [Generation(candidate=Candidate("x"), usage=Usage(output_tokens=9_000))],
        [{"a": "no"}],
        Budget(tokens=500),
    ),
    "no candidate": ([OSError("no")], [], Budget(attempts=2, money_micro=100)),
    "unavailable": ([GeneratorUnavailableError("no")], [], Budget()),
    "no verdict": (["x"], [ValueError("no")], Budget(seconds=9)),
}


def played(answers: list[Any], verdicts: list[Any], budget: Budget) -> RunReport:
    """The report of a run on scripts whose last answers repeat, two seconds a call."""
    clock = ManualClock()

    def ticking(answer: Any) -> Any:
        def tick(question: Any) -> Any:
            clock.advance(2)
            return answer(question) if callable(answer) else answer

        return tick

    made = Orchestrator(
        generator=ScriptedGenerator([ticking(each) for each in answers], "repeat"),
        evaluator=ScriptedEvaluator([ticking(each) for each in verdicts], "repeat"),
        budget=budget,
        clock=clock,
    )
    try:
        return made.run(SPEC, run_id="r")
    except RunEndedError as error:
        return error.report


def fresh(budget: Budget) -> Run:
    """A run before its first record."""
    machine, clock = machine_of(RUN), ManualClock()
    return Run(
        run_id="r",
        spec=SPEC,
        machine=machine,
        ledger=Ledger(budget, clock),
        clock=clock,
        journal=MemoryJournal(),
        state=machine.table.initial,
        lifecycle=machine.table.name,
    )


def folded(records: list[Record], budget: Budget) -> Run:
    """A fresh run to which the records were applied."""
    run = fresh(budget)
    for record in records:
        run.apply(record)
    return run


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("is_stored", [False, True], ids=["as fired", "as stored"])
def test_fold_gives_the_same_run(script: str, is_stored: bool) -> None:
    """State, history, closest candidate and every sum follow from the records alone, also from their
    bytes.
    """
    answers, verdicts, budget = SCRIPTS[script]
    report = played(answers, verdicts, budget)
    texts: dict[str, str] = {blob.digest: blob.text for record in report.records for blob in blobs_of(record)}
    records = [decode(encode(record), texts) if is_stored else record for record in report.records]
    run = folded(records, budget)
    assert (run.state, run.sequence, run.attempts, run.closest) == (
        report.state,
        len(report.records),
        list(report.history),
        report.closest,
    )
    ledger, usage = run.ledger, report.usage
    assert (ledger.attempts, ledger.calls, ledger.holds) == (report.attempts, report.generator_invocations, {})
    assert (ledger.input_tokens, ledger.output_tokens, ledger.money_micro) == (
        usage.input_tokens,
        usage.output_tokens,
        usage.money_micro,
    )
    assert (ledger.elapsed_us(), ledger.has_estimates) == (usage.active_us, usage.is_estimated)


def blobs_of(record: Record) -> list[Any]:
    """The texts that a record names by digest."""
    fields = (getattr(record.event, name, None) for name in ("prompt", "candidate"))
    return [blob for blob in fields if blob is not None]


@pytest.mark.parametrize("script", SCRIPTS)
def test_records_are_legal_moves(script: str) -> None:
    """Firing the recorded events again at a fresh run is legal, event by event, and gives the same states."""
    answers, verdicts, budget = SCRIPTS[script]
    report = played(answers, verdicts, budget)
    run = fresh(budget)
    for record in report.records:
        run.fire(record.event)
    assert [(each.sequence, each.source, each.target) for each in run.outbox] == [
        (each.sequence, each.source, each.target) for each in report.records
    ]


def test_illegal_event_moves_nothing() -> None:
    """An event that the table does not allow raises, with what is allowed, and leaves no trace."""
    run = fresh(Budget())
    with pytest.raises(IllegalTransitionError, match="attempt:passed is illegal in state 'ready'"):
        run.fire(AttemptPassed(attempt=1, passed=("a",), duration_us=0, is_pinned=False))
    assert (run.state, run.sequence, run.outbox) == ("ready", 0, [])


def test_half_a_run() -> None:
    """A run that is cut anywhere folds to the open state it was in, with what was in flight still held."""
    answers, verdicts, budget = SCRIPTS["metered"]
    report = played(answers, verdicts, budget)
    names = [record.event.name for record in report.records]
    cut = names.index("generation:started") + 1
    run = folded(list(report.records[:cut]), budget)
    assert run.started is not None
    assert (run.state, list(run.ledger.holds), run.ledger.calls) == ("generating", [run.started.reservation.key], 1)


def test_runs_do_not_share_anything() -> None:
    """Many runs at once on one orchestrator: each has its own records, sums and history."""
    made = Orchestrator(
        generator=ScriptedGenerator([lambda request: f"{request.run_id} {request.attempt}"], "repeat"),
        evaluator=ScriptedEvaluator([{"a": "no"}], "repeat"),
        budget=Budget(attempts=3),
    )

    async def main() -> list[Any]:
        return await asyncio.gather(*(made.arun(SPEC, run_id=f"run-{number}") for number in range(50)))

    for number, result in enumerate(asyncio.run(main())):
        assert isinstance(result, Exhausted)
        assert {record.run_id for record in result.records} == {f"run-{number}"}
        texts = [
            record.event.candidate.text for record in result.records if isinstance(record.event, CandidateGenerated)
        ]
        assert texts == [f"run-{number} {attempt}" for attempt in (1, 2, 3)]
        assert sum(isinstance(record.event, PromptReady) for record in result.records) == 3
