"""Contract 3: 'Don't rely on the FM to choose tools correctly. Build a smarter harness that enforces the workflow
deterministically.' Each behaviour is quoted and proved through the real loop, with scripted models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator import EvalCase, MergedSpec, Submission, Verdict
from orchestrator.agent import (
    Agent,
    AgentCompleted,
    AgentIncomplete,
    AgentLimits,
    AgentRunReport,
    CallRequest,
    ProviderCallError,
    ToolCall,
    ToolOutcome,
    TurnRequest,
)
from orchestrator.agent.workspace import ReadFile, RunCommand, VerifyProgress, Workspace, WriteFile
from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.harness.harness import AUTOMATIC_REASON, Harness
from orchestrator.harness.rules import StagnationNote, ToolSequence, default_rules
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.retries import RetryPolicy
from orchestrator.testing import RecordingSubscriber
from orchestrator.testing.agents import ScriptedProvider, ScriptedTool, ScriptedVerifier
from orchestrator_events.agent import ActionDenied, ActionFinished, ActionStarted, VerificationFinished

SPEC = MergedSpec(
    name="regex", intent="Write a regex to regex.txt.", evals=(EvalCase(name="digits"), EvalCase(name="letters"))
)
FULL = "[0-9a-z]+"


def suite(submission: Submission) -> Verdict:
    """The tests of the task: a regex has to take digits and letters."""
    text = submission.candidate.text
    return Verdict.of({"digits": "0-9" in text or "no digits", "letters": "a-z" in text or "no letters"})


def call(tool: str, call_id: str = "1", **arguments: Any) -> ToolCall:
    """What a model asks for."""
    return ToolCall(id=call_id, tool=tool, arguments=arguments)


def read(request: TurnRequest) -> str:
    """Everything that a model was given to read."""
    return "\n".join(str(message.get("content")) for message in request.messages)


def weak(request: TurnRequest) -> object:
    """A model that is 'too weak to follow workflow instructions': it writes, and never verifies.

    It can do one thing: when it is shown which test fails, it writes what that test asks for.
    """
    return call(
        "write_file", str(request.turn), path="regex.txt", content=FULL if "no letters" in read(request) else "[0-9]+"
    )


def tools_in(workspace: Workspace) -> list[Any]:
    """The four tools of the contract."""
    verify = VerifyProgress(workspace, suite, SPEC, candidate_file="regex.txt")
    return [ReadFile(workspace), WriteFile(workspace), RunCommand(workspace), verify]


def answered(
    *replies: object, tools: tuple[Any, ...] = (), after: str = "raise", **options: Any
) -> tuple[Any, ScriptedProvider]:
    """The report of a run with a scripted model, and the model; what cannot be audited clean fails here."""
    provider = ScriptedProvider(replies, after)  # type: ignore[arg-type]  # one of two words
    journal = MemoryJournal()
    agent = Agent(providers={"weak": provider}, tools=tools, journal=journal, retries=RetryPolicy(retries=0), **options)
    try:
        report = agent.run("Write a regex to regex.txt, and verify it.", run_id="run")
    finally:
        export = asyncio.run(export_json(journal, "run"))
        assert [str(finding) for finding in audit(parse_export(export)).findings] == []
    return report, provider


def of(report: AgentRunReport, kind: type[Any]) -> list[Any]:
    """The run's events of a kind."""
    return [record.event for record in report.records if isinstance(record.event, kind)]


WRITE = ScriptedTool("write_file", ["written"])
READ = ScriptedTool("read_file", ["text"])
OPEN = Harness(auto_verify=False)
"""The rules without strategy 1, as when 'FM somehow bypasses' it."""


def test_before_and_after(tmp_path: Path) -> None:
    """'Before (FM never verified) ... never calls verify_progress, never gets feedback' / 'After (harness enforces
    verification) ... FM now sees test results after every write without having to choose to call verify_progress'.
    """
    limits = AgentLimits(iterations=10)
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    places = [Workspace(tmp_path / "before"), Workspace(tmp_path / "after")]
    before, bare = answered(weak, tools=tuple(tools_in(places[0])), after="repeat", limits=limits)
    after, held = answered(weak, tools=tuple(tools_in(places[1])), after="repeat", limits=limits, harness=Harness())
    assert (type(before), before.last_verification, places[0].read("regex.txt")) == (AgentIncomplete, None, "[0-9]+")
    assert (type(after), after.turns, places[1].read("regex.txt")) == (AgentCompleted, 2, FULL)
    assert (after.last_verification.passed, after.last_verification.total) == (2, 2)
    assert [line.action.tool for line in before.actions] == [
        "write_file"
    ] * 10  # 'Wasting all 10 turns on redundant writes'
    assert [line.line.partition(" ->")[0] for line in after.actions] == [
        "write_file(regex.txt)",
        "[AUTO] verify_progress()",
        "write_file(regex.txt)",
        "[AUTO] verify_progress()",
    ]
    assert ("no letters" in read(bare.requests[-1]), "no letters" in read(held.requests[-1])) == (False, True)


def test_tool_sequence_double_write() -> None:
    """'Can't call write_file twice without verify in between' - blocks double writes."""
    write = ScriptedTool("write_file", ["written"])
    report, provider = answered(
        call("write_file", path="a", content="1"),
        call("write_file", path="a", content="2"),
        "Enough.",
        tools=(write, ScriptedTool("verify_progress")),
        harness=Harness(rules=(ToolSequence(),), auto_verify=False),
    )
    (denial,) = of(report, ActionDenied)
    assert (len(write.requests), denial.rule, denial.reason) == (
        1,
        "sequence",
        "'a' was written and not verified since",
    )
    assert "verify, read what fails, then write again" in read(provider.requests[-1])  # 'deny_with_suggestion'


def test_tool_sequence_write_after_auto_verify() -> None:
    """Allows writes after auto-verify."""
    write = ScriptedTool("write_file", ["written"])
    report, _ = answered(
        call("write_file", path="a", content="1"),
        call("write_file", path="a", content="2"),
        tools=(write,),
        harness=Harness(),
        verifier=ScriptedVerifier([(0, 2), (2, 2)]),
    )
    assert (len(write.requests), of(report, ActionDenied), type(report)) == (2, [], AgentCompleted)


def test_tool_sequence_read_limit() -> None:
    """'Can't read_file more than twice for same path' - blocks excessive reads, also of 'a file that doesn't exist'."""
    missing = ScriptedTool("read_file", [ToolOutcome(is_success=False, output="no such file")])
    report, provider = answered(
        *(call("read_file", str(number), path="a") for number in range(3)),
        "It is missing.",
        tools=(
            missing,
            ScriptedTool("verify_progress", [ToolOutcome(is_success=True, output="", data={"passed": 1, "total": 1})]),
        ),
        harness=Harness(rules=default_rules(None)[:2], auto_verify=False),
    )
    (denial,) = of(report, ActionDenied)
    assert (len(missing.requests), denial.rule) == (2, "read-limit")
    assert "was read 2 times already" in read(provider.requests[-1])


def test_repetition_detection() -> None:
    """'test_repetition_detection - updated to use verify_progress': the third equal call in a row does not run."""
    verify = ScriptedTool(
        "verify_progress", [ToolOutcome(is_success=True, output="1/2", data={"passed": 1, "total": 2})]
    )
    report, provider = answered(
        *(call("verify_progress", str(number)) for number in range(3)),
        "I give up.",
        tools=(verify,),
        harness=Harness(rules=default_rules(None)[:5], auto_verify=False),
    )
    (denial,) = of(report, ActionDenied)
    assert (len(verify.requests), denial.rule) == (2, "repetition")
    assert "try something else" in read(provider.requests[-1])


def test_the_sequence_is_the_highest_priority_rule() -> None:
    """'Added check_tool_sequence() as highest priority validation rule'."""
    assert [rule.name for rule in default_rules(None)][:2] == ["sequence", "read-limit"]


def test_every_successful_write_is_verified_and_no_other() -> None:
    """'After every successful write_file, the orchestrator automatically runs verify_progress'; it costs no turn."""
    write = ScriptedTool("write_file", [ToolOutcome(is_success=False, output="disk full"), "written"])
    verifier = ScriptedVerifier([(2, 2)])
    report, _ = answered(
        call("write_file", path="a", content="1"),
        call("write_file", path="a", content="1"),
        tools=(write,),
        harness=Harness(),
        verifier=verifier,
    )
    started = [(event.tool, event.is_automatic) for event in of(report, ActionStarted)]
    assert started == [("write_file", False), ("write_file", False), ("verify_progress", True)]
    assert (report.turns, report.tool_calls, len(verifier.requests)) == (2, 2, 1)


def test_automatic_verification_says_so() -> None:
    """'[AUTO] verify_progress() -> FAILED: ...', with 'Automatic post-write verification', is read at once."""
    _, provider = answered(
        call("write_file", path="a", content="1"),
        call("write_file", path="a", content="2"),
        tools=(WRITE,),
        harness=Harness(),
        verifier=ScriptedVerifier([(3, 12), (12, 12)]),
    )
    last = provider.requests[1].messages
    told = next(str(message["content"]) for message in last if "[AUTO]" in str(message.get("content")))
    assert told.splitlines()[:2] == ["[AUTO] verify_progress() -> FAILED: 3/12 passing", f"({AUTOMATIC_REASON})"]
    assert [message["role"] for message in last][-3:-1] == [
        "assistant",
        "tool",
    ]  # directly behind the write's own result


def test_verification_updates_progress_and_is_told() -> None:
    """'Handles verification result: updates progress, checks completion, emits events'."""
    heard = RecordingSubscriber()
    agent = Agent(
        providers={"weak": ScriptedProvider([call("write_file", str(n), path="a", content=str(n)) for n in range(3)])},
        tools=[WRITE],
        harness=Harness(),
        verifier=ScriptedVerifier([(1, 3), (2, 3), (3, 3)]),
    )
    agent.bus.subscribe(heard, VerificationFinished)
    report = agent.run("Go.")
    assert [(record.event.passed, record.event.total) for record in heard.records] == [(1, 3), (2, 3), (3, 3)]  # type: ignore[attr-defined]  # of this kind
    assert (type(report), report.best_verification, report.answer) == (
        AgentCompleted,
        report.last_verification,
        "Done: 3 of 3 cases pass.",
    )


def test_early_success() -> None:
    """'Can still achieve early success if auto-verify passes all tests'."""
    report, provider = answered(
        call("write_file", path="a", content="1"),
        tools=(WRITE,),
        harness=Harness(),
        verifier=ScriptedVerifier([(2, 2)]),
    )
    assert (type(report), report.turns, len(provider.requests)) == (AgentCompleted, 1, 1)


def test_figures_are_never_read_out_of_text() -> None:
    """The origin's 'FAILED: 12/12 tests' was a misread text: here the structured result counts, whatever is said."""
    lying = ToolOutcome(is_success=True, output="9 failed, 12 passed", data={"passed": 12, "total": 21})
    report, _ = answered(
        call("write_file", path="a", content="1"),
        "Stop.",
        "Stop.",
        tools=(WRITE, ScriptedTool("verify_progress", [lying])),
        harness=Harness(rules=()),
    )
    found = report.last_verification
    assert (found.passed, found.total, found.is_green) == (12, 21, False)


def test_no_lock_out() -> None:
    """A refused write and a failed one are no writes: the next one is allowed (origin: 10 of 10 denied)."""
    write = ScriptedTool("write_file", ["written", ToolOutcome(is_success=False, output="disk full"), "written"])
    verify = ScriptedTool("verify_progress", [ToolOutcome(is_success=True, output="", data={"passed": 0, "total": 1})])
    report, _ = answered(
        call("write_file", "a", path="x", content="1"),
        call("write_file", "b", path="x", content="2"),  # refused: not verified
        call("verify_progress", "c"),
        call("write_file", "d", path="x", content="3"),  # fails
        call("write_file", "e", path="x", content="3"),
        "Stop.",
        tools=(write, verify),
        harness=Harness(rules=(ToolSequence(),), auto_verify=False),
    )
    assert [event.call_id for event in of(report, ActionDenied)] == ["b"]
    assert [(event.call_id, event.is_success) for event in of(report, ActionFinished)] == [
        ("a", True),
        ("c", True),
        ("d", False),
        ("e", True),
    ]


def test_reads_are_counted_by_path() -> None:
    """Paths that begin alike are not one, refused reads are none, and a write begins anew (origin: substrings)."""
    reads = [("a", "1"), ("a", "2"), ("a", "3"), ("ab", "4"), ("ab", "5")]
    report, _ = answered(
        *(call("read_file", call_id, path=path) for path, call_id in reads),
        call("write_file", "6", path="a", content="new"),
        call("read_file", "7", path="a"),
        "Stop.",
        tools=(READ, WRITE),
        harness=Harness(rules=default_rules(None)[:2]),
    )
    assert [event.call_id for event in of(report, ActionDenied)] == ["3"]


def test_content_counts_not_its_length() -> None:
    """Two writes of equal length are two different calls (origin: content was replaced by its length)."""
    report, _ = answered(
        *(call("write_file", text, path="x", content=text) for text in ("aa", "bb", "cc")),
        tools=(WRITE,),
        harness=Harness(),
        verifier=ScriptedVerifier([(0, 3), (1, 3), (3, 3)]),
    )
    assert (of(report, ActionDenied), type(report)) == ([], AgentCompleted)


def test_stagnation_changes_the_prompt() -> None:
    """'No improvement' is not only recorded: the next request says so (origin: stored, and never shown)."""
    _, provider = answered(
        *(call("write_file", str(number), path="x", content=str(number)) for number in range(4)),
        tools=(WRITE,),
        harness=Harness(rules=(StagnationNote(turns=2),)),
        verifier=ScriptedVerifier([(1, 3), (1, 3), (1, 3), (3, 3)]),
    )
    assert ["No improvement for" in read(request) for request in provider.requests] == [False, False, False, True]


def test_the_best_is_kept() -> None:
    """A later, worse verification does not hide the best one (origin: '89.5 % reported as 0 %')."""
    report, _ = answered(
        *(call("write_file", str(number), path="x", content=str(number)) for number in range(2)),
        "Stop.",
        tools=(WRITE,),
        harness=Harness(rules=()),
        verifier=ScriptedVerifier([(17, 19), (0, 19)]),
    )
    assert (report.best_verification.passed, report.last_verification.passed) == (17, 0)


def test_an_empty_suite_is_not_green() -> None:
    """No case is no success (origin: exit 0 with no tests counted as a pass)."""
    report, _ = answered(
        call("write_file", path="x", content="1"),
        *(["I am done."] * 3),
        tools=(WRITE,),
        harness=Harness(),
        verifier=ScriptedVerifier([(0, 0)]),
        limits=AgentLimits(iterations=3),
    )
    assert (type(report), report.last_verification.is_green) == (AgentIncomplete, False)


def test_a_verifier_that_hangs_is_ended() -> None:
    """Every tool has a time of its own (origin: a hung test command hung the run)."""

    async def hang(_: CallRequest) -> str:
        await asyncio.Event().wait()
        return ""

    report, _ = answered(
        call("write_file", path="x", content="1"),
        "Stop.",
        tools=(WRITE, ScriptedTool("verify_progress", [hang])),
        harness=Harness(rules=()),
        limits=AgentLimits(seconds_by_tool={"verify_progress": 0.03}),
    )
    (verified,) = of(report, VerificationFinished)
    assert (type(report), verified.is_automatic, bool(verified.error)) == (AgentCompleted, True, True)


def test_an_error_of_the_model_leaves_a_whole_history() -> None:
    """A model that fails ends the invocation with its markers, and the run is recorded (origin: neither)."""
    heard = RecordingSubscriber()
    provider = ScriptedProvider([call("write_file", path="x", content="1"), ProviderCallError("gone")])
    agent = Agent(providers={"weak": provider}, tools=[WRITE], harness=Harness(), verifier=ScriptedVerifier([(0, 1)]))
    agent.bus.subscribe(heard)
    with pytest.raises(ProviderCallError, match="gone"):
        agent.run("Go.")
    assert [record.event.name for record in heard.records][-2:] == ["orchestrator:complete", "execution:end"]


def test_text_is_cut_on_characters() -> None:
    """Texts that no byte offset may cut go through whole or cut, but never break (origin: a panic)."""
    text = "é🙂" * 3_000
    report, provider = answered(
        call("read_file", path="x"),
        "Stop.",
        tools=(ScriptedTool("read_file", [text]),),
        limits=AgentLimits(output_characters=101),
    )
    (result,) = [message for message in provider.requests[-1].messages if message["role"] == "tool"]
    assert (len(str(result["content"])) <= 101, type(report)) == (True, AgentCompleted)


def test_one_place_for_a_file(tmp_path: Path) -> None:
    """The tests judge the file that was written, however its path is spelled (origin: /app beside the workspace)."""
    workspace = Workspace(tmp_path)
    report, _ = answered(
        call("write_file", path=str(tmp_path / "regex.txt"), content=FULL),
        tools=tuple(tools_in(workspace)),
        harness=Harness(),
    )
    assert (type(report), workspace.paths()) == (AgentCompleted, ("regex.txt",))


@pytest.mark.parametrize(
    "command", ["rm -rf /", "rm -fr /etc", "rm -rf ~", "rm -r -f /etc", "rm -rf -- /etc", "sudo ls"]
)
def test_dangerous_commands_do_not_run(command: str) -> None:
    """The spellings that the origin's patterns missed are refused before anything runs."""
    run = ScriptedTool("run_command", ["ran"])
    report, _ = answered(
        call("run_command", command=command), "Stop.", tools=(run,), harness=Harness(rules=default_rules("/w")[3:4])
    )
    assert (run.requests, [event.rule for event in of(report, ActionDenied)]) == ([], ["dangerous-commands"])


def test_no_finish_without_a_green_verification() -> None:
    """The workflow does not depend on the model: an early 'I am done' is sent back until everything passes."""
    done: Callable[[TurnRequest], object] = lambda request: (  # noqa: E731 -- a line of the script
        call("write_file", path="x", content="2") if "nothing was verified" in read(request) else "I am done."
    )
    report, provider = answered(done, done, tools=(WRITE,), harness=Harness(), verifier=ScriptedVerifier([(1, 1)]))
    assert (type(report), report.turns, len(provider.requests)) == (AgentCompleted, 2, 2)
