"""A container engine as the sandbox, for hosts that choose it: docker or podman, with an image of the host's own.

Only the three standard streams lead out of a container, so where a report is expected the program's own output
goes to standard error and the report comes on standard output. The image needs /bin/sh, and tar for what is
collected.
"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import attrs

from orchestrator.sandbox.limits import in_words
from orchestrator.sandbox.port import EVAL, Launch, Profile, Start
from orchestrator_events.isolation import Isolation, Probe

__all__ = ["Container"]

_STREAMS: Final = 'exec 3>&1 1>&2; {copy}cd "$0" && "$@" 3>&3; code=$?; {collect}exit $code'
_UNTESTED: Final = ("network", "outside write", "secret file", "secret variable", "host signal", "survival", "forks")


@attrs.frozen(kw_only=True)
class Container:
    """Starts programs in a fresh container each: no privilege, read-only root, limits, and no network for evals."""

    engine: str
    """Path of docker or podman."""
    image: str
    version: str = ""
    profile: Profile = EVAL
    python: str = "python3"
    collects: bool = True

    @property
    def isolation(self) -> Isolation:
        """Level strong, as configured; what the engine holds is not probed, since that needs the image's help."""
        network = ("network",) if self.profile.network else ()
        return Isolation(
            level="strong",
            backend=f"container {os.path.basename(self.engine)}",
            version=self.version,
            probes=tuple(Probe(name, "untested: configured") for name in _UNTESTED),
            limits=in_words(self.profile.limits, processes=True, scratch=True, memory_total=True),
            not_enforced=(*network, "a signal that ends a program is told as status 128 + its number"),
        )

    @contextmanager
    def prepared(self, launch: Launch) -> Iterator[Start]:
        """The engine's command line; the container is removed when the program is gone."""
        name = f"orchestrator-{secrets.token_hex(8)}"
        command = (self.engine, "run", "--name", name, *self._options(launch), self.image, *_inner(launch))
        try:
            yield Start(
                command=command,
                directory=launch.place.directory,
                # The engine's client runs outside, with what it needs to find its daemon.
                environment={**_of_client(), **launch.environment},
                reports_on_stdout=launch.report is not None,
            )
        finally:
            self._remove(name)

    def _options(self, launch: Launch) -> Iterator[str]:
        place, limits = launch.place, launch.place.profile.limits
        yield from ("--rm", "--interactive", "--init", "--pull", "never", "--read-only", "--cap-drop", "ALL")
        yield from ("--security-opt", "no-new-privileges", "--user", f"{os.geteuid() or 65534}:{os.getegid() or 65534}")
        yield from ("--network", "bridge" if place.profile.network else "none", "--hostname", "sandbox")
        if limits.processes is not None:
            yield f"--pids-limit={limits.processes}"
        if limits.memory_total_bytes is not None:
            yield from (f"--memory={limits.memory_total_bytes}", f"--memory-swap={limits.memory_total_bytes}")
        for kind, value in (("nofile", limits.open_files), ("fsize", limits.file_bytes), ("core", 0)):
            if value is not None:
                yield f"--ulimit={kind}={value}:{value}"
        yield f"--tmpfs=/tmp:rw,nosuid,nodev,mode=1777,size={limits.scratch_bytes}"
        yield from self._mounts(launch)
        for variable in sorted({*launch.environment} - {"PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR"}):
            yield f"--env={variable}"  # the engine takes the value from its own environment: none is on show
        yield from ("--env=HOME=/tmp", "--env=TMPDIR=/tmp", "--env=PYTHONDONTWRITEBYTECODE=1")
        yield f"--workdir={'/' if launch.report is not None or place.work == 'scratch' else place.directory}"

    def _mounts(self, launch: Launch) -> Iterator[str]:
        place = launch.place
        directory = os.path.abspath(place.directory)
        if place.work == "scratch":
            yield _bound(directory, "/.origin")
            yield f"--tmpfs={directory}:rw,exec,nosuid,nodev,mode=0777,size={place.profile.limits.scratch_bytes}"
        else:
            yield _bound(directory, directory)
        for path in place.profile.readable:
            yield _bound(os.path.abspath(path), os.path.abspath(path))

    def _remove(self, name: str) -> None:
        # Killing the client leaves the container running; the engine is told, and not waited for.
        with suppress(OSError, RuntimeError):  # RuntimeError: no thread can be had, as at the exit of the interpreter
            process = subprocess.Popen(  # noqa: S603 -- the engine that the host configured
                [self.engine, "rm", "--force", name],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            threading.Thread(target=process.wait, name="orchestrator-collect", daemon=True).start()


def _inner(launch: Launch) -> tuple[str, ...]:
    """The command, behind a shell where something has to be copied in or brought out."""
    place = launch.place
    if launch.report is None and place.work != "scratch":
        return launch.command
    copy = 'cp -R /.origin/. "$0" && ' if place.work == "scratch" else ""
    collect = f'tar -cf - -C "$0" {shlex.quote(place.collects)} >&3 2>/dev/null; ' if place.collects else ""
    words = tuple(word.replace("{report}", "/dev/fd/3") for word in launch.command)
    script = _STREAMS.replace("{copy}", copy).replace("{collect}", collect)
    return ("/bin/sh", "-c", script, os.path.abspath(place.directory), *words)


def _bound(source: str, target: str) -> str:
    if "," in source:
        raise ValueError(f"{source!r} cannot be mounted into a container, for it holds a comma: rename it")
    return f"--mount=type=bind,source={source},target={target},readonly"


def _of_client() -> dict[str, str]:
    names = ("PATH", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST")
    return {name: os.environ[name] for name in names if name in os.environ}
