"""Every path that provider, tools, gates and cancellation can send an agent along, walked with the real driver."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import pytest

from orchestrator.agent import (
    Agent,
    AgentEndedError,
    AgentLimits,
    AgentRunReport,
    CallRequest,
    ProviderCallError,
    Reply,
    ToolCall,
    ToolOutcome,
    TurnRequest,
)
from orchestrator.agent.engine import NO_HARNESS
from orchestrator.agent.recorded import load_agent_run
from orchestrator.agent.reporting import report_on
from orchestrator.journal import MemoryJournal
from orchestrator.retries import RetryPolicy
from orchestrator.testing import ManualCancellation, ManualClock, ScriptedTool
from orchestrator_events import Decision, Deny, Inject, Proceed
from orchestrator_events.agent import PromptSubmit, ProviderRequest, ProviderResponse, ToolPost, ToolPre
from orchestrator_events.record import Record

STATUS = {
    "completed": ("success", "completed"),
    "incomplete": ("incomplete", "completed"),
    "cancelled": ("cancelled", "cancelled"),
}
Checks = Callable[[Sequence[Any]], None]


class GoneError(Exception):
    """The provider's own."""


@attrs.define
class Oracle:
    """Answers each question with the next choice of a path, and the first one where the path ends."""

    path: tuple[int, ...]
    asked: list[int] = attrs.Factory(list[int])

    def choose(self, options: int) -> int:
        """One of `options` answers."""
        position = len(self.asked)
        self.asked.append(options)
        return self.path[position] if position < len(self.path) else 0

    def next_paths(self) -> Iterator[tuple[int, ...]]:
        """The paths that differ from this one first at a question that it did not settle."""
        taken = self.path + (0,) * (len(self.asked) - len(self.path))
        for position in range(len(self.path), len(self.asked)):
            for other in range(1, self.asked[position]):
                yield (*taken[:position], other)


@attrs.define(eq=False)
class World:
    """Provider, tools, gates and a cancellation that do whatever the oracle chooses."""

    oracle: Oracle
    token: ManualCancellation = attrs.Factory(ManualCancellation)
    name: str = "world"
    gone: int = 0

    async def complete(self, request: TurnRequest) -> Reply:
        """A tool call, several, an answer, none, an error, or a stop."""
        calls = (ToolCall(id="a", tool="act", arguments={}), ToolCall(id="b", tool="look", arguments={"at": 1}))
        match self.oracle.choose(7):
            case 0:
                return Reply(calls=calls[:1])
            case 1:
                return Reply(blocks=({"type": "text", "text": f"answer {request.turn}"},))
            case 2:
                return Reply(calls=(*calls, ToolCall(id="a", tool="none", arguments={})))
            case 3:
                return Reply()
            case 4:
                self.gone += 1
                raise ProviderCallError("gone", is_retryable=True) from GoneError("gone")
            case 5:
                self.token.state = "graceful"
                return Reply(calls=calls[:1])
            case _:
                self.token.state = "immediate"
                await asyncio.sleep(5)
                return Reply()

    async def act(self, _: CallRequest) -> ToolOutcome:
        """Done, raises, or stopped meanwhile."""
        match self.oracle.choose(4):
            case 0:
                return ToolOutcome(is_success=True, output="done")
            case 1:
                raise OSError("no")
            case 2:
                self.token.state = "graceful"
                return ToolOutcome(is_success=True, output="done")
            case _:
                self.token.state = "immediate"
                await asyncio.sleep(5)
                raise AssertionError("unreachable")

    def decide(self, _: object) -> Decision:
        """Yes, no, or a word for the transcript."""
        return (Proceed(), Deny("no"), Inject("mind this", "system"))[self.oracle.choose(3)]


async def walked(oracle: Oracle, gates: Sequence[Any]) -> tuple[list[Record], Any, BaseException | None]:
    """One run along a path: its records, its report, and what was raised."""
    journal, world = MemoryJournal(), World(oracle)
    made = Agent(
        providers={"world": world},
        tools=[ScriptedTool("act", [world.act]), ScriptedTool("look")],
        limits=AgentLimits(iterations=2),
        retries=RetryPolicy(retries=1, first_wait=0.0),
        journal=journal,
        clock=ManualClock(),
    )
    for gate in gates:
        made.bus.answer(gate, world.decide)
    report: AgentRunReport | None = None
    error: BaseException | None = None
    try:
        report = await made.arun("do it", run_id="m", cancellation=world.token)
    except AgentEndedError as ended:
        report, error = ended.report, ended
    except GoneError as gone:
        error = gone
    folded = report_on(await load_agent_run(journal, "m", NO_HARNESS), "agent")
    if report is not None:
        assert report.as_json() == folded.as_json()
    return [entry.record async for entry in journal.read("m")], folded, error


def check(records: Sequence[Record], report: Any, error: BaseException | None, whole: Checks) -> str:
    """Everything that holds on every path; the state the run ended in."""
    names = [record.event.name for record in records]
    assert names[0] == "execution:start"
    assert names[-2:] == ["orchestrator:complete", "execution:end"]
    for marker in ("execution:start", "orchestrator:complete", "execution:end"):
        assert names.count(marker) == 1
    complete, end, state = records[-2].event, records[-1].event, records[-1].target
    told = (complete.status, end.status)  # type: ignore[attr-defined]  # the markers have one
    is_denied = getattr(error, "is_denial", False)
    assert told == (("incomplete", "error") if is_denied else STATUS.get(state, ("incomplete", "error")))
    assert end.status == "completed" or end.response == ""  # type: ignore[attr-defined]  # as above
    assert complete.turn_count == names.count("turn:answered") == report.turns  # type: ignore[attr-defined]  # as above
    is_stopped = state == "cancelled" and not is_denied
    assert (names.count("cancel:requested"), names.count("cancel:completed")) == (is_stopped, is_stopped)
    assert names.count("action:started") <= names.count("action:finished")
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    whole(report.messages)
    return state


async def explored(gates: Sequence[Any], most: int, whole: Checks) -> Counter[str]:
    """The states that so many paths ended in, taken from all over the tree of them."""
    ends: Counter[str] = Counter()
    todo: list[tuple[int, ...]] = [()]
    order = random.Random(0)
    while todo and ends.total() < most:
        oracle = Oracle(todo.pop(order.randrange(len(todo))))
        records, report, error = await walked(oracle, gates)
        todo += oracle.next_paths()
        try:
            ends[check(records, report, error, whole)] += 1
        except AssertionError as failure:
            failure.add_note(f"on the path {oracle.path} of {oracle.asked}")
            raise
    return ends


@pytest.mark.parametrize(
    ("gates", "most"),
    [((), 1200), ((PromptSubmit, ProviderRequest), 900), ((ProviderResponse,), 900), ((ToolPre, ToolPost), 900)],
)
def test_every_path_is_bracketed_whole_and_the_fold_of_its_records(
    gates: Sequence[Any], most: int, well_formed: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On each path: markers once and last, the right status, a whole conversation, live run equals its records."""
    monkeypatch.setattr("orchestrator.agent.waiting.POLL_S", 0.0005)
    ends = asyncio.run(explored(gates, most, well_formed))
    assert set(ends) == {"completed", "incomplete", "cancelled", "prompting", "concluding"}
