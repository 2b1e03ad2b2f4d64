"""What a mount plan may say: limits that are limits, a workspace that is one, a journal that the CLI finds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.amplifier import ConformanceLoop, mount
from orchestrator.errors import DocumentError
from orchestrator.testing.kernel import AnsweringHooks, FunctionTool, ListContext, ScriptedChat, calling

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")

COUNTS = ("max_iterations", "max_tool_calls", "tokens")
TIMES = ("seconds", "tool_seconds")
NO_NUMBERS = (True, "7", "x", [1], float("nan"), float("inf"))
HUGE = 10**5_000
"""More digits than an integer is printed with."""


@pytest.mark.parametrize("key", [*COUNTS, *TIMES])
@pytest.mark.parametrize(
    "value", [-1, 0, 10**30, HUGE, *NO_NUMBERS], ids=lambda value: f"{value!r:.9}" if value is not HUGE else "huge"
)
def test_what_is_no_limit_is_refused_by_its_key(key: str, value: Any) -> None:
    """Neither a number that nothing reaches nor what merely looks like one; the message is short."""
    with pytest.raises(DocumentError) as caught:
        ConformanceLoop({key: value})
    (fault,) = caught.value.faults
    assert (fault.path, len(fault.message) < 200) == (f"$.{key}", True)


@pytest.mark.parametrize("key", COUNTS)
@pytest.mark.parametrize("value", [1.0, 1.5, 1e30])
def test_a_count_is_a_whole_number(key: str, value: float) -> None:
    """One that happens to be whole is not guessed at either."""
    with pytest.raises(DocumentError, match=rf"\$\.{key}: expected an integer"):
        ConformanceLoop({key: value})


def test_the_bounds_are_told() -> None:
    """Both ends, what was found, and why."""
    with pytest.raises(DocumentError) as caught:
        ConformanceLoop({"max_iterations": 10**30})
    assert str(caught.value).partition("$.")[2] == (
        "max_iterations: max_iterations must be a number above 0 and at most 1000000, found one of 31 digits or so: "
        "no limit is switched off so"
    )


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"parameters": {"temperature": float("nan")}}, "$.parameters"),
        ({"parameters": {"stop": object()}}, "$.parameters"),
        ({"parameters": {"max_tokens": "many"}}, "$.parameters"),
        ({"parameters": {"max_tokens": 0}}, "$.parameters"),
        ({"parameters": {"max_tokens": HUGE}}, "$.parameters"),
        ({"retries": {"retries": HUGE}}, "$.retries.retries"),
        ({"retries": {"factor": float("inf")}}, "$.retries"),
        ({"harness": 5}, "$.harness"),
    ],
    ids=lambda value: value if isinstance(value, str) else "config",
)
def test_what_would_break_at_the_first_prompt_is_refused_at_once(config: dict[str, Any], path: str) -> None:
    """A plan with a fault mounts nothing; no prompt ever fails for it, before its first event."""
    with pytest.raises(DocumentError) as caught:
        ConformanceLoop(config)
    assert [fault.path for fault in caught.value.faults] == [path]


def written_to(path: Path, loop: ConformanceLoop) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The denials of a run that writes to a path, and the inputs of the tool."""
    call = calling(("w1", "write_file", {"path": str(path), "content": "1"}))
    tools = {
        "write_file": FunctionTool("write_file", lambda _: core.ToolResult(output="written")),
        "verify_progress": FunctionTool("verify_progress", lambda _: core.ToolResult(output={"passed": 1, "total": 1})),
    }
    hooks = AnsweringHooks()
    provider = ScriptedChat([call, "I could not.", "I could not.", "Stop."])
    execution = loop.execute("Go.", ListContext(), {"p": provider}, tools, hooks)
    asyncio.run(execution)
    return hooks.payloads("action:denied"), tools["write_file"].inputs


def test_writes_stay_in_the_workspace_that_the_plan_names(tmp_path: Path) -> None:
    """By default in the directory that the session works in; a link does not lead out of it."""
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    named = ConformanceLoop({"max_iterations": 3, "harness": {"workspace": str(inside)}})
    usual = ConformanceLoop({"max_iterations": 3, "harness": True}, directory=str(inside))
    relative = ConformanceLoop({"max_iterations": 3, "harness": {"workspace": "inside"}}, directory=str(tmp_path))
    for loop in (named, usual, relative):
        assert [len(found) for found in written_to(inside / "a.txt", loop)] == [0, 1]
        for outside in (tmp_path / "a.txt", inside / "link" / "a.txt"):
            (denied,), inputs = written_to(outside, loop)
            assert (denied["rule"], inputs) == ("workspace-bounds", [])


def test_a_workspace_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With its place and what to do."""
    with pytest.raises(DocumentError) as caught:
        ConformanceLoop({"harness": {"workspace": str(tmp_path / "gone")}})
    (fault,) = caught.value.faults
    message = f"there is no directory '{tmp_path / 'gone'}': make it, name another, or leave workspace out"
    assert (fault.path, fault.message) == ("$.harness.workspace", message)


def test_the_session_s_own_working_directory_is_the_usual_workspace(tmp_path: Path) -> None:
    """Where the application states one for tools, the harness keeps to the same."""

    async def scenario() -> Any:
        coordinator = core.MockCoordinator()
        coordinator.register_capability("session.working_dir", str(tmp_path))
        await mount(coordinator, {"harness": True})
        return coordinator.get("orchestrator")

    assert asyncio.run(scenario()).harness.roles.root == str(tmp_path.resolve())


def test_the_journal_is_one_that_the_cli_shows(tmp_path: Path) -> None:
    """`journal: DIR/journal.sqlite` is what `--runs DIR` reads; another name is given whole. Hooks hear the id."""
    hooks = AnsweringHooks()
    for name in ("journal.sqlite", "other.sqlite"):
        loop = ConformanceLoop({"journal": str(tmp_path / name)})
        asyncio.run(loop.execute("Go.", ListContext(), {"p": ScriptedChat(["Fine."])}, {}, hooks))
        asyncio.run(loop.close())
    first, second = [payload["run_id"] for payload in hooks.payloads("execution:start")]
    shown = [
        subprocess.run(
            [sys.executable, "-m", "orchestrator", "show", run_id, "--runs", str(place)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for run_id, place in ((first, tmp_path), (second, tmp_path / "other.sqlite"))
    ]
    assert [each.splitlines()[-1] for each in shown] == ["completed after 1 turn"] * 2
