"""The opening of an invocation: it is told first, then what holds its tools in, then which provider answers."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.agent.invocation import Invocation, Parts, StoppedError
from orchestrator.agent.ports import Provider
from orchestrator.errors import IsolationRefusedError
from orchestrator.isolating import is_isolating, isolation_of
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import IN_PROCESS, LEVELS

__all__ = ["NoProviderError", "UnknownProviderError", "chosen_provider", "open_invocation"]

DEFAULT_PRIORITY = 100


class NoProviderError(OrchestratorError, RuntimeError):
    """There is no provider at all: nothing can be answered."""

    def __init__(self) -> None:
        super().__init__("no provider is available: give the agent one")


class UnknownProviderError(OrchestratorError, ValueError):
    """A provider was asked for that is not there; `known` lists those that are."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name = name
        self.known = known
        super().__init__(f"there is no provider {name!r}; there are: {', '.join(known)}")


async def open_invocation(it: Invocation) -> None:
    """Commit that the invocation began, find what holds the tools in, and choose the provider; once.

    Raises StoppedError where the tools are held by less than is required, or no provider fits.
    """
    if it.is_open:
        return
    await it.commit()
    try:
        it.fire(await isolation(it.parts))
        it.provider_name = chosen_provider(it.parts.providers, it.wanted_provider, it.parts.default_provider)
    except (IsolationRefusedError, NoProviderError, UnknownProviderError) as error:
        raise StoppedError(error) from error
    it.is_open = True


async def isolation(parts: Parts) -> IsolationEstablished:
    """What holds the tools, the providers that can say so, and the verifier in: of several, what is held least."""
    required = parts.require_isolation
    held = [await isolation_of(tool, f"the tool {name}", required) for name, tool in parts.tools.items()]
    held += [
        await isolation_of(provider, f"the provider {name}", required)
        for name, provider in parts.providers.items()
        if is_isolating(provider)
    ]
    weakest = min(held, key=lambda each: LEVELS.index(each.level), default=IN_PROCESS)
    verifier = weakest
    if parts.verifier is not None:
        verifier = await isolation_of(parts.verifier, "the verifier", required)
    return IsolationEstablished(required=required, generator=weakest, evaluator=verifier)


def chosen_provider(providers: Mapping[str, Provider], wanted: str, default: str) -> str:
    """The provider of a run: the request's, else the default, else the lowest priority, else the first (contract 2).

    Raises NoProviderError and UnknownProviderError.
    """
    if not providers:
        raise NoProviderError
    named = wanted or default
    if named and named not in providers:
        raise UnknownProviderError(named, tuple(providers))
    return named or min(providers, key=lambda name: priority_of(providers[name]))


def priority_of(provider: Provider) -> float:
    """What the provider declares as its priority; 100 where it declares none."""
    priority: object = getattr(provider, "priority", None)
    if isinstance(priority, bool) or not isinstance(priority, int | float):
        return DEFAULT_PRIORITY
    return float(priority)
