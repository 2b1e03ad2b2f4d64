"""What the agent loop records on any way out follows from its records: the audit finds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

from orchestrator.agent import (
    Agent,
    AgentLimits,
    MemoryTranscript,
    ProviderCallError,
    Reply,
    ToolCall,
    ToolOutcome,
)
from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.harness.harness import Harness
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.retries import RetryPolicy
from orchestrator.testing import ManualClock
from orchestrator.testing.agents import ManualCancellation, ScriptedProvider, ScriptedTool, ScriptedVerifier
from orchestrator_events.agent import AnswerProposed, PromptSubmit, ProviderRequest, ProviderResponse, ToolPost, ToolPre
from orchestrator_events.budget import Budget, Usage
from orchestrator_events.decision import AskUser, Decision, Deny, Inject, Modify
from orchestrator_events.event import Gate


def call(tool: str = "look", call_id: str = "1", **arguments: Any) -> ToolCall:
    """What a model asks for."""
    return ToolCall(id=call_id, tool=tool, arguments=arguments)


def costly(reply: ToolCall, output_tokens: int) -> Reply:
    """A reply with its reported use."""
    return Reply(calls=(reply,), usage=Usage(input_tokens=10, output_tokens=output_tokens))


class Yes:
    """An approver who says yes."""

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
        """Approve."""
        return True


@attrs.frozen(kw_only=True)
class Course:
    """A way for a run to go."""

    replies: tuple[object, ...]
    options: Mapping[str, Any] = attrs.field(factory=dict)
    gates: tuple[tuple[type[Gate], Decision], ...] = ()
    given: Mapping[str, Any] = attrs.field(factory=dict)


def stopping(cancellation: ManualCancellation, state: str) -> Callable[[object], str]:
    """A tool that has the run stopped."""

    def stop(_: object) -> str:
        cancellation.state = state
        return "stopped it"

    return stop


GRACEFUL, AT_ONCE = ManualCancellation(), ManualCancellation()
TWO = (call(call_id="1"), call(call_id="2"))
COURSES: dict[str, Course] = {
    "answered at once": Course(replies=("Hello.",)),
    "two calls": Course(replies=(TWO, "Done.")),
    "unknown tool": Course(replies=(call("nothing"), "Done.")),
    "ids twice": Course(replies=((call(), call()), "Done.")),
    "raising tool": Course(replies=(call("break"), "Done.")),
    "empty answers": Course(replies=("", "", "Hello.")),
    "only empty answers": Course(replies=("", "", "", "")),
    "iterations": Course(replies=(call(), call(), "So far."), options={"limits": AgentLimits(iterations=2)}),
    "tool calls": Course(replies=(TWO, call(), "So far."), options={"limits": AgentLimits(tool_calls=1)}),
    "tokens": Course(
        replies=(costly(call(), 400), costly(call(), 400)),
        options={"budget": Budget(tokens=900), "parameters": {"max_tokens": 400}},
    ),
    "overrun": Course(replies=(costly(call(), 4_000),), options={"budget": Budget(tokens=900)}),
    "provider error": Course(replies=(call(), ProviderCallError("gone", status_code=500))),
    "retried": Course(replies=(ProviderCallError("busy", is_retryable=True), "Hello.")),
    "gate denies the prompt": Course(replies=("Hello.",), gates=((PromptSubmit, Deny("no")),)),
    "gate denies the call": Course(replies=("Hello.",), gates=((ProviderRequest, Deny("no")),)),
    "answer withheld": Course(replies=("Hello.",), gates=((ProviderResponse, Deny("no")),)),
    "tool denied": Course(replies=(call(), "Done."), gates=((ToolPre, Deny("no")),)),
    "result withheld": Course(replies=(call(), "Done."), gates=((ToolPost, Deny("no")),)),
    "never allowed to finish": Course(
        replies=("Hello.",) * 4, options={"limits": AgentLimits(iterations=2)}, gates=((AnswerProposed, Deny("go on")),)
    ),
    "all changed": Course(
        replies=(call(), "Done."),
        gates=(
            (PromptSubmit, Modify({"prompt": "Something else."})),
            (ProviderRequest, Modify({"model": "m-2", "max_tokens": 70})),
            (ToolPre, Modify({"tool_input": '{"word":"x"}'})),
            (ToolPost, Modify({"output": "changed"})),
        ),
    ),
    "injected": Course(
        replies=(call(), "Done."),
        gates=tuple(
            (gate, Inject(f"at {gate.name}", role="user", is_ephemeral=is_ephemeral))
            for gate in (ProviderRequest, ProviderResponse, ToolPre, ToolPost)
            for is_ephemeral in (True, False)
        ),
    ),
    "appended": Course(
        replies=(call(), "Done."), gates=((ToolPost, Inject("look", is_ephemeral=True, is_appended=True)),)
    ),
    "approved": Course(
        replies=(call(), "Done."),
        options={"approver": Yes()},
        gates=tuple(
            (gate, AskUser("May I?")) for gate in (PromptSubmit, ProviderRequest, ToolPre, ToolPost, AnswerProposed)
        ),
    ),
    "not approved": Course(replies=(call(), "Done."), gates=((ToolPre, AskUser("May I?")),)),
    "verified": Course(
        replies=(call("write_file", path="x", content="1"), call("write_file", path="x", content="2")),
        options={"harness": Harness(), "verifier": ScriptedVerifier([(0, 2), (2, 2)])},
    ),
    "no verdict": Course(
        replies=(call("write_file", path="x", content="1"), "Stop.", "Stop."),
        options={
            "harness": Harness(),
            "verifier": ScriptedVerifier([OSError("broken")]),
            "limits": AgentLimits(iterations=2),
        },
    ),
    "verified by the model": Course(
        replies=(call("verify_progress"), "Done."), options={"harness": Harness(auto_verify=False)}
    ),
    "hints": Course(replies=(call(), "Done."), options={"harness": Harness(rules=(), hints=("Be brief.",))}),
    "a system prompt": Course(replies=(call(), "Done."), options={"system": "You look around."}),
    "stopped": Course(replies=(call("stop"), "Done."), given={"cancellation": GRACEFUL}),
    "stopped at once": Course(replies=(call("stop at once"), "Done."), given={"cancellation": AT_ONCE}),
    "the host's own conversation": Course(
        replies=(call(), "Done."),
        given={"transcript": MemoryTranscript([{"role": "user", "content": "Earlier."}])},
    ),
    "no tools": Course(replies=(call(), "Done."), options={"tools": ()}),
}
VERDICT = ToolOutcome(is_success=True, output="1/2", data={"passed": 1, "total": 2, "failing": ["b"]})
TOOLS = (
    ScriptedTool("look", ["nothing"]),
    ScriptedTool("write_file", ["written"]),
    ScriptedTool("verify_progress", [VERDICT]),
    ScriptedTool("break", [OSError("broken")]),
    ScriptedTool("stop", [stopping(GRACEFUL, "graceful")]),
    ScriptedTool("stop at once", [stopping(AT_ONCE, "immediate")]),
)


async def ran(course: Course) -> MemoryJournal:
    """Have a run go its way; how it ends does not matter here."""
    journal = MemoryJournal()
    options = {"clock": ManualClock(), "retries": RetryPolicy(retries=1, first_wait=0.0), **course.options}
    verifies = "verifier" in options or options.get("harness") is None
    tools = options.pop("tools", [tool for tool in TOOLS if tool.name != "verify_progress" or not verifies])
    agent = Agent(providers={"scripted": ScriptedProvider(course.replies)}, tools=tools, journal=journal, **options)
    for gate, decision in course.gates:
        agent.bus.answer(gate, lambda _, decision=decision: decision)  # type: ignore[misc]  # bound here
    await asyncio.gather(agent.arun("Look.", run_id="7f3a", **course.given), return_exceptions=True)
    return journal


@pytest.mark.parametrize("name", COURSES)
def test_every_way_out_is_clean(name: str) -> None:
    """Completed, incomplete, denied, stopped or broken: every check is done, none finds a thing."""
    journal = asyncio.run(ran(COURSES[name]))
    report = audit(parse_export(asyncio.run(export_json(journal, "7f3a"))))
    assert [str(finding) for finding in report.findings] == []
    assert {"turns", "requests", "actions", "conversation", "verifications", "budget", "endings"} < set(report.checks)
