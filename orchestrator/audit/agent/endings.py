"""Endings: the final answer, the limit and the end markers are what the records come to."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.agent.run import AgentRun
from orchestrator.audit.agent.composing import CUT_SHORT, GREEN
from orchestrator_events.agent import AnswerGiven, PromptComplete
from orchestrator_events.execution import ExecutionEnd, OrchestratorComplete
from orchestrator_events.record import Record
from orchestrator_states.agent import AgentState

__all__ = ["Endings"]

PREVIEW = 200
"""Characters of an answer that `prompt:complete` shows."""
BROKEN = ("incomplete", "error")
STATUSES: dict[str, tuple[str, str]] = {
    AgentState.COMPLETED: ("success", "completed"),
    AgentState.INCOMPLETE: ("incomplete", "completed"),
    AgentState.CANCELLED: ("cancelled", "cancelled"),
}
"""Status of `orchestrator:complete` and of `execution:end`, by the state that the run rests in (contract 2)."""


@attrs.define(eq=False)
class Endings:
    """Holds the answer and the end markers against the fold."""

    completion: str = ""
    name: str = attrs.field(default="endings", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """Statements that do not follow."""
        event = record.event
        expected = BROKEN if run.is_denied else STATUSES.get(run.state, BROKEN)
        response = (run.final or "") if expected[1] == "completed" else ""
        if isinstance(event, AnswerGiven):
            yield from answered(run, event)
        elif isinstance(event, PromptComplete):
            if (event.response_preview, event.length) != (response[:PREVIEW], len(response)):
                yield f"shows an answer of {event.length} characters, the one given has {len(response)}"
        elif isinstance(event, OrchestratorComplete):
            self.completion = event.status
            if event.turn_count != run.answered:
                yield f"counts {event.turn_count} answers of the model, there are {run.answered}"
        elif isinstance(event, ExecutionEnd):
            if (self.completion, event.status) != expected:
                told = f"{self.completion!r:.80} and {event.status!r:.80}"
                yield f"says {told} of a run in state {run.state}, expected {expected[0]!r} and {expected[1]!r}"
            if event.response != response:
                yield f"names the answer {event.response!r:.80}, the records give {response!r:.80}"

    def end(self, run: AgentRun) -> Iterator[str]:
        """A run that is over without what ended it."""
        if run.state == AgentState.COMPLETED and run.final is None:
            yield "the run is completed, and no answer was given"
        if run.state == AgentState.INCOMPLETE and run.exhausted is None:
            yield "the run is incomplete, and no limit was reached"


def answered(run: AgentRun, event: AnswerGiven) -> Iterator[str]:
    """The answer is the model's last word, or says that everything passed."""
    text, last = event.answer.data.decode(), run.progress.last
    allowed = {run.text}
    if run.answer is not None and run.answer.is_empty:
        allowed.add(run.answer.text)
    if run.state == AgentState.VERIFYING and last is not None and run.progress.is_green and not run.text:
        allowed.add(GREEN.format(last.passed, last.total))
    if run.state == AgentState.CONCLUDING and not run.text.strip() and run.exhausted is not None:
        allowed = {CUT_SHORT.format(run.exhausted.limit.replace("_", " "))}
    if text not in allowed:
        yield f"answers {text!r:.80}, the model's last word is {run.text!r:.80}"
    asks = run.answer is not None and bool(run.answer.calls)
    if run.state == AgentState.VERIFYING and asks and not run.progress.is_green:
        yield "the run is completed after a turn that asked for tools, and nothing says that all is done"
