"""The harness through the real loop (contract 3): it verifies after writes, and the model reads what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from orchestrator.agent import (
    Agent,
    AgentCancelledError,
    AgentLimits,
    CallRequest,
    MemoryTranscript,
    ToolCall,
    ToolOutcome,
)
from orchestrator.harness.harness import Harness
from orchestrator.harness.rules import CompletionRule, StagnationNote, ToolSequence
from orchestrator.testing import ManualCancellation, ScriptedProvider, ScriptedTool, ScriptedVerifier
from orchestrator_events import Budget, Decision, Deny, Proceed, Question
from orchestrator_events.agent import ToolPre, VerificationFinished
from orchestrator_events.record import Record

Names = Callable[[Sequence[Record]], list[str]]
Checks = Callable[[Any], None]


def write(call_id: str, content: str = "x") -> ToolCall:
    """A write of one file."""
    return ToolCall(id=call_id, tool="write_file", arguments={"path": "a.txt", "content": content})


def verify_tool(*counts: tuple[int, int]) -> ScriptedTool:
    """A verify tool whose text says one thing and whose data another: the data count."""
    outcomes = [
        ToolOutcome(
            is_success=passed == total,
            output="99 of 99 tests pass",
            data={"passed": passed, "total": total, "failing": [{"id": f"t{n}"} for n in range(total - passed)]},
        )
        for passed, total in counts
    ]
    return ScriptedTool("verify_progress", outcomes)


def test_a_successful_write_is_verified_at_once_and_the_model_reads_the_counts(
    names: Names, well_formed: Checks
) -> None:
    """No turn, no tool call; a message after the results says [AUTO], the reason, and the true figures."""
    provider = ScriptedProvider([write("1"), write("2"), "unused"])
    verify = verify_tool((3, 12), (12, 12))
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("write_file"), verify], harness=Harness())
    report = agent.run("Write it.")
    assert (report.status, report.turns, report.tool_calls, len(verify.requests)) == ("completed", 2, 2, 2)
    assert report.answer == "Done: 12 of 12 cases pass."
    automatic = provider.requests[1].messages[-1]
    lines = automatic["content"].splitlines()
    assert (automatic["role"], lines[0]) == ("user", "[AUTO] verify_progress() -> FAILED: 3/12 passing")
    assert "Automatic post-write verification" in automatic["content"]
    assert automatic["metadata"]["verification"]["passed"] == 3
    events = [record.event for record in report.records if isinstance(record.event, VerificationFinished)]
    assert [(event.passed, event.total, event.is_automatic) for event in events] == [(3, 12, True), (12, 12, True)]
    assert [(record.action.tool, record.is_automatic) for record in report.actions] == [
        *(("write_file", False), ("verify_progress", True)) * 2
    ]
    assert names(report.records).count("turn:started") == 2
    well_formed(report.messages)


def test_the_best_verification_is_kept_beside_the_last() -> None:
    """A worse state after a better one does not hide it."""
    provider = ScriptedProvider([write("1", "a"), write("2", "b"), "I give up."])
    harness = Harness(rules=(ToolSequence(),))
    tools = [ScriptedTool("write_file"), verify_tool((8, 12), (1, 12))]
    report = Agent(providers={"p": provider}, tools=tools, harness=harness).run("Write it.")
    assert report.best_verification is not None
    assert report.last_verification is not None
    assert (report.best_verification.passed, report.last_verification.passed) == (8, 1)


def test_without_a_verify_tool_the_verifier_is_asked(well_formed: Checks) -> None:
    """Its counts complete the run; an empty suite or an error does not."""
    provider = ScriptedProvider([write(str(number), str(number)) for number in range(3)])
    verifier = ScriptedVerifier([OSError("disk"), (0, 0), (2, 2)])
    harness = Harness(rules=(ToolSequence(),))
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("write_file")], harness=harness, verifier=verifier)
    report = agent.run("Write it.")
    assert (report.status, report.turns, report.answer) == ("completed", 3, "Done: 2 of 2 cases pass.")
    said = [message["content"].splitlines()[0] for message in report.messages if "[AUTO]" in str(message["content"])]
    assert said == [
        "[AUTO] verify_progress() -> no verdict: OSError: disk",
        "[AUTO] verify_progress() -> FAILED: 0/0 passing (there are no cases)",
        "[AUTO] verify_progress() -> OK: 2/2 passing",
    ]
    well_formed(report.messages)


def test_a_callable_verifies_too() -> None:
    """An async callable without arguments, as a host has it at hand."""

    async def judge() -> Any:
        from orchestrator import Verdict

        return Verdict.of({"a": True})

    agent = Agent(
        providers={"p": ScriptedProvider([write("1")])},
        tools=[ScriptedTool("write_file")],
        harness=Harness(),
        verifier=judge,
    )
    assert agent.run("Write it.").answer == "Done: 1 of 1 cases pass."


def test_the_model_s_own_verification_counts_by_its_data() -> None:
    """A verify call of the model's is a verification; text is never parsed, and no second one is made."""
    verify = verify_tool((1, 1))
    call = ToolCall(id="2", tool="verify_progress", arguments={})
    provider = ScriptedProvider([[write("1"), call]])
    report = Agent(providers={"p": provider}, tools=[ScriptedTool("write_file"), verify], harness=Harness()).run("Go.")
    events = [record.event for record in report.records if isinstance(record.event, VerificationFinished)]
    assert [(event.passed, event.is_automatic) for event in events] == [(1, False)]
    assert (report.status, len(verify.requests)) == ("completed", 1)


def test_several_writes_in_one_answer_are_each_verified(well_formed: Checks) -> None:
    """In order, before the next call runs; the model reads every verdict, directly behind the results of the turn."""
    order: list[str] = []

    def noted(name: str, outcome: object = "done") -> Callable[[CallRequest], Any]:
        def note(_: CallRequest) -> object:
            order.append(name)
            return outcome

        return note

    def verified(passed: int) -> Callable[[CallRequest], Any]:
        return noted("verify", ToolOutcome(is_success=False, output="", data={"passed": passed, "total": 3}))

    provider = ScriptedProvider(
        [[write("1", "a"), ToolCall(id="2", tool="look", arguments={}), write("3", "b")], "No."]
    )
    tools = [
        ScriptedTool("write_file", [noted("write")]),
        ScriptedTool("look", [noted("look")]),
        ScriptedTool("verify_progress", [verified(1), verified(2)]),
    ]
    report = Agent(providers={"p": provider}, tools=tools, harness=Harness(rules=(ToolSequence(),))).run("Go.")
    assert order == ["write", "verify", "look", "write", "verify"]
    assert [message["role"] for message in report.messages[1:7]] == ["assistant", *["tool"] * 3, *["user"] * 2]
    assert [str(message["content"]).split("\n")[0] for message in report.messages[2:7]] == [
        *["done"] * 3,
        "[AUTO] verify_progress() -> FAILED: 1/3 passing",
        "[AUTO] verify_progress() -> FAILED: 2/3 passing",
    ]
    well_formed(report.messages)


def test_a_green_verification_between_two_calls_drops_none_of_them() -> None:
    """What the model asked for in one answer is done; then the last verdict decides."""
    write_tool, verify = ScriptedTool("write_file"), verify_tool((2, 2), (1, 2), (2, 2))
    provider = ScriptedProvider([[write("1", "a"), write("2", "b")], write("3", "c")])
    report = Agent(providers={"p": provider}, tools=[write_tool, verify], harness=Harness()).run("Go.")
    assert [request.call_id for request in write_tool.requests] == ["1", "2", "3"]
    assert (report.status, report.turns, report.answer) == ("completed", 2, "Done: 2 of 2 cases pass.")


def test_a_verification_of_the_model_s_own_between_two_writes_is_enough() -> None:
    """The harness does not do again what the model asked for at the very place."""
    own = ToolCall(id="2", tool="verify_progress", arguments={})
    verify = verify_tool((0, 2), (2, 2))
    provider = ScriptedProvider([[write("1", "a"), own, write("3", "b")]])
    report = Agent(
        providers={"p": provider}, tools=[ScriptedTool("write_file"), verify], harness=Harness(rules=(ToolSequence(),))
    ).run("Go.")
    events = [record.event for record in report.records if isinstance(record.event, VerificationFinished)]
    assert [event.is_automatic for event in events] == [False, True]
    assert report.status == "completed"


def test_a_second_write_that_nothing_verified_is_denied_and_no_lock_out_follows() -> None:
    """Where the harness does not verify, the denial says what to do; it is no action, and the next write is allowed."""
    write_tool, own = ScriptedTool("write_file"), ToolCall(id="3", tool="verify_progress", arguments={})
    provider = ScriptedProvider([[write("1", "a"), write("2", "b")], own, write("4", "c"), "Stop."])
    harness = Harness(rules=(ToolSequence(),), auto_verify=False)
    agent = Agent(providers={"p": provider}, tools=[write_tool, verify_tool((0, 1))], harness=harness)
    report = agent.run("Go.")
    assert [request.call_id for request in write_tool.requests] == ["1", "4"]
    assert report.messages[3]["content"] == (
        "Denied (sequence): 'a.txt' was written and not verified since. "
        "Instead: verify, read what fails, then write again."
    )


@pytest.mark.parametrize("state", ["graceful", "immediate"])
def test_a_stop_during_a_verification_between_two_writes_runs_no_second_one(state: str, well_formed: Checks) -> None:
    """Every call has a result, and what was verified by then is told."""
    token, transcript = ManualCancellation(), MemoryTranscript()

    def stop(_: CallRequest) -> ToolOutcome:
        token.state = state
        return ToolOutcome(is_success=True, output="", data={"passed": 1, "total": 2})

    write_tool = ScriptedTool("write_file")
    agent = Agent(
        providers={"p": ScriptedProvider([[write("1", "a"), write("2", "b")]])},
        tools=[write_tool, ScriptedTool("verify_progress", [stop])],
        harness=Harness(),
    )
    with pytest.raises(AgentCancelledError):
        agent.run("Go.", cancellation=token, transcript=transcript)
    assert [request.call_id for request in write_tool.requests] == ["1"]
    assert [message["role"] for message in transcript.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
    ]
    well_formed(transcript.messages)


def test_no_finish_without_a_green_verification() -> None:
    """The completion rule sends the model back, with the reason, and lets it finish once it is green."""
    provider = ScriptedProvider(["I am done.", write("1")])
    harness = Harness(rules=(CompletionRule(),))
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("write_file"), verify_tool((1, 1))], harness=harness)
    report = agent.run("Go.")
    assert (report.status, report.turns) == ("completed", 2)
    assert provider.requests[1].messages[-1]["content"].startswith("Denied (completion): nothing was verified yet")


def test_where_nothing_verifies_no_rule_waits_for_it() -> None:
    """Without a verify tool and a verifier, the default harness locks nobody in."""
    provider = ScriptedProvider([write("1", "a"), write("2", "b"), "Done."])
    report = Agent(providers={"p": provider}, tools=[ScriptedTool("write_file")], harness=Harness()).run("Go.")
    assert (report.status, report.answer, report.tool_calls) == ("completed", "Done.", 2)


def test_stagnation_changes_the_next_request_and_nothing_else() -> None:
    """Hints and notes are of one request; the conversation does not hold them."""
    provider = ScriptedProvider([*(write(str(number), str(number)) for number in range(3)), "Stop."])
    harness = Harness(rules=(StagnationNote(turns=1),), hints=("Work in small steps.",))
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("write_file"), verify_tool((1, 2))], harness=harness)
    report = agent.run("Go.")
    notes = [request.messages[-1]["content"] for request in provider.requests]
    assert all(note.endswith("Work in small steps.") for note in notes)
    assert ["No improvement" in note for note in notes] == [False, False, True, True]
    assert not any(message["role"] == "system" for message in report.messages)


def test_a_denied_automatic_verification_is_told() -> None:
    """Gates watch the harness's own calls as well."""
    verify = verify_tool((1, 1))
    provider = ScriptedProvider([write("1"), "Stop."])
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("write_file"), verify], harness=Harness(rules=()))
    agent.bus.answer(ToolPre, no_tests)
    report = agent.run("Go.")
    assert verify.requests == []
    assert "no verdict: refused: no tests" in report.messages[3]["content"]


def test_a_verification_that_a_gate_refuses_locks_nobody_out() -> None:
    """It was tried: the next write is allowed, and is tried to be verified again; only the end needs a verdict."""
    write_tool, verify = ScriptedTool("write_file"), verify_tool((1, 1))
    look = ToolCall(id="2", tool="look", arguments={})
    provider = ScriptedProvider([write("1", "a"), look, [write("3", "b"), write("4", "c")], "Stop.", "Stop."])
    agent = Agent(
        providers={"p": provider},
        tools=[write_tool, ScriptedTool("look"), verify],
        harness=Harness(),
        limits=AgentLimits(iterations=4),
    )
    agent.bus.answer(ToolPre, no_tests)
    report = agent.run("Go.")
    assert [request.call_id for request in write_tool.requests] == ["1", "3", "4"]
    told = [message for message in report.messages if "no verdict: refused: no tests" in str(message["content"])]
    assert (report.status, len(told), verify.requests) == ("incomplete", 3, [])


def no_tests(question: Question) -> Decision:
    """Denies the verify tool."""
    assert isinstance(question.gate, ToolPre)
    return Deny("no tests") if question.gate.tool_name == "verify_progress" else Proceed()


def test_a_verification_that_hangs_or_is_cancelled_leaves_a_whole_conversation(well_formed: Checks) -> None:
    """The deadline of the verify tool holds, and so does an immediate cancellation."""
    token = ManualCancellation()

    async def hang(_: CallRequest) -> str:
        await asyncio.sleep(5)
        return "x"

    tools = [ScriptedTool("write_file"), ScriptedTool("verify_progress", [hang])]
    limits = AgentLimits(seconds_by_tool={"verify_progress": 0.02})
    late = Agent(
        providers={"p": ScriptedProvider([write("1"), "Stop."])}, tools=tools, limits=limits, harness=Harness(rules=())
    )
    report = late.run("Go.")
    assert "no verdict: Interrupted: the tool ran past" in report.messages[3]["content"]
    well_formed(report.messages)

    async def stop(request: CallRequest) -> str:
        token.state = "immediate"
        return await hang(request)

    transcript = MemoryTranscript()
    tools = [ScriptedTool("write_file"), ScriptedTool("verify_progress", [stop])]
    stopped = Agent(providers={"p": ScriptedProvider([write("1")])}, tools=tools, harness=Harness())
    with pytest.raises(AgentCancelledError):
        stopped.run("Go.", cancellation=token, transcript=transcript)
    well_formed(transcript.messages)


def test_a_verifier_gets_what_is_left_of_the_time() -> None:
    """The budget's seconds bound it as they bound any effect."""
    verifier = ScriptedVerifier([(1, 1)])
    agent = Agent(
        providers={"p": ScriptedProvider([write("1")])},
        tools=[ScriptedTool("write_file")],
        harness=Harness(),
        verifier=verifier,
        budget=Budget(seconds=30),
    )
    agent.run("Go.")
    seconds = verifier.requests[0].seconds
    assert seconds is not None
    assert 0 < seconds <= 30


def test_the_report_says_what_was_verified() -> None:
    """Best and last as plain data."""
    agent = Agent(
        providers={"p": ScriptedProvider([write("1")])},
        tools=[ScriptedTool("write_file"), verify_tool((1, 1))],
        harness=Harness(),
    )
    counts = {"passed": 1, "total": 1, "failing": [], "turn": 1}
    assert agent.run("Go.").as_json()["verification"] == {"last": counts, "best": counts}
