"""Each rule alone."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.harness.actions import Action, ActionRecord, ToolRoles
from orchestrator.harness.decisions import Denial, Warned
from orchestrator.harness.rules import (
    CompletionRule,
    DangerousCommands,
    OverwriteWarning,
    ReadLimit,
    Repetition,
    StagnationNote,
    ToolSequence,
    WorkspaceBounds,
)
from orchestrator.harness.verification import Progress, Verification

NOTHING = Progress()
ROLES = ToolRoles(root="/app")


def call(tool: str, turn: int = 1, **given: Any) -> Action:
    """A call that a model makes."""
    return ROLES.action("c", tool, given, turn)


def done(tool: str, *, is_success: bool = True, is_automatic: bool = False, **given: Any) -> ActionRecord:
    """A call that was executed."""
    return ActionRecord(call(tool, **given), is_success=is_success, is_automatic=is_automatic)


def write(path: str = "a", content: str = "") -> ActionRecord:
    """A successful write."""
    return done("write_file", path=path, content=content)


AUTO = done("verify_progress", is_automatic=True)


def test_a_second_write_needs_a_verification() -> None:
    """Contract 3: double writes are blocked, and the model is told what to do."""
    assert ToolSequence().check(call("write_file", path="b"), [write("a")], NOTHING) == Denial(
        "sequence",
        "'/app/a' was written and not verified since",
        "verify, read what fails, then write again",
    )


@pytest.mark.parametrize(
    "past",
    [
        [],
        [write(), AUTO],
        [write(), done("verify_progress")],
        [write(), done("verify_progress", is_success=False)],
        [done("write_file", is_success=False, path="a")],
        [write(), AUTO, done("read_file", path="a"), done("write_file", is_success=False, path="a")],
    ],
)
def test_a_write_is_allowed_after_a_verification_or_a_failed_write(past: list[ActionRecord]) -> None:
    """A verifier that breaks and a write that fails lock nobody out."""
    assert ToolSequence().check(call("write_file", path="a"), past, NOTHING) is None


def test_what_stands_between_write_and_write_does_not_matter() -> None:
    """Reading, running and thinking are no verification."""
    past = [write(), done("read_file", path="a"), done("run_command", command="ls"), done("think")]
    assert isinstance(ToolSequence().check(call("edit_file", path="a"), past, NOTHING), Denial)


def test_an_evaluator_verifies_as_well_as_a_tool() -> None:
    """It leaves no tool call; the progress tells."""
    progress = NOTHING.after_action(write()).after_verification(Verification(1, 2))
    action = call("write_file", path="a")
    assert ToolSequence().check(action, [write()], progress) is None
    assert ToolSequence().check(action, [write(), write()], progress.after_action(write())) is not None


def test_a_path_is_read_twice_at_most() -> None:
    """Contract 3; a missing file counts as well, however the path is written."""
    past = [done("read_file", path="a"), done("read_file", path="./b/../a", is_success=False)]
    action = call("read_file", path="/app/a")
    assert ReadLimit().check(action, past, NOTHING) == Denial(
        "read-limit",
        "'/app/a' was read 2 times already and not written since",
        "use what you read; when the file is missing, write it",
    )
    assert ReadLimit(3).check(action, past, NOTHING) is None


@pytest.mark.parametrize(
    ("between", "is_allowed"),
    [
        (write("a"), True),
        (write("b"), False),
        (done("write_file", is_success=False, path="a"), False),
        (done("run_command", command="touch a"), False),
        (AUTO, False),
    ],
)
def test_only_a_successful_write_to_the_path_allows_more_reads(between: ActionRecord, is_allowed: bool) -> None:
    """There is something new to read then."""
    read = done("read_file", path="a")
    decision = ReadLimit().check(call("read_file", path="a"), [read, read, between], NOTHING)
    assert (decision is None) is is_allowed


@pytest.mark.parametrize(
    ("path", "is_allowed"),
    [
        ("a.py", True),
        ("/app/deep/a.py", True),
        ("a..b.txt", True),
        ("deep/../a.py", True),
        ("/app", True),
        ("/application/a.py", False),
        ("../a.py", False),
        ("/app/../etc/passwd", False),
        ("//etc/passwd", False),
        ("~/a.py", False),
        ("file:///etc/passwd", False),
        ("/scratch/a.py", True),
    ],
)
def test_writes_stay_in_the_workspace(path: str, is_allowed: bool) -> None:
    """By whole names, not by how the text begins."""
    decision = WorkspaceBounds("/app/", ("/scratch",)).check(call("write_file", path=path), [], NOTHING)
    assert (decision is None) is is_allowed


def test_bounds_cover_reads_where_asked() -> None:
    """By default an agent may read whatever its tools can."""
    action = call("read_file", path="/etc/hosts")
    assert WorkspaceBounds("/app").check(action, [], NOTHING) is None
    assert WorkspaceBounds("/app", covers_reads=True).check(action, [], NOTHING) == Denial(
        "workspace-bounds",
        "'/etc/hosts' lies outside the workspace '/app'",
        "give a path relative to the workspace",
    )


def test_a_write_without_a_clear_path_is_denied() -> None:
    """Whatever the tool makes of two paths, nobody judged it."""
    decision = WorkspaceBounds("/app").check(call("write_file", path="a", file="/etc/x"), [], NOTHING)
    assert decision == Denial("workspace-bounds", "it is unclear which file this is about", "give one path, as text")


@pytest.mark.parametrize(
    ("given", "is_allowed"),
    [
        ({"command": "ls"}, True),
        ({"command": "rm -rf /"}, False),
        ({"cmd": ["rm", "-rf", "/"]}, False),
        ({"cmd": ["echo", "; rm -rf /"]}, True),
        ({"command": "rm -rf ../build", "cwd": "src"}, True),
        ({"command": "rm -rf build", "cwd": "/"}, False),
        ({"command": "ls", "cwd": "/", "workdir": "src"}, False),
        ({"command": "ls", "cmd": "rm"}, False),
        ({"script": "rm -rf /"}, False),
        ({}, True),
    ],
)
def test_commands_are_judged_where_they_start(given: dict[str, Any], is_allowed: bool) -> None:
    """A command that cannot be told is denied; a tool that takes nothing runs nothing of the model's."""
    decision = DangerousCommands("/app").check(call("run_command", **given), [], NOTHING)
    assert (decision is None) is is_allowed


def test_other_tools_may_say_what_they_like() -> None:
    """A text that mentions a command runs none."""
    action = call("write_file", path="a", command="rm -rf /")
    assert DangerousCommands("/app").check(action, [], NOTHING) is None


def test_the_same_call_is_made_twice_at_most() -> None:
    """Among the last three; contents count whole."""
    same = [write("a", "x"), write("a", "x")]
    assert Repetition().check(call("write_file", path="a", content="x"), same, NOTHING) == Denial(
        "repetition",
        "this very call of 'write_file' was made 2 times among the last 3 actions",
        "its result will be the same: try something else",
    )
    assert Repetition().check(call("write_file", path="a", content="y"), same, NOTHING) is None


@pytest.mark.parametrize(
    ("past", "is_allowed"),
    [("vv", False), ("vrv", False), ("vvrr", True), ("vvw", True), ("v", True), ("vAAAv", False), ("AAA", True)],
)
def test_repetition_looks_at_real_actions_since_the_last_change(past: str, is_allowed: bool) -> None:
    """The harness's own ones do not count, and a write makes the same call mean something new."""
    verify = done("verify_progress")
    records = {"v": verify, "r": done("read_file", path="a"), "w": write(), "A": AUTO}
    decision = Repetition().check(call("verify_progress"), [records[each] for each in past], NOTHING)
    assert (decision is None) is is_allowed


def test_a_repetition_that_can_never_be_seen_is_refused() -> None:
    """Four equal calls are not among three."""
    with pytest.raises(ValueError, match="raise window"):
        Repetition(limit=4)


@pytest.mark.parametrize(
    ("past", "progress", "is_warned"),
    [
        ([], NOTHING, False),
        ([write("b")], NOTHING, False),
        ([write("a")], NOTHING, True),
        ([write("a"), done("verify_progress", is_success=False)], NOTHING, True),
        ([write("a"), done("verify_progress")], NOTHING, False),
        ([write("a")], NOTHING.after_action(write()).after_verification(Verification(0, 1)), False),
    ],
)
def test_overwriting_what_nobody_verified_is_warned_of(
    past: list[ActionRecord], progress: Progress, is_warned: bool
) -> None:
    """It is allowed all the same."""
    warned = Warned("overwrite", "'/app/a' is overwritten although nothing is known of what it did")
    assert OverwriteWarning().check(call("write_file", path="a"), past, progress) == (warned if is_warned else None)


def test_the_agent_finishes_green() -> None:
    """And neither before, nor after another write, nor with an empty suite."""
    red, green = Verification(3, 12), Verification(12, 12)
    after = NOTHING.after_action(write())
    denials = [
        CompletionRule().check_finish([], NOTHING),
        CompletionRule().check_finish([write()], after.after_verification(red)),
        CompletionRule().check_finish([write()], after.after_verification(Verification(0, 0))),
        CompletionRule().check_finish([write(), write()], after.after_verification(green).after_action(write())),
        CompletionRule().check_finish([write(), write()], after.after_verification(green)),
        CompletionRule().check_finish([write()], after.after_verification(green)),
    ]
    assert [denial.reason if denial else None for denial in denials] == [
        "nothing was verified yet",
        "the last verification passed 3 of 12 cases",
        "the last verification ran no case",
        "something was written since the last verification",
        "something was written since the last verification",
        None,
    ]


def test_stagnation_changes_the_next_prompt() -> None:
    """Turns count since the best verification, also those that verify nothing; improvement ends it."""
    progress = NOTHING.after_verification(Verification(5, 9, turn=2)).after_verification(Verification(4, 9, turn=3))
    notes = [StagnationNote().note([ActionRecord(call("think", turn), is_success=True)], progress) for turn in (6, 7)]
    told = (
        "No improvement for 5 turns: the best verification passed 5 of 9 cases; the last one passed 4."
        " What you are doing does not work. Take a different approach: question what you assume, begin with "
        "one failing case, and change something you have not changed yet."
    )
    assert notes == ["", told]
    better = progress.after_verification(Verification(6, 9, turn=7))
    assert [StagnationNote().note([], each) for each in (NOTHING, better)] == ["", ""]


@pytest.mark.parametrize("rule", [ReadLimit, Repetition, StagnationNote])
def test_a_limit_is_at_least_one(rule: Any) -> None:
    """A limit of none would lock the agent out."""
    with pytest.raises(ValueError, match=">= 1"):
        rule(0)
