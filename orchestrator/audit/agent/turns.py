"""Turns: numbered without a gap, every event under its turn's number and key, by what the run was made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from orchestrator.agent.run import AgentRun
from orchestrator.audit.attempts import table_of
from orchestrator.jsondata import JSON
from orchestrator_events.agent import ProviderError, ProviderRetry, TurnAbandoned, TurnAnswered, TurnStarted
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Record
from orchestrator_states.agent import AgentState

__all__ = ["Turns"]

CURRENT = frozenset(
    {
        "turn:answered",
        "turn:abandoned",
        "turn:ended",
        "provider:retry",
        "provider:error",
        "action:started",
        "action:denied",
        "action:finished",
        "actions:settled",
        "tool:error",
        "harness:warned",
        "verification:finished",
    }
)
"""Events of the turn under way."""
REQUEST = "request"
"""What a run was asked beside its prompt; it is told once."""


@attrs.define(eq=False)
class Turns:
    """Follows the numbers and keys of turns; identity stays over a resume."""

    identity: Mapping[str, JSON] = attrs.Factory(dict[str, JSON])
    prompt: str = ""
    name: str = attrs.field(default="turns", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """Numbers, keys and identities that do not fit."""
        event = record.event
        if isinstance(event, ExecutionStart):
            yield from self.same_identity(event)
        elif isinstance(event, TurnStarted):
            yield from self.begun(run, event)
        elif event.name in CURRENT:
            number = getattr(event, "turn", run.turn)
            if number != run.turn:
                yield f"{event.name} is of turn {number}, but turn {run.turn} is under way"
            yield from keyed(run, event)

    def same_identity(self, event: ExecutionStart) -> Iterator[str]:
        """What a resume may not change: the configuration and the prompt."""
        identity = table_of(event.identity)
        if not self.prompt:
            self.identity, self.prompt = identity, event.prompt.digest
        fields = {*identity, *self.identity}
        if changed := sorted(name for name in fields if identity.get(name) != self.identity.get(name)):
            yield f"invocation {event.invocation} changes the identity of the run: {', '.join(changed):.200}"
        if event.prompt.digest != self.prompt:
            yield f"invocation {event.invocation} is of another prompt"

    def begun(self, run: AgentRun, event: TurnStarted) -> Iterator[str]:
        """A turn follows the one before, with what the run was made of."""
        expected = run.turn + 1
        if event.turn != expected:
            yield f"begins turn {event.turn}, expected {expected}"
        key = f"{run.run_id}:{expected}"
        if event.reservation.key != key:
            yield f"{event.name} has the key {event.reservation.key!r:.80}, expected {key!r:.80}"
        if run.is_in_flight:
            yield "is begun while the call before is in flight"
        if event.is_closing != (run.state == AgentState.CONCLUDING):
            yield f"is {'' if event.is_closing else 'not '}the closing one, in state {run.state}"
        yield from self.made_of(event)

    def made_of(self, event: TurnStarted) -> Iterator[str]:
        """Provider, model, tools and parameters are those of the run's identity."""
        identity, request = self.identity, self.identity.get(REQUEST)
        asked = request if isinstance(request, dict) else {}
        providers, tools = identity.get("providers"), identity.get("tools")
        named = asked.get("provider") or identity.get("default_provider")
        if event.provider not in ([named] if named else listed(providers)):
            yield f"asks the provider {event.provider!r:.80}, which the run is not made of"
        expected = () if event.is_closing else listed(tools)
        if sorted(event.tools) != sorted(expected):
            shown = ", ".join(event.tools) or "none"
            yield f"offers the tools {shown:.200}, the run has {', '.join(expected) or 'none'}"
        if table_of(event.parameters) != identity.get("parameters"):
            yield "has other parameters than the run's"
        fields = {field for each in event.decisions if each.action == "modify" for field in each.detail.split(", ")}
        model = asked.get("model") or identity.get("model")
        if event.model != model and "model" not in fields:
            yield f"asks the model {event.model!r:.80}, the run's is {model!r:.80}, and no decision says by whom"

    def end(self, run: AgentRun) -> Iterator[str]:
        """A count of answers that no turns make."""
        if run.answered > run.turn:
            yield f"has {run.answered} answers in {run.turn} turns"


def keyed(run: AgentRun, event: Event) -> Iterator[str]:
    """The idempotency key and the provider are those that the turn was begun with."""
    call = run.started
    if isinstance(event, TurnAnswered | TurnAbandoned | ProviderRetry):
        expected = "" if call is None else call.reservation.key
        if event.key != expected:
            yield f"{event.name} has the key {event.key!r:.80}, expected {expected!r:.80}"
        if not run.is_in_flight:
            yield f"{event.name}, but no call is in flight"
    if isinstance(event, ProviderRetry | ProviderError) and call is not None and event.provider != call.provider:
        yield f"{event.name} is of the provider {event.provider!r:.80}, asked was {call.provider!r:.80}"


def listed(value: JSON) -> list[str]:
    """The texts in a list; none for anything else."""
    return [str(each) for each in value] if isinstance(value, list) else []
