"""An agent as a generator: its workspace, its tools, its one model, and what its failures mean for the attempt."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator import (
    Budget,
    EvalCase,
    Exhausted,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    Passed,
    Request,
    RunInterruptedError,
    Submission,
    Verdict,
)
from orchestrator.agent import CallRequest, ProviderCallError, Reply, ToolCall, TurnRequest
from orchestrator.agent.workspace import (
    EditFile,
    ListFiles,
    ReadFile,
    RunCommand,
    VerifyProgress,
    Workspace,
    WorkspacePathError,
    WriteFile,
)
from orchestrator.errors import IsolationRefusedError
from orchestrator.generators.agent import AgentGenerator
from orchestrator.harness.harness import Harness
from orchestrator.journal.memory import MemoryJournal
from orchestrator.retries import RetryPolicy
from orchestrator.sandbox.choice import SandboxChoice
from orchestrator.testing.agents import ScriptedProvider
from orchestrator_events.agent import ProviderRequest
from orchestrator_events.decision import Modify
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Batch

SPEC = MergedSpec(name="colours", intent="Name the colours.", evals=(EvalCase(name="red"), EvalCase(name="green")))
NEVER_TWICE = RetryPolicy(retries=0)
HAS_BWRAP = shutil.which("bwrap") is not None


def judged(submission: Submission) -> Verdict:
    """A case passes when the candidate names it."""
    text = "".join(submission.candidate.files.values()) or submission.candidate.text
    return Verdict.of({case.name: case.name in text or f"no {case.name}" for case in submission.spec.evals})


def wrote(text: str, path: str = "colours.txt") -> ToolCall:
    """A call that writes a file."""
    return ToolCall(id="w", tool="write_file", arguments={"path": path, "content": text})


def files_only(workspace: Workspace) -> tuple[Any, ...]:
    """Tools that start nothing."""
    return (ReadFile(workspace), WriteFile(workspace), EditFile(workspace), ListFiles(workspace))


def run_with(*replies: object, journal: MemoryJournal | None = None, attempts: int = 1, **options: Any) -> Any:
    """What a conformance run with a scripted agent comes to."""
    provider = options.pop("provider", None) or ScriptedProvider(replies)
    generator = AgentGenerator(provider, tools=files_only, retries=NEVER_TWICE, **options)
    engine = Orchestrator(
        generator=generator,
        evaluator=judged,
        journal=journal,
        budget=Budget(attempts=attempts),
        retries=NEVER_TWICE,
    )
    return engine.run(SPEC, run_id="top")


def test_all_files_are_the_candidate() -> None:
    """What the agent leaves in its workspace is the candidate; what it said last is kept beside it."""
    result = run_with((wrote("red", "a/x.txt"),), wrote("green", "b.txt"), "Both are there.")
    assert isinstance(result, Passed)
    assert dict(result.candidate.files) == {"a/x.txt": "red", "b.txt": "green"}
    answer = result.history[0].answer
    assert answer is not None
    assert (answer.answer.text, answer.extraction) == ("Both are there.", "workspace")


def test_one_file_is_the_candidate() -> None:
    """With a candidate file, that file's text is the candidate and the others are not."""
    result = run_with(wrote("red green"), wrote("notes", "notes.txt"), "Done.", candidate_file="colours.txt")
    assert (result.status, result.candidate.text) == ("passed", "red green")


def test_an_agent_that_leaves_nothing() -> None:
    """No file is no candidate: the attempt fails with the reason, and what the agent said is kept."""
    result = run_with("I would rather not.")
    assert (result.errors, result.history[0].answer.answer.text) == (
        ("GenerationError: the workspace holds no file: write the candidate's files",),
        "I would rather not.",
    )


def test_the_closest_candidate_is_carried_on() -> None:
    """The next attempt's workspace begins with the closest candidate so far, so that no progress is lost."""

    def goes_on(request: TurnRequest) -> object:
        if request.run_id == "top.1":
            return wrote("red")
        return ToolCall(id="e", tool="edit_file", arguments={"path": "colours.txt", "old": "red", "new": "red green"})

    result = run_with(goes_on, "Done.", attempts=2)
    assert (result.status, dict(result.candidate.files)) == ("passed", {"colours.txt": "red green"})


def test_the_workspace_begins_with_given_files() -> None:
    """What the host gives is there at first."""
    result = run_with("All is there.", files={"given.txt": "red green"})
    assert (result.status, dict(result.candidate.files)) == ("passed", {"given.txt": "red green"})


def test_the_run_s_own_suite_verifies() -> None:
    """'Verifier from the run's own evaluator': the harness verifies each write with it, and green ends the run."""
    provider = ScriptedProvider([wrote("red"), wrote("red green")])
    result = run_with(provider=provider, verifies=True, harness=Harness())
    assert (result.status, len(provider.requests)) == ("passed", 2)
    assert "[AUTO] verify_progress() -> FAILED: 1/2 passing" in str(provider.requests[1].messages)


def test_one_provider_and_model_for_the_run() -> None:
    """'Pins one provider and model for the run it serves': a gate that asks for another model fails the attempt."""
    provider = ScriptedProvider([wrote("red green"), "Done."])
    generator = AgentGenerator(provider, model="m-1", tools=files_only, retries=NEVER_TWICE)
    engine = Orchestrator(generator=generator, evaluator=judged, budget=Budget(attempts=1), retries=NEVER_TWICE)
    engine.bus.answer(ProviderRequest, lambda _: Modify({"model": "m-2"}))
    result = engine.run(SPEC)
    assert (generator.name, provider.requests) == ("agent/scripted/m-1", [])
    assert "asked for the model 'm-2', the run is pinned to 'm-1'" in result.history[0].error


def test_without_a_run_there_is_nothing_to_nest_in() -> None:
    """Called by itself it says where it belongs."""
    request = Request(
        run_id="x", attempt=1, prompt="", parameters={}, language="", max_tokens=None, seconds=None,
        idempotency_key="x:1", spec_digest="",
    )  # fmt: skip
    with pytest.raises(GeneratorUnavailableError, match="use it in an Orchestrator"):
        asyncio.run(AgentGenerator(ScriptedProvider(["x"])).generate(request))


def test_a_provider_that_refuses_the_key_interrupts_the_run() -> None:
    """Where asking again is pointless, the run is left open instead of using up its attempts."""
    with pytest.raises(RunInterruptedError, match="the generator is unavailable: the agent's provider failed"):
        run_with(ProviderCallError("bad key", status_code=401), attempts=3)


def test_a_provider_that_breaks_costs_the_attempt() -> None:
    """Any other failure is fed back like a failing case."""

    def breaks_once(request: TurnRequest) -> object:
        return ProviderCallError("nonsense") if request.run_id == "top.1" else wrote("red green")

    result = run_with(breaks_once, "Done.", attempts=2)
    assert (result.status, "the agent's provider failed: ProviderCallError: nonsense" in result.errors[0]) == (
        "passed",
        True,
    )


def test_a_busy_provider_is_asked_again(tmp_path: Path) -> None:
    """A failure that may pass is made again by the run's own policy, and the agent goes on where it was."""
    busy = ProviderCallError("busy", is_retryable=True)
    provider = ScriptedProvider([wrote("red green"), busy, "Done."])
    generator = AgentGenerator(provider, tools=files_only, retries=NEVER_TWICE, workspaces=tmp_path)
    engine = Orchestrator(
        generator=generator, evaluator=judged, budget=Budget(attempts=1), retries=RetryPolicy(first_wait=0.0)
    )
    result = engine.run(SPEC, run_id="top")
    assert (result.status, [request.turn for request in provider.requests]) == ("passed", [1, 2, 2])


class CutJournal(MemoryJournal):
    """A journal that fails when a run has so many batches."""

    def __init__(self, run_id: str, left: int) -> None:
        super().__init__()
        self.run_id, self.left = run_id, left

    async def append(self, batch: Batch) -> None:
        """Keep a batch, or be gone."""
        if batch.run_id == self.run_id:
            self.left -= 1
        if self.left < 0:
            raise JournalError("the disk is gone", run_id=batch.run_id)
        await super().append(batch)


def test_storage_that_fails_in_the_child_interrupts_the_run() -> None:
    """What cannot be recorded is not gone on with, and is no failure of the generator."""
    journal = CutJournal("top.1", 2)
    with pytest.raises(RunInterruptedError, match="the disk is gone"):
        run_with(wrote("red"), "Done.", journal=journal, attempts=3)


def test_files_that_are_gone_cost_the_attempt() -> None:
    """Without a lasting place for workspaces, an attempt that was cut off fails with the remedy; the run goes on."""
    journal = CutJournal("top.1", 3)
    with pytest.raises(RunInterruptedError):
        run_with(wrote("red"), "Done.", journal=journal, attempts=2)
    journal.left = 10_000
    provider = ScriptedProvider([wrote("red green"), "Done."])
    generator = AgentGenerator(provider, tools=files_only, retries=NEVER_TWICE)
    engine = Orchestrator(
        generator=generator, evaluator=judged, journal=journal, budget=Budget(attempts=2), retries=NEVER_TWICE
    )
    result = engine.resume("top")
    assert (result.status, "give the AgentGenerator a directory" in result.errors[0]) == ("passed", True)


def test_a_run_of_the_child_s_name_is_not_taken_over() -> None:
    """A run that somebody else started under the child's id is left alone."""
    journal = MemoryJournal()
    Orchestrator(generator=lambda _: "red green", evaluator=judged, journal=journal).run(SPEC, run_id="top.1")
    result = run_with(wrote("red green"), "Done.", journal=journal)
    assert isinstance(result, Exhausted)
    assert "there is a run 'top.1' already" in result.errors[0]


def test_isolation_is_that_of_the_tools() -> None:
    """Tools for files alone hold what they do to the workspace; an unknown tool is held by nothing."""
    held = AgentGenerator(ScriptedProvider(["x"]), tools=files_only)
    assert asyncio.run(held.isolate("strong")).level == "strong"
    loose = AgentGenerator(
        ScriptedProvider(["x"]),
        tools=lambda workspace: (RunCommand(workspace, sandbox=SandboxChoice(backend="containment")),),
    )
    with pytest.raises(IsolationRefusedError):
        asyncio.run(loose.isolate("strong"))


def asked(**arguments: Any) -> CallRequest:
    """A call with these arguments."""
    return CallRequest(run_id="r", call_id="c", arguments=arguments, seconds=5.0)


def outcome(tool: Any, **arguments: Any) -> tuple[bool, str]:
    """What a tool says."""
    given = asyncio.run(tool.call(asked(**arguments)))
    return given.is_success, given.output


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "", "a\0b", "link/x", "C:\\x", "a//../../b"])
def test_no_path_leads_out(tmp_path: Path, path: str) -> None:
    """Neither reading nor writing leaves the workspace, by dots, absolute paths or links."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "link").symlink_to(tmp_path)
    (tmp_path / "x").write_text("outside")
    workspace = Workspace(tmp_path / "work")
    found = [outcome(tool, path=path, content="new")[0] for tool in (ReadFile(workspace), WriteFile(workspace))]
    assert (found, (tmp_path / "x").read_text()) == ([False, False], "outside")


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link that a command left is neither read nor written through; a hard link keeps its other file."""
    (tmp_path / "work").mkdir()
    (tmp_path / "secret").write_text("secret")
    os.symlink(tmp_path / "secret", tmp_path / "work" / "soft")
    os.link(tmp_path / "secret", tmp_path / "work" / "hard")
    workspace = Workspace(tmp_path / "work")
    with pytest.raises(WorkspacePathError):
        workspace.read("soft")
    with pytest.raises(WorkspacePathError):
        workspace.write("soft", "new")
    workspace.write("hard", "new")
    assert ((tmp_path / "secret").read_text(), workspace.read("hard")) == ("secret", "new")


def test_the_workspace_s_own_path_is_understood(tmp_path: Path) -> None:
    """A model that spells the whole path of its workspace means the same file."""
    workspace = Workspace(tmp_path)
    workspace.write(f"{tmp_path}/a/b.txt", "x")
    assert (workspace.paths(), workspace.read("./a/b.txt")) == (("a/b.txt",), "x")


@pytest.mark.parametrize(
    ("old", "said"),
    [("one", "replaced one passage"), ("two", "stands 2 times"), ("none", "stands 0 times"), ("", "is empty")],
)
def test_edits_are_exact(tmp_path: Path, old: str, said: str) -> None:
    """A passage is replaced where it stands exactly once, and nowhere else."""
    workspace = Workspace(tmp_path)
    workspace.write("f", "one two two")
    done, output = outcome(EditFile(workspace), path="f", old=old, new="1")
    assert (done, said in output, workspace.read("f")) == (
        old == "one",
        True,
        "1 two two" if old == "one" else "one two two",
    )


def test_arguments_that_are_no_texts(tmp_path: Path) -> None:
    """Arguments of another type are a failed call that says which."""
    tool = WriteFile(Workspace(tmp_path))
    assert outcome(tool, path=3, content="x") == (False, "the argument 'path' must be a text, not int")
    assert outcome(tool, path="x") == (False, "the argument 'content' must be a text, not NoneType")


@pytest.mark.skipif(not HAS_BWRAP, reason="bubblewrap is not installed")
def test_commands_work_on_a_copy_whose_files_come_out(tmp_path: Path) -> None:
    """In the sandbox a command changes nothing but its copy; plain files come out, links do not, deletions do."""
    workspace = Workspace(tmp_path)
    workspace.write("a.txt", "1")
    workspace.write("gone.txt", "1")
    made = "cat a.txt; echo 2 > a.txt; mkdir d; echo 3 > d/b.sh; chmod +x d/b.sh"
    command = f"{made}; rm gone.txt; ln -s /etc/passwd l; echo x > /etc/y"
    done, output = outcome(RunCommand(workspace), command=command)
    assert (done, "left out: 'l' is no regular file" in output) == (False, True)
    assert {path: workspace.read(path) for path in workspace.paths()} == {"a.txt": "2\n", "d/b.sh": "3\n"}
    assert os.access(tmp_path / "d" / "b.sh", os.X_OK)
    assert not Path("/etc/y").exists()


def test_commands_are_bounded(tmp_path: Path) -> None:
    """A command that hangs or floods is stopped, and the model reads that."""
    contained = SandboxChoice(backend="containment")
    hangs = RunCommand(Workspace(tmp_path), seconds=0.05, sandbox=contained)
    floods = RunCommand(Workspace(tmp_path), output_limit=1_000, sandbox=contained)
    done, output = outcome(hangs, command="sleep 60")
    assert (done, "timed out after 0.05 s" in output) == (False, True)
    done, output = outcome(floods, command="yes")
    assert (done, "wrote too much to stdout" in output) == (False, True)


def test_the_status_of_a_command_is_structured(tmp_path: Path) -> None:
    """A failed command is a failed call, with its status and what it wrote."""
    tool = RunCommand(Workspace(tmp_path), sandbox=SandboxChoice(backend="containment"))
    given = asyncio.run(tool.call(asked(command="echo out; echo err >&2; exit 3")))
    assert (given.is_success, given.output) == (False, "out\nerr\n(the command ended with status 3)")
    assert given.data == {"status": 3, "timed_out": False, "cut_off": ""}


def test_verification_is_structured(tmp_path: Path) -> None:
    """Counts and failing cases are data; a suite without a case is no verdict."""
    workspace = Workspace(tmp_path)
    tool = VerifyProgress(workspace, judged, SPEC)
    assert asyncio.run(tool.call(asked())).is_success is False  # nothing is there to judge
    workspace.write("x", "red")
    given = asyncio.run(tool.call(asked()))
    assert (given.is_success, given.data) == (
        True,
        {"passed": 1, "total": 2, "failing": [{"id": "green", "status": "failed", "message": "no green"}]},
    )


def test_a_reply_is_not_a_candidate() -> None:
    """The agent's words are never taken for files."""
    result = run_with(Reply(blocks=({"type": "text", "text": "red green"},)))
    assert (result.status, result.candidate) == ("exhausted", None)
