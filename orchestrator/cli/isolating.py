"""The command `isolation`: which levels this machine offers, what was probed, and how to get what is missing."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import attrs

from orchestrator.cli.inert import inert
from orchestrator.errors import IsolationRefusedError
from orchestrator.outcome import held_json
from orchestrator.sandbox.ladder import Backend, best_sandbox
from orchestrator.sandbox.port import EVAL, GENERATOR, Profile
from orchestrator_events.isolation import IN_PROCESS, Isolation

__all__ = ["show_isolation"]


@attrs.frozen
class Rung:
    """One sandbox of the ladder: whether it works here, and what to do where it does not."""

    level: str
    backend: str
    isolation: Isolation | None
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        """The rung as plain data."""
        works = self.isolation is not None
        return {"level": self.level, "backend": self.backend, "works": works, "remedy": self.remedy}


def show_isolation(*, as_json: bool) -> None:
    """Probe, and show what holds programs here; nothing else is run."""
    rungs = tuple(ladder())
    found = {"generator": held_by(GENERATOR), "evaluator": held_by(EVAL)}
    if as_json:
        told = {role: held_json(isolation) for role, isolation in found.items()}
        sys.stdout.write(json.dumps({"levels": [rung.as_json() for rung in rungs], **told}, indent=2) + "\n")
        return
    sys.stdout.writelines(f"{inert(line)}\n" for line in (*ladder_lines(rungs), *held_lines(found)))


def ladder() -> Iterator[Rung]:
    """Every rung, the strongest first."""
    yield tried("strong", "bubblewrap")
    engine = shutil.which("podman") or shutil.which("docker")
    named = 'name an image that has what is run: backend = "container", image = "..." in [sandbox]'
    remedy = f"{engine} is there; {named}" if engine is not None else f"install podman or docker, and {named}"
    yield Rung("strong", "container", None, remedy)
    yield tried("basic", "containment")
    yield Rung("none", "in-process", IN_PROCESS)


def tried(level: str, backend: Backend) -> Rung:
    """Whether one backend works, by trying it."""
    try:
        return Rung(level, backend, best_sandbox(EVAL, backend=backend).isolation)
    except IsolationRefusedError as error:
        return Rung(level, backend, None, str(error))


def held_by(profile: Profile) -> Isolation:
    """The best that works for a profile."""
    return best_sandbox(profile).isolation


def ladder_lines(rungs: tuple[Rung, ...]) -> Iterator[str]:
    """A line a rung."""
    for rung in rungs:
        version = "" if rung.isolation is None else rung.isolation.version
        said = "works here" if rung.isolation is not None else rung.remedy
        if rung.level == "none":
            said = "for callables, which nothing holds"
        yield f"{rung.level:<7} {f'{rung.backend} {version}'.strip():<18} {said}"


def held_lines(found: dict[str, Isolation]) -> Iterator[str]:
    """What holds each of the two: probes, limits, and what nothing holds back."""
    for role, isolation in found.items():
        yield ""
        yield f"{role}  {isolation.label}"
        yield from (f"  {probe.name:<26} {probe.outcome}" for probe in isolation.probes)
        yield f"  limits: {', '.join(isolation.limits) or 'none'}"
        yield f"  not enforced: {', '.join(isolation.not_enforced) or 'nothing that is known of'}"
