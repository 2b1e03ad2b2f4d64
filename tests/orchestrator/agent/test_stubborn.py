"""Parts that will not give way, and values that no record may show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.agent import Agent, AgentCancelledError, AgentLimits, ProviderCallError, ToolCall
from orchestrator.redaction import Secrets
from orchestrator.retries import RetryPolicy
from orchestrator.testing import ManualCancellation, RecordingSubscriber, ScriptedProvider, ScriptedTool
from orchestrator_events import Budget
from orchestrator_events.agent import ContentBlockEnd
from orchestrator_events.codec import blobs_of, encode

Checks = Callable[[Any], None]
CALL = ToolCall(id="1", tool="look", arguments={})


async def stubborn(_: object) -> str:
    """Swallows its cancellation, for a while."""
    for _turn in range(40):
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            continue
    return "too late"


def test_a_provider_that_swallows_its_cancellation_does_not_outlast_the_run_s_time(well_formed: Checks) -> None:
    """It is left behind; the run is concluded, and the late answer concerns nobody."""
    agent = Agent(providers={"p": ScriptedProvider([stubborn])}, budget=Budget(seconds=0.03))
    report = agent.run("Go.")
    said = "The run reached its limit of seconds before it was finished."
    assert (report.status, report.answer, report.turns) == ("incomplete", said, 0)
    well_formed(report.messages)


def test_a_call_past_its_own_limit_is_tried_again_and_then_an_error() -> None:
    """A provider that is silent counts as one that failed in passing."""
    provider = ScriptedProvider([stubborn, "There."])
    limits = AgentLimits(provider_seconds=0.03)
    agent = Agent(providers={"p": provider}, limits=limits, retries=RetryPolicy(retries=1, first_wait=0.0))
    assert (agent.run("Go.").answer, len(provider.requests)) == ("There.", 2)
    with pytest.raises(ProviderCallError, match=r"no answer within 0\.03 s"):
        Agent(providers={"p": ScriptedProvider([stubborn])}, limits=limits, retries=RetryPolicy(retries=0)).run("Go.")


def test_a_tool_that_swallows_its_cancellation_does_not_hold_up_the_end(well_formed: Checks) -> None:
    """An immediate stop leaves it behind."""
    token = ManualCancellation()

    async def stop(request: object) -> str:
        token.state = "immediate"
        return await stubborn(request)

    agent = Agent(providers={"p": ScriptedProvider([CALL])}, tools=[ScriptedTool("look", [stop])])
    with pytest.raises(AgentCancelledError) as caught:
        agent.run("Go.", cancellation=token)
    assert caught.value.report.messages[2]["content"].startswith("Interrupted: the run was stopped while")
    well_formed(caught.value.report.messages)


@pytest.mark.parametrize("state", ["graceful", "immediate"])
def test_the_wait_before_a_retry_ends_with_the_host_s_wish(state: str, well_formed: Checks) -> None:
    """No further try is made."""
    token = ManualCancellation()

    def fail(_: object) -> None:
        token.state = state
        raise ProviderCallError("busy", is_retryable=True)

    provider = ScriptedProvider([fail, "Never."])
    agent = Agent(providers={"p": provider}, retries=RetryPolicy(first_wait=0.05))
    with pytest.raises(AgentCancelledError) as caught:
        agent.run("Go.", cancellation=token)
    assert len(provider.requests) == 1
    well_formed(caught.value.report.messages)


def test_a_secret_is_in_no_record_no_message_no_request_and_no_error() -> None:
    """It is replaced before anything is recorded, and what is sent is what is recorded."""
    secret = "sk-3fa85f64-5717"
    shown = RecordingSubscriber()
    tool = ScriptedTool("look", [f"the key is {secret}"])
    provider = ScriptedProvider([CALL, f"It is {secret}."])
    agent = Agent(providers={"p": provider}, tools=[tool], secrets=Secrets({"key": secret}))
    live: list[str] = []
    agent.bus.subscribe(shown)
    agent.bus.subscribe(lambda record: live.append(str(record.event)), ContentBlockEnd)
    report = agent.run(f"Use {secret}.")
    texts = [blob.text or "" for record in report.records for blob in blobs_of(record.event)]
    everything = [encode(record).decode() for record in report.records] + texts + live
    assert not [text for text in everything if secret in text]
    assert (report.answer, len(live)) == ("It is [redacted key].", 1)
    assert not [request for request in provider.requests if secret in str(request.messages)]
    broken = ScriptedProvider([ProviderCallError(f"refused {secret}")])
    with pytest.raises(Exception, match="refused") as caught:
        Agent(providers={"p": broken}, secrets=Secrets({"key": secret})).run("Go.")
    assert secret not in str(caught.value)
