"""The sandbox port: where a program works, what it may use there, and what is really started for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, Protocol

import attrs

from orchestrator_events.isolation import Isolation

__all__ = [
    "ALL_FILES",
    "EVAL",
    "GENERATOR",
    "Launch",
    "Launcher",
    "Limits",
    "Place",
    "Profile",
    "SandboxError",
    "Start",
]

MEBIBYTE: Final = 1024 * 1024
GIBIBYTE: Final = 1024 * MEBIBYTE

ALL_FILES: Final = "."
"""What a place collects when every file left in its directory is wanted, as one tar stream."""


class SandboxError(OSError):
    """A sandbox that worked when it was probed could not be set up; the message says what it said."""


@attrs.frozen(kw_only=True)
class Limits:
    """What a program may use; None is no limit. Each level lists what it cannot hold in `not_enforced`."""

    processes: int | None = 64
    """Processes and threads at once."""
    memory_bytes: int | None = 4 * GIBIBYTE
    """Address space of each process, bytes."""
    memory_total_bytes: int | None = 4 * GIBIBYTE
    """Memory of all processes together, bytes; held by a control group or a container only."""
    file_bytes: int | None = 256 * MEBIBYTE
    """Size of each file that is written, bytes."""
    scratch_bytes: int = 256 * MEBIBYTE
    """Size of the scratch copy and of /tmp, bytes each; the home and /dev/shm have a quarter of it each."""
    open_files: int | None = 1024
    """Descriptors of each process."""


@attrs.frozen(kw_only=True)
class Profile:
    """What a kind of program may do; this is what is probed, once for many starts.

    The processor time of each process is bounded by the time of the call, times the processors.
    """

    name: str
    network: bool = False
    """Whether it may use the host's network; without it, not even the loopback of the host can be reached."""
    readable: tuple[Path, ...] = ()
    """Paths of the host, absolute, that it may read beside the system, the interpreter and its own program."""
    limits: Limits = Limits()
    owns_files: bool = True
    """Whether all it reads is made readable for it, so that a host that is root can start it as nobody."""


EVAL: Final = Profile(name="eval")
"""An eval suite: no network, nothing writable; suite and candidate read-only or as a copy in scratch space."""

GENERATOR: Final = Profile(
    name="generator",
    network=True,
    limits=Limits(processes=512, memory_bytes=None, file_bytes=GIBIBYTE, open_files=4096),
    owns_files=False,
)
"""A generator: the host's network, and limits that language runtimes with large reservations live with."""


@attrs.frozen(kw_only=True)
class Place:
    """Where one program works, and under which profile."""

    directory: Path
    """Its working directory on the host, absolute; it has the same name inside."""
    profile: Profile = EVAL
    work: Literal["read-only", "scratch"] = "read-only"
    """Whether it sees the directory itself, read-only, or works in a copy in size-capped scratch space."""
    collects: str = ""
    """What comes out by the report pipe when it has ended: one file below the directory, or `ALL_FILES`."""


_NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})
_NO_LIMITS: Final[Mapping[int, int]] = MappingProxyType({})


@attrs.frozen(kw_only=True)
class Launch:
    """What is asked of a launcher: one command in one place."""

    command: tuple[str, ...]
    """In it `{report}` is where the report goes, when one is expected."""
    environment: Mapping[str, str] = _NO_VARIABLES
    """All variables the program sees, secrets among them: they go into no command line."""
    place: Place
    seconds: float | None = None
    inherit: tuple[int, ...] = ()
    """Descriptors that are passed on under the same number."""
    report: int | None = None
    """Descriptor of the pipe for the report; None when none is expected."""
    status: int = -1
    """Descriptor of the pipe on which a launcher may tell how the program really ended."""


@attrs.frozen(kw_only=True)
class Start:
    """What is really started."""

    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    inherit: tuple[int, ...] = ()
    """All descriptors to pass on, beside the three standard ones."""
    limits: Mapping[int, int] = _NO_LIMITS
    """Resource limits (resource.RLIMIT_…) to set on the program from outside."""
    tells_status: bool = False
    """Whether the status pipe tells how the program ended; without it the status of the process counts."""
    reports_on_stdout: bool = False
    """Whether standard output is the report, since no other pipe leads out; the program's own is on stderr."""
    overuse: Callable[[], str] | None = None
    """Tells, when it has ended, what its processes were killed for using too much of together; empty for nothing."""


class Launcher(Protocol):
    """Decides how a command is really started: as it is, or inside a sandbox. Immutable, safe to share."""

    @property
    def python(self) -> str:
        """The interpreter that `{python}` stands for in commands it starts."""
        ...

    @property
    def collects(self) -> bool:
        """Whether it brings out what a place collects; otherwise that stays in the directory, the real one."""
        ...

    @property
    def isolation(self) -> Isolation:
        """What was found to hold the programs it starts."""
        ...

    def prepared(self, launch: Launch) -> AbstractContextManager[Start]:
        """What to start for it. The context is left when the program is gone, whether it was started or not.

        Raises OSError when it cannot be prepared.
        """
        ...
