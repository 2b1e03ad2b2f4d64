"""Tools have roles, and calls become actions."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.harness.actions import Action, ActionRecord, ToolRole, ToolRoles


def test_the_tools_of_the_contract_have_their_roles() -> None:
    """And a tool nobody named plays none."""
    tools = ["write_file", "edit_file", "read_file", "verify_progress", "run_command", "think"]
    assert [ToolRoles().role_of(tool).value for tool in tools] == ["write", "write", "read", "verify", "run", "other"]


def test_writes_and_verifications_are_barriers() -> None:
    """Nothing runs beside them."""
    tools = ["write_file", "edit_file", "verify_progress", "read_file", "run_command", "think"]
    assert [ToolRoles().is_barrier(tool) for tool in tools] == [True, True, True, False, False, False]


def test_a_call_becomes_an_action() -> None:
    """With the path and the command its arguments name."""
    given = {"path": "./src/../a.py", "content": "x"}
    action = ToolRoles(root="/app").action("c1", "write_file", given, 3)
    assert action == Action("c1", "write_file", ToolRole.WRITE, given, 3, "/app/a.py", action.digest, None)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"path": "a"}, "/app/a"),
        ({"file_path": "/app//b"}, "/app/b"),
        ({"file": "../x"}, "/x"),
        ({"path": "//etc/x"}, "/etc/x"),
        ({"path": "a", "file": "./a"}, "/app/a"),
        ({"path": "a", "file": "b"}, None),
        ({"path": ["a"]}, None),
        ({"path": "a", "file": 1}, None),
        ({"path": ""}, None),
        ({"path": "a\0b"}, None),
        ({"path": "~/a"}, "~/a"),
        ({"path": "file:///a"}, "file:///a"),
        ({}, None),
    ],
)
def test_the_path_is_the_one_that_the_arguments_name(given: dict[str, Any], path: str | None) -> None:
    """Normal, or None where it cannot be told which one is meant."""
    assert ToolRoles(root="/app").path_of("write_file", given) == path


def test_links_are_followed_before_the_directory_above_is_taken() -> None:
    """Behind a link, `..` leads elsewhere than its text says."""
    asked: list[str] = []

    def resolve(path: str) -> str:
        asked.append(path)
        return "/real"

    assert ToolRoles(root="/app", resolve=resolve).path_of("read_file", {"path": "link/../a"}) == "/real"
    assert asked == ["/app/link/../a"]


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ({"command": "ls"}, "ls"),
        ({"cmd": ["rm", "a b"]}, "rm 'a b'"),
        ({"command": "ls", "cmd": "rm"}, None),
        ({"command": 7}, None),
        ({}, None),
    ],
)
def test_the_command_is_the_one_that_the_arguments_name(given: dict[str, Any], command: str | None) -> None:
    """A list of words is quoted as a shell would need it."""
    assert ToolRoles().command_of("run_command", given) == command


def test_equal_calls_alone_have_equal_digests() -> None:
    """The order of keys does not matter; tools, values and their types do."""
    inputs: list[dict[str, Any]] = [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}, {"a": True, "b": 2}]
    digests = [ToolRoles().action("", "write_file", given, 1).digest for given in inputs]
    assert digests[0] == digests[1]
    assert len({*digests, ToolRoles().action("", "edit_file", inputs[0], 1).digest}) == 4


def test_a_root_is_absolute() -> None:
    """A relative one would make paths depend on where the host was started."""
    with pytest.raises(ValueError, match=r"'app' is relative: give an absolute directory"):
        ToolRoles(root="app")


def test_an_executed_action_has_a_line() -> None:
    """Automatic ones are marked; whatever the summary is, it stays one line."""
    action = ToolRoles().action("c", "write_file", {"path": "a"}, 1)
    lines = [
        ActionRecord(action, is_success=True, summary="4 bytes\nwritten").line,
        ActionRecord(action, is_success=False, is_automatic=True).line,
    ]
    assert lines == ["write_file(a) -> OK: 4 bytes written", "[AUTO] write_file(a) -> FAILED"]
