"""Every way out of a run: limits, errors, the host's wish, and a conversation that can go on after each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from orchestrator.agent import (
    Agent,
    AgentCancelledError,
    AgentIncomplete,
    AgentInterruptedError,
    AgentLimits,
    CallRequest,
    MemoryTranscript,
    Message,
    Provider,
    ProviderCallError,
    Reply,
    ToolCall,
    TurnRequest,
)
from orchestrator.journal import MemoryJournal
from orchestrator.testing import ManualCancellation, ScriptedProvider, ScriptedTool
from orchestrator_events import Batch, Budget, JournalError
from orchestrator_events.record import Record

Names = Callable[[Sequence[Record]], list[str]]
Checks = Callable[[Any], None]
CALL = ToolCall(id="1", tool="look", arguments={})


def statuses(records: Sequence[Record]) -> tuple[str, str, str]:
    """Status of orchestrator:complete, status and response of execution:end."""
    complete, end = (attrs.asdict(record.event) for record in records[-2:])
    return complete["status"], end["status"], end["response"]


def test_at_the_iteration_limit_the_model_closes_without_tools(well_formed: Checks) -> None:
    """One last call, with a reminder and no tool; its answer is what is returned, and said to be incomplete."""
    provider = ScriptedProvider([CALL, CALL, "So far: nothing."])
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("look")], limits=AgentLimits(iterations=2))
    report = agent.run("Look.")
    assert isinstance(report, AgentIncomplete)
    assert (report.answer, report.limit, report.turns) == ("So far: nothing.", "iterations", 3)
    assert statuses(report.records) == ("incomplete", "completed", "So far: nothing.")
    assert [len(request.tools) for request in provider.requests] == [1, 1, 0]
    assert provider.requests[-1].messages[-1]["content"].startswith("The limit of iterations is reached")
    well_formed(report.messages)


def test_an_answer_exactly_at_the_limit_is_an_answer() -> None:
    """No closing call is made for it."""
    report = Agent(providers={"p": ScriptedProvider(["Yes."])}, limits=AgentLimits(iterations=1)).run("Go.")
    assert (report.status, report.turns) == ("completed", 1)


def test_calls_in_a_closing_answer_are_left_out(well_formed: Checks) -> None:
    """A model that asks for tools that it has not got gets none, and its earlier text stands."""
    text = ({"type": "text", "text": "Looking."},)
    provider = ScriptedProvider([Reply(blocks=text, calls=(CALL,)), Reply(calls=(CALL,))])
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("look")], limits=AgentLimits(iterations=1))
    report = agent.run("Look.")
    assert (report.status, report.answer) == ("incomplete", "Looking.")
    well_formed(report.messages)


def test_past_the_limit_of_tool_calls_no_tool_runs(well_formed: Checks) -> None:
    """Those within it run, those past it are refused, and the model closes."""
    calls = [ToolCall(id=str(number), tool="look", arguments={}) for number in range(3)]
    tool = ScriptedTool("look", ["seen"])
    provider = ScriptedProvider([calls, "Enough."])
    report = Agent(providers={"p": provider}, tools=[tool], limits=AgentLimits(tool_calls=2)).run("Look.")
    assert isinstance(report, AgentIncomplete)
    assert (report.limit, report.tool_calls, len(tool.requests), report.answer) == ("tool_calls", 2, 2, "Enough.")
    well_formed(report.messages)


def test_when_the_time_is_up_the_text_so_far_is_returned(well_formed: Checks) -> None:
    """No further call is made; the call in flight is abandoned and charged."""

    async def hang(_: TurnRequest) -> str:
        await asyncio.sleep(5)
        return "too late"

    provider = ScriptedProvider([Reply(blocks=({"type": "text", "text": "First."},), calls=(CALL,)), hang])
    report = Agent(providers={"p": provider}, tools=[ScriptedTool("look")], budget=Budget(seconds=0.05)).run("Go.")
    assert isinstance(report, AgentIncomplete)
    assert (report.answer, report.limit, report.turns, len(provider.requests)) == ("First.", "seconds", 1, 2)
    well_formed(report.messages)


def test_when_the_tokens_are_used_no_call_is_made(well_formed: Checks) -> None:
    """The budget refuses the next request before it is sent."""
    text = ({"type": "text", "text": "word " * 400},)
    provider = ScriptedProvider([Reply(blocks=text, calls=(CALL,))])
    report = Agent(providers={"p": provider}, tools=[ScriptedTool("look")], budget=Budget(tokens=450)).run("Go.")
    assert isinstance(report, AgentIncomplete)
    assert (report.limit, report.turns, len(provider.requests)) == ("tokens", 1, 1)
    well_formed(report.messages)


class OwnError(Exception):
    """The provider's own."""


def test_a_provider_s_error_is_raised_unchanged_after_the_markers(names: Names, well_formed: Checks) -> None:
    """provider:error tells of it; the very exception that the provider raised reaches the host."""
    raised, told = OwnError("no such model"), list[Record]()
    transcript = MemoryTranscript()

    def fail(_: object) -> None:
        raise ProviderCallError("wrapped", status_code=404) from raised

    agent = Agent(providers={"p": ScriptedProvider([CALL, fail])}, tools=[ScriptedTool("look")])
    agent.bus.subscribe(told.append)
    with pytest.raises(OwnError) as caught:
        agent.run("Go.", transcript=transcript)
    assert caught.value is raised
    error = next(attrs.asdict(record.event) for record in told if record.event.name == "provider:error")
    assert (error["error_type"], error["message"], error["status_code"]) == ("OwnError", "no such model", 404)
    assert (names(told)[-2:], statuses(told)) == (
        ["orchestrator:complete", "execution:end"],
        ("incomplete", "error", ""),
    )
    well_formed(transcript.messages)


@pytest.mark.parametrize("odd", ["text", None, SystemExit(1), asyncio.CancelledError()])
def test_a_provider_that_answers_nonsense_is_an_error(odd: Any) -> None:
    """No reply at all, or what would end the process, is a failed call."""

    @attrs.define
    class Odd:
        name: str = "odd"

        async def complete(self, _: TurnRequest) -> Any:
            if isinstance(odd, BaseException):
                raise odd
            return odd

    with pytest.raises(Exception, match=r"not a Reply|SystemExit|cancelled itself"):
        Agent(providers={"p": Odd()}).run("Go.")


@attrs.define
class FailingTranscript:
    """A conversation that breaks at the n-th message, or when it is read."""

    fails_at: int
    inner: MemoryTranscript = attrs.Factory(MemoryTranscript)

    async def add(self, message: Message) -> None:
        """One more, unless it breaks."""
        if len(self.inner.messages) + 1 == self.fails_at:
            raise OwnError("full")
        await self.inner.add(message)

    async def for_request(self, provider: Provider) -> Sequence[Message]:
        """All of it, unless it breaks."""
        if self.fails_at == 0:
            raise OwnError("unreadable")
        return await self.inner.for_request(provider)


@pytest.mark.parametrize("fails_at", [0, 1, 2, 3, 4])
def test_a_transcript_s_error_is_raised_unchanged_after_the_markers(fails_at: int, names: Names) -> None:
    """Whatever message it does not take, the run is bracketed and nothing more is bought."""
    told: list[Record] = []
    agent = Agent(providers={"p": ScriptedProvider([CALL, "Done."])}, tools=[ScriptedTool("look")])
    agent.bus.subscribe(told.append)
    with pytest.raises(OwnError, match=r"full|unreadable"):
        agent.run("Go.", transcript=FailingTranscript(fails_at))
    assert (names(told)[-2:], statuses(told)) == (
        ["orchestrator:complete", "execution:end"],
        ("incomplete", "error", ""),
    )


def test_storage_that_fails_interrupts_the_run(well_formed: Checks) -> None:
    """Nothing unrecorded is done; the conversation is closed all the same."""

    class Full(MemoryJournal):
        async def append(self, batch: Batch) -> None:
            if any(record.event.name == "action:started" for record in batch.records):
                raise JournalError("disk full", run_id=batch.run_id)
            await super().append(batch)

    tool, transcript = ScriptedTool("look"), MemoryTranscript()
    agent = Agent(providers={"p": ScriptedProvider([CALL])}, tools=[tool], journal=Full())
    with pytest.raises(AgentInterruptedError, match="disk full"):
        agent.run("Go.", transcript=transcript)
    assert tool.requests == []
    well_formed(transcript.messages)


def test_graceful_cancellation_lets_running_tools_finish(names: Names, well_formed: Checks) -> None:
    """Their results are stored, the request to stop is told once, those not begun are not run."""
    token = ManualCancellation()

    async def look(_: CallRequest) -> str:
        token.state = "graceful"
        await asyncio.sleep(0.06)
        return "seen"

    calls = [CALL, ToolCall(id="2", tool="write_file", arguments={})]
    write = ScriptedTool("write_file")
    agent = Agent(providers={"p": ScriptedProvider([calls])}, tools=[ScriptedTool("look", [look]), write])
    with pytest.raises(AgentCancelledError) as caught:
        agent.run("Go.", cancellation=token)
    report = caught.value.report
    assert [message["content"] for message in report.messages if message["role"] == "tool"] == [
        "seen",
        "Interrupted: the run was stopped before the tool was run.",
    ]
    assert (write.requests, token.started, token.running) == ([], ["1"], {})
    assert (names(report.records).count("cancel:requested"), names(report.records)[-3:]) == (
        1,
        ["cancel:completed", "orchestrator:complete", "execution:end"],
    )
    assert statuses(report.records) == ("cancelled", "cancelled", "")
    assert report.messages[-1]["content"][0]["text"] == "The run was cancelled before it was finished."
    well_formed(report.messages)


@pytest.mark.parametrize("where", ["tool", "provider"])
def test_immediate_cancellation_interrupts_what_runs(where: str, well_formed: Checks) -> None:
    """Tools and calls of the model are really cancelled, within a poll of the token."""
    token, ended = ManualCancellation(), list[str]()

    async def hang(_: object) -> str:
        token.state = "immediate"
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        return "too late"

    replies = [CALL] if where == "tool" else [hang]
    agent = Agent(providers={"p": ScriptedProvider(replies)}, tools=[ScriptedTool("look", [hang])])
    with pytest.raises(AgentCancelledError) as caught:
        agent.run("Go.", cancellation=token)
    assert (ended, statuses(caught.value.report.records)) == (["cancelled"], ("cancelled", "cancelled", ""))
    well_formed(caught.value.report.messages)


def test_a_token_that_is_set_before_the_start_lets_nothing_begin() -> None:
    """Not even the prompt joins the conversation."""
    provider = ScriptedProvider(["Never."])
    with pytest.raises(AgentCancelledError) as caught:
        Agent(providers={"p": provider}).run("Go.", cancellation=ManualCancellation("graceful"))
    assert (provider.requests, caught.value.report.messages) == ([], ())


@pytest.mark.parametrize("where", ["tool", "provider", "gate"])
def test_cancelling_the_task_cleans_up_and_is_raised_again(where: str, names: Names, well_formed: Checks) -> None:
    """Every call has its result, the markers are told, and CancelledError reaches whoever cancelled."""
    told, transcript = list[Record](), MemoryTranscript()

    async def main() -> None:
        reached = asyncio.Event()

        async def hang(_: object) -> Any:
            reached.set()
            await asyncio.sleep(5)

        replies = [[CALL, ToolCall(id="2", tool="look", arguments={})], "x"] if where != "provider" else [hang]
        agent = Agent(providers={"p": ScriptedProvider(replies)}, tools=[ScriptedTool("look", [hang])])
        if where == "gate":
            from orchestrator_events.agent import ToolPre

            agent.bus.answer(ToolPre, hang)
        agent.bus.subscribe(told.append)
        task = asyncio.create_task(agent.arun("Go.", transcript=transcript))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert (names(told)[-3:], statuses(told)) == (
        ["cancel:completed", "orchestrator:complete", "execution:end"],
        ("cancelled", "cancelled", ""),
    )
    well_formed(transcript.messages)


@pytest.mark.parametrize("reply", [Reply(calls=(7,)), Reply(calls=None), Reply(blocks=7)])  # type: ignore[arg-type]  # no replies
def test_a_reply_of_odd_parts_is_a_failed_call(reply: Reply) -> None:
    """The engine does not fail for what a provider gives."""
    with pytest.raises(Exception, match=r"object|iterable"):
        Agent(providers={"p": ScriptedProvider([reply])}).run("Go.")
