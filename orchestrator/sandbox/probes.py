"""Probes: what a sandbox really holds is found by attacking it, in small, before anything is trusted to it."""

from __future__ import annotations

import asyncio
import inspect
import os
import secrets
import select
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs

from orchestrator.environment import clean_environment
from orchestrator.process import Completed, run_process
from orchestrator.sandbox import hostile
from orchestrator.sandbox.port import Launcher, Place, Profile, SandboxError
from orchestrator.sandbox.visibility import base_interpreter
from orchestrator.workspace import fresh_directory
from orchestrator_events.isolation import Probe

__all__ = ["IN_ALL", "NETWORK", "probed", "shortfall"]

NETWORK: Final = ("network: tcp", "network: udp", "network: abstract socket")
"""What a program that may use the network reaches."""
IN_ALL: Final = "memory in all"
"""Tried only where a control group is said to hold it; nothing else does."""
_INSIDE: Final = ("secret file", "secret variable")
_PROCESSES: Final = 12
"""The limit that is tried: a low one, since each process takes time to start."""
_MEMORY: Final = 64 * 1024 * 1024
"""The limit of all together that is tried, bytes; two processes try to have three quarters of it each."""
_SECONDS: Final = 5.0
_GONE_WITHIN_MS: Final = 100


@attrs.frozen(kw_only=True)
class _Bait:
    """What of the host is there to be reached, and how to see whether it was."""

    listeners: Mapping[str, socket.socket]
    folder: Path
    process: subprocess.Popen[bytes]
    canary: str
    survival: tuple[int, int]

    def settings(self) -> dict[str, object]:
        """Where everything is, as the hostile actions are told."""
        tcp, udp, abstract, path = self.listeners.values()
        return {
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract.getsockname(),
            "path": path.getsockname(),
            "outside": os.fspath(self.folder / "outside"),
            "secret": os.fspath(self.folder / "secret"),
            "canary": self.canary,
            "process": self.process.pid,
            "survival": self.survival[1],
            "processes": _PROCESSES + 4,
        }

    def taken(self) -> Iterator[str]:
        """What was reached, as far as it shows out here; the sandbox is over."""
        yield from (name for name, listener in self.listeners.items() if _was_reached(listener))
        if (self.folder / "outside").exists():
            yield "outside write"
        if self.process.poll() is not None:
            yield "host signal"
        poll = select.poll()
        poll.register(self.survival[0], select.POLLIN)  # the end of the pipe is told in any case
        if not poll.poll(_GONE_WITHIN_MS):
            yield "survival"


def probed(launcher: Launcher, profile: Profile, *, in_all: bool = False) -> tuple[Probe, ...]:
    """What became of every hostile action in this profile; takes about a tenth of a second, in this thread.

    With `in_all` the memory of all processes together is tried too.
    Not to be called in a thread that runs a loop. Raises OSError when the sandbox cannot be set up.
    """
    narrow = attrs.evolve(profile, limits=attrs.evolve(profile.limits, processes=_PROCESSES))
    with fresh_directory() as directory, _bait() as bait:
        (directory / "work").mkdir()
        completed = asyncio.run(_attacked(launcher, Place(directory=directory / "work", profile=narrow), bait))
        told = completed.report.decode(errors="replace").splitlines()
        if told[:1] != ["started"] or told[-1:] != ["ended"]:
            said = completed.stderr.decode(errors="backslashreplace").strip()[-500:]
            raise SandboxError(f"the probe did not end (status {completed.returncode}): {said or 'it said nothing'}")
        reached = {*told, *bait.taken()}
    names = (*bait.listeners, "outside write", *_INSIDE, "host signal", "survival")
    return (
        *(Probe(name, "allowed" if name in reached else "denied") for name in names),
        Probe("forks", "allowed" if "forks" in reached else "bounded"),
        *((_memory_probed(launcher, profile),) if in_all else ()),
    )


def shortfall(probes: tuple[Probe, ...], profile: Profile) -> tuple[str, ...]:
    """Names of the probes that a strong sandbox denies, and this one did not."""
    exempt = {"forks", IN_ALL, *(NETWORK if profile.network else ())}
    return tuple(probe.name for probe in probes if probe.outcome == "allowed" and probe.name not in exempt)


def _memory_probed(launcher: Launcher, profile: Profile) -> Probe:
    narrow = attrs.evolve(profile, limits=attrs.evolve(profile.limits, memory_bytes=None, memory_total_bytes=_MEMORY))
    with fresh_directory() as directory:
        place = Place(directory=directory, profile=narrow)
        completed = asyncio.run(_run(launcher, place, "attempt_memory", {"memory": _MEMORY // 4 * 3}))
    is_bounded = bool(completed.overuse) and completed.report == b"started\n"
    return Probe(IN_ALL, "bounded" if is_bounded else "allowed")


async def _attacked(launcher: Launcher, place: Place, bait: _Bait) -> Completed:
    try:
        return await _run(launcher, place, "attempt", bait.settings(), (bait.survival[1],))
    finally:
        os.close(bait.survival[1])


async def _run(
    launcher: Launcher, place: Place, act: str, settings: Mapping[str, object], inherit: tuple[int, ...] = ()
) -> Completed:
    code = f"{inspect.getsource(hostile)}\nimport sys\n"
    program = f"settings = {dict(settings)!r}\nsettings['report'] = int(os.environ['ORCHESTRATOR_REPORT_FD'])\n"
    return await run_process(
        [base_interpreter(), "-I", "-S", "-c", f"{code}{program}{act}(settings)"],
        cwd=place.directory,
        environment=clean_environment(("PATH", "HOME", "LD_LIBRARY_PATH")),
        seconds=_SECONDS,
        stdout_limit=10_000,
        stderr_limit=10_000,
        launcher=launcher,
        place=place,
        inherit=inherit,
        report_limit=10_000,
    )


@contextmanager
def _bait() -> Iterator[_Bait]:
    with ExitStack() as stack:
        folder = stack.enter_context(fresh_directory())
        canary = secrets.token_hex(16)
        (folder / "secret").write_text(canary)
        reading, writing = os.pipe()
        stack.callback(os.close, reading)
        yield _Bait(
            listeners=_listeners(stack, folder, canary),
            folder=folder,
            process=_victim(stack, canary),
            canary=canary,
            survival=(reading, writing),
        )


def _listeners(stack: ExitStack, folder: Path, canary: str) -> dict[str, socket.socket]:
    addresses: dict[str, tuple[int, int, str | tuple[str, int]]] = {
        "network: tcp": (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
        "network: udp": (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
        "network: abstract socket": (socket.AF_UNIX, socket.SOCK_STREAM, f"\0orchestrator-{canary}"),
        "path socket": (socket.AF_UNIX, socket.SOCK_STREAM, os.fspath(folder / "socket")),
    }
    found: dict[str, socket.socket] = {}
    for name, (family, kind, address) in addresses.items():
        listener = stack.enter_context(socket.socket(family, kind))
        listener.setblocking(False)
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        found[name] = listener
    return found


def _was_reached(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(1)
    except BlockingIOError:
        return False
    return True


def _victim(stack: ExitStack, canary: str) -> subprocess.Popen[bytes]:
    """A process of the host with a secret in its environment, which lives until its input is closed."""
    process = stack.enter_context(
        subprocess.Popen(  # noqa: S603 -- our own interpreter
            [base_interpreter(), "-I", "-S", "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            env={**clean_environment(("LD_LIBRARY_PATH",)), "CANARY": canary},
        )
    )
    stack.callback(process.kill)
    return process
