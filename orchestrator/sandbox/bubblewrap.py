"""The sandbox of choice: bubblewrap, with an allow-listed root and nothing of the host that can be written to.

The program runs in namespaces of its own (users, processes, network, hosts, IPC) that end with it: whatever it
started dies with the first process of its process namespace, at once. Killing groups or sessions was measured to
leave daemons behind. Resource limits are set inside, where the kernel counts its processes alone.
"""

from __future__ import annotations

import inspect
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

import attrs

from orchestrator.sandbox import inside
from orchestrator.sandbox.cgroup import Groups
from orchestrator.sandbox.limits import resource_limits
from orchestrator.sandbox.mounts import ORIGIN, file_system
from orchestrator.sandbox.port import Launch, Start
from orchestrator.sandbox.seccomp import filter_program
from orchestrator.sandbox.visibility import base_interpreter
from orchestrator_events.isolation import UNKNOWN, Isolation

__all__ = ["Bubblewrap"]

OLDEST: Final = (0, 5)
"""The first version that gives files and directories the permissions it is told."""
_SIZES: Final = (0, 7)
_NO_NESTING: Final = (0, 8)
_LONE_USERS: Final = 1_900_000_000
"""Ids from here on, up to 65,535 more, belong to nobody by the usual conventions (systemd: UIDs, GIDs)."""


@attrs.frozen
class Bubblewrap:
    """Starts programs inside bubblewrap, whatever user this process is.

    As root an eval suite goes on inside as a user of its own that owns nothing; a generator, which reads files
    that only root may read, stays root in a user namespace, without any privilege.
    """

    program: str
    """Path of bwrap."""
    version: tuple[int, ...] = OLDEST
    isolation: Isolation = UNKNOWN
    """What was probed to hold."""
    python: str = sys.executable
    collects: bool = True
    groups: Groups | None = None
    """Where control groups can be made, one for each start."""

    @contextmanager
    def prepared(self, launch: Launch) -> Iterator[Start]:
        """The command inside bubblewrap; files for the sandbox are handed over in memory."""
        user = _lone_user() if os.geteuid() == 0 and launch.place.profile.owns_files else None
        limits = launch.place.profile.limits
        if user is not None:
            _open_up(launch.place.directory)
        with ExitStack() as stack:
            data = {path: stack.enter_context(_in_memory(text)) for path, text in _accounts(launch, user).items()}
            rules = filter_program(network=launch.place.profile.network)
            filtering = () if rules is None else (stack.enter_context(_in_memory(rules)),)
            group = None if self.groups is None else stack.enter_context(self.groups.opened(limits))
            doors = () if group is None else group.doors
            given = (*launch.inherit, *(() if launch.report is None else (launch.report,)))
            yield Start(
                command=(
                    self.program,
                    *self._namespaces(launch, user),
                    *file_system(launch, data, has_size=self.version >= _SIZES),
                    *(word for rules in filtering for word in ("--seccomp", str(rules))),
                    "--chdir",
                    "/",
                    "--",
                    *_inner_step(launch, user, doors),
                ),
                directory=launch.place.directory,
                environment={**launch.environment, "TMPDIR": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"},  # noqa: S108
                inherit=(*given, launch.status, *data.values(), *filtering, *doors),
                tells_status=True,
                overuse=None if group is None else group.overuse,
            )

    def _namespaces(self, launch: Launch, user: int | None) -> Iterator[str]:
        yield from ("--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
        yield from ("--die-with-parent", "--hostname", "sandbox", "--cap-drop", "ALL")
        if not launch.place.profile.network:
            yield "--unshare-net"
        if user is not None:
            yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
        else:
            yield "--unshare-user"
            if self.version >= _NO_NESTING:
                yield "--disable-userns"


def _inner_step(launch: Launch, user: int | None, doors: tuple[int, ...]) -> tuple[str, ...]:
    settings = {
        "status": launch.status,
        "report": launch.report,
        "doors": doors,
        "user": user,
        "directory": os.path.abspath(launch.place.directory),
        "origin": ORIGIN if launch.place.work == "scratch" else "",
        "collects": launch.place.collects,
        "limits": sorted(resource_limits(launch.place.profile.limits, launch.seconds, processes=True).items()),
    }
    code = f"{_source()}\nimport sys\nsys.exit(run({settings!r}, sys.argv[1:]))\n"
    report = f"/dev/fd/{launch.report}"
    words = launch.command if launch.report is None else [word.replace("{report}", report) for word in launch.command]
    return (base_interpreter(), "-I", "-S", "-c", code, *words)


@lru_cache(maxsize=1)
def _source() -> str:
    return inspect.getsource(inside)


def _accounts(launch: Launch, user: int | None) -> dict[str, bytes]:
    """The users that exist inside: root, and the one that the program runs as."""
    home = launch.environment.get("HOME") or "/"
    number, group = (os.geteuid(), os.getegid()) if user is None else (user, user)
    names = {0: "root", number: "root" if number == 0 else "user"}
    users = "".join(f"{name}:x:{each}:{group if each else 0}::{home}:/bin/sh\n" for each, name in names.items())
    owners = {0: "root", group: "root" if group == 0 else "user"}
    groups = "".join(f"{name}:x:{each}:\n" for each, name in owners.items())
    return {"/etc/passwd": users.encode(), "/etc/group": groups.encode()}


@contextmanager
def _in_memory(content: bytes) -> Iterator[int]:
    file = os.memfd_create("sandbox")
    try:
        os.write(file, content)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)


def _lone_user() -> int:
    """A user id for one start alone, so that the kernel counts its processes apart from all others."""
    return _LONE_USERS + secrets.randbelow(1 << 16)


def _open_up(directory: Path) -> None:
    """Let everybody read what lies in a directory that was made for the program; its parent is private."""
    for folder, _, names in os.walk(directory):
        os.chmod(folder, stat.S_IMODE(os.stat(folder).st_mode) | 0o555)  # noqa: S103 -- that is the purpose
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                mode = stat.S_IMODE(os.stat(path).st_mode)
                os.chmod(path, mode | 0o444 | (0o111 if mode & stat.S_IXUSR else 0))
