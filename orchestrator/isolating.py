"""What holds generator and evaluator in: asked of the adapters before a run's first attempt, and recorded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeGuard, cast

import attrs

from orchestrator.errors import IsolationRefusedError
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import IN_PROCESS, LEVELS, UNKNOWN, Isolation

__all__ = ["Isolating", "established", "is_isolating", "isolation_of"]


class Isolating(Protocol):
    """An adapter that runs what it runs in a sandbox, and can say in which."""

    isolate: Callable[[str], Awaitable[Isolation]]
    """Picks the best sandbox that works, probes it, and says what holds; IsolationRefusedError below `require`."""


def is_isolating(adapter: object) -> TypeGuard[Isolating]:
    """Whether the adapter can say what holds it in."""
    return callable(getattr(adapter, "isolate", None))


async def established(generator: object, evaluator: object, required: str) -> IsolationEstablished:
    """What holds both, as their adapters found it.

    Raises IsolationRefusedError, before anything is spent, when one of them is held by less than is required.
    """
    if required not in LEVELS:
        raise ValueError(f"require_isolation is {required!r}: choose one of {', '.join(LEVELS)}")
    return IsolationEstablished(
        required=required,
        generator=await isolation_of(generator, "the generator", required),
        evaluator=await isolation_of(evaluator, "the evaluator", required),
    )


async def isolation_of(adapter: object, role: str, required: str) -> Isolation:
    """What holds one adapter."""
    if is_isolating(adapter):
        found = await adapter.isolate(required)
    else:
        found = stated(adapter)
    if not found.satisfies(required):
        raise IsolationRefusedError(
            f"{role} runs with isolation {found.label}, {required} is required: run it as a program "
            "(CommandGenerator, ProcessGenerator, CommandEvaluator), or lower require_isolation",
            required=required,
            isolation=found,
        )
    return found


def stated(adapter: object) -> Isolation:
    """What an adapter of the host's own says in its attribute `isolation`, which nobody has probed."""
    words = cast(object, getattr(adapter, "isolation", "none"))
    if isinstance(words, Isolation):
        return words
    return IN_PROCESS if words == "none" else attrs.evolve(UNKNOWN, backend=str(words))
