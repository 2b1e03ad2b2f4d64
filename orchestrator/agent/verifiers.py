"""The verifier as a port: what the harness asks where no tool verifies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Protocol, cast

import attrs

from orchestrator.harness.verification import Verification
from orchestrator.ports import Verdict

__all__ = ["CallableVerifier", "Verifier", "VerifierLike", "VerifyRequest", "as_verifier"]

Judgement = Verification | Verdict


@attrs.frozen(kw_only=True)
class VerifyRequest:
    """What a verifier is asked: how far the work has come."""

    run_id: str
    turn: int
    seconds: float | None
    """Time it has; enforced by the engine either way."""


class Verifier(Protocol):
    """Judges the work so far, in its workspace. Raising means that there is no verdict."""

    async def verify(self, request: VerifyRequest) -> Judgement:
        """The counts."""
        ...


VerifierLike = Verifier | Callable[[], Awaitable[Judgement] | Judgement]


@attrs.frozen
class CallableVerifier:
    """A sync or async callable without arguments as a verifier."""

    function: Callable[[], Awaitable[Judgement] | Judgement]

    async def verify(self, request: VerifyRequest) -> Judgement:  # noqa: ARG002 -- the port's signature
        """What it returns."""
        given = self.function()
        return await given if isawaitable(given) else given


def as_verifier(given: VerifierLike | None) -> Verifier | None:
    """The verifier itself, or one made of a callable; TypeError for anything else."""
    if given is None:
        return None
    if callable(getattr(given, "verify", None)):
        return cast(Verifier, given)
    if callable(given):
        return CallableVerifier(given)
    raise TypeError(f"{given!r:.80} verifies nothing: give it an async method verify(request)")
