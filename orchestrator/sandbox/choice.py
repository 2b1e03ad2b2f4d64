"""Which sandbox an adapter wants, and how it gets it without holding up its loop."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from orchestrator.errors import IsolationRefusedError
from orchestrator.sandbox.port import Launcher, Profile

__all__ = ["SandboxChoice", "absolute_paths", "chosen", "hint"]

_HIDDEN: Final = re.compile(
    rb"No such file or directory|ENOENT|not found|ModuleNotFoundError|No module named|Permission denied|EACCES"
    rb"|Read-only file system|EROFS"
)
_CUT_OFF: Final = re.compile(
    rb"ECONNREFUSED|ENOTFOUND|EAI_AGAIN|Connection refused|Network is unreachable|name resolution|not known"
    rb"|Could not resolve"
)


@attrs.frozen(kw_only=True)
class SandboxChoice:
    """The host's wish; `best_sandbox` says what each value means."""

    backend: str = "auto"
    engine: str = ""
    """docker or podman, when the backend is container."""
    image: str = ""
    """The container's image, which has to be there already."""


async def chosen(launcher: Launcher | None, profile: Profile, choice: SandboxChoice, require: str) -> Launcher:
    """The launcher to use: the one that was given, or else the best for the profile, probed in a thread.

    Raises IsolationRefusedError when it is weaker than `require`.
    """
    if launcher is None:
        from orchestrator.sandbox.ladder import best_sandbox

        return await asyncio.to_thread(
            best_sandbox,
            profile,
            backend=choice.backend,  # type: ignore[arg-type] # checked there, as it comes from a file
            require=require,
            engine=choice.engine,
            image=choice.image,
        )
    if not launcher.isolation.satisfies(require):
        raise IsolationRefusedError(
            f"isolation {require} is required, and the launcher that was given has {launcher.isolation.label}: "
            "leave it out, or lower require_isolation",
            required=require,
            isolation=launcher.isolation,
        )
    return launcher


def absolute_paths(paths: Iterable[Path | str]) -> tuple[Path, ...]:
    """The paths with `~` filled in, absolute; a lone text, which would pass one letter at a time, is a TypeError."""
    if isinstance(paths, str):
        raise TypeError(f"readable must be a list of paths: write ({paths!r},)")
    return tuple(Path(path).expanduser().absolute() for path in paths)


def hint(
    launcher: Launcher, profile: Profile, said: bytes, *, is_suspected: bool = False, is_for_model: bool = False
) -> str:
    """What to change when a program may have failed for what its sandbox hides; a model is told the fact alone.

    Empty when nothing that it said hints at it, unless it `is_suspected` all the same.
    """
    if launcher.isolation.level != "strong":
        return ""
    if not profile.network and _CUT_OFF.search(said):
        return "(in the sandbox it has no network)"
    if not is_suspected and not _HIDDEN.search(said):
        return ""
    if is_for_model:
        return "(in the sandbox it sees the system and its own directory, and writes there and to /tmp only)"
    seen = ", ".join(["the system", "the interpreter", "its program", "its directory", *map(str, profile.readable)])
    return (
        f"(in the sandbox it sees {seen}, and writes to /tmp only: name what else it needs in `readable`, "
        "its variables in `environment`, or choose another `sandbox`)"
    )
