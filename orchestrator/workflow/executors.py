"""What executes each phase: a callable that is given or imported, or a generator that reads the phase's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from orchestrator.faults import Fault, closest_name, step
from orchestrator.ports import Generator
from orchestrator.wording import describe
from orchestrator.workflow.domain import DONE, NAME, Domain, DomainError, Phase
from orchestrator.workflow.phases import PhaseCall

__all__ = ["calls_of", "executors_of", "lacking"]


def executors_of(
    domain: Domain, given: Mapping[str, PhaseCall], generators: Mapping[str, Generator], default: str
) -> dict[str, PhaseCall]:
    """The callables that execute phases, those that are given before those that the domain names.

    Raises DomainError with every one that cannot be imported or fits no phase, and every phase that nothing executes.
    """
    calls, faults = imported_calls(domain.phases, given)
    faults = [*misplaced_faults(domain, given), *faults, *reader_faults(domain, given, generators, default)]
    if faults:
        raise DomainError(domain.source, tuple(faults))
    return {**calls, **given}


def calls_of(domain: Domain) -> dict[str, PhaseCall]:
    """The callables that a domain names, imported; DomainError with every one that cannot be."""
    calls, faults = imported_calls(domain.phases, {})
    if faults:
        raise DomainError(domain.source, tuple(faults))
    return calls


def lacking(phases: Sequence[Phase], directory: Path | None) -> Iterator[Fault]:
    """Files of phases that are not there, and callables that cannot be imported: what no generator makes up for.

    Without a directory nothing is said of files. Those that a phase names itself are looked for when it is loaded.
    """
    for index, phase in enumerate(phases):
        path = phase.path_in(directory or Path())
        is_looked_for = directory is not None and not phase.file and NAME.fullmatch(phase.id)
        if path is not None and is_looked_for and not path.is_file():
            message = f"phase {phase.id}: there is no {path}: write it, or name a callable"
            yield Fault(step("$.phases", index), message)
        elif path is None and not phase.call and phase.id != DONE:
            message = f"phase {phase.id} has neither a file nor a callable: give it one"
            yield Fault(step("$.phases", index), message)
    yield from imported_calls(phases, {})[1]


def misplaced_faults(domain: Domain, given: Mapping[str, PhaseCall]) -> Iterator[Fault]:
    """Callables that are given for what is no phase to execute."""
    for name in given:
        if name not in domain.ids or name == DONE:
            message = f"a callable is given for {name!r:.80}, which is no phase to execute"
            yield Fault("", message, closest_name(name, domain.ids))


def imported_calls(phases: Sequence[Phase], given: Mapping[str, PhaseCall]) -> tuple[dict[str, PhaseCall], list[Fault]]:
    """The callables that phases name, but for those that are given, and every one that cannot be imported."""
    calls: dict[str, PhaseCall] = {}
    faults = []
    for index, phase in enumerate(phases):
        if not phase.call or phase.id in given:
            continue
        try:
            calls[phase.id] = imported(phase.call)
        except Exception as error:  # noqa: BLE001 -- importing runs code of others
            path = step(step("$.phases", index), "callable")
            faults.append(Fault(path, f"{phase.call} cannot be imported: {describe(error)}"))
    return calls, faults


def imported(place: str) -> PhaseCall:
    """The callable at `module:function`."""
    module, _, path = place.partition(":")
    found: Any = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"it is {type(found).__name__}, not a callable")
    call: PhaseCall = found
    return call


def reader_faults(
    domain: Domain, given: Mapping[str, PhaseCall], generators: Mapping[str, Generator], default: str
) -> Iterator[Fault]:
    """Phases without a callable that no generator executes."""
    for index, phase in enumerate(domain.phases):
        if phase.id == DONE or phase.call or phase.id in given:
            continue
        path = domain.path_of(phase)
        place = step("$.phases", index)
        reader = phase.generator or default
        if path is None or not path.is_file():
            where = f"there is no file {path}" if path else "it has no file"
            yield Fault(place, f"nothing executes phase {phase.id}: {where}, and no callable is given")
        elif reader not in generators:
            known = ", ".join(generators) or "none"
            wanted = phase.generator or "default"
            yield Fault(place, f"no generator {wanted!r} executes {path.name}: there are {known}; give one")
        elif getattr(generators[reader], "nests", False):
            name = generators[reader].name
            yield Fault(place, f"{name} starts runs of its own, which a phase cannot hold: choose another")
