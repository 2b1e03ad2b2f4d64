"""One call of an agent as a generator: its run inside the run that asks, and what becomes of its files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError, TransientGenerationError
from orchestrator.agent.engine import Agent
from orchestrator.agent.outcome import AgentEndedError
from orchestrator.agent.ports import Provider, ProviderCallError, Reply, TurnRequest
from orchestrator.agent.verifiers import VerifyRequest
from orchestrator.agent.workspace import Workspace, candidate_in
from orchestrator.charges import charged_by, less
from orchestrator.execution import Execution
from orchestrator.isolating import isolation_of
from orchestrator.nesting import Nest, load_child
from orchestrator.ports import Evaluator, Generation, Request, Submission, Verdict
from orchestrator.resuming import ResumeRefusedError
from orchestrator.wording import describe
from orchestrator_events.budget import Charge, Usage
from orchestrator_events.errors import JournalError, RunHeldError
from orchestrator_events.isolation import Isolation
from orchestrator_events.journal import Head
from orchestrator_states.agent import AGENT

if TYPE_CHECKING:
    from orchestrator.generators.agent import AgentGenerator

__all__ = ["AgentCall"]

RULE: Final = "workspace"
"""How the candidate was taken, as it is recorded beside the agent's last word."""
UNAVAILABLE: Final = frozenset({401, 403, 404})
"""HTTP statuses with which trying again is pointless."""


@attrs.define(eq=False)
class AgentCall:
    """One call of the generator: the agent's run in its workspace."""

    maker: AgentGenerator
    request: Request
    nest: Nest
    child_id: str
    workspace: Workspace

    async def done(self, known: Execution | None) -> None:
        """Have the agent work until its run ends; it is told to the parent on every way out."""
        nest, child_id = self.nest, self.child_id
        agent = self.agent(known)
        parent = await nest.begin(child_id, AGENT.name)
        try:
            if known is None:
                await agent.arun(self.request.prompt, run_id=child_id, parent=parent)
            else:
                await agent.aresume(child_id)
        except (JournalError, RunHeldError):
            raise
        except AgentEndedError as error:
            if isinstance(error.__cause__, JournalError):
                raise error.__cause__ from error
            await self.tell_end()
            raise GenerationError(
                f"the agent ended without an answer: {error.reason}", usage=await self.usage()
            ) from error
        except ResumeRefusedError as error:
            raise GenerationError(f"the agent cannot go on: {error.reason}", usage=await self.usage()) from error
        except Exception as error:
            await self.tell_end()
            raise await self.failure(error) from error
        except BaseException:  # the run is being cancelled: its child has ended in order
            await self.tell_end()
            raise
        await self.tell_end()

    def agent(self, known: Execution | None) -> Agent:
        """The agent, on the run's own bus and journal, with what is left to the call as its budget."""
        maker, nest = self.maker, self.nest
        used = Charge() if known is None else charged_by(known)
        before = 0.0 if known is None else known.ledger.elapsed_us() / 1_000_000
        allotted = nest.allotment.after(used, before)
        if allotted.seconds is not None:  # so that it concludes before its parent's deadline ends it
            allotted = attrs.evolve(allotted, seconds=allotted.seconds - min(1.0, (allotted.seconds - before) / 10))
        own = {name: value for name, value in self.request.parameters.items() if name != "max_tokens"}
        provider: Provider = PinnedProvider(maker.provider, maker.model)
        return Agent(
            providers={provider.name: provider},
            default_provider=provider.name,
            model=maker.model,
            tools=tuple(maker.tools(self.workspace)),
            parameters={**maker.parameters, **own},
            limits=maker.limits,
            budget=allotted.budget(maker.limits.iterations + 1),
            harness=maker.harness,
            verifier=RunVerifier(self) if maker.verifies else None,
            journal=nest.journal,
            bus=nest.bus,
            approver=nest.approver,
            clock=nest.clock,
            retries=maker.retries,
            require_isolation=maker.required,
            secrets=nest.secrets,
            system=maker.system,
            name=maker.name,
        )

    async def tell_end(self) -> None:
        """Record in the parent how the child ended."""
        head: Head = await self.nest.journal.head(self.child_id)
        if head.count:
            child = await load_child(self.nest.journal, self.child_id)
            await self.nest.ended(self.child_id, head, str(child.state))

    async def usage(self) -> Usage:
        """What the child's run was charged beyond what earlier tries of the call were."""
        if (await self.nest.journal.head(self.child_id)).count == 0:
            return Usage(input_tokens=0, output_tokens=0, money_micro=0)
        charged = less(charged_by(await load_child(self.nest.journal, self.child_id)), self.nest.charged)
        return Usage(
            input_tokens=charged.input_tokens, output_tokens=charged.output_tokens, money_micro=charged.money_micro
        )

    async def generation(self) -> Generation:
        """The workspace's files as the candidate."""
        usage, answer = await self.usage(), await self.last_word()
        try:
            candidate = candidate_in(self.workspace, self.maker.candidate_file, self.maker.output_limit)
        except GenerationError as error:
            raise GenerationError(error.reason, answer=answer, usage=usage) from error
        return Generation(candidate=candidate, usage=usage, answer=answer, extraction=RULE)

    async def last_word(self) -> str:
        """The agent's final answer, which says what it did; the candidate is in its files."""
        child = await load_child(self.nest.journal, self.child_id)
        final = getattr(child, "final", None)
        return final if isinstance(final, str) else ""

    async def failure(self, error: Exception) -> Exception:
        """What a provider's failure means for the attempt."""
        usage = await self.usage()
        status = getattr(error, "status_code", None)
        reason = f"the agent's provider failed: {describe(error)}"
        if isinstance(error, GeneratorUnavailableError) or status in UNAVAILABLE:
            return GeneratorUnavailableError(reason)
        can_go_on = self.maker.workspaces is not None  # or its files are gone by the next try
        if isinstance(error, ProviderCallError) and error.is_retryable and can_go_on:
            return TransientGenerationError(reason, retry_after=error.retry_after, status=status, usage=usage)
        return GenerationError(reason, usage=usage)


@attrs.define(eq=False)
class PinnedProvider:
    """The one provider and model of a run; a request for another model fails."""

    provider: Provider
    model: str
    name: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.name = self.provider.name

    async def complete(self, request: TurnRequest) -> Reply:
        """One answer."""
        if request.model != self.model:
            message = f"a subscriber asked for the model {request.model!r:.80}, the run is pinned to {self.model!r:.80}"
            raise ProviderCallError(message)
        return await self.provider.complete(request)


@attrs.define(eq=False)
class RunVerifier:
    """The run's own eval suite on the files as they stand."""

    call: AgentCall

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the suite; IsolationRefusedError when it is weaker than `require`."""
        return await isolation_of(self.call.nest.evaluator, "the evaluator", require)

    async def verify(self, request: VerifyRequest) -> Verdict:
        """What it reports."""
        maker, nest = self.call.maker, self.call.nest
        evaluator: Evaluator = nest.evaluator
        return await evaluator.evaluate(
            Submission(
                run_id=nest.run_id,
                attempt=self.call.request.attempt,
                candidate=candidate_in(self.call.workspace, maker.candidate_file, maker.output_limit),
                spec=nest.spec,
                expected=nest.expected,
                language=self.call.request.language,
                seconds=request.seconds,
            )
        )
