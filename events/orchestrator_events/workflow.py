"""Events of phased workflows (contract 4): the loop's seven steps, their failures, and what a person decides."""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.decision import DecisionTaken
from orchestrator_events.event import Fact, Gate

__all__ = [
    "CascadeDetected",
    "DecisionNeeded",
    "DecisionTakenByUser",
    "LearningRecorded",
    "MetricRecorded",
    "PhaseAbandoned",
    "PhaseAnswered",
    "PhaseAsked",
    "PhaseEntered",
    "PhaseFailed",
    "PhaseFinished",
    "PhaseRequested",
    "PhaseStarted",
    "RetryAttempted",
    "RetryExhausted",
    "StateMerged",
    "StateRead",
    "StateUnreadable",
    "StateUnwritable",
    "StateWritten",
    "SubagentFinished",
    "SubagentSpawned",
    "SummaryReported",
    "TodosUpdated",
    "WorkflowCompleted",
    "WorkflowContinued",
]


@attrs.frozen(kw_only=True)
class PhaseRequested(Gate):
    """May this phase be executed?"""

    name: ClassVar[str] = "phase:requested"
    phase: Annotated[str, "Id of the phase."]
    state: Annotated[str, "The workflow's state, a JSON object."]


@attrs.frozen(kw_only=True)
class StateRead(Fact):
    """Step 1: the state is at hand."""

    name: ClassVar[str] = "state:read"
    phase: Annotated[str, "Phase that the state names."]
    state: Annotated[Blob, "The state, a JSON object."]
    source: Annotated[str, "initial, file, decided, edited by a person, provided, or derived from the journal."]


@attrs.frozen(kw_only=True)
class StateUnreadable(Fact):
    """Step 1 failed: there is no state, it is corrupt, or it is not what the journal says and nobody explained it."""

    name: ClassVar[str] = "state:unreadable"
    problem: Annotated[str, "not found, corrupt or mismatch."]
    path: Annotated[str, "The state file."]
    message: Annotated[str, "What is wrong, in words."]
    raw: Annotated[Blob, "What the file holds, as it is; empty when there is none."]
    expected: Annotated[Blob | None, "What the journal says, where it says something."] = None


@attrs.frozen(kw_only=True)
class TodosUpdated(Fact):
    """Step 2: what is done, under way and to come."""

    name: ClassVar[str] = "todos:updated"
    todos: Annotated[Blob, "JSON list of {content, status}; status is pending, in_progress or completed."]


@attrs.frozen(kw_only=True)
class PhaseEntered(Fact):
    """The workflow is in this phase: a move of the domain's own lifecycle."""

    name: ClassVar[str] = "phase:entered"
    phase: Annotated[str, "Id of the phase."]


@attrs.frozen(kw_only=True)
class PhaseStarted(Fact):
    """Step 3: the intent to execute a phase, committed before it is."""

    name: ClassVar[str] = "phase:started"
    phase: Annotated[str, "Id of the phase."]
    number: Annotated[int, "Number of this execution of the phase, from 1."]
    executor: Annotated[str, "callable, or the generator that executes the phase file."]
    instructions: Annotated[Blob | None, "The phase file as it was executed; None for a callable."] = None
    decisions: Annotated[tuple[DecisionTaken, ...], "Who changed or questioned it, and why."] = ()


@attrs.frozen(kw_only=True)
class PhaseAsked(Fact):
    """A generator is asked to go on with a phase file; committed before the call."""

    name: ClassVar[str] = "phase:asked"
    phase: Annotated[str, "Id of the phase."]
    call: Annotated[int, "Number of the call in this execution of the phase, from 1."]
    prompt: Annotated[Blob, "What it reads."]
    reservation: Annotated[Reservation, "The worst case that the budget holds for the call."]
    decisions: Annotated[tuple[DecisionTaken, ...], "Who changed or questioned it, and why."] = ()


@attrs.frozen(kw_only=True)
class PhaseAnswered(Fact):
    """The generator answered, or failed to."""

    name: ClassVar[str] = "phase:answered"
    phase: Annotated[str, "Id of the phase."]
    call: Annotated[int, "Number of the call in this execution of the phase, from 1."]
    key: Annotated[str, "Idempotency key of the call."]
    answer: Annotated[Blob, "The answer as it came; empty when none did."]
    error: Annotated[str, "Why no answer came."] = ""
    duration_us: Annotated[int, "Time the call took, microseconds."] = 0
    charge: Annotated[Charge, "What it was charged."]


@attrs.frozen(kw_only=True)
class PhaseAbandoned(Fact):
    """The outcome of a phase that was under way is unknown: calls in flight are charged, and it is executed again."""

    name: ClassVar[str] = "phase:abandoned"
    phase: Annotated[str, "Id of the phase."]
    number: Annotated[int, "Number of the execution whose outcome is unknown."]
    reason: Annotated[str, "Why it is unknown."]
    charge: Annotated[Charge, "The whole of what calls in flight had reserved."]


@attrs.frozen(kw_only=True)
class PhaseFinished(Fact):
    """Step 3 ended: the phase says what comes next."""

    name: ClassVar[str] = "phase:finished"
    phase: Annotated[str, "Id of the phase."]
    next_phase: Annotated[str, "Phase to execute next."]
    updates: Annotated[Blob, "State updates, a JSON object."]
    output: Annotated[Blob, "Summary for people."]
    duration_us: Annotated[int, "Time it took, microseconds."]
    charge: Annotated[Charge, "What it was charged, itself and whatever it started."]


@attrs.frozen(kw_only=True)
class PhaseFailed(Fact):
    """The phase failed, or its outcome cannot be used: the workflow stays on it."""

    name: ClassVar[str] = "phase:failed"
    phase: Annotated[str, "Id of the phase."]
    error: Annotated[str, "What went wrong."]
    retry_count: Annotated[int, "How many times in a row the phase has failed."]
    updates: Annotated[Blob | None, "State updates that came with the error, a JSON object."] = None
    output: Annotated[Blob | None, "Summary that came with the error."] = None
    duration_us: Annotated[int, "Time it took, microseconds."] = 0
    charge: Annotated[Charge, "What it was charged, itself and whatever it started."]


@attrs.frozen(kw_only=True)
class StateMerged(Fact):
    """Step 4: the phase's updates are in the state."""

    name: ClassVar[str] = "state:merged"
    phase: Annotated[str, "Phase that the state names now."]
    fields_updated: Annotated[tuple[str, ...], "Names of the fields that changed, sorted."]
    state: Annotated[Blob, "The whole state, a JSON object."]


@attrs.frozen(kw_only=True)
class StateWritten(Fact):
    """Step 5: the state file is what the journal says."""

    name: ClassVar[str] = "state:written"
    path: Annotated[str, "The state file."]
    state: Annotated[Blob, "Its content."]


@attrs.frozen(kw_only=True)
class StateUnwritable(Fact):
    """Step 5 failed; the whole state is here for manual recovery."""

    name: ClassVar[str] = "state:unwritable"
    path: Annotated[str, "The state file."]
    message: Annotated[str, "What is wrong, in words."]
    state: Annotated[Blob, "The state, a JSON object."]


@attrs.frozen(kw_only=True)
class SummaryReported(Fact):
    """Step 6: the phase's summary was shown."""

    name: ClassVar[str] = "summary:reported"
    phase: Annotated[str, "Phase that was executed."]
    output: Annotated[Blob, "The summary."]


@attrs.frozen(kw_only=True)
class WorkflowContinued(Fact):
    """Step 7: on to the next phase."""

    name: ClassVar[str] = "workflow:continued"
    phase: Annotated[str, "Phase that comes next."]


@attrs.frozen(kw_only=True)
class WorkflowCompleted(Fact):
    """Step 7: the workflow is done."""

    name: ClassVar[str] = "workflow:completed"
    phase: Annotated[str, "The terminal phase."]


@attrs.frozen(kw_only=True)
class CascadeDetected(Fact):
    """Too many of the last outcomes are failures."""

    name: ClassVar[str] = "cascade:detected"
    failures_in_window: Annotated[int, "Failures among the last outcomes."]
    threshold: Annotated[int, "From how many on it is a cascade."]
    window: Annotated[int, "How many outcomes are looked at."]
    diagnosis: Annotated[str, "What the learning records say of these failures."]
    recommendation: Annotated[str, "What they suggest; empty without a suggestion."] = ""


@attrs.frozen(kw_only=True)
class DecisionNeeded(Fact):
    """Somebody has to decide; the workflow waits, and can be left and resumed."""

    name: ClassVar[str] = "decision:needed"
    about: Annotated[
        str, "phase error, cascade, halted, state not found, state corrupt, state mismatch or write failed."
    ]
    message: Annotated[str, "What happened, in words."]
    options: Annotated[tuple[str, ...], "What can be chosen."]


@attrs.frozen(kw_only=True)
class DecisionTakenByUser(Fact):
    """A person, a callback or the configured policy decided."""

    name: ClassVar[str] = "decision:taken"
    choice: Annotated[str, "The option that was chosen."]
    goes_on: Annotated[bool, "False for a choice to abort."]
    by: Annotated[str, "person, callback or policy."]
    phase: Annotated[str, "Phase to go on with; empty where the choice is to abort."] = ""
    state: Annotated[Blob | None, "State to go on with, where the choice changes it; a JSON object."] = None


@attrs.frozen(kw_only=True)
class RetryAttempted(Fact):
    """The retry handler made an attempt of an operation."""

    name: ClassVar[str] = "retry:attempted"
    operation: Annotated[str, "test, review, build, or a custom one."]
    attempt: Annotated[int, "Number of the attempt, from 1."]
    limit: Annotated[int, "Attempts there are in all."]
    is_success: Annotated[bool, "Whether it succeeded."]
    error: Annotated[str, "Why not; empty when it did."] = ""
    fix: Annotated[str, "What was fixed before this attempt; empty when nothing was."] = ""


@attrs.frozen(kw_only=True)
class RetryExhausted(Fact):
    """The last attempt of an operation failed: it is escalated."""

    name: ClassVar[str] = "retry:exhausted"
    operation: Annotated[str, "test, review, build, or a custom one."]
    attempts: Annotated[int, "Attempts that were made."]
    final_error: Annotated[str, "Why the last one failed."]
    record_id: Annotated[str, "Learning record of the failure; empty without one."] = ""


@attrs.frozen(kw_only=True)
class MetricRecorded(Fact):
    """A phase recorded a count, a time or tokens."""

    name: ClassVar[str] = "metric:recorded"
    metric: Annotated[str, "Name of the metric."]
    measure: Annotated[str, "count, duration_us, input_tokens or output_tokens."]
    value: Annotated[int, "How much is added."]
    scope: Annotated[str, "What it belongs to: a phase, an item, a subagent."] = ""


@attrs.frozen(kw_only=True)
class LearningRecorded(Fact):
    """A failure or its resolution was recorded, to be learned from."""

    name: ClassVar[str] = "learning:recorded"
    record_id: Annotated[str, "Id of the record: lr-YYYY-MM-DD-NNN."]
    record: Annotated[Blob, "The record, a JSON object."]


@attrs.frozen(kw_only=True)
class SubagentSpawned(Fact):
    """A phase gave a bounded task to a subagent; committed before it starts."""

    name: ClassVar[str] = "subagent:spawned"
    subagent_id: Annotated[str, "Id of the subagent, unique in the run."]
    role: Annotated[str, "PLANNER, IMPLEMENTER, TESTER, REVIEWER, FIXER, or a custom one."]
    context: Annotated[Blob, "The bounded context it was given, a JSON object."]
    reservation: Annotated[Reservation | None, "The worst case that the budget holds for its calls."] = None


@attrs.frozen(kw_only=True)
class SubagentFinished(Fact):
    """A subagent ended."""

    name: ClassVar[str] = "subagent:finished"
    subagent_id: Annotated[str, "Id of the subagent."]
    status: Annotated[str, "success, failure, blocked, timeout or error."]
    result: Annotated[Blob, "Its output, a JSON object; what was not valid JSON, as text."]
    charge: Annotated[Charge, "What it was charged."]
    duration_us: Annotated[int, "Time it took, microseconds."]
    error: Annotated[str, "Why it did not succeed."] = ""
