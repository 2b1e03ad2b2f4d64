"""Going on with a run that was left: nothing is bought or done twice, and what is not known is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from orchestrator.agent import (
    Agent,
    AgentCancelledError,
    AgentInterruptedError,
    AgentLimits,
    ProviderCallError,
    ToolCall,
    ToolOutcome,
)
from orchestrator.harness.harness import Harness
from orchestrator.journal import MemoryJournal
from orchestrator.resuming import ResumeRefusedError
from orchestrator.testing import ManualCancellation, ScriptedProvider, ScriptedTool
from orchestrator_events import Batch, JournalError
from orchestrator_events.agent import VerificationFinished
from orchestrator_events.record import Record

Names = Callable[[Sequence[Record]], list[str]]
Checks = Callable[[Any], None]
CALLS = [ToolCall(id="1", tool="look", arguments={}), ToolCall(id="2", tool="write_file", arguments={})]


class CutOff(MemoryJournal):
    """Takes records up to an event, and nothing after it, as if the process had died there."""

    def __init__(self, event: str, occurrence: int = 1) -> None:
        super().__init__()
        self.event = event
        self.left = occurrence

    async def append(self, batch: Batch) -> None:
        """Keep a batch up to the event."""
        if self.left == 0:
            raise JournalError("the process is gone", run_id=batch.run_id)
        for number, record in enumerate(batch.records, 1):
            if record.event.name == self.event:
                self.left -= 1
                if self.left == 0:
                    await super().append(Batch(batch.run_id, batch.records[:number], epoch=batch.epoch))
                    raise JournalError("the process is gone", run_id=batch.run_id)
        await super().append(batch)

    def mend(self) -> None:
        """The journal takes records again."""
        self.left = -1


@pytest.mark.parametrize("is_idempotent", [False, True])
@pytest.mark.parametrize(
    ("event", "occurrence"),
    [
        ("execution:start", 1),
        ("isolation:established", 1),
        ("message:added", 1),
        ("turn:started", 1),
        ("turn:answered", 1),
        ("message:added", 2),
        ("action:started", 1),
        ("action:finished", 1),
        ("action:started", 2),
        ("action:finished", 2),
        ("message:added", 3),
        ("message:added", 4),
        ("actions:settled", 1),
        ("turn:ended", 1),
        ("turn:started", 2),
        ("turn:answered", 2),
        ("message:added", 5),
    ],
)
def test_a_run_that_was_cut_off_anywhere_goes_on(
    event: str, occurrence: int, is_idempotent: bool, well_formed: Checks, names: Names
) -> None:
    """From every record on: a whole conversation, one closed bracket an invocation, no tool twice in vain."""
    journal = CutOff(event, occurrence)
    look, write = (
        ScriptedTool("look", is_idempotent=is_idempotent),
        ScriptedTool("write_file", is_idempotent=is_idempotent),
    )

    def agent() -> Agent:
        def answer(request: Any) -> object:
            return CALLS if request.turn == 1 else "Done."

        provider = ScriptedProvider([answer], after="repeat")
        return Agent(providers={"p": provider}, tools=[look, write], journal=journal)

    with pytest.raises(AgentInterruptedError):
        agent().run("Go.", run_id="r")
    journal.mend()
    ran_before = {request.call_id for request in (*look.requests, *write.requests)}
    report = agent().resume("r")
    assert (report.status, report.answer, report.turns) == ("completed", "Done.", 2)
    well_formed(report.messages)
    told = names(report.records)
    assert (told.count("execution:start"), told.count("execution:interrupted")) == (2, 1)
    assert told[-2:] == ["orchestrator:complete", "execution:end"]
    results = {m["tool_call_id"]: m["content"] for m in report.messages if m["role"] == "tool"}
    for tool, call_id in ((look, "1"), (write, "2")):
        if results[call_id].startswith("Outcome unknown"):
            assert not is_idempotent
            assert len(tool.requests) <= 1
        else:
            assert results[call_id] == "ok"
            assert len(tool.requests) == 1 or (is_idempotent and call_id in ran_before)


@pytest.mark.parametrize(
    ("event", "occurrence"),
    [
        *(("action:started", number) for number in (2, 3, 4)),
        *(("action:finished", number) for number in (1, 3)),
        *(("verification:finished", number) for number in (1, 2)),
        *(("message:added", number) for number in range(2, 7)),
        ("actions:settled", 1),
    ],
)
def test_a_verification_between_two_writes_is_told_once_wherever_the_run_was_cut_off(
    event: str, occurrence: int, well_formed: Checks
) -> None:
    """Two writes in one answer: each verdict that is recorded stands once behind the results, in its order."""
    journal = CutOff(event, occurrence)
    calls = [ToolCall(id=str(n), tool="write_file", arguments={"path": "a", "content": str(n)}) for n in (1, 2)]
    counts = [ToolOutcome(is_success=False, output="", data={"passed": n, "total": 9}) for n in range(1, 9)]
    verify = ScriptedTool("verify_progress", counts, is_idempotent=True)

    def agent() -> Agent:
        return Agent(
            providers={
                "p": ScriptedProvider([lambda request: calls if request.turn == 1 else "Done."], after="repeat")
            },
            tools=[ScriptedTool("write_file", is_idempotent=True), verify],
            journal=journal,
            harness=Harness(rules=()),
        )

    with pytest.raises(AgentInterruptedError):
        agent().run("Go.", run_id="r")
    journal.mend()
    report = agent().resume("r")
    verdicts = [record.event for record in report.records if isinstance(record.event, VerificationFinished)]
    told = [str(message["content"]) for message in report.messages if "[AUTO]" in str(message["content"])]
    assert [f"{verdict.passed}/9" in text for verdict, text in zip(verdicts, told, strict=True)] == [True, True]
    assert [message["role"] for message in report.messages[1:6]] == ["assistant", "tool", "tool", "user", "user"]
    well_formed(report.messages)


def test_a_failed_provider_leaves_a_run_that_can_go_on(well_formed: Checks) -> None:
    """The closing word is taken back, and the same turn is asked for again."""
    journal = MemoryJournal()
    provider = ScriptedProvider([CALLS[0], ProviderCallError("down"), "Done."])
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("look")], journal=journal)
    with pytest.raises(ProviderCallError, match="down"):
        agent.run("Go.", run_id="r")
    report = agent.resume("r")
    assert (report.status, report.answer, report.turns) == ("completed", "Done.", 2)
    assert provider.requests[2].messages == provider.requests[1].messages
    assert provider.requests[2].idempotency_key == provider.requests[1].idempotency_key
    well_formed(report.messages)


def test_a_run_that_reached_a_limit_goes_on_with_a_higher_one(well_formed: Checks) -> None:
    """It is refused while the limit is still reached; nothing is written then."""
    journal = MemoryJournal()
    provider = ScriptedProvider([CALLS[0], "So far.", "Done."])

    def agent(iterations: int) -> Agent:
        limits = AgentLimits(iterations=iterations)
        return Agent(providers={"p": provider}, tools=[ScriptedTool("look")], journal=journal, limits=limits)

    first = agent(1).run("Go.", run_id="r")
    with pytest.raises(ResumeRefusedError, match="the limit 'iterations' is still reached"):
        agent(2).resume("r")
    report = agent(5).resume("r")
    assert (first.status, report.status, report.answer, report.turns) == ("incomplete", "completed", "Done.", 3)
    assert provider.requests[-1].messages[-1]["content"] == "Go on: the run may take more turns now."
    well_formed(report.messages)


def test_a_cancelled_run_goes_on(well_formed: Checks) -> None:
    """What was interrupted stays interrupted; the model decides what to do about it."""
    token, journal = ManualCancellation(), MemoryJournal()

    def look(_: object) -> str:
        token.state = "graceful"
        return "seen"

    provider = ScriptedProvider([CALLS, "Done."])
    tools = [ScriptedTool("look", [look]), ScriptedTool("write_file")]
    agent = Agent(providers={"p": provider}, tools=tools, journal=journal)
    with pytest.raises(AgentCancelledError):
        agent.run("Go.", run_id="r", cancellation=token)
    report = agent.resume("r")
    assert (report.status, report.answer) == ("completed", "Done.")
    assert [message["role"] for message in report.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    well_formed(report.messages)


def test_provider_and_model_of_the_request_are_kept() -> None:
    """A resume asks the provider that was asked for, with the model that was asked for."""
    journal = MemoryJournal()
    one, other = ScriptedProvider(["no"]), ScriptedProvider([ProviderCallError("down"), "Done."])
    agent = Agent(providers={"one": one, "other": other}, journal=journal)
    with pytest.raises(ProviderCallError):
        agent.run("Go.", run_id="r", provider="other", model="big")
    agent.resume("r")
    assert (one.requests, [request.model for request in other.requests]) == ([], ["big", "big"])


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"model": "other"}, "model"),
        ({"system": "Be rude."}, "system"),
        ({"tools": []}, "tools"),
        ({"parameters": {"temperature": 1}}, "parameters"),
    ],
)
def test_another_configuration_is_refused(change: dict[str, Any], field: str) -> None:
    """What made the run has to go on with it; each difference is named."""
    options: dict[str, Any] = {
        "providers": {"p": ScriptedProvider([ProviderCallError("down")])},
        "journal": MemoryJournal(),
    }
    options["tools"] = [ScriptedTool("look")]
    with pytest.raises(ProviderCallError):
        Agent(**options).run("Go.", run_id="r")
    with pytest.raises(ResumeRefusedError, match=rf"(?s)another configuration.*{field}: recorded"):
        Agent(**{**options, **change}).resume("r")


def test_a_completed_run_is_not_resumed() -> None:
    """There is nothing left to do."""
    agent = Agent(providers={"p": ScriptedProvider(["Done."])}, journal=MemoryJournal())
    agent.run("Go.", run_id="r")
    with pytest.raises(ResumeRefusedError, match="it is completed"):
        agent.resume("r")
