"""Actions: what was run is what the model asked for and nobody denied, once, and every call has one result."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.agent.answers import Call
from orchestrator.agent.run import AgentRun
from orchestrator.audit.attempts import table_of
from orchestrator_events.agent import (
    ActionDenied,
    ActionFinished,
    ActionsSettled,
    ActionStarted,
    TurnAnswered,
)
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Record

__all__ = ["Actions"]

OUTCOMES = frozenset({"done", "failed", "unknown tool", "interrupted", "outcome unknown", "withheld"})
UNRUN = frozenset({"failed", "unknown tool", "interrupted"})
"""Outcomes that a call may have without having been begun."""


@attrs.define(eq=False)
class Actions:
    """Holds tools that ran, and those that were denied, against the answer that asked for them."""

    cut_off: frozenset[str] = frozenset()
    """Calls that were under way when an earlier invocation ended."""
    denied: set[str] = attrs.Factory(set[str])
    name: str = attrs.field(default="actions", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """Actions that do not follow."""
        event = record.event
        match event:
            case ExecutionStart():
                self.cut_off = frozenset(run.intents.keys() - run.results.keys())
            case TurnAnswered():
                self.denied, self.cut_off = set(), frozenset()
            case ActionStarted():
                yield from self.begun(run, event)
            case ActionDenied():
                yield from self.refused(run, event)
            case ActionFinished():
                yield from self.over(run, event)
            case ActionsSettled():
                yield from unanswered(run)
            case _:
                pass

    def begun(self, run: AgentRun, event: ActionStarted) -> Iterator[str]:
        """A tool runs for a call of the answer, with its arguments, once."""
        if event.call_id in run.intents or event.call_id in run.results:
            yield f"runs the call {event.call_id!r:.80} again"
        call = called(run, event.call_id)
        if event.is_automatic:
            if call is not None:
                yield f"runs the model's call {event.call_id!r:.80} as if the harness had asked for it"
            return
        if call is None or call.tool != event.tool:
            yield f"runs {event.tool!r:.80} as {event.call_id!r:.80}, for which the model did not ask"
            return
        fields = {field for each in event.decisions if each.action == "modify" for field in each.detail.split(", ")}
        if "tool_input" not in fields and table_of(event.input.data.decode()) != dict(call.arguments):
            yield f"runs the call {event.call_id!r:.80} with other arguments, and no decision says by whom"

    def refused(self, run: AgentRun, event: ActionDenied) -> Iterator[str]:
        """What was denied was asked for, and did not run."""
        call = called(run, event.call_id)
        if call is None or call.tool != event.tool:
            yield f"denies {event.tool!r:.80} as {event.call_id!r:.80}, for which the model did not ask"
        if event.call_id in run.intents or event.call_id in run.results:
            yield f"denies the call {event.call_id!r:.80}, which was run"
        if not event.rule or not event.reason:
            yield f"denies the call {event.call_id!r:.80} without a rule, or without a reason"
        self.denied.add(event.call_id)

    def over(self, run: AgentRun, event: ActionFinished) -> Iterator[str]:
        """A result belongs to a tool that was begun, or to a call that could not be run."""
        intent, call = run.intents.get(event.call_id), called(run, event.call_id)
        if event.call_id in run.results:
            what = "was denied" if event.call_id in self.denied else "has a result already"
            yield f"gives a result to the call {event.call_id!r:.80}, which {what}"
        if event.outcome not in OUTCOMES:
            yield f"has the outcome {event.outcome!r:.80}, which there is not"
        if event.is_success != (event.outcome == "done"):
            yield f"says {'success' if event.is_success else 'failure'} of the outcome {event.outcome!r:.80}"
        if intent is None and (call is None or event.outcome not in UNRUN):
            yield f"gives the call {event.call_id!r:.80} a result, though it was never begun"
        named = intent.tool if intent is not None else call.tool if call is not None else event.tool
        if event.tool != named:
            yield f"is of the tool {event.tool!r:.80}, begun was {named!r:.80}"
        if event.duration_us < 0:
            yield f"took {event.duration_us} microseconds"
        if event.outcome == "outcome unknown" and event.call_id not in self.cut_off:
            yield f"does not know the outcome of {event.call_id!r:.80}, though nothing was cut off"
        is_lost = event.call_id in self.cut_off and intent is not None and not intent.is_idempotent
        if is_lost and event.outcome not in {"outcome unknown", "interrupted"}:
            yield f"was run again after a cut, though it is not idempotent: {event.call_id!r:.80}"

    def end(self, run: AgentRun) -> Iterator[str]:  # noqa: ARG002 -- a run may be cut off while tools run
        """Nothing."""
        yield from ()


def called(run: AgentRun, call_id: str) -> Call | None:
    """The call of the last answer with this id."""
    calls = () if run.answer is None else run.answer.calls
    return next((call for call in calls if call.id == call_id), None)


def unanswered(run: AgentRun) -> Iterator[str]:
    """Calls without a result when all are said to have one."""
    calls = () if run.answer is None else run.answer.calls
    for call in calls:
        if call.id not in run.results:
            yield f"settles the turn, but the call {call.id!r:.80} has no result"
        elif call.id not in run.told:
            yield f"settles the turn, but the result of {call.id!r:.80} is not in the conversation"
