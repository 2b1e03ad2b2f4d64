"""The subagent spawner: bounded work for a role, its output checked, its tokens metered, its time limited.

Each call of a generator is a subagent of its own in the journal: reserved for and committed before it starts, settled
when it ends. An output that does not fit is asked for once more, with the reason; a call that failed in passing is
made again as the settings say. A phase that is executed again after a crash gets the answers that were already paid
for, where it asks the same role for the same thing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count

import attrs

from orchestrator.adapter_errors import GeneratorUnavailableError, TransientGenerationError
from orchestrator.faults import closest_name
from orchestrator.jsondata import JSON
from orchestrator.ports import Generator
from orchestrator.workflow.components.answering import files_of
from orchestrator.workflow.components.calling import call_once, lost_calls
from orchestrator.workflow.components.context import BoundedContext, ContextError, bounded_context
from orchestrator.workflow.components.fileclaims import refuse_conflicts, refuse_overlaps
from orchestrator.workflow.components.port import ComponentHost
from orchestrator.workflow.components.prompting import context_text, prompt_of
from orchestrator.workflow.components.reuse import Earlier
from orchestrator.workflow.components.roles import Role, roles_with
from orchestrator.workflow.components.settings import SubagentSettings
from orchestrator.workflow.components.subagentresult import ParallelResult, SubagentResult, together
from orchestrator_events.blob import Blob
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.workflow import SubagentSpawned

__all__ = ["SubagentTask", "Subagents", "UnknownGeneratorError", "UnknownRoleError"]


class UnknownRoleError(OrchestratorError, ValueError):
    """A subagent of a role that nobody declared; `role` is what was asked for."""

    def __init__(self, role: object, known: Sequence[str]) -> None:
        self.role = role
        hint = closest_name(str(role), known)
        suggestion = f" (did you mean {hint!r}?)" if hint else ""
        super().__init__(
            f"there is no role {str(role)[:80]!r}: use {', '.join(known)}, or declare it under "
            f"subagent-spawner.roles{suggestion}"
        )


class UnknownGeneratorError(OrchestratorError, ValueError):
    """A role's generator is not there, or cannot serve subagents; `name` is its name."""

    def __init__(self, name: str, fault: str) -> None:
        self.name = name
        super().__init__(f"the generator {name!r} for subagents {fault}")


@attrs.frozen(kw_only=True)
class SubagentTask:
    """One of several tasks that are done side by side."""

    role: str
    context: Mapping[str, JSON]
    files: tuple[str, ...] = attrs.field(default=(), converter=tuple[str, ...])
    """Files that it may change; no other task may name them."""


@attrs.define(eq=False)
class Subagents:
    """Spawns subagents for one execution of a phase."""

    settings: SubagentSettings
    host: ComponentHost
    roles: Mapping[str, Role] = attrs.field(init=False)
    earlier: Earlier = attrs.field(init=False)
    spawned: int = attrs.field(init=False)
    """Subagents of the run so far."""
    flying: set[str] = attrs.field(factory=set, init=False)
    """Ids of those under way."""

    def __attrs_post_init__(self) -> None:
        self.roles = roles_with(self.settings.roles)
        self.earlier = Earlier.of(self.host.history, self.host.phase)
        self.spawned = sum(isinstance(event, SubagentSpawned) for event in self.host.history)

    async def spawn(self, role: str, context: Mapping[str, JSON]) -> SubagentResult:
        """What a subagent of a role makes of a context, of which it reads 4,096 characters unless configured otherwise.

        Its status is success, failure or blocked as it says itself; timeout when its time was over; error when the
        call failed or two outputs did not fit, the raw one kept. Raises UnknownRoleError, ContextError,
        BudgetReachedError, and GeneratorUnavailableError where trying again is pointless.
        """
        known = self.role(role)
        first = await self.call(known, context)
        if not first.is_malformed:
            return first
        return together(first, await self.call(known, context, reason=first.error))

    async def spawn_parallel(self, tasks: Sequence[SubagentTask]) -> ParallelResult:
        """Several subagents, as many at once as the domain approves (`parallel`), results in the order of tasks.

        Raises FileOverlapError, before anything is spent, when two tasks name the same file, and FileConflictError,
        which is fatal, when two outputs do or one names another's.
        """
        for task in tasks:
            self.checked_context(self.role(task.role), task.context)
        refuse_overlaps([task.files for task in tasks])
        room = asyncio.Semaphore(self.settings.parallel)

        async def one(task: SubagentTask) -> SubagentResult:
            async with room:
                return await self.spawn(task.role, task.context)

        running = [asyncio.ensure_future(one(task)) for task in tasks]
        try:
            results = tuple(await asyncio.gather(*running))
        except BaseException as error:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            if isinstance(error, OrchestratorError):
                await self.settle_lost("given up, because another subagent beside it could not go on")
            raise
        refuse_conflicts([task.files for task in tasks], [files_of(result.output) for result in results])
        return ParallelResult(results)

    async def settle_lost(self, reason: str = "cut off: nobody knows what became of it") -> None:
        """Charge calls of the run that began and have no end, in full; the driver calls it before a phase goes on.

        They are made again when the phase asks for them again.
        """
        lost = lost_calls(self.host.history, reason, self.flying)
        if lost:
            await self.host.record(*lost)

    def role(self, name: object) -> Role:
        """The role of this name; UnknownRoleError."""
        if not isinstance(name, str) or name not in self.roles:
            raise UnknownRoleError(name, tuple(self.roles))
        return self.roles[name]

    async def call(self, role: Role, context: Mapping[str, JSON], reason: str = "") -> SubagentResult:
        """One call, or what an earlier one gave that the crash of this execution left behind."""
        bounded = self.checked_context(role, context)
        text = context_text(bounded, reason)
        known = self.earlier.taken(role.name, Blob(text).digest)
        if known is not None:
            return attrs.evolve(known, cut=bounded.cut)
        generator = self.generator_of(role)
        refuse_long_prompt(role, generator, prompt_of(role, text))
        for retry in count():
            result, error = await self.tried(role, generator, text)
            wait = None if error is None else self.wait_for(retry, error)
            if wait is None and error is not None and error.is_unreachable:
                raise GeneratorUnavailableError(error.reason) from error
            if wait is None:
                break
            await asyncio.sleep(wait)
        return attrs.evolve(result, cut=bounded.cut)

    async def tried(
        self, role: Role, generator: Generator, context: str
    ) -> tuple[SubagentResult, TransientGenerationError | None]:
        """One try of a call, a subagent of its own in the journal."""
        self.spawned += 1
        subagent_id = f"{self.host.phase}-{self.spawned}"
        self.flying.add(subagent_id)
        try:
            return await call_once(
                self.host,
                attrs.evolve(role, seconds=role.seconds or self.settings.seconds, max_tokens=self.tokens_of(role)),
                generator,
                subagent_id=subagent_id,
                number=self.spawned,
                context=context,
                answer_bytes=self.settings.answer_bytes,
            )
        finally:
            self.flying.discard(subagent_id)

    def wait_for(self, retry: int, error: TransientGenerationError) -> float | None:
        """How long to wait before a call that failed in passing is made again, seconds; None: it is not."""
        return self.settings.retries.policy().wait(retry, error.retry_after, self.host.remaining_seconds())

    def checked_context(self, role: Role, context: Mapping[str, JSON]) -> BoundedContext:
        """The context as it is given; ContextError where a key is missing that the role requires."""
        missing = tuple(name for name in role.requires if name not in context)
        if missing:
            raise ContextError(role.name, f"lacks {', '.join(missing)}: give all that the role requires", missing)
        return bounded_context(role.name, context, role.context_characters or self.settings.context_characters)

    def tokens_of(self, role: Role) -> int | None:
        """Output tokens that one call of a role may use."""
        return self.settings.max_tokens if role.max_tokens is None else role.max_tokens

    def generator_of(self, role: Role) -> Generator:
        """The generator that answers for a role."""
        generators = self.host.generators
        name = role.generator or self.settings.generator
        if not name and len(generators) == 1:
            name = next(iter(generators))
        if name not in generators:
            known = ", ".join(generators) or "none"
            fault = f"is not there: the workflow has {known}; name one as subagent-spawner.generator"
            raise UnknownGeneratorError(name, fault)
        if getattr(generators[name], "nests", False):
            raise UnknownGeneratorError(name, "starts runs of its own, which a phase cannot hold: choose another")
        return generators[name]


def refuse_long_prompt(role: Role, generator: Generator, prompt: str) -> None:
    """Raise ContextError for a prompt that the generator does not take."""
    longest = generator.max_prompt_characters
    if longest is not None and len(prompt) > longest:
        fault = f"makes a prompt of {len(prompt)} characters, the generator takes {longest}: lower context-characters"
        raise ContextError(role.name, fault)
