"""Domain definitions as files: what a file holds, and all that is wrong with it and with what it extends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from orchestrator.documents import MAXIMUM_BYTES, read_text
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.jsondata import JSON
from orchestrator.structuring import structure
from orchestrator.workflow.cascade import CascadeRule
from orchestrator.workflow.components.settings import ComponentSettings, component_settings
from orchestrator.workflow.decisions import Policy
from orchestrator.workflow.domain import Domain, DomainError, Phase, as_phases
from orchestrator.workflow.domainbases import Extended, extended
from orchestrator.workflow.domainremains import Remains, remains_of

__all__ = ["LONGEST_PHASE", "Examine", "phase_warnings", "read_domain"]

LONGEST_PHASE: Final = 100
"""Lines of a phase file beyond which it warns: a phase performs bounded work (contract 4)."""


def as_own_schema(value: dict[str, JSON]) -> dict[str, JSON]:
    """A schema of the state: what is no schema is taken for its properties."""
    if value and not {"properties", "type", "required", "additionalProperties"} & set(value):
        return {"type": "object", "properties": value}
    return value


@attrs.frozen(kw_only=True)
class DomainFile:
    """The keys of a domain file, once what it extends is filled in."""

    domain: str
    phases: tuple[Phase | str, ...]
    title: str = ""
    phase_directory: str = "./phases/"
    state_directory: str = "./state/"
    state: dict[str, JSON] = attrs.field(factory=dict, converter=as_own_schema)
    parameters: dict[str, dict[str, JSON]] | None = None
    policy: Policy = attrs.field(factory=Policy)
    cascade: CascadeRule = attrs.field(factory=CascadeRule)
    item: str = "current_item"


Examine: TypeAlias = Callable[[Sequence[Phase], Path | None], Iterable[Fault]]
"""What else is wrong with phases and the directory of their files, which is None where it is not known."""


def read_domain(path: Path, examine: Examine | None = None) -> Domain:
    """The domain that a file defines; DomainError with every fault.

    `examine` is what whoever executes the domain asks of it: a file that is refused is refused for all of it at once.
    """
    source = str(path)
    try:
        found = extended(path)
    except DocumentError as error:
        raise DomainError(error.source, error.faults) from None
    section = found.data.pop("components", None)
    settings, others = settings_in(section, source)
    read = fitting(found, source)
    faults = [*found.faults, *read.faults]
    domain = None
    try:
        domain = domain_of(read.file, settings, source)
    except DomainError as error:
        faults += read.remains.certain(error.faults)
    faults += (*read.file_faults(), *others)
    if domain is not None and not faults:
        return domain
    if examine is not None:
        faults += read.remains.certain(examine(read.phases, read.directory))
    raise DomainError(source, tuple(faults))


@attrs.frozen
class Fitting:
    """The keys of a domain file that fit a domain, and what is wrong with the others."""

    file: DomainFile
    remains: Remains
    faults: tuple[Fault, ...]

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases, in their places."""
        return as_phases(self.file.phases)

    @property
    def directory(self) -> Path | None:
        """The phase directory; None where the key does not fit, or what is extended would have named it."""
        return Path(self.file.phase_directory) if "phase_directory" in self.remains.data else None

    def file_faults(self) -> Iterator[Fault]:
        """Phase files that are named and cannot be read."""
        for index, phase in enumerate(self.phases):
            path = None if self.directory is None else phase.path_in(self.directory)
            if path is None or not (phase.file or path.exists()):
                continue
            try:
                read_text(path)
            except DocumentError as error:
                place = step(step("$.phases", index), "file")
                yield from (Fault(place, f"{path}: {fault}") for fault in error.faults)


def fitting(found: Extended, source: str) -> Fitting:
    """What fits, without the keys that do not."""
    remains, faults = Remains(found.data), None
    while True:
        try:
            return Fitting(structure(remains.data, DomainFile, source), remains, faults or ())
        except DocumentError as error:
            if faults is None:  # those of the next round may come of what was left out
                faults = tuple(fault for fault in error.faults if found.is_whole or is_own(fault, found.data))
            left = remains_of(remains, error.faults)
            remains = left if left.data != remains.data else remains_of(Remains({}), ())


def is_own(fault: Fault, data: dict[str, JSON]) -> bool:
    """Whether something is wrong whatever the file extends, which may hold the missing key or half of the rule."""
    is_missing = fault.path in ("$.domain", "$.phases") and fault.path.removeprefix("$.") not in data
    return not is_missing and not (fault.path == "$.cascade" and isinstance(data.get("cascade"), dict))


def settings_in(section: JSON, source: str) -> tuple[ComponentSettings, tuple[Fault, ...]]:
    """The settings of the components, or the defaults and what is wrong."""
    try:
        return component_settings(section, source), ()
    except DocumentError as error:
        return ComponentSettings(), error.faults


def domain_of(file: DomainFile, settings: ComponentSettings, source: str) -> Domain:
    """The domain that a file's keys describe."""
    return Domain(
        name=file.domain,
        phases=file.phases,
        title=file.title,
        phase_directory=file.phase_directory,
        state_directory=file.state_directory,
        components=settings,
        state=file.state,
        parameters=file.parameters,
        policy=file.policy,
        cascade=file.cascade,
        item=file.item,
        source=source,
    )


def phase_warnings(domain: Domain) -> tuple[str, ...]:
    """What is doubtful about the phase files: those longer than a phase with bounded work needs."""
    found = []
    for phase in domain.phases:
        path = domain.path_of(phase)
        if path is None or not path.is_file() or path.stat().st_size > MAXIMUM_BYTES:
            continue
        lines = len(path.read_bytes().splitlines())
        if lines > LONGEST_PHASE:
            found.append(
                f"{path}: {lines} lines; a phase performs bounded work in about {LONGEST_PHASE}: split the phase"
            )
    return tuple(found)
