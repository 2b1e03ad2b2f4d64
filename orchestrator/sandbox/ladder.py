"""The ladder: the strongest sandbox that works here, found by trying, or a refusal that says what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import attrs

from orchestrator.errors import IsolationRefusedError
from orchestrator.sandbox.bubblewrap import OLDEST, Bubblewrap
from orchestrator.sandbox.cgroup import Groups, usable_groups
from orchestrator.sandbox.container import Container
from orchestrator.sandbox.containment import Containment
from orchestrator.sandbox.limits import in_words
from orchestrator.sandbox.outcomes import keep, kept, name_of
from orchestrator.sandbox.port import EVAL, Launcher, Profile
from orchestrator.sandbox.probes import IN_ALL, NETWORK, probed, shortfall
from orchestrator.sandbox.seccomp import filter_program
from orchestrator_events.isolation import LEVELS, Isolation, Probe

__all__ = ["BACKENDS", "Backend", "best_sandbox"]

Backend: TypeAlias = Literal["auto", "bubblewrap", "container", "containment"]
BACKENDS: Final = ("auto", "bubblewrap", "container", "containment")

_INSTALL: Final = (
    "install bubblewrap (apt install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap), or configure a "
    "container engine"
)
_NAMESPACES: Final = (
    "this system does not let programs make user namespaces. On Ubuntu install the AppArmor profile for bwrap "
    "(apt install apparmor-profiles; ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict "
    "/etc/apparmor.d/; apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict); elsewhere "
    "sysctl kernel.unprivileged_userns_clone=1 or user.max_user_namespaces=15000; in a container let it make them"
)
_USERNS_REFUSED: Final = re.compile(
    r"uid map|RTM_NEWADDR|user namespace|new namespace|not permitted|No permissions to creat|ENOSPC|mount proc",
    re.IGNORECASE,
)
_ANSWER_S: Final = 10.0


def best_sandbox(
    profile: Profile, *, backend: Backend = "auto", require: str = "none", engine: str = "", image: str = ""
) -> Launcher:
    """The strongest launcher that works for this profile; its `isolation` says what was probed to hold.

    `auto` is bubblewrap where it works and containment elsewhere; any other backend is that one or a refusal.
    A container takes an `engine` (docker or podman; found on PATH when empty) and an `image` that is there.
    Blocks for about a tenth of a second at first; what was found is kept until the machine starts anew.
    Raises IsolationRefusedError, whose message says what to install or to change, when less than `require`
    (none, basic, strong) can be had; ValueError for a level or backend that does not exist.
    """
    if require not in LEVELS:
        raise ValueError(f"{require!r} is no level of isolation: choose one of {', '.join(LEVELS)}")
    if backend not in BACKENDS:
        raise ValueError(f"{backend!r} is no sandbox: choose one of {', '.join(BACKENDS)}")
    if backend == "container":
        return _container(profile, engine, image, require)
    missing = "containment was chosen: choose auto or bubblewrap"
    if backend != "containment":
        found = _bubblewrap(profile, shutil.which("bwrap") or "")
        if not isinstance(found, str):
            return found
        missing = found
        if backend == "bubblewrap":
            raise IsolationRefusedError(f"bubblewrap cannot be used: {missing}", required=require)
    contained = _contained(profile)
    if not contained.isolation.satisfies(require):
        raise IsolationRefusedError(
            f"isolation {require} is required, and only {contained.isolation.label} can be had: {missing}; "
            "or lower require_isolation",
            required=require,
            isolation=contained.isolation,
        )
    return contained


@lru_cache(maxsize=32)
def _bubblewrap(profile: Profile, program: str) -> Bubblewrap | str:
    """Bubblewrap with what it was found to hold, or why it cannot be used, with the remedy."""
    if not program:
        return f"there is no bwrap on PATH: {_INSTALL}"
    version = _version([program, "--version"])
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if numbers < OLDEST:
        return f"{program} has version {version or 'unknown'}, and 0.5.0 is needed: update bubblewrap"
    plain = Bubblewrap(program, numbers)
    groups = _usable_groups()
    if groups is None:
        return _tried(plain, profile, version)
    if groups.memory is None:
        # entering a group takes milliseconds: one for processes is worth it where nothing else bounds them
        found = _tried(plain, profile, version)
        if isinstance(found, str) or "number of processes" not in found.isolation.not_enforced:
            return found
    grouped = _tried(attrs.evolve(plain, groups=groups), profile, version)
    return _tried(plain, profile, version) if isinstance(grouped, str) else grouped


def _tried(launcher: Bubblewrap, profile: Profile, version: str) -> Bubblewrap | str:
    try:
        probes = _outcomes(launcher, profile, version)
    except (OSError, subprocess.SubprocessError) as error:
        remedy = _NAMESPACES if _USERNS_REFUSED.search(str(error)) else "see what bwrap says"
        return f"{error}: {remedy}"
    fell = shortfall(probes, profile)
    if fell:
        return f"it was set up, but it did not hold ({', '.join(fell)}): take that out of what it may read or write"
    return attrs.evolve(launcher, isolation=_isolation(launcher, profile, version, probes))


@lru_cache(maxsize=1)
def _usable_groups() -> Groups | None:
    return usable_groups()


def _outcomes(launcher: Bubblewrap, profile: Profile, version: str) -> tuple[Probe, ...]:
    found = os.stat(launcher.program)
    configuration = (launcher.program, found.st_mtime_ns, found.st_size, version, profile, launcher.python)
    name = name_of(*configuration, launcher.groups)
    probes = kept(name)
    if probes is None:
        in_all = launcher.groups is not None and launcher.groups.memory is not None
        probes = probed(launcher, profile, in_all=in_all)
        keep(name, probes)
    return probes


def _isolation(launcher: Bubblewrap, profile: Profile, version: str, probes: tuple[Probe, ...]) -> Isolation:
    outcomes = {probe.name: probe.outcome for probe in probes}
    bounded = outcomes["forks"] == "bounded"
    is_summed = outcomes.get(IN_ALL) == "bounded"
    absent = {
        "network": profile.network or any(outcomes[name] != "denied" for name in NETWORK),
        "unix sockets below what it reads": profile.name != EVAL.name or bool(profile.readable),
        "number of processes": not bounded,
        "memory in all": not is_summed,
        "system calls": filter_program(network=profile.network) is None,
        "size of the scratch space": tuple(map(int, re.findall(r"\d+", version)[:2])) < (0, 7),
    }
    return Isolation(
        level="strong",
        backend="bubblewrap",
        version=version if launcher.groups is None else f"{version} with {launcher.groups.label}",
        probes=probes,
        limits=in_words(profile.limits, processes=bounded, scratch=True, memory_total=is_summed),
        not_enforced=tuple(name for name, is_absent in absent.items() if is_absent),
    )


@lru_cache(maxsize=32)
def _contained(profile: Profile) -> Containment:
    return Containment(profile=profile)


def _container(profile: Profile, engine: str, image: str, require: str) -> Container:
    program = shutil.which(engine) if engine else shutil.which("podman") or shutil.which("docker")
    if program is None:
        wanted = engine or "docker or podman"
        raise IsolationRefusedError(
            f"there is no {wanted} on PATH: install it, or choose bubblewrap (apt install bubblewrap)", required=require
        )
    if not image:
        raise IsolationRefusedError("a container needs an image: name one that has what is run", required=require)
    is_docker = os.path.basename(program) == "docker"
    # docker's client works without its daemon, which is what is needed
    version = _version([program, "version", "--format", "{{.Server.Version}}" if is_docker else "{{.Client.Version}}"])
    if not version:
        remedy = "start it (systemctl start docker), and let this user reach it" if is_docker else "see `podman info`"
        raise IsolationRefusedError(f"{program} does not answer: {remedy}", required=require)
    return Container(engine=program, image=image, version=version, profile=profile)


def _version(command: list[str]) -> str:
    try:
        said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_ANSWER_S, check=True)  # noqa: S603 -- a program that the host has installed or named
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"\d+(\.\d+)+", said.stdout)
    return found[0] if found else ""
