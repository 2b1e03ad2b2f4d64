"""One invocation of an agent run: the run, what is configured, and what lives no longer than the invocation."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING

import attrs

from orchestrator.agent.cancelling import Cancellation, StopRequestedError, state_of
from orchestrator.agent.limits import AgentLimits
from orchestrator.agent.messages import Writing
from orchestrator.agent.patience import patiently
from orchestrator.agent.ports import Provider, Tool, Transcript
from orchestrator.agent.run import AgentRun
from orchestrator.asking import ask
from orchestrator.closing import commit
from orchestrator.harness.harness import Harness
from orchestrator.ports import Approver
from orchestrator.retries import RetryPolicy
from orchestrator.supervision import Supervisor
from orchestrator_events.agent import CancelRequested
from orchestrator_events.bus import Bus
from orchestrator_events.decision import Ruling
from orchestrator_events.event import Event, Gate, Live
from orchestrator_events.record import Record

if TYPE_CHECKING:
    from orchestrator.agent.verifiers import Verifier
    from orchestrator.agent.waiting import Flight

__all__ = ["Invocation", "Parts", "StoppedError"]


class StoppedError(Exception):
    """The invocation ends here; `error` is what the host is raised, unchanged."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"{type(error).__name__}")
        self.error = error


@attrs.define(eq=False, kw_only=True)
class Parts:
    """What is configured, for any number of runs."""

    name: str
    providers: Mapping[str, Provider]
    default_provider: str
    model: str
    tools: Mapping[str, Tool]
    parameters: str
    """JSON object of the base parameters of each request."""
    limits: AgentLimits
    harness: Harness
    verifier: Verifier | None
    bus: Bus
    approver: Approver | None
    retries: RetryPolicy
    require_isolation: str
    system: str


@attrs.define(eq=False, kw_only=True)
class Invocation:
    """A run while it is driven."""

    run: AgentRun
    parts: Parts
    transcript: Transcript
    wanted_provider: str = ""
    """As the request names it; empty: the default."""
    model: str = ""
    cancellation: Cancellation | None = None
    supervisor: Supervisor = attrs.field(init=False)
    provider_name: str = ""
    """The one that was chosen."""
    is_open: bool = False
    """Whether its opening records are committed and its provider is chosen."""
    is_ending: bool = False
    """Whether it is on its way out, which nothing interrupts but the cancellation of the task."""
    is_looking: bool = False
    """Whether what the driver awaits looks at the cancellation itself."""
    is_cut_short: bool = False
    """Whether a cancellation had to end what the driver awaited."""
    is_abandoned: bool = False
    """Whether the task that awaits the run was cancelled, or the driver was."""
    is_grace_used: bool = False
    """Whether a subscriber was left behind already: the next ones have a moment only."""
    flights: list[Flight] = attrs.Factory(list["Flight"])
    """What runs now: a call of the model, or tools."""

    writing: Writing = attrs.field(init=False)
    """The messages that were written: each is held once, however many requests carry it."""

    def __attrs_post_init__(self) -> None:
        secrets = self.run.secrets
        self.writing = Writing(None if secrets is None or secrets.keeps_answers else secrets)

    @property
    def provider(self) -> Provider:
        """The provider of this invocation."""
        return self.parts.providers[self.provider_name]

    def fire(self, event: Event) -> None:
        """Fire an event of the run."""
        self.run.fire(event)

    async def commit(self) -> None:
        """Record and publish what happened since the last effect."""
        await self.concluded(commit(self.parts.bus, self.run))

    async def concluded(self, telling: Coroutine[object, object, None]) -> None:
        """Have subscribers told; they hold up no run that is to stop."""
        if self.cancellation is None and not self.is_ending:
            return await telling
        was_looking, self.is_looking = self.is_looking, True
        try:
            return await patiently(self, telling)
        finally:
            self.is_looking = was_looking

    async def asked(self, gate: Gate) -> Ruling:
        """Put a gate to those who answer it, the budget last."""
        parts, run = self.parts, self.run
        return parts.bus.unopposed(gate, run.ledger) or await ask(parts.bus, parts.approver, run, self.supervisor, gate)

    def tell(self, event: Live) -> None:
        """Show something under way."""
        run = self.run
        if run.secrets is not None:
            event = run.secrets.cleansed(event)
        self.parts.bus.tell(
            Record(run.run_id, run.sequence, run.clock.now(), run.lifecycle, run.state, run.state, event)
        )

    def remaining_seconds(self) -> float | None:
        """Active time left, seconds; None without a time limit."""
        return self.run.remaining_seconds(self.run.clock.monotonic())

    def seconds_for(self, most: float) -> float:
        """What an effect may take that may take `most` at most."""
        left = self.remaining_seconds()
        return most if left is None else min(most, left)

    async def heed(self) -> str:
        """What the host's cancellation says: none, graceful or immediate; the first time it is recorded."""
        state = state_of(self.cancellation)
        if state != "none" and self.run.cancel is None and not self.run.is_over:
            running = tuple(flight.name for flight in self.flights)
            self.fire(CancelRequested(is_immediate=state == "immediate", running=running))
            await self.commit()
        return state

    async def refuse_stop(self) -> None:
        """Raise StopRequestedError where the host wants the run to stop: nothing new is begun then."""
        if self.cancellation is not None and await self.heed() != "none":
            raise StopRequestedError
