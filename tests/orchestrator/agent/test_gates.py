"""Decisions at the gates: what is denied, changed and injected, and where it stands in the conversation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

from orchestrator.agent import Agent, AgentCancelledError, MemoryTranscript, ToolCall
from orchestrator.testing import ScriptedProvider, ScriptedTool
from orchestrator_events import AskUser, Budget, Decision, Deny, Inject, Modify, Proceed
from orchestrator_events.agent import (
    ActionDenied,
    ActionFinished,
    AnswerProposed,
    PromptSubmit,
    ProviderRequest,
    ProviderResponse,
    ToolPost,
    ToolPre,
)
from orchestrator_events.event import Gate

Checks = Callable[[Any], None]
CALLS = [ToolCall(id="1", tool="look", arguments={"at": 1}), ToolCall(id="2", tool="look", arguments={"at": 2})]


def agent(*replies: object, **options: Any) -> Agent:
    """An agent with one scripted provider and one tool."""
    options.setdefault("tools", [ScriptedTool("look", ["seen"])])
    return Agent(providers={"p": ScriptedProvider(replies)}, **options)


def requests_of(made: Agent) -> list[tuple[Any, ...]]:
    """The messages of each request."""
    provider = made.providers["p"]
    assert isinstance(provider, ScriptedProvider)
    return [request.messages for request in provider.requests]


def once(decision: Decision) -> Callable[[object], Decision]:
    """A subscriber that decides the first time, and has nothing to say after it."""
    decisions = [decision]
    return lambda _: decisions.pop() if decisions else Proceed()


@pytest.mark.parametrize("gate", [PromptSubmit, ProviderRequest, ProviderResponse])
def test_a_denial_ends_the_run_as_an_error(gate: type[Gate], well_formed: Checks) -> None:
    """Denied prompts, requests and answers: incomplete and error, an empty response, a whole conversation."""
    made = agent("The secret answer.")
    made.bus.answer(gate, lambda _: Deny("not today"))
    with pytest.raises(AgentCancelledError, match="not today") as caught:
        made.run("Go.")
    report = caught.value.report
    complete, end = (attrs.asdict(record.event) for record in report.records[-2:])
    assert (caught.value.is_denial, complete["status"], end["status"], end["response"]) == (
        True,
        "incomplete",
        "error",
        "",
    )
    assert (report.turns, "secret" in json.dumps(report.as_json())) == (int(gate is ProviderResponse), False)
    well_formed(report.messages)


def test_a_denied_tool_is_not_run_and_the_model_reads_why() -> None:
    """The loop goes on with a failed result; the denial names who denied (contract 2)."""
    made = agent([CALLS[0]], "Done.")
    made.bus.answer(ToolPre, lambda _: Deny("too risky"), name="careful")
    report = made.run("Go.")
    assert report.messages[2]["content"] == "Denied (careful): too risky."
    denied = next(record.event for record in report.records if isinstance(record.event, ActionDenied))
    assert (denied.rule, denied.reason, report.tool_calls) == ("careful", "too risky", 0)


@attrs.define
class Person:
    """Answers as it is told, or not at all."""

    answer: object

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
        """The answer, an error, or silence."""
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.sleep(5)
        return bool(self.answer)


@pytest.mark.parametrize(
    ("approver", "is_run"),
    [(Person(True), True), (Person(False), False), (Person(OSError("gone")), False), (None, False)],
)
def test_a_tool_runs_only_with_the_yes_that_was_asked_for(approver: Any, is_run: bool) -> None:
    """Refusal, failure and nobody to ask are all a denial."""
    made = agent([CALLS[0]], "Done.", approver=approver)
    made.bus.answer(ToolPre, once(AskUser("Really?")))
    report = made.run("Go.")
    assert report.messages[2]["content"] == ("seen" if is_run else "Denied (approval): not approved: Really?.")


def test_an_approver_that_is_silent_is_a_denial_when_the_time_is_up(well_formed: Checks) -> None:
    """The run's time limit holds while a person is asked, and the run is concluded."""
    made = agent([CALLS[0]], "Done.", approver=Person(None), budget=Budget(seconds=0.05))
    made.bus.answer(ToolPre, lambda _: AskUser("Really?"))
    report = made.run("Go.")
    assert (report.status, getattr(report, "limit", "")) == ("incomplete", "seconds")
    well_formed(report.messages)


def test_modified_prompt_input_output_and_reply_are_what_is_used() -> None:
    """A change is used where it was made: in the conversation, in the tool, in its result, in the answer."""
    tool = ScriptedTool("look", ["seen"])
    made = agent([CALLS[0]], "Plain.", tools=[tool])
    made.bus.answer(PromptSubmit, lambda _: Modify({"prompt": "Go slowly."}))
    made.bus.answer(ToolPre, lambda _: Modify({"tool_input": '{"at": 9}'}))
    made.bus.answer(ToolPost, lambda _: Modify({"output": "changed", "is_success": False}))

    def polite(question: Any) -> Decision:
        reply = json.loads(question.gate.reply)
        if reply["tool_calls"]:
            return Proceed()
        return Modify({"reply": json.dumps({**reply, "content": [{"type": "text", "text": "Polite."}]})})

    made.bus.answer(ProviderResponse, polite)
    report = made.run("Go.")
    assert (report.messages[0]["content"], dict(tool.requests[0].arguments)) == ("Go slowly.", {"at": 9})
    assert (report.messages[2]["content"], report.answer) == ("changed", "Polite.")
    assert [record.is_success for record in report.actions] == [False]


def test_modified_messages_are_sent_once_and_do_not_join_the_conversation() -> None:
    """What a subscriber makes of the messages is this request's alone."""
    made = agent([CALLS[0]], "Done.")
    made.bus.answer(ProviderRequest, once(Modify({"messages": ('{"role":"user","content":"Other."}',)})))
    report = made.run("Go.")
    first, second = requests_of(made)
    assert first == ({"role": "user", "content": "Other."},)
    assert (second[0]["content"], report.messages[0]["content"]) == ("Go.", "Go.")


@pytest.mark.parametrize(
    ("gate", "change", "what"),
    [
        (ProviderRequest, {"messages": ("no json",)}, "messages"),
        (ProviderRequest, {"messages": ("[]",)}, "messages"),
        (ProviderResponse, {"reply": "no json"}, "answer"),
    ],
)
def test_a_change_into_nonsense_is_a_denial(gate: type[Gate], change: dict[str, object], what: str) -> None:
    """No request and no answer is made up of what is none."""
    made = agent("Hello.")
    made.bus.answer(gate, lambda _: Modify(change))
    with pytest.raises(AgentCancelledError, match=f"changed the {what} into what is none"):
        made.run("Go.")


def test_durable_injections_join_the_conversation_and_ephemeral_ones_one_request() -> None:
    """At provider:request: the role of each is kept, also when several come together."""
    made = agent([CALLS[0]], "Done.")
    made.bus.answer(ProviderRequest, once(Inject("for good", "developer")))
    made.bus.answer(ProviderRequest, once(Inject("for now", "user", is_ephemeral=True)))
    made.bus.answer(ProviderRequest, once(Inject("me too", "system", is_ephemeral=True)))
    report = made.run("Go.")
    first, second = ([(each["role"], each["content"]) for each in request] for request in requests_of(made))
    assert first == [("user", "Go."), ("developer", "for good"), ("user", "for now"), ("system", "me too")]
    assert [pair for pair in second if pair[1] in ("for good", "for now", "me too")] == [("developer", "for good")]
    assert [message["role"] for message in report.messages] == ["user", "developer", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("gate", [ToolPre, ToolPost])
def test_nothing_is_injected_between_a_call_and_its_result(gate: type[Gate], well_formed: Checks) -> None:
    """Durable injections around tools wait for the last result of the turn; each is stored exactly once."""
    made = agent(CALLS, "Done.")
    made.bus.answer(gate, lambda _: Inject("mind the gap", "system"))
    report = made.run("Go.")
    assert [message["role"] for message in report.messages] == [
        *("user", "assistant", "tool", "tool", "system", "system", "assistant")
    ]
    well_formed(report.messages)


def test_an_appended_injection_stands_at_the_end_of_the_last_result_in_one_request() -> None:
    """It reaches exactly the next request, and the stored result stays as it was."""
    made = agent([CALLS[0]], [CALLS[1]], "Done.")
    made.bus.answer(ToolPost, once(Inject("hint", "system", is_ephemeral=True, is_appended=True)))
    report = made.run("Go.")
    assert [request[-1]["content"] for request in requests_of(made)] == ["Go.", "seen\n\nhint", "seen"]
    assert "hint" not in json.dumps([dict(message) for message in report.messages])


def test_injections_of_one_run_never_reach_another() -> None:
    """Two runs of one agent at once keep their ephemeral injections apart."""
    made = Agent(providers={"p": ScriptedProvider([[CALLS[0]], "Done."])}, tools=[ScriptedTool("look")])
    made.bus.answer(ToolPost, lambda question: Inject(question.run_id, is_ephemeral=True))

    async def both() -> None:
        await asyncio.gather(made.arun("Go.", run_id="a"), made.arun("Go.", run_id="b"))

    asyncio.run(both())
    provider = made.providers["p"]
    assert isinstance(provider, ScriptedProvider)
    told = {(request.run_id, request.messages[-1]["content"]) for request in provider.requests if request.turn == 2}
    assert told == {("a", "a"), ("b", "b")}


def test_withheld_results_are_not_read(well_formed: Checks) -> None:
    """At tool:post a denial keeps the result back; the model reads the reason."""
    made = agent([CALLS[0]], "Done.")
    made.bus.answer(ToolPost, lambda _: Deny("private"))
    report = made.run("Go.")
    assert report.messages[2]["content"] == "Withheld: private"
    outputs = [record.event.output.text for record in report.records if isinstance(record.event, ActionFinished)]
    assert outputs == ["Withheld: private"]
    well_formed(report.messages)


def test_a_refused_answer_sends_the_model_on() -> None:
    """At answer:proposed a denial is read by the model, which answers again."""
    made = agent("Half.", "Whole.")
    made.bus.answer(AnswerProposed, once(Deny("be complete")), name="editor")
    report = made.run("Go.")
    assert (report.answer, report.turns) == ("Whole.", 2)
    assert [(each["role"], each["content"]) for each in requests_of(made)[1]][-1] == (
        "user",
        "Denied (editor): be complete.",
    )


def test_what_is_injected_with_an_answer_stands_before_it(well_formed: Checks) -> None:
    """The last word of a run is the model's, also for whoever goes on with the conversation."""
    transcript = MemoryTranscript()
    made = agent("Hello.")
    made.bus.answer(ProviderResponse, lambda _: Inject("noted", "user"))
    made.bus.answer(AnswerProposed, lambda _: Inject("noted, too", "system"))
    made.run("Go.", transcript=transcript)
    roles: Sequence[str] = [message["role"] for message in transcript.messages]
    assert roles == ["user", "user", "assistant", "system"]
    well_formed(transcript.messages)
