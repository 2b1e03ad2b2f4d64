"""An agent as a generator: a run of its own inside each attempt, in a workspace whose files are the candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import rmtree
from typing import ClassVar, Final

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.agent.engine import NO_HARNESS
from orchestrator.agent.limits import AgentLimits
from orchestrator.agent.ports import Provider, Tool
from orchestrator.agent.workspace import (
    EditFile,
    ListFiles,
    ReadFile,
    RunCommand,
    Workspace,
    WriteFile,
)
from orchestrator.candidate import Candidate
from orchestrator.execution import Execution
from orchestrator.generators.agentcall import AgentCall
from orchestrator.harness.harness import Harness
from orchestrator.isolating import isolation_of
from orchestrator.jsondata import JSON
from orchestrator.nesting import Nest, child_id_of, load_child
from orchestrator.paths import refuse_unsafe_paths
from orchestrator.ports import Generation, Request
from orchestrator.retries import RetryPolicy
from orchestrator.workspace import fresh_directory, write_files
from orchestrator_events.execution import ChildEnded
from orchestrator_events.isolation import IN_PROCESS, LEVELS, Isolation
from orchestrator_states.agent import AgentState

__all__ = ["AgentGenerator", "workspace_tools"]

ToolFactory = Callable[[Workspace], Sequence[Tool]]

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


def has_ended(nest: Nest, child_id: str) -> bool:
    """Whether the parent knows how the child ended."""
    records = nest.run.records
    return any(isinstance(each.event, ChildEnded) and each.event.child_id == child_id for each in records)
