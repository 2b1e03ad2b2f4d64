"""Tool calls through the real loop: what runs beside what, what comes back, and what a tool may not do to a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from orchestrator.agent import Agent, AgentLimits, CallRequest, Reply, ToolCall, ToolOutcome
from orchestrator.harness.harness import Harness
from orchestrator.harness.rules import DangerousCommands
from orchestrator.testing import ScriptedProvider, ScriptedTool
from orchestrator_events.record import Record

Names = Callable[[Sequence[Record]], list[str]]
Checks = Callable[[Any], None]


def call(call_id: Any, tool: Any = "look", arguments: Any = None) -> ToolCall:
    """A call of whatever kind."""
    return ToolCall(id=call_id, tool=tool, arguments={} if arguments is None else arguments)


def results(messages: Sequence[Any]) -> list[str]:
    """What the model reads of its calls, in order."""
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_calls_run_side_by_side_and_their_results_come_in_order() -> None:
    """The second call ends first; the first one's result is told first (contract 2)."""
    ended: list[str] = []
    second_is_done = asyncio.Event()

    async def slow(_: CallRequest) -> str:
        await second_is_done.wait()
        ended.append("slow")
        return "slow"

    async def fast(_: CallRequest) -> str:
        ended.append("fast")
        second_is_done.set()
        return "fast"

    provider = ScriptedProvider([[call("1", "slow"), call("2", "fast")], "Done."])
    report = Agent(providers={"p": provider}, tools=[ScriptedTool("slow", [slow]), ScriptedTool("fast", [fast])]).run(
        "."
    )
    assert (ended, results(report.messages)) == (["fast", "slow"], ["slow", "fast"])


def test_intents_of_a_group_are_committed_together_before_any_runs() -> None:
    """Nothing runs that is not on record, and a group takes one commit."""
    batches: list[list[str]] = []

    async def look(_: CallRequest) -> str:
        assert batches[-1][-2:] == ["action:started", "action:started"]
        return "seen"

    agent = Agent(
        providers={"p": ScriptedProvider([[call("1"), call("2")], "Done."])}, tools=[ScriptedTool("look", [look])]
    )

    async def recorder(batch: Any, journal: Any) -> None:
        batches.append([record.event.name for record in batch.records])
        await journal.append(batch)

    agent.bus.recorder = recorder
    assert results(agent.run("Look.").messages) == ["seen", "seen"]


def test_writes_and_verifications_stand_alone_in_the_order_of_the_calls() -> None:
    """A barrier waits for those before it, and those after it wait for the barrier."""
    running: list[str] = []
    overlaps: list[tuple[str, ...]] = []

    def tool(name: str) -> ScriptedTool:
        async def act(_: CallRequest) -> str:
            running.append(name)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            overlaps.append(tuple(sorted(running)))
            running.remove(name)
            return name

        return ScriptedTool(name, [act])

    wanted = ["read_file", "other", "write_file", "read_file", "other"]
    calls = [call(str(number), name) for number, name in enumerate(wanted)]
    tools = [tool(name) for name in ("read_file", "other", "write_file")]
    report = Agent(providers={"p": ScriptedProvider([calls, "Done."])}, tools=tools).run("Go.")
    assert results(report.messages) == wanted
    assert [each for each in overlaps if "write_file" in each] == [("write_file",)]
    assert ("other", "read_file") in overlaps


BROKEN = [
    (call("1", "nope"), "Error: Tool 'nope' not found. Tools: look", "tool:error"),
    (call("1", "look", 7), "Error: its arguments are a int, not an object", ""),
    (call("", "look"), "Error: it has no id: make it again", ""),
    (call(None, "look"), "Error: it has no id: make it again", ""),
    (call("1", ""), "Error: it names no tool", ""),
]


@pytest.mark.parametrize(("broken", "told", "event"), BROKEN)
def test_a_call_that_cannot_be_run_is_a_failed_result(
    broken: ToolCall, told: str, event: str, names: Names, well_formed: Checks
) -> None:
    """Unknown tools, arguments that are no object, missing ids: the loop goes on, and the conversation is whole."""
    tool = ScriptedTool("look")
    report = Agent(providers={"p": ScriptedProvider([broken, "Done."])}, tools=[tool]).run("Go.")
    assert (report.status, results(report.messages), tool.requests) == ("completed", [told], [])
    assert ("tool:error" in names(report.records)) is bool(event)
    well_formed(report.messages)


def test_of_two_calls_with_one_id_the_second_gets_another_and_fails(well_formed: Checks) -> None:
    """Each result finds its call."""
    calls = (call("1"), call("1"))
    blocks = ({"type": "tool_call", "id": "1", "name": "look"}, {"type": "tool_call", "id": "1", "name": "look"})
    provider = ScriptedProvider([Reply(blocks=blocks, calls=calls), "Done."])
    report = Agent(providers={"p": provider}, tools=[ScriptedTool("look", ["seen"])]).run("Go.")
    assert results(report.messages) == ["seen", "Error: another call has its id: make it again"]
    assert [block["id"] for block in report.messages[1]["content"]] == ["1", "call_1_2"]
    well_formed(report.messages)


def test_a_call_without_arguments_is_a_call_with_none() -> None:
    """Many tools take no arguments, and models then send null."""
    tool = ScriptedTool("look", ["seen"])
    provider = ScriptedProvider([Reply(calls=(ToolCall(id="1", tool="look", arguments=None),)), "Done."])  # type: ignore[arg-type]  # as some send it
    report = Agent(providers={"p": provider}, tools=[tool]).run("Go.")
    assert (results(report.messages), dict(tool.requests[0].arguments)) == (["seen"], {})


class Odd:
    """An object that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no")


RING: list[Any] = []
RING.append(RING)
ODD_OUTPUTS: list[tuple[Any, str]] = [
    ({"n": float("nan"), "s": {2, 1}, "b": b"x"}, '{"n":"nan","s":[1,2],"b":"x"}'),
    (Odd(), '"(Odd that cannot be shown: RuntimeError)"'),
    (RING, '["(it contains itself)"]'),
    ("a\ud800b", "a?b"),
    (None, "null"),
]


@pytest.mark.parametrize(("output", "read"), ODD_OUTPUTS)
def test_whatever_a_tool_returns_is_plain_text_to_the_model(output: Any, read: str) -> None:
    """NaN, sets, bytes, objects, cycles and surrogates become text that every record and JSON reader takes."""
    tool = ScriptedTool("look", [ToolOutcome(is_success=True, output=output, data=output)])
    report = Agent(providers={"p": ScriptedProvider([call("1"), "Done."])}, tools=[tool]).run("Go.")
    assert results(report.messages) == [read]
    assert report.journal_head.count == len(report.records)


@pytest.mark.parametrize("odd", [{"x": 1}, None, ValueError("bad"), SystemExit(3), asyncio.CancelledError()])
def test_a_tool_that_raises_or_returns_no_outcome_is_told_as_an_error(odd: Any, names: Names) -> None:
    """Nothing that a tool does ends the loop, not even what would end a process."""
    report = Agent(providers={"p": ScriptedProvider([call("1"), "Done."])}, tools=[ScriptedTool("look", [odd])]).run(
        "."
    )
    assert (report.status, results(report.messages)[0].startswith("Error: ")) == ("completed", True)
    assert names(report.records).count("tool:error") == 1


def test_long_outputs_are_cut_in_the_middle() -> None:
    """Bounded in characters, head and tail kept, the number of those left out said."""
    tool = ScriptedTool("look", ["a" * 500 + "z" * 500])
    limits = AgentLimits(output_characters=100)
    report = Agent(providers={"p": ScriptedProvider([call("1"), "Done."])}, tools=[tool], limits=limits).run("Go.")
    text = results(report.messages)[0]
    assert (len(text), text[:5], text[-5:], "900 characters left out" in text) == (100, "aaaaa", "zzzzz", True)


def test_a_tool_that_hangs_ends_at_its_deadline_and_the_others_do_not_wait_for_it() -> None:
    """Each call has its own limit; past it the call is interrupted, even if it will not give way."""

    async def stubborn(_: CallRequest) -> str:
        for _turn in range(30):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        return "too late"

    tools = [ScriptedTool("hang", [stubborn]), ScriptedTool("look", ["seen"])]
    limits = AgentLimits(seconds_by_tool={"hang": 0.03})
    provider = ScriptedProvider([[call("1", "hang"), call("2")], "Done."])
    report = Agent(providers={"p": provider}, tools=tools, limits=limits).run("Go.")
    assert results(report.messages) == [
        "Interrupted: the tool ran past its limit of 0.03 s. Whether it took effect is unknown.",
        "seen",
    ]


def test_denied_and_failed_calls_of_the_harness_reach_the_model() -> None:
    """A denial is no action: it is told with what to do instead, and the tool does not run."""
    tool = ScriptedTool("run_command")
    provider = ScriptedProvider([call("1", "run_command", {"command": "rm -rf /"}), "Done."])
    report = Agent(providers={"p": provider}, tools=[tool], harness=Harness(rules=(DangerousCommands(),))).run("Go.")
    assert (tool.requests, report.tool_calls, report.actions) == ([], 0, ())
    assert results(report.messages)[0].startswith("Denied (")


def test_two_tools_of_one_name_are_refused() -> None:
    """A call could not tell them apart."""
    with pytest.raises(ValueError, match="two tools are called 'look'"):
        Agent(providers={}, tools=[ScriptedTool("look"), ScriptedTool("look")])
