"""Tools on an agent's workspace: read, write, edit and list its files, run a command in it, verify what is in it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import attrs

from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.agent.toolcalls import done, failed, schema_of, text_in
from orchestrator.agent.trials import RunCommand, VerifyProgress
from orchestrator.agent.workplace import Workspace, WorkspacePathError, candidate_in
from orchestrator.jsondata import JSON
from orchestrator_events.isolation import Isolation

__all__ = [
    "EditFile",
    "ListFiles",
    "ReadFile",
    "RunCommand",
    "VerifyProgress",
    "Workspace",
    "WorkspacePathError",
    "WriteFile",
    "candidate_in",
]

BELOW_WORKSPACE: Final = Isolation(
    level="strong", backend="paths", limits=("files below the workspace",), not_enforced=("size of the workspace",)
)
"""What holds the tools for files in: they start no program, and no path leads them out of the workspace."""
TEXT: Final[Mapping[str, JSON]] = MappingProxyType({"type": "string"})
PATH: Final[Mapping[str, JSON]] = MappingProxyType(
    {"type": "string", "description": "Path of the file, relative to the workspace."}
)


@attrs.define(eq=False)
class ReadFile:
    """Reads a file of the workspace."""

    workspace: Workspace
    name: str = attrs.field(default="read_file", kw_only=True)
    description: str = attrs.field(default="Read a text file of the workspace.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({"path": PATH}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """The file's text."""
        try:
            return done(self.workspace.read(text_in(request, "path")))
        except (ValueError, OSError) as error:
            return failed(error)


@attrs.define(eq=False)
class WriteFile:
    """Writes a whole file of the workspace; the same call again leaves the same file, so it is idempotent."""

    workspace: Workspace
    name: str = attrs.field(default="write_file", kw_only=True)
    description: str = attrs.field(default="Write a text file of the workspace, replacing what is there.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({"path": PATH, "content": TEXT}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Write it."""
        try:
            path = text_in(request, "path")
            size = self.workspace.write(path, text_in(request, "content"))
        except (ValueError, OSError) as error:
            return failed(error)
        return done(f"wrote {size} bytes to {self.workspace.relative(path)}")


@attrs.define(eq=False)
class EditFile:
    """Replaces one passage of a file, which must stand there exactly once."""

    workspace: Workspace
    name: str = attrs.field(default="edit_file", kw_only=True)
    description: str = attrs.field(
        default="Replace a passage of a file; `old` must stand in it exactly once.", kw_only=True
    )
    schema: Mapping[str, JSON] = attrs.field(
        factory=lambda: schema_of({"path": PATH, "old": TEXT, "new": TEXT}), kw_only=True
    )
    is_idempotent: bool = attrs.field(default=False, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Replace it."""
        try:
            path, old, new = (text_in(request, name) for name in ("path", "old", "new"))
            self.workspace.write(path, replaced(self.workspace.read(path), old, new))
        except (ValueError, OSError) as error:
            return failed(error)
        return done(f"replaced one passage of {self.workspace.relative(path)}")


def replaced(text: str, old: str, new: str) -> str:
    """The text with one passage replaced; ValueError where it does not stand there exactly once."""
    if not old:
        raise ValueError("`old` is empty: give the passage to replace, or write the whole file")
    if (count := text.count(old)) != 1:
        raise ValueError(f"`old` stands {count} times in the file: give a passage that stands there once")
    return text.replace(old, new)


@attrs.define(eq=False)
class ListFiles:
    """Lists the files of the workspace."""

    workspace: Workspace
    name: str = attrs.field(default="list_files", kw_only=True)
    description: str = attrs.field(default="List every file of the workspace.", kw_only=True)
    schema: Mapping[str, JSON] = attrs.field(factory=lambda: schema_of({}), kw_only=True)
    is_idempotent: bool = attrs.field(default=True, init=False)
    isolation: Isolation = attrs.field(default=BELOW_WORKSPACE, init=False)

    async def call(self, request: CallRequest) -> ToolOutcome:  # noqa: ARG002 -- the port's signature
        """Their paths, one a line."""
        paths = self.workspace.paths()
        return done("\n".join(paths) or "(the workspace is empty)", list(paths))
