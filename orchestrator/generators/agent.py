"""An agent as a generator: a run of its own inside each attempt, in a workspace whose files are the candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import rmtree
from typing import ClassVar, Final

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError, TransientGenerationError
from orchestrator.agent.engine import NO_HARNESS, Agent
from orchestrator.agent.limits import AgentLimits
from orchestrator.agent.outcome import AgentEndedError
from orchestrator.agent.ports import Provider, ProviderCallError, Reply, Tool, TurnRequest
from orchestrator.agent.verifiers import VerifyRequest
from orchestrator.agent.workspace import (
    EditFile,
    ListFiles,
    ReadFile,
    RunCommand,
    Workspace,
    WriteFile,
    candidate_in,
)
from orchestrator.candidate import Candidate
from orchestrator.execution import Execution
from orchestrator.harness.harness import Harness
from orchestrator.isolating import isolation_of
from orchestrator.jsondata import JSON
from orchestrator.nesting import Nest, charged_by, child_id_of, less, load_child
from orchestrator.paths import refuse_unsafe_paths
from orchestrator.ports import Evaluator, Generation, Request, Submission, Verdict
from orchestrator.resuming import ResumeRefusedError
from orchestrator.retries import RetryPolicy
from orchestrator.wording import describe
from orchestrator.workspace import fresh_directory, write_files
from orchestrator_events.budget import Charge, Usage
from orchestrator_events.errors import JournalError, RunHeldError
from orchestrator_events.execution import ChildEnded
from orchestrator_events.isolation import IN_PROCESS, LEVELS, Isolation
from orchestrator_events.journal import Head
from orchestrator_states.agent import AGENT, AgentState

__all__ = ["AgentGenerator", "workspace_tools"]

ToolFactory = Callable[[Workspace], Sequence[Tool]]

RULE: Final = "workspace"
"""How the candidate was taken, as it is recorded beside the agent's last word."""
UNAVAILABLE: Final = frozenset({401, 403, 404})
"""HTTP statuses with which trying again is pointless."""
ENDED: Final = frozenset({AgentState.COMPLETED.value, AgentState.INCOMPLETE.value})
"""States in which the work is done, as far as it goes."""


def workspace_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The tools an agent gets unless it is given others: the files of its workspace, and commands in it."""
    return (
        RunCommand(workspace),
        ReadFile(workspace),
        WriteFile(workspace),
        EditFile(workspace),
        ListFiles(workspace),
    )


@attrs.define(eq=False)
class AgentGenerator:
    """Has an agent write the candidate: one agent run for each attempt, a child of the run that it serves.

    One provider and one model are pinned for all of it; a subscriber that asks for another model fails the call. The
    child is on the run's own bus and journal, within what the run reserved for the call. With `workspaces` each
    attempt works in the directory of its child's id there, which stays: a run that was cut off goes on in it. Without,
    it works in a temporary directory, and an attempt that was cut off fails instead, since its files are gone.
    """

    nests: ClassVar[bool] = True
    """That it starts runs of its own, so that the driver gives each request a nest."""

    provider: Provider
    model: str = attrs.field(default="", kw_only=True)
    """Empty: the provider chooses, each time the same."""
    tools: ToolFactory = attrs.field(default=workspace_tools, kw_only=True)
    harness: Harness = attrs.field(default=NO_HARNESS, kw_only=True)
    verifies: bool = attrs.field(default=False, kw_only=True)
    """Whether the harness may verify with the run's own eval suite, where no tool verifies."""
    limits: AgentLimits = attrs.field(factory=AgentLimits, kw_only=True)
    parameters: Mapping[str, JSON] = attrs.field(factory=dict, kw_only=True)
    """Parameters of each call of the model; what the request has beside `max_tokens` goes over them."""
    system: str = attrs.field(default="", kw_only=True)
    files: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    """What a workspace holds at first."""
    carries_closest: bool = attrs.field(default=True, kw_only=True)
    """Whether the closest candidate so far is laid over that, so that no progress is lost between attempts."""
    candidate_file: str = attrs.field(default="", kw_only=True)
    """The file whose text is the candidate; empty: all files are."""
    output_limit: int = attrs.field(default=1_000_000, kw_only=True)
    """Largest candidate, bytes."""
    workspaces: Path | None = attrs.field(default=None, kw_only=True, converter=attrs.converters.optional(Path))
    """Directory for the workspaces; private, and nobody else's."""
    retries: RetryPolicy = attrs.field(factory=RetryPolicy, kw_only=True)
    name: str = attrs.field(default="", kw_only=True)
    """Identifies it in records and over a resume; by default `agent` with provider and model."""
    max_prompt_characters: int | None = attrs.field(default=None, kw_only=True)
    isolation: str = attrs.field(default="none", init=False)
    """The level in force, as soon as it is known."""
    required: str = attrs.field(default="none", init=False)

    def __attrs_post_init__(self) -> None:
        self.name = self.name or "/".join(filter(None, ("agent", self.provider.name, self.model)))
        refuse_unsafe_paths(self.files)

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the agent's tools in: of several, the one that is held least.

        Raises IsolationRefusedError, which says what to install, when that is weaker than `require`.
        """
        with fresh_directory() as directory:
            tools = self.tools(Workspace(directory))
            found = [await isolation_of(tool, f"the tool {tool.name}", require) for tool in tools]
        weakest = min(found, key=lambda each: LEVELS.index(each.level), default=IN_PROCESS)
        self.isolation, self.required = weakest.label, require
        return weakest

    async def generate(self, request: Request) -> Generation:
        """The files that the agent left, and what its run was charged.

        Raises GeneratorUnavailableError without a nest, or where the provider says that asking again is pointless;
        TransientGenerationError where it says the opposite; GenerationError for any other end without a candidate.
        """
        nest = request.nest
        if nest is None:
            raise GeneratorUnavailableError("an AgentGenerator needs a run to nest in: use it in an Orchestrator")
        child_id = child_id_of(request.idempotency_key)
        known = await self.recorded(nest, child_id)
        with self.workspace(nest, child_id, known) as workspace:
            work = AgentCall(self, request, nest, child_id, workspace)
            if known is None or known.state not in ENDED:
                await work.done(known)
            elif not has_ended(nest, child_id):
                await work.tell_end()
            return await work.generation()

    async def recorded(self, nest: Nest, child_id: str) -> Execution | None:
        """The child as an earlier try of the call left it; None where it is yet to begin."""
        if (await nest.journal.head(child_id)).count == 0:
            return None
        child = await load_child(nest.journal, child_id)
        start = child.records[0].event
        if getattr(start, "parent_id", "") != nest.run_id:
            raise GenerationError(f"there is a run {child_id!r} already, which is no child of {nest.run_id}: remove it")
        return child

    @contextmanager
    def workspace(self, nest: Nest, child_id: str, known: Execution | None) -> Iterator[Workspace]:
        """The workspace of an attempt: a fresh one, or the one that its child was cut off in."""
        with ExitStack() as stack:
            if self.workspaces is None:
                directory = stack.enter_context(fresh_directory())
            else:
                self.workspaces.mkdir(mode=0o700, parents=True, exist_ok=True)
                directory = self.workspaces / child_id
            if known is None:
                self.lay_out(directory, nest.closest)
            elif self.workspaces is None or not directory.is_dir():
                raise GenerationError(
                    f"the files of {child_id}, which was cut off, are gone: "
                    "give the AgentGenerator a directory for `workspaces` that stays"
                )
            yield Workspace(directory, file_limit=self.output_limit)

    def lay_out(self, directory: Path, closest: Candidate | None) -> None:
        """Make the workspace anew with what it holds at first."""
        if self.workspaces is not None:
            rmtree(directory, ignore_errors=True)  # what lies there belongs to no run that began
            directory.mkdir(mode=0o700)
        files = dict(self.files)
        if closest is not None and self.carries_closest:
            files |= dict(closest.files) or ({self.candidate_file: closest.text} if self.candidate_file else {})
        write_files(files, directory)


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


def has_ended(nest: Nest, child_id: str) -> bool:
    """Whether the parent knows how the child ended."""
    records = nest.run.records
    return any(isinstance(each.event, ChildEnded) and each.event.child_id == child_id for each in records)
