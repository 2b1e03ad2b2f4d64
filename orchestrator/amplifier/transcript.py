"""Amplifier's context as the transcript of an agent: the kernel owns the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from orchestrator.agent.ports import Message, Provider
from orchestrator.amplifier.awaiting import awaited
from orchestrator.amplifier.exchange import Exchange, Injection
from orchestrator.amplifier.hooks import Hooks, hook_result
from orchestrator.amplifier.plainness import plain_object

__all__ = ["KernelTranscript"]


@attrs.define(eq=False)
class KernelTranscript:
    """Adds with `add_message` and reads with `get_messages_for_request`, which compacts; nothing is cached.

    What the context raises ends the run and is raised unchanged.
    """

    context: Any
    hooks: Hooks

    @property
    def exchange(self) -> Exchange:
        """What the execution remembers."""
        return self.hooks.exchange

    async def add(self, message: Message) -> None:
        """One more message; a hook's durable injection goes through the kernel, which limits and marks it."""
        injection = self.exchange.take(message)
        if injection is None:
            await awaited(self.context.add_message(dict(message)))
        elif self.exchange.can_process:
            await self.store(injection)
        else:
            marks = {"source": "hook", "hook_name": injection.hook_name, "event": injection.event}
            message = {"role": injection.role, "content": injection.text, "metadata": marks}
            await awaited(self.context.add_message(message))

    async def store(self, injection: Injection) -> None:
        """Have the coordinator store an injection, once; one that is too large for it is dropped."""
        try:
            await self.exchange.process(hook_result(injection), injection.event, injection.hook_name)
        except ValueError as error:
            await self.hooks.drop(injection.text, injection.role, injection.hook_name, error)

    async def for_request(self, provider: Provider) -> Sequence[Message]:
        """The messages of one request, as the kernel's context gives them."""
        kernel_provider = getattr(provider, "kernel", None)
        messages = await awaited(self.context.get_messages_for_request(provider=kernel_provider))
        return tuple(plain_object(message) for message in messages)
