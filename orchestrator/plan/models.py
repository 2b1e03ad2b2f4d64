"""What the names of a routing policy stand for: a generator, or an agent's provider with its tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from orchestrator.adapter_errors import GenerationError, TransientGenerationError
from orchestrator.agent.engine import NO_HARNESS
from orchestrator.agent.limits import AgentLimits
from orchestrator.agent.ports import Provider, ProviderCallError, Reply, Tool, TurnRequest
from orchestrator.agent.workspace import Workspace
from orchestrator.answers import checked_answer
from orchestrator.generators.agent import workspace_tools
from orchestrator.generators.callable import GeneratorLike, as_generator
from orchestrator.harness.harness import Harness
from orchestrator.isolating import isolation_of
from orchestrator.jsondata import JSON
from orchestrator.ports import Generator, Request
from orchestrator_events.isolation import Isolation

__all__ = ["AgentModel", "GeneratorModel", "GeneratorProvider", "Model", "ModelLike", "as_model"]

OUTPUT_LIMIT: Final = 1_000_000


def own(parameters: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """A copy that nobody else changes."""
    return dict(parameters)


@attrs.define(eq=False)
class GeneratorModel:
    """A model behind a generator: it executes steps by one call, or as a conformance run, and reviews."""

    generator: Generator = attrs.field(converter=as_generator)
    parameters: Mapping[str, JSON] = attrs.field(factory=dict, converter=own, kw_only=True)
    """Of each call; `max_tokens` among them is what is reserved for its answer."""
    output_limit: int = attrs.field(default=OUTPUT_LIMIT, kw_only=True)
    """Longest answer, bytes."""

    @property
    def name(self) -> str:
        """The generator's."""
        return self.generator.name

    @property
    def executors(self) -> tuple[str, ...]:
        """What it can execute a step as."""
        return ("generator", "conformance")

    @property
    def provider(self) -> Provider:
        """The generator as the provider of a run of one turn."""
        return GeneratorProvider(self.generator, self.output_limit)


@attrs.define(eq=False)
class AgentModel:
    """A model that takes turns with tools in a workspace; without them it answers like a generator."""

    provider: Provider
    model: str = attrs.field(default="", kw_only=True)
    parameters: Mapping[str, JSON] = attrs.field(factory=dict, converter=own, kw_only=True)
    tools: Callable[[Workspace], Sequence[Tool]] = attrs.field(default=workspace_tools, kw_only=True)
    harness: Harness = attrs.field(default=NO_HARNESS, kw_only=True)
    limits: AgentLimits = attrs.field(factory=AgentLimits, kw_only=True)
    system: str = attrs.field(default="", kw_only=True)
    output_limit: int = attrs.field(default=OUTPUT_LIMIT, kw_only=True)
    """Largest set of files it may leave, bytes."""

    @property
    def name(self) -> str:
        """Provider and model."""
        return "/".join(filter(None, (self.provider.name, self.model)))

    @property
    def executors(self) -> tuple[str, ...]:
        """What it can execute a step as."""
        return ("generator", "agent")


Model: TypeAlias = GeneratorModel | AgentModel
ModelLike: TypeAlias = Model | GeneratorLike


def as_model(model: ModelLike) -> Model:
    """A model as it is, or a generator or a callable made one; TypeError for anything else."""
    return model if isinstance(model, GeneratorModel | AgentModel) else GeneratorModel(model)


@attrs.define(eq=False)
class GeneratorProvider:
    """A generator that answers as an agent's provider: the conversation is its prompt, the candidate its answer."""

    generator: Generator
    output_limit: int = OUTPUT_LIMIT
    name: str = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.name = self.generator.name

    async def isolate(self, require: str = "none") -> Isolation:
        """What holds the generator in; IsolationRefusedError below `require`."""
        return await isolation_of(self.generator, f"the generator {self.name}", require)

    async def complete(self, request: TurnRequest) -> Reply:
        """One answer; files come as a JSON object of path to text, which `form` in its metadata says.

        Raises what the generator raises; a passing failure as a ProviderCallError that may be tried again.
        """
        try:
            answer = await self.generator.generate(asked(request))
            form, blob = checked_answer(answer, self.output_limit)
        except TransientGenerationError as error:
            raise ProviderCallError(
                error.reason, is_retryable=True, retry_after=error.retry_after, usage=error.usage
            ) from error
        except GenerationError as error:
            raise ProviderCallError(error.reason, usage=error.usage) from error
        text = blob.text or blob.data.decode()
        return Reply(
            blocks=({"type": "text", "text": text},),
            usage=answer.usage,
            finish_reason="stop",
            metadata={"form": form},
        )


def asked(request: TurnRequest) -> Request:
    """The same as a generator is asked it."""
    texts = [message.get("content") for message in request.messages]
    return Request(
        run_id=request.run_id,
        attempt=request.turn,
        prompt="\n\n".join(text for text in texts if isinstance(text, str)),
        parameters=dict(request.parameters),
        language="",
        max_tokens=request.max_tokens,
        seconds=request.seconds,
        idempotency_key=request.idempotency_key,
        spec_digest="",
    )
