"""What an agent does, as typed records: tools have roles, calls become actions, executed actions are the history."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Final

import attrs

from orchestrator.harness.locations import normal
from orchestrator.jsondata import JSON

__all__ = ["DEFAULT_ROLES", "Action", "ActionRecord", "ToolRole", "ToolRoles"]


class ToolRole(StrEnum):
    """What a tool is for, as far as rules care."""

    WRITE = "write"
    READ = "read"
    VERIFY = "verify"
    RUN = "run"
    OTHER = "other"


DEFAULT_ROLES: Final[Mapping[str, ToolRole]] = MappingProxyType(
    {
        "write_file": ToolRole.WRITE,
        "edit_file": ToolRole.WRITE,
        "read_file": ToolRole.READ,
        "verify_progress": ToolRole.VERIFY,
        "run_command": ToolRole.RUN,
    }
)
"""The tools of contract 3, and edit_file."""

_BARRIERS = frozenset({ToolRole.WRITE, ToolRole.VERIFY})


@attrs.frozen
class Action:
    """A tool call that is to be judged, or was executed."""

    call_id: str
    tool: str
    role: ToolRole
    input: Mapping[str, JSON]
    turn: int
    """Number of the turn, from 1."""
    path: str | None
    """The file it is about, normal; None when it names none, or several that differ."""
    digest: str
    """SHA-256 of the tool and its whole input: equal for equal calls only."""
    command: str | None = None
    """The shell command it runs; None when it names none, or several that differ."""


@attrs.frozen
class ActionRecord:
    """An action that was executed. What was denied is no action and never gets a record."""

    action: Action
    is_success: bool
    """Whether the tool did what was asked."""
    is_automatic: bool = False
    """Whether the harness, not the model, asked for it."""
    summary: str = ""
    """What came of it, for people and prompts; no rule reads it."""

    @property
    def line(self) -> str:
        """One line for a list of recent actions; automatic ones are marked `[AUTO]`."""
        mark = "[AUTO] " if self.is_automatic else ""
        told = f": {' '.join(self.summary.split())}" if self.summary.strip() else ""
        return f"{mark}{self.action.tool}({self.action.path or ''}) -> {'OK' if self.is_success else 'FAILED'}{told}"

    @property
    def is_write(self) -> bool:
        """Whether it changed a file."""
        return self.is_success and self.action.role is ToolRole.WRITE


def _texts(names: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(names)


@attrs.frozen
class ToolRoles:
    """Which tool plays which role, and which of its arguments hold the path and the command.

    `root` is the absolute directory that relative paths start from. `resolve` follows links, as
    `os.path.realpath` does; without it paths are compared as they are written.
    """

    roles: Mapping[str, ToolRole] = DEFAULT_ROLES
    path_arguments: tuple[str, ...] = attrs.field(default=("path", "file_path", "file"), converter=_texts)
    command_arguments: tuple[str, ...] = attrs.field(default=("command", "cmd"), converter=_texts)
    root: str | None = attrs.field(default=None)
    resolve: Callable[[str], str] | None = attrs.field(default=None, eq=False, repr=False)

    @root.validator
    def _is_absolute(self, _: object, root: str | None) -> None:
        if root is not None and not root.startswith("/"):
            raise ValueError(f"root {root!r} is relative: give an absolute directory")

    @property
    def verify_tool(self) -> str | None:
        """The first tool that verifies; None where an evaluator does it."""
        return next((tool for tool, role in self.roles.items() if role is ToolRole.VERIFY), None)

    def role_of(self, tool: str) -> ToolRole:
        """The tool's role; `other` for one that has none."""
        return self.roles.get(tool, ToolRole.OTHER)

    def is_barrier(self, tool: str) -> bool:
        """Whether calls before it must have ended before it starts, and it before those after it."""
        return self.role_of(tool) in _BARRIERS

    def path_of(self, tool: str, input: Mapping[str, JSON]) -> str | None:  # noqa: A002, ARG002 -- what tools call it
        """The one path that the arguments name, normal; None for none, for several, and for what is no text."""
        values = [input[name] for name in self.path_arguments if name in input]
        if not all(isinstance(value, str) and value and "\0" not in value for value in values):
            return None
        paths = {self._located(value) for value in values}
        return paths.pop() if len(paths) == 1 else None

    def command_of(self, tool: str, input: Mapping[str, JSON]) -> str | None:  # noqa: A002, ARG002 -- what tools call it
        """The one command that the arguments name, a list of words as a shell would read it; None as for paths."""
        commands = {_command(input[name]) for name in self.command_arguments if name in input}
        return commands.pop() if len(commands) == 1 else None

    def action(self, call_id: str, tool: str, input: Mapping[str, JSON], turn: int) -> Action:  # noqa: A002 -- what tools call it
        """The action that a call asks for."""
        return Action(
            call_id=call_id,
            tool=tool,
            role=self.role_of(tool),
            input=input,
            turn=turn,
            path=self.path_of(tool, input),
            digest=_digest(tool, input),
            command=self.command_of(tool, input),
        )

    def _located(self, path: str) -> str:
        if path.startswith("~") or "://" in path:
            return path
        whole = path if path.startswith("/") or self.root is None else f"{self.root}/{path}"
        # Links are followed before `..` is taken out of the text: behind a link it leads elsewhere.
        if self.resolve is not None and whole.startswith("/"):
            whole = self.resolve(whole)
        return normal(whole)


def _command(value: JSON) -> str | None:
    if isinstance(value, str):
        return value
    is_words = isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
    return shlex.join(value) if is_words else None


def _digest(tool: str, input: Mapping[str, JSON]) -> str:  # noqa: A002 -- what tools call it
    canonical = json.dumps([tool, dict(input)], sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return sha256(canonical.encode()).hexdigest()
