"""Events that every lifecycle shares: the invocation's brackets, interruption, approval, children."""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.event import Fact
from orchestrator_events.isolation import Isolation

__all__ = [
    "ApprovalAnswered",
    "ApprovalRequested",
    "BudgetRaised",
    "ChildEnded",
    "ChildStarted",
    "ExecutionCancelled",
    "ExecutionEnd",
    "ExecutionFailed",
    "ExecutionInterrupted",
    "ExecutionResumed",
    "ExecutionStart",
    "IsolationEstablished",
    "OrchestratorComplete",
    "SecretFound",
    "SubscriberFailed",
]


@attrs.frozen(kw_only=True)
class ExecutionStart(Fact):
    """An invocation began; always its first record (contract 2)."""

    name: ClassVar[str] = "execution:start"
    invocation: Annotated[int, "Number of this invocation of the run, from 1."] = 1
    table_digest: Annotated[str, "Digest of the lifecycle table that decides every move of this run."]
    prompt: Annotated[Blob, "What the execution was asked: the merged spec as RFC 8785 JSON, or a user's prompt."]
    identity: Annotated[
        str,
        "JSON object of what a resume may not change: generator, evaluator, strategy, language, parameters.",
    ]
    budget: Annotated[Budget, "Limits in force at the start."]
    root_id: Annotated[str, "Run at the top of the tree; empty for a root."] = ""
    parent_id: Annotated[str, "Run that started this one; empty for a root."] = ""
    parent_sequence: Annotated[int, "The parent's record that announced this run; 0 for a root."] = 0


@attrs.frozen(kw_only=True)
class IsolationEstablished(Fact):
    """What holds the generator and the evaluation in, as probed: the second record of a run, and again on a resume."""

    name: ClassVar[str] = "isolation:established"
    required: Annotated[str, "Level that was asked for: none, basic or strong."]
    generator: Annotated[Isolation, "What holds the generator, or the agent's tools."]
    evaluator: Annotated[Isolation, "What holds the eval suite and the candidate it runs."]


@attrs.frozen(kw_only=True)
class SecretFound(Fact):
    """A registered secret stands in a candidate, which is kept as it is: candidates are never altered."""

    name: ClassVar[str] = "secret:found"
    secret: Annotated[str, "Name under which the secret was registered; never its value."]
    place: Annotated[str, "Where it stands: the digest of the candidate, and its file if it has several."]
    is_refused: Annotated[bool, "True when the candidate was refused for it."] = False


@attrs.frozen(kw_only=True)
class ExecutionResumed(Fact):
    """A run that was left open, or ended without success, goes on in the state it was left in."""

    name: ClassVar[str] = "execution:resumed"
    into: Annotated[str, "The open state the run goes on in."]
    reason: Annotated[str, "Why it was resumed, in words."] = ""


@attrs.frozen(kw_only=True)
class ExecutionInterrupted(Fact):
    """An earlier invocation was cut off without an end; this closes its bracket when the run is resumed."""

    name: ClassVar[str] = "execution:interrupted"
    invocation: Annotated[int, "Number of the invocation that was cut off."]
    active_us: Annotated[int, "Active time of the run up to there, as far as its records measured it, microseconds."]


@attrs.frozen(kw_only=True)
class ExecutionCancelled(Fact):
    """The run was given up: by the host, or because a gate denied it."""

    name: ClassVar[str] = "execution:cancelled"
    reason: Annotated[str, "Who gave it up and why."]
    is_denial: Annotated[bool, "True when a gate's denial ended the run."] = False


@attrs.frozen(kw_only=True)
class ExecutionFailed(Fact):
    """The engine itself failed; the run's history up to here is intact."""

    name: ClassVar[str] = "execution:failed"
    reason: Annotated[str, "Type and message of the error."]


@attrs.frozen(kw_only=True)
class OrchestratorComplete(Fact):
    """The loop is done, on whichever way out; once per invocation, before `execution:end` (contract 2)."""

    name: ClassVar[str] = "orchestrator:complete"
    orchestrator: Annotated[str, "Name of the orchestrator."]
    turn_count: Annotated[int, "Generator calls that answered in this run."]
    status: Annotated[str, "success, incomplete or cancelled."]


@attrs.frozen(kw_only=True)
class ExecutionEnd(Fact):
    """The invocation is over; its last record (contract 2)."""

    name: ClassVar[str] = "execution:end"
    response: Annotated[str, "Digest of the conforming candidate, or the final answer; empty without success."]
    status: Annotated[str, "completed, cancelled or error."]
    reason: Annotated[str, "Why the invocation ended without a result; empty when it has one."] = ""
    active_us: Annotated[int, "Active time of the run so far, all invocations, microseconds."] = 0


@attrs.frozen(kw_only=True)
class SubscriberFailed(Fact):
    """An observer raised or outlasted its limit; the run went on. Noted once per subscriber and run."""

    name: ClassVar[str] = "subscriber:failed"
    subscriber: Annotated[str, "Name of the subscriber."]
    event: Annotated[str, "Wire name of the event it was given."]
    error: Annotated[str, "Type and message of what it raised."]


@attrs.frozen(kw_only=True)
class ApprovalRequested(Fact):
    """A gate asked for a person's yes before an act."""

    name: ClassVar[str] = "approval:requested"
    gate: Annotated[str, "Wire name of the gate."]
    prompt: Annotated[str, "The question put to the approver."]


@attrs.frozen(kw_only=True)
class ApprovalAnswered(Fact):
    """The approver answered, or did not in time, which is a no."""

    name: ClassVar[str] = "approval:answered"
    gate: Annotated[str, "Wire name of the gate."]
    is_approved: Annotated[bool, "True for a yes."]
    answer: Annotated[str, "The answer in words."] = ""


@attrs.frozen(kw_only=True)
class BudgetRaised(Fact):
    """The limits were changed on a resume."""

    name: ClassVar[str] = "budget:raised"
    budget: Annotated[Budget, "Limits in force from here."]


@attrs.frozen(kw_only=True)
class ChildStarted(Fact):
    """A run inside this one is about to start in a stream of its own."""

    name: ClassVar[str] = "child:started"
    child_id: Annotated[str, "Run id of the child."]
    lifecycle: Annotated[str, "Lifecycle the child runs."]


@attrs.frozen(kw_only=True)
class ChildEnded(Fact):
    """A run inside this one ended; its head and count link the two hash chains."""

    name: ClassVar[str] = "child:ended"
    child_id: Annotated[str, "Run id of the child."]
    head: Annotated[str, "Digest of the child's last record."]
    count: Annotated[int, "Number of the child's records."]
    status: Annotated[str, "State the child ended in."]
