"""The agent: configure it once, have it answer any number of prompts, one after another or at once."""

from __future__ import annotations

import secrets as random
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING

import attrs

from orchestrator.agent.cancelling import Cancellation
from orchestrator.agent.driver import drive
from orchestrator.agent.feed import AgentEvent, fed
from orchestrator.agent.identity import REQUEST, by_name, fitting, identity_of
from orchestrator.agent.invocation import Invocation, Parts
from orchestrator.agent.limits import AgentLimits, budget_of
from orchestrator.agent.outcome import AgentReport
from orchestrator.agent.plainjson import clean, written
from orchestrator.agent.ports import Provider, Tool, Transcript
from orchestrator.agent.results import ending_of, error_of
from orchestrator.agent.run import AgentRun
from orchestrator.agent.transcript import JournaledTranscript
from orchestrator.agent.verifiers import VerifierLike, as_verifier
from orchestrator.agent.waiting import watched
from orchestrator.blocking import run_blocking
from orchestrator.discretion import discreet, wire
from orchestrator.harness.harness import Harness
from orchestrator.journal.memory import MemoryJournal
from orchestrator.jsondata import JSON
from orchestrator.nesting import Parent
from orchestrator.parameters import write_parameters
from orchestrator.paths import refuse_unsafe_run_id
from orchestrator.ports import Approver
from orchestrator.retries import RetryPolicy
from orchestrator.supervision import Supervisor
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock, SystemClock
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.isolation import LEVELS
from orchestrator_events.journal import Journal
from orchestrator_states.agent import AGENT

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["Agent", "Parent"]

NO_HARNESS = Harness(rules=(), auto_verify=False)


def new_run_id() -> str:
    """Twelve random hexadecimal digits."""
    return random.token_hex(6)


def own_providers(providers: Mapping[str, Provider]) -> Mapping[str, Provider]:
    """A copy that nobody else changes."""
    return dict(providers)


def own_tools(tools: Iterable[Tool]) -> Sequence[Tool]:
    """A copy that nobody else changes."""
    return tuple(tools)


@attrs.define(eq=False, kw_only=True)
class Agent:
    """Has a model take turns with tools until it answers (contract 2), inside a harness of rules (contract 3).

    It never runs without a limit of turns, and leaves a conversation that can go on, whatever happens. Everything it
    does is published on `bus` and recorded in `journal` before anyone sees it.
    """

    providers: Mapping[str, Provider] = attrs.field(converter=own_providers)
    tools: Sequence[Tool] = attrs.field(default=(), converter=own_tools)
    default_provider: str = ""
    """The provider where a request names none; empty: the lowest declared priority, then the first."""
    model: str = ""
    """The model where a request names none; empty: the provider chooses."""
    parameters: Mapping[str, JSON] = attrs.field(factory=dict)
    """Parameters of each request; `max_tokens` among them is what one answer may take."""
    limits: AgentLimits = attrs.field(factory=AgentLimits)
    budget: Budget | None = None
    """Limits of time, tokens and money; `attempts` and `repeats` in it mean nothing here."""
    harness: Harness = NO_HARNESS
    verifier: VerifierLike | None = None
    """What the harness verifies with where no tool has the role."""
    journal: Journal | None = None
    """Where runs are recorded; None keeps each in memory, for as long as its report lives."""
    bus: Bus = attrs.field(factory=Bus)
    approver: Approver | None = None
    clock: Clock = attrs.field(factory=SystemClock)
    new_id: Callable[[], str] = new_run_id
    retries: RetryPolicy = attrs.field(factory=RetryPolicy)
    require_isolation: str = attrs.field(default="none", validator=attrs.validators.in_(LEVELS))
    """Least isolation that tools and verifier must have: none, basic or strong; less refuses to run."""
    secrets: Secrets | None = None
    """Values that no record, message or error may show; None where there are none."""
    system: str = ""
    """What every request begins with."""
    name: str = "agent"
    parts: Parts = attrs.field(init=False)
    budget_in_force: Budget = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        wire(self.bus, self.secrets, is_sent_clean=True)
        self.budget_in_force = budget_of(self.limits, self.budget)
        tools, verifier = by_name(self.tools), as_verifier(self.verifier)
        self.parts = Parts(
            name=self.name,
            providers=self.providers,
            default_provider=self.default_provider,
            tools=tools,
            model=self.model,
            parameters=write_parameters(self.parameters),
            limits=self.limits,
            harness=fitting(self.harness, tools, verifier),
            verifier=verifier,
            bus=self.bus,
            approver=discreet(self.approver, self.secrets),
            retries=self.retries,
            require_isolation=self.require_isolation,
            system=clean(self.system),
        )

    def run(
        self,
        prompt: str,
        *,
        transcript: Transcript | None = None,
        run_id: str | None = None,
        provider: str = "",
        model: str = "",
        cancellation: Cancellation | None = None,
        parent: Parent | None = None,
    ) -> AgentReport:
        """`arun` for callers without a loop of their own; blocks until the run is over."""
        return run_blocking(
            self.arun(
                prompt,
                transcript=transcript,
                run_id=run_id,
                provider=provider,
                model=model,
                cancellation=cancellation,
                parent=parent,
            )
        )

    async def arun(
        self,
        prompt: str,
        *,
        transcript: Transcript | None = None,
        run_id: str | None = None,
        provider: str = "",
        model: str = "",
        cancellation: Cancellation | None = None,
        parent: Parent | None = None,
    ) -> AgentReport:
        """Answer a prompt; `transcript` is a conversation to go on with, None begins one.

        Raises, after the end markers, what a provider or the transcript raised, unchanged; NoProviderError,
        UnknownProviderError and IsolationRefusedError; AgentCancelledError when a gate denied it or `cancellation`
        stopped it; AgentInterruptedError when storage failed; AgentFailedError for an error of the engine's.
        Cancelling the awaiting task ends the run in order and re-raises.
        """
        run_id = run_id or self.new_id()
        refuse_unsafe_run_id(run_id)
        with self.held(run_id):
            kept = "own" if transcript is None else "host"
            request: dict[str, JSON] = {"provider": provider, "model": model, "transcript": kept}
            run = self.begin(prompt, run_id, request, parent)
            return await self.finish(run, transcript, provider, model, cancellation)

    def resume(self, run_id: str) -> AgentReport:
        """`aresume` for callers without a loop of their own; blocks until the run is over."""
        return run_blocking(self.aresume(run_id))

    async def aresume(self, run_id: str) -> AgentReport:
        """Go on with a run of this agent's journal where it was left; nothing is bought or done twice.

        A tool that was running when the run was cut off is run again only if it is idempotent. The agent's limits
        hold from here. Raises ResumeRefusedError when the run cannot go on as asked, and otherwise as `arun` does.
        """
        from orchestrator.agent.resuming import reopen, request_of

        with self.held(run_id):
            run = await reopen(self, run_id)
            run.secrets = self.secrets
            provider, model = request_of(run)
            return await self.finish(run, None, provider, model, None)

    async def stream(
        self,
        prompt: str,
        *,
        transcript: Transcript | None = None,
        run_id: str | None = None,
        provider: str = "",
        model: str = "",
        cancellation: Cancellation | None = None,
    ) -> AsyncGenerator[AgentEvent, None]:
        """`arun` as an async generator: text, thinking, tools and verifications as they happen, then the report.

        Closing it early (`aclose`) cancels the run in order. Raises as `arun` does.
        """
        run_id = run_id or self.new_id()
        work = self.arun(
            prompt, transcript=transcript, run_id=run_id, provider=provider, model=model, cancellation=cancellation
        )
        async with aclosing(fed(self.bus, run_id, work)) as events:
            async for event in events:
                yield event

    def held(self, run_id: str) -> AbstractContextManager[None]:
        """The run, held against every other agent and process while it is worked on."""
        return nullcontext() if self.journal is None else self.journal.hold(run_id)

    def begin(self, prompt: str, run_id: str, request: dict[str, JSON], parent: Parent | None) -> AgentRun:
        """A new run, its first record not yet committed."""
        journal = self.journal or MemoryJournal()
        run = AgentRun.blank(
            run_id,
            AGENT,
            self.budget_in_force,
            self.clock,
            journal,
            prompt=clean(prompt),
            harness=self.parts.harness,
        )
        run.secrets = self.secrets
        identity = {**identity_of(self.parts), REQUEST: request}
        run.fire(
            ExecutionStart(
                table_digest=run.machine.table.digest,
                prompt=Blob(run.prompt),
                identity=written(identity),
                budget=self.budget_in_force,
                root_id=parent.root_id if parent else "",
                parent_id=parent.run_id if parent else "",
                parent_sequence=parent.sequence if parent else 0,
            )
        )
        return run

    async def finish(
        self,
        run: AgentRun,
        transcript: Transcript | None,
        provider: str,
        model: str,
        cancellation: Cancellation | None,
    ) -> AgentReport:
        """Drive a run to the end of its invocation."""
        it = Invocation(
            run=run,
            parts=self.parts,
            transcript=transcript or JournaledTranscript(run),
            wanted_provider=provider,
            model=model or self.model,
            cancellation=cancellation,
        )
        supervisor = Supervisor(lambda its, is_overdue: drive(it, its, is_overdue))
        watch = watched(it, supervisor)
        try:
            await supervisor.run()
        except Exception as error:  # noqa: BLE001 -- it is raised below, outside of this one's context
            broken = error
        else:
            return ending_of(run, self.name)
        finally:
            if watch is not None:
                watch.cancel()
        raise error_of(broken, run, self.name)
