"""An agent run in memory: the fold of its records."""

from __future__ import annotations

import json

import attrs

from orchestrator.agent.answers import Answer, read_answer
from orchestrator.agent.messages import WrittenMessage
from orchestrator.agent.ports import Message
from orchestrator.execution import Execution, changes_of
from orchestrator.harness.actions import ActionRecord
from orchestrator.harness.decisions import Denial
from orchestrator.harness.harness import Harness
from orchestrator.harness.verification import Progress, Verification
from orchestrator_events.agent import (
    ActionDenied,
    ActionFinished,
    ActionStarted,
    AnswerGiven,
    CancelRequested,
    ContextInjected,
    HarnessWarned,
    MessageAdded,
    ProviderRetry,
    TurnAbandoned,
    TurnAnswered,
    TurnStarted,
    VerificationFinished,
)
from orchestrator_events.execution import BudgetRaised, ExecutionCancelled, ExecutionResumed
from orchestrator_events.run import BudgetExhausted, BudgetOverrun
from orchestrator_states.agent import AgentState

__all__ = ["CALL_LIMIT", "AgentRun", "Result"]

CALL_LIMIT = "tool_calls"
"""The limit of tool calls, and the rule that refuses those past it."""
EXECUTED = frozenset({"done", "failed", "withheld", "interrupted"})
"""Outcomes of tools that did run, or may have."""


@attrs.frozen
class Result:
    """What the model reads of one tool call."""

    is_success: bool
    output: str


@attrs.define(eq=False, kw_only=True)
class AgentRun(Execution):
    """One prompt, answered by turns of a model."""

    harness: Harness
    prompt: str
    written: list[WrittenMessage] = attrs.Factory(list[WrittenMessage])
    """What the run added to its transcript, in order."""
    origins: list[str] = attrs.Factory(list[str])
    """Where each message came from."""
    turn: int = 0
    """Number of the last turn that was begun and not abandoned."""
    answered: int = 0
    """Calls of the model that answered."""
    tool_calls: int = 0
    """Tools run for the model."""
    started: TurnStarted | None = None
    is_in_flight: bool = False
    """Whether a call of the model was begun whose outcome is not recorded."""
    answer: Answer | None = None
    """The last answer."""
    is_answer_told: bool = False
    """Whether it is in the transcript."""
    intents: dict[str, ActionStarted] = attrs.Factory(dict[str, ActionStarted])
    """Tools of this turn that were started, by call id."""
    results: dict[str, Result] = attrs.Factory(dict[str, Result])
    """Those of this turn that have a result."""
    warnings: dict[str, str] = attrs.Factory(dict[str, str])
    told: set[str] = attrs.Factory(set[str])
    """Those whose result is in the transcript."""
    past: list[ActionRecord] = attrs.Factory(list[ActionRecord])
    """Every action that was executed, in order."""
    progress: Progress = attrs.Factory(Progress)
    waiting: list[ContextInjected] = attrs.Factory(list[ContextInjected])
    """Injections that the next request carries."""
    sent: tuple[ContextInjected, ...] = ()
    """Those that the last one carried, without its own gate's."""
    deferred: list[ContextInjected] = attrs.Factory(list[ContextInjected])
    """Injections that have to join the transcript as soon as they fit."""
    unread: list[VerificationFinished] = attrs.Factory(list[VerificationFinished])
    """Automatic verifications that are not in the transcript yet."""
    empties: int = 0
    """Empty answers in a row."""
    text: str = ""
    """The last text that the model gave."""
    is_closed: bool = False
    """Whether the closing call answered."""
    final: str | None = None
    """The answer that was given."""
    exhausted: BudgetExhausted | None = None
    """The first limit that was reached."""
    limits_reached: list[str] = attrs.Factory(list[str])
    is_call_limit_reached: bool = False
    given_up: str = ""
    """Why the run was cancelled."""
    is_denied: bool = False
    cancel: CancelRequested | None = None

    @property
    def messages(self) -> list[Message]:
        """What the run added to its transcript, in order, as data."""
        return [each.message for each in self.written]

    @property
    def is_prompted(self) -> bool:
        """Whether the prompt was admitted."""
        return "prompt" in self.origins


def resumed(run: AgentRun, _: ExecutionResumed) -> None:
    """The run goes on: whatever had ended it no longer does, and the message that said so is taken back."""
    while run.origins and run.origins[-1] == "synthetic" and run.written[-1].message.get("role") == "assistant":
        run.origins.pop()
        run.written.pop()
    run.exhausted, run.cancel, run.final = None, None, None
    run.given_up, run.is_denied = "", False
    run.is_closed, run.is_call_limit_reached = False, False
    run.limits_reached.clear()


def message_added(run: AgentRun, event: MessageAdded) -> None:
    """The conversation grows."""
    written = WrittenMessage.of(event.message)
    message = written.message
    run.written.append(written)
    run.origins.append(event.origin)
    if event.origin == "model":
        run.is_answer_told = True
    elif event.origin == "injection" and run.deferred:
        run.deferred.pop(0)
    elif event.origin == "harness" and run.unread:
        run.unread.pop(0)
    elif message.get("role") == "tool":
        run.told.add(message.get("tool_call_id", ""))


def injected(run: AgentRun, event: ContextInjected) -> None:
    """A text waits for the next request, or for its place in the transcript."""
    (run.waiting if event.is_ephemeral else run.deferred).append(event)


def turn_started(run: AgentRun, event: TurnStarted) -> None:
    """A call is in flight; what the guard reserved is held (again, when folding a journal)."""
    run.started, run.is_in_flight, run.turn = event, True, event.turn
    run.sent = tuple(each for each in run.waiting if each.gate != "provider:request")
    run.waiting.clear()
    run.ledger.holds.setdefault(event.reservation.key, event.reservation)
    run.ledger.calls += 1
    run.ledger.attempts = event.turn


def retried(run: AgentRun, event: ProviderRetry) -> None:
    """A try failed and is made again: what it was charged counts, and the call is still held."""
    run.ledger.add(event.charge)


def turn_abandoned(run: AgentRun, event: TurnAbandoned) -> None:
    """The call is charged and may be made again, with all that it carried."""
    run.is_in_flight = False
    run.turn = event.turn - 1
    run.waiting[:0] = run.sent
    run.ledger.settle(event.key, event.charge)


def turn_answered(run: AgentRun, event: TurnAnswered) -> None:
    """The model answered."""
    answer = read_answer(event.reply.text or "{}", event.turn)
    run.is_in_flight, run.answer, run.is_answer_told = False, answer, False
    run.answered += 1
    run.empties = run.empties + 1 if answer.is_empty else 0
    run.text = answer.text or run.text
    run.is_closed = run.state == AgentState.CONCLUDING
    run.intents, run.results, run.warnings, run.told = {}, {}, {}, set()
    run.ledger.settle(event.key, event.charge)


def action_started(run: AgentRun, event: ActionStarted) -> None:
    """A tool is about to run."""
    run.intents[event.call_id] = event
    if not event.is_automatic:
        run.tool_calls += 1


def action_denied(run: AgentRun, event: ActionDenied) -> None:
    """A call was refused: it is no action, but it has a result."""
    run.results[event.call_id] = Result(
        is_success=False, output=Denial(event.rule, event.reason, event.suggestion).text
    )
    run.is_call_limit_reached = run.is_call_limit_reached or event.rule == CALL_LIMIT


def action_finished(run: AgentRun, event: ActionFinished) -> None:
    """A call has a result; one that ran is an action of the past."""
    output = event.output.text or ""
    run.results[event.call_id] = Result(event.is_success, output)
    intent = run.intents.get(event.call_id)
    if intent is None or event.outcome not in EXECUTED:
        return
    arguments = json.loads(intent.input.text or "{}")
    action = run.harness.roles.action(event.call_id, event.tool, arguments, event.turn)
    record = ActionRecord(action, event.is_success, intent.is_automatic, output[:200])
    run.past.append(record)
    run.progress = run.progress.after_action(record)


def warned(run: AgentRun, event: HarnessWarned) -> None:
    """The model is to read a warning with the result."""
    run.warnings[event.call_id] = event.warnings


def verified(run: AgentRun, event: VerificationFinished) -> None:
    """There is a verdict on the work so far; the model has yet to read one that it did not ask for."""
    if event.is_automatic:
        run.unread.append(event)
    if event.error:
        run.progress = run.progress.after_attempt()
    else:
        found = Verification(event.passed, event.total, event.failing, event.is_automatic, event.turn)
        run.progress = run.progress.after_verification(found)


def answer_given(run: AgentRun, event: AnswerGiven) -> None:
    """The run has its answer."""
    run.final = event.answer.text or ""


def exhausted(run: AgentRun, event: BudgetExhausted) -> None:
    """A limit is reached; the first one is what ended the run."""
    run.exhausted = run.exhausted or event
    run.limits_reached.append(event.limit)


def overran(run: AgentRun, event: BudgetOverrun) -> None:
    """Nothing more is bought."""
    run.ledger.overruns += event.limits


def given_up(run: AgentRun, event: ExecutionCancelled) -> None:
    """The run is given up, or was denied."""
    run.given_up, run.is_denied = event.reason, event.is_denial


def cancel_requested(run: AgentRun, event: CancelRequested) -> None:
    """The host wants it to stop."""
    run.cancel = event


def raised(run: AgentRun, event: BudgetRaised) -> None:
    """Other limits hold from here."""
    run.ledger.budget = event.budget
    run.ledger.overruns = ()


AgentRun.changes = changes_of(
    {
        ExecutionResumed: resumed,
        MessageAdded: message_added,
        ContextInjected: injected,
        TurnStarted: turn_started,
        ProviderRetry: retried,
        TurnAbandoned: turn_abandoned,
        TurnAnswered: turn_answered,
        ActionStarted: action_started,
        ActionDenied: action_denied,
        ActionFinished: action_finished,
        HarnessWarned: warned,
        VerificationFinished: verified,
        AnswerGiven: answer_given,
        BudgetExhausted: exhausted,
        BudgetOverrun: overran,
        ExecutionCancelled: given_up,
        CancelRequested: cancel_requested,
        BudgetRaised: raised,
    }
)
