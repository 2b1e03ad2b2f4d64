"""The orchestrator of contract 2: Amplifier's parts given to an agent, one agent a prompt."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from orchestrator.agent.engine import Agent
from orchestrator.agent.feed import AgentEvent
from orchestrator.agent.outcome import AgentCancelledError, AgentCompleted, AgentIncomplete
from orchestrator.amplifier.approval import KernelApprover
from orchestrator.amplifier.cancellation import cancellation_of
from orchestrator.amplifier.configuration import journal_of, limits_of, read_config
from orchestrator.amplifier.exchange import Exchange
from orchestrator.amplifier.hooks import Hooks
from orchestrator.amplifier.names import MODULE_ID
from orchestrator.amplifier.plainness import plain_text
from orchestrator.amplifier.providers import providers_of
from orchestrator.amplifier.tools import tools_of
from orchestrator.amplifier.transcript import KernelTranscript
from orchestrator_events.bus import Bus

__all__ = ["ConformanceLoop"]


class ConformanceLoop:
    """Executes prompts with whatever providers, tools, context and hooks the kernel passes.

    Keeps nothing between two prompts but its configuration and its journal, so that several may run at once.
    `directory` is where the session works; empty: where the process does.
    Raises DocumentError for a configuration with faults, JournalError for a journal that cannot be opened.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, directory: str = "") -> None:
        self.config, self.harness = read_config(config, os.path.abspath(directory))
        self.limits = limits_of(self.config)
        self.journal = journal_of(self.config)

    async def execute(
        self,
        prompt: str,
        context: Any,
        providers: Mapping[str, Any],
        tools: Mapping[str, Any],
        hooks: Any,
        **kwargs: Any,
    ) -> str:
        """The final answer to a prompt; "" when the user cancelled.

        Takes `coordinator`, and for this prompt alone `provider` and `model`, stated so or in `request_options`;
        ignores other arguments. Errors of provider and context are raised unchanged, after the closing events.
        """
        agent, teller, request = self.prepared(context, providers, tools, hooks, kwargs)
        try:
            report = await agent.arun(plain_text(str(prompt)), **request)
        except AgentCancelledError as ended:
            return said_of(ended)
        finally:
            teller.close()
        return report.answer

    async def stream(
        self,
        prompt: str,
        context: Any,
        providers: Mapping[str, Any],
        tools: Mapping[str, Any],
        hooks: Any,
        **kwargs: Any,
    ) -> AsyncGenerator[AgentEvent | str, None]:
        """`execute` as an async generator: text, thinking and tools as they happen, then the final answer.

        Closing it early cancels the execution in order.
        """
        agent, teller, request = self.prepared(context, providers, tools, hooks, kwargs)
        async with aclosing(agent.stream(plain_text(str(prompt)), **request)) as events:
            try:
                async for event in events:
                    yield event.answer if isinstance(event, AgentCompleted | AgentIncomplete) else event
            except AgentCancelledError as ended:
                yield said_of(ended)
            finally:
                teller.close()

    async def close(self) -> None:
        """Close the journal, if there is one; closing twice does nothing."""
        if self.journal is not None:
            self.journal.close()

    def prepared(
        self,
        context: Any,
        providers: Mapping[str, Any],
        tools: Mapping[str, Any],
        hooks: Any,
        options: Mapping[str, Any],
    ) -> tuple[Agent, Hooks, dict[str, Any]]:
        """The agent of one prompt with a bus of its own, the hooks that have joined it, and what else it is asked."""
        config, bus, exchange = self.config, Bus(), Exchange(options.get("coordinator"))
        teller = Hooks(hooks, exchange)
        teller.join(bus, config.seconds)
        agent = Agent(
            name=MODULE_ID,
            providers=providers_of(providers, exchange),
            tools=tools_of(tools, exchange),
            default_provider=config.default_provider,
            model=config.model,
            parameters=config.parameters,
            limits=self.limits,
            budget=config.budget(),
            harness=self.harness,
            journal=self.journal,
            bus=bus,
            approver=KernelApprover(exchange),
            retries=config.retries.policy(),
            system=config.system,
        )
        return (
            agent,
            teller,
            {
                "transcript": KernelTranscript(context, teller),
                "provider": option("provider", options),
                "model": option("model", options),
                "cancellation": cancellation_of(exchange.coordinator),
            },
        )


def said_of(ended: AgentCancelledError) -> str:
    """What the caller is told of an execution that was given up: why a hook denied it, nothing of his own wish."""
    return f"Operation denied: {ended.reason}" if ended.is_denial else ""


def option(name: str, kwargs: Mapping[str, Any]) -> str:
    """A request's own choice of provider or model; empty without one."""
    stated = kwargs.get(name)
    options = kwargs.get("request_options")
    if stated is None and isinstance(options, Mapping):
        stated = options.get(name)
    return stated if isinstance(stated, str) else ""
