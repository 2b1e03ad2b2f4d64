"""The file system of a sandbox, as arguments of bubblewrap: an empty root to which what is needed is bound."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import attrs

from orchestrator.sandbox.port import Launch
from orchestrator.sandbox.visibility import SYSTEM, is_within, readable_paths

__all__ = ["ORIGIN", "file_system"]

ORIGIN: Final = "/.origin"
"""Where the working directory of the host is, read-only, when the program works in a copy of it."""

Kind: TypeAlias = Literal["read-only", "scratch", "copy"]


@attrs.frozen
class _Mount:
    """One thing that is seen inside."""

    path: str
    kind: Kind = "read-only"
    size: int = 0


def file_system(launch: Launch, data: Mapping[str, int], *, has_size: bool) -> list[str]:
    """The arguments, in order; `data` are small files by their path inside, as descriptors to read them from.

    Parents come before what lies in them, so that a readable path in a hidden home is seen and its neighbours
    are not. At last the root is made read-only, and with it all that is no mount of its own.
    """
    arguments = list(_system(data))
    seen: list[str] = [path for path in SYSTEM if os.path.isdir(path)]
    for mount in sorted(_mounts(launch), key=lambda mount: len(Path(mount.path).parts)):
        if mount.kind == "read-only" and _is_seen(mount.path, seen):
            continue
        arguments += _parents(mount.path, seen)
        arguments += _placed(mount, has_size=has_size)
        seen.append(mount.path if mount.kind == "read-only" else f"-{mount.path}")
    if launch.place.work == "scratch":
        arguments += ["--ro-bind", os.fspath(launch.place.directory), ORIGIN]
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/"]


def _system(data: Mapping[str, int]) -> Iterator[str]:
    for path in SYSTEM:
        if os.path.islink(path) and path.count("/") == 1:
            yield from ("--symlink", os.readlink(path), path)
        elif os.path.exists(path):
            yield from (*_parents(path, []), "--ro-bind", path, path)
    yield from ("--proc", "/proc", "--dev", "/dev", "--dir", "/run", "--dir", "/var")
    yield from ("--symlink", "../tmp", "/var/tmp")  # noqa: S108 -- the one inside
    for path, descriptor in data.items():
        yield from ("--perms", "0444", "--ro-bind-data", str(descriptor), path)


def _mounts(launch: Launch) -> Iterator[_Mount]:
    place, home = launch.place, launch.environment.get("HOME", "")
    scratch = place.profile.limits.scratch_bytes
    directory = os.path.abspath(place.directory)
    yield _Mount("/tmp", "scratch", scratch)  # noqa: S108 -- the one inside
    yield _Mount("/dev/shm", "scratch", scratch // 4)  # noqa: S108 -- the one inside
    if home.startswith("/") and len(Path(home).parts) > 1 and not _is_seen(home, SYSTEM) and home != directory:
        yield _Mount(os.path.normpath(home), "scratch", scratch // 4)
    for path in readable_paths(launch.command, directory, launch.environment, place.profile.readable):
        yield _Mount(path)
    if place.work == "scratch" or is_within(home, directory):  # who works at home shows none of it
        yield _Mount(directory, "copy", scratch)
    else:
        yield _Mount(directory)


def _placed(mount: _Mount, *, has_size: bool) -> Iterable[str]:
    if mount.kind == "read-only":
        return ("--ro-bind", mount.path, mount.path)
    size = ("--size", str(mount.size)) if has_size else ()
    return ("--perms", "1777" if mount.kind == "scratch" else "0777", *size, "--tmpfs", mount.path)


def _parents(path: str, seen: Iterable[str]) -> Iterator[str]:
    """The directories above it that are not there yet; bubblewrap's own would be closed to other users."""
    for parent in reversed(Path(path).parents):
        if len(parent.parts) > 1 and not _is_seen(os.fspath(parent), seen):
            yield from ("--perms", "0755", "--dir", os.fspath(parent))


def _is_seen(path: str, seen: Iterable[str]) -> bool:
    """Whether the innermost thing that is placed there is a directory of the host."""
    holding = [entry for entry in seen if is_within(path, entry.lstrip("-"))]
    return bool(holding) and not holding[-1].startswith("-")
