"""Replay: the records of an export walked through fresh machines of the recorded tables, each decision in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from heapq import merge
from typing import Any

import attrs

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError
from orchestrator.attempt import Attempt
from orchestrator.audit.attempts import table_of
from orchestrator.audit.moves import Follower, machines_in
from orchestrator.audit.trail import begin
from orchestrator.importing import Export
from orchestrator.judgement import judge
from orchestrator.narration import told
from orchestrator.ports import Evaluator, Submission
from orchestrator.run import Run
from orchestrator.verdicts import checked_verdict
from orchestrator_events.codec import decode
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Record
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["Rejudgement", "ReplayError", "Step", "rejudge", "replay", "runs_in"]


class ReplayError(OrchestratorError):
    """A record does not follow from those before it; `steps` are the ones that do."""

    def __init__(self, sequence: int, reason: str, steps: tuple[Step, ...] = (), inside: str = "") -> None:
        self.sequence = sequence
        self.reason = reason
        self.steps = steps
        self.inside = inside
        """The run it is of, where that is one inside the run that was exported."""
        place = f"record {sequence} of {inside:.80}" if inside else f"record {sequence}"
        super().__init__(f"{place} cannot be replayed: {reason}")


@attrs.frozen
class Step:
    """One record, replayed."""

    sequence: int
    time: datetime
    source: str
    target: str
    event: str
    """Wire name."""
    decision: str
    """What was decided, by whom and why; holds text of others."""
    run: str = ""
    """Id of the run that the record is of."""

    def as_json(self) -> dict[str, Any]:
        """The step as plain data."""
        return {**attrs.asdict(self), "time": self.time.isoformat()}


@attrs.frozen
class Rejudgement:
    """A recorded candidate judged again: the cases it passed then and now, and those it failed."""

    attempt: int
    was: tuple[tuple[str, ...], tuple[tuple[str, str], ...]]
    """Ids that passed, and id and status of those that did not, both sorted."""
    now: tuple[tuple[str, ...], tuple[tuple[str, str], ...]]

    @property
    def is_same(self) -> bool:
        """Whether the suite says of each case what it said then; messages do not count."""
        return self.was == self.now

    def as_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        sides = {"was": self.was, "now": self.now}
        shown = {side: {"passed": list(passed), "failing": dict(failing)} for side, (passed, failing) in sides.items()}
        return {"attempt": self.attempt, "is_same": self.is_same, **shown}


def replay(export: Export) -> tuple[Step, ...]:
    """Every record of an export, and of the runs inside it, as a step, walked through the tables that it brings along.

    Each run keeps its order; between runs, time decides. Raises ReplayError, with the steps so far, at the first
    record that a table does not lead to.
    """
    walked: list[list[Step]] = []
    for run in runs_in(export):
        steps: list[Step] = []
        walked.append(steps)
        try:
            for record in followed(run):
                steps.append(step_of(record))  # noqa: PERF401 -- those before an error are kept
        except ReplayError as error:
            inside = "" if run is export else run.run_id
            raise ReplayError(error.sequence, error.reason, in_time(walked), inside) from error
    return in_time(walked)


def runs_in(export: Export) -> Iterator[Export]:
    """A run, then those inside it."""
    yield export
    for child in export.children:
        yield from runs_in(child)


def in_time(walked: list[list[Step]]) -> tuple[Step, ...]:
    """The steps of several runs in one row; at the same time, those of the outer run come first."""
    return tuple(merge(*walked, key=lambda step: step.time))


async def rejudge(export: Export, evaluator: Evaluator) -> tuple[Rejudgement, ...]:
    """Judge every recorded candidate again and compare; a reused verdict is that of its first attempt.

    Raises ReplayError for an export that cannot be replayed, EvaluationError when the suite gives no verdict.
    """
    run: Run | None = None
    language = ""
    for record in followed(export):
        try:
            if run is None:
                run = judged_run(record)
                language = language_of(record)
            run.apply(record)
        except ReplayError:
            raise
        except (OrchestratorError, ValueError) as error:
            raise ReplayError(record.sequence, str(error)) from error
    if run is None:
        return ()
    return tuple([await compared(run, each, evaluator, language) for each in run.attempts if is_judged(each)])


def judged_run(record: Record) -> Run:
    """The conformance run that a first record begins; ReplayError for any other, which has nothing to judge again."""
    run = begin(record)
    if not isinstance(run, Run):
        kind = "an agent run" if run.lifecycle == "agent" else f"a run of the lifecycle {run.lifecycle!r}"
        raise ReplayError(
            record.sequence,
            f"{kind} has no candidates to judge again: leave out --evaluate to see what was done and decided, "
            "or name a conformance run",
        )
    return run


def followed(export: Export) -> Iterator[Record]:
    """The records, each after the table has allowed it."""
    try:
        machines = machines_in(export)
    except (OrchestratorError, ValueError) as error:
        raise ReplayError(0, str(error)) from error
    own = next(iter(machines.values()))
    followers = {name: Follower(str(machine.table.initial)) for name, machine in machines.items()}
    for position, link in enumerate(export.links, 1):
        try:
            record = decode(link.body, export.blobs)
            machine = machines.get(record.lifecycle, own)
            follower = followers[machine.table.name]
            source = follower.state
            machine.fire(follower, record.event)
        except OrchestratorError as error:
            raise ReplayError(position, str(error)) from error
        if (record.sequence, record.source, record.target) != (position, source, follower.state):
            shown = f"record {record.sequence} from {record.source:.80} to {record.target:.80}"
            raise ReplayError(position, f"it says {shown}; replaying it leads from {source} to {follower.state}")
        if isinstance(record.event, ExecutionStart) and record.event.table_digest != own.table.digest:
            raise ReplayError(position, f"it was decided by another table, {record.event.table_digest:.80}")
        yield record


def step_of(record: Record) -> Step:
    """The record as a step; its decision in words."""
    try:
        time, decision = record.time, told(record.event)
    except (OrchestratorError, ValueError, OverflowError) as error:
        raise ReplayError(record.sequence, str(error)) from error
    return Step(record.sequence, time, record.source, record.target, record.event.name, decision, record.run_id)


def language_of(record: Record) -> str:
    """The target language, which the identity of the run names."""
    event = record.event
    return str(table_of(event.identity).get("language", "")) if isinstance(event, ExecutionStart) else ""


def is_judged(attempt: Attempt) -> bool:
    """Whether the suite was run on its candidate."""
    return attempt.generated is not None and not getattr(attempt.outcome, "reused_from", 0)


async def compared(run: Run, attempt: Attempt, evaluator: Evaluator, language: str) -> Rejudgement:
    """One candidate's verdicts, then and now."""
    was = judgement_of(attempt.passed, attempt.failing)
    try:
        candidate = attempt.candidate
    except (ValueError, AttributeError, RecursionError) as error:
        raise ReplayError(0, f"the candidate of attempt {attempt.number} is not of its form: {error}") from error
    assert candidate is not None
    submission = Submission(
        run_id=run.run_id,
        attempt=attempt.number,
        candidate=candidate,
        spec=run.spec,
        expected=run.expectation.expected,
        language=language,
        seconds=None,
    )
    try:
        verdict = checked_verdict(await evaluator.evaluate(submission), run.expectation.expected)
    except CandidateRefusedError as error:
        refused = (CaseResult("(candidate)", CaseStatus.ERROR, str(error)),)
        return Rejudgement(attempt.number, was, judgement_of((), refused))
    except EvaluationError:
        raise
    except Exception as error:
        raise EvaluationError(f"attempt {attempt.number}: {type(error).__name__}: {error}") from error
    now = judge(verdict, run.expectation)
    return Rejudgement(attempt.number, was, judgement_of(now.passed, now.failing))


def judgement_of(
    passed: tuple[str, ...], failing: tuple[CaseResult, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """What of a verdict is compared."""
    return tuple(sorted(passed)), tuple(sorted((case.id, str(case.status)) for case in failing))
