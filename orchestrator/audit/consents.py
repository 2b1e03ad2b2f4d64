"""Consents: nothing a gate denied was done, nothing a person was to be asked about was done unasked."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.audit.attempts import table_of
from orchestrator.execution import Execution
from orchestrator.run import Run
from orchestrator_events.blob import Blob
from orchestrator_events.decision import DecisionTaken
from orchestrator_events.event import Event
from orchestrator_events.execution import (
    ApprovalAnswered,
    ApprovalRequested,
    ExecutionCancelled,
    ExecutionEnd,
    ExecutionStart,
)
from orchestrator_events.record import Record
from orchestrator_events.run import GenerationStarted

__all__ = ["Consents"]

ACTIONS = frozenset({"modify", "inject", "ask_user"})
"""Decisions with which an act may go ahead."""
ACTS = frozenset(
    {
        "generation:started",
        "evaluation:started",
        "prompt:refined",
        "turn:started",
        "turn:answered",
        "action:started",
        "action:finished",
        "answer:given",
    }
)
"""What is done, or used, only after a gate."""
REFUSALS = frozenset({"action:denied", "turn:ended", "verification:finished"})
"""What comes in place of an act that was refused."""
WITHHELD = "withheld"
"""How an answer or a result is marked that a gate withheld, and what then stands in its place."""


@attrs.define(eq=False)
class Consents:
    """Follows the questions put to a person, and the decisions recorded with each act."""

    asked: ApprovalRequested | None = None
    approved: list[str] = attrs.Factory(list[str])
    """What was asked and answered with yes since the last act."""
    refused: str = ""
    name: str = attrs.field(default="consents", init=False)

    def look(self, run: Execution, record: Record) -> Iterator[str]:
        """What was done without leave."""
        event = record.event
        match event:
            case ExecutionStart() | ExecutionCancelled() | ExecutionEnd():
                self.asked, self.approved, self.refused = None, [], ""
            case ApprovalRequested():
                self.asked = event
            case ApprovalAnswered():
                yield from self.answered(event)
            case _ if event.name in REFUSALS:
                self.approved, self.refused = [], ""
            case _ if event.name in ACTS:
                yield from self.done(event.name, getattr(event, "decisions", ()), is_withheld=is_withheld(event))
                if isinstance(event, GenerationStarted) and isinstance(run, Run):
                    yield from changed(run, event)
            case _:
                pass

    def answered(self, event: ApprovalAnswered) -> Iterator[str]:
        """An answer belongs to a question."""
        if self.asked is None or self.asked.gate != event.gate:
            yield f"answers a question at {event.gate:.80} that was not asked"
        elif event.is_approved:
            self.approved.append(self.asked.prompt)
        else:
            self.refused = self.asked.prompt
        self.asked = None

    def done(self, act: str, decisions: tuple[DecisionTaken, ...], *, is_withheld: bool) -> Iterator[str]:
        """An act goes ahead with no denial, and with a yes to every question; what was withheld is no act."""
        if is_withheld:
            self.approved, self.refused = [], ""
            return
        if self.refused:
            yield f"{act} though a person refused: {self.refused:.80}"
        for decision in decisions:
            if decision.action not in ACTIONS:
                yield f"{act} though {decision.subscriber:.80} decided {decision.action!r:.80}"
            if decision.action == "ask_user" and decision.detail not in self.approved:
                yield f"{act} though nobody approved: {decision.detail:.80}"
        self.approved, self.refused = [], ""

    def end(self, run: Execution) -> Iterator[str]:  # noqa: ARG002 -- a question may be left open
        """Nothing."""
        yield from ()


def changed(run: Run, event: GenerationStarted) -> Iterator[str]:
    """What is sent differs from what was rendered only where a decision says so."""
    injected = [decision.detail for decision in event.decisions if decision.action == "inject"]
    fields = {
        field
        for decision in event.decisions
        if decision.action == "modify"
        for field in decision.detail.split(", ")
    }  # fmt: skip
    if event.prompt is not None and not injected and "prompt" not in fields:
        yield "the prompt was changed, and no decision says by whom"
    sent = None if event.prompt is None else event.prompt.data.decode()
    for text in injected:
        if sent is None or text not in sent:
            yield f"the prompt as sent lacks what was injected: {text:.80}"
    is_same = run.ready is None or table_of(event.parameters) == table_of(run.ready.parameters)
    if not is_same and "parameters" not in fields:
        yield "the parameters were changed, and no decision says by whom"


def is_withheld(event: Event) -> bool:
    """Whether a gate withheld an answer or a result, so that nobody used it."""
    if getattr(event, "outcome", "") == WITHHELD:
        return True
    reply = getattr(event, "reply", None)
    return isinstance(reply, Blob) and table_of(reply.data.decode()).get("finish_reason") == WITHHELD
