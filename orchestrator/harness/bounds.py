"""Rules about where an agent works: writes stay in the workspace, commands do no harm outside it."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from orchestrator.harness.actions import Action, ToolRole
from orchestrator.harness.commands import judge_command
from orchestrator.harness.decisions import Denial
from orchestrator.harness.locations import absolute, is_within, normal
from orchestrator.harness.rule import Past, Rule, quoted
from orchestrator.harness.verification import Progress

__all__ = ["DangerousCommands", "WorkspaceBounds"]

_DIRECTORY_ARGUMENTS = ("cwd", "workdir", "working_directory")


def _normal_paths(paths: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(map(normal, paths))


def _is_absolute(_instance: object, _attribute: object, path: Any) -> None:
    if path is not None and not path.startswith("/"):
        raise ValueError(f"{path!r} is relative: give an absolute directory")


def _are_absolute(instance: object, attribute: object, paths: tuple[str, ...]) -> None:
    for path in paths:
        _is_absolute(instance, attribute, path)


@attrs.frozen
class WorkspaceBounds(Rule):
    """Writes stay below `root` or one of `also_writable`; with `covers_reads`, reads as well.

    Paths are compared as the action gives them: links are followed where its ToolRoles follow them, and then
    `root` must be given with its own links followed.
    """

    name: ClassVar[str] = "workspace-bounds"
    root: str = attrs.field(converter=normal, validator=_is_absolute)
    also_writable: tuple[str, ...] = attrs.field(default=(), converter=_normal_paths, validator=_are_absolute)
    covers_reads: bool = False

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | None:  # noqa: ARG002
        """Deny what leads outside."""
        is_covered = action.role is ToolRole.WRITE or (self.covers_reads and action.role is ToolRole.READ)
        if not is_covered:
            return None
        if action.path is None:
            return Denial(self.name, "it is unclear which file this is about", "give one path, as text")
        if action.path.startswith("~") or "://" in action.path:
            return Denial(self.name, f"{quoted(action.path)} is no plain path", "give a path relative to the workspace")
        path = absolute(action.path, self.root)
        if any(is_within(path, place) for place in (self.root, *self.also_writable)):
            return None
        return Denial(
            self.name,
            f"{quoted(action.path)} lies outside the workspace {self.root!r}",
            "give a path relative to the workspace",
        )


@attrs.frozen
class DangerousCommands(Rule):
    """Shell commands are read as a shell reads them; what destroys or hides what it does is denied.

    It keeps an agent from accidents, and is no sandbox: a program that a command starts can do anything.
    `workspace` is where commands start; without it every absolute path is outside. Links are not followed.
    """

    name: ClassVar[str] = "dangerous-commands"
    workspace: str | None = attrs.field(
        default=None, converter=attrs.converters.optional(normal), validator=_is_absolute
    )
    also_writable: tuple[str, ...] = attrs.field(default=(), converter=_normal_paths, validator=_are_absolute)

    def check(self, action: Action, past: Past, progress: Progress) -> Denial | None:  # noqa: ARG002
        """Deny a dangerous command."""
        if action.role is not ToolRole.RUN or not action.input:
            return None
        if action.command is None:
            return Denial(self.name, "it is unclear which command this runs", "give one command, as text")
        directories = {action.input[name] for name in _DIRECTORY_ARGUMENTS if isinstance(action.input.get(name), str)}
        if len(directories) > 1:
            return Denial(self.name, "it is unclear in which directory this runs", "give one directory")
        danger = judge_command(
            action.command, self.workspace, also_writable=self.also_writable, directory=next(iter(directories), ".")
        )
        return None if danger is None else Denial(self.name, danger.reason, danger.suggestion)
