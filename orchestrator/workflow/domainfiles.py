"""Domain definitions as files: what a file holds, what it extends, and all that is wrong with either."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from orchestrator.documents import MAXIMUM_BYTES, read_document, read_text
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.jsondata import JSON
from orchestrator.structuring import structure
from orchestrator.workflow.cascade import CascadeRule
from orchestrator.workflow.components.settings import ComponentSettings, component_settings
from orchestrator.workflow.decisions import Policy
from orchestrator.workflow.domain import Domain, DomainError, Phase, as_phases

__all__ = ["BASE", "BASE_NAMES", "LONGEST_PHASE", "phase_warnings", "read_domain"]

BASE_NAMES: Final = ("sage/core/components/orchestrator-base.md", "orchestrator-base.md", "orchestrator-base")
"""What a domain may call the built-in base; the first is the name that contract 4 uses."""
BASE: Final = MappingProxyType(
    {
        "phase_directory": "./phases/",
        "state_directory": "./state/",
        "components": [
            "state-manager",
            "retry-handler",
            "metrics-collector",
            "learning-recorder",
            "subagent-spawner",
        ],
    }
)
"""The built-in base: where phases and states lie, and every component at its defaults (contract 4)."""
LONGEST_PHASE: Final = 100
"""Lines of a phase file beyond which it warns: a phase performs bounded work (contract 4)."""
STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+)\]")
"""One step of a fault's path: a key, or an index."""
DIRECTORIES: Final = ("phase_directory", "state_directory")


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


def read_domain(path: Path) -> Domain:
    """The domain that a file defines; DomainError with every fault."""
    source = str(path)
    try:
        data = resolved(path, ())
    except DocumentError as error:
        raise DomainError(error.source, error.faults) from None
    section = data.pop("components", None)
    faults: list[Fault] = []
    settings = ComponentSettings()
    try:
        settings = component_settings(section, source)
    except DocumentError as error:
        faults += error.faults
    try:
        file = structure(data, DomainFile, source)
    except DocumentError as error:
        raise DomainError(source, (*error.faults, *faults_beside(data, error.faults, source), *faults)) from None
    try:
        domain = domain_of(file, settings, source)
    except DomainError as error:
        raise DomainError(source, (*error.faults, *file_faults(file), *faults)) from None
    faults += file_faults(file)
    if faults:
        raise DomainError(source, tuple(faults))
    return domain


def faults_beside(data: dict[str, JSON], known: Sequence[Fault], source: str) -> list[Fault]:
    """What else is wrong once the keys that fit no domain are left out; nothing, where too little is left to say."""
    remaining = deepcopy(data)
    for fault in known:
        leave_out(remaining, fault.path)
    try:
        file = structure({"domain": "unnamed", **remaining}, DomainFile, source)
    except DocumentError:
        return []
    found = list(file_faults(file)) if "phase_directory" in remaining else []
    try:
        domain_of(file, ComponentSettings(), source)
    except DomainError as error:
        found = [*error.faults, *found]
    return found


def leave_out(data: JSON, path: str) -> None:
    """Remove the innermost key on the way to a fault; entries of arrays keep their places."""
    holder, key = None, ""
    for name, index in STEP.findall(path):
        if isinstance(data, dict) and name in data:
            holder, key, data = data, name, data[name]
        elif isinstance(data, list) and index and int(index) < len(data):
            data = data[int(index)]
        else:
            break
    if holder is not None:
        del holder[key]


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


def resolved(path: Path, extending: tuple[Path, ...]) -> dict[str, JSON]:
    """The data of a domain file, over that of the file it extends; directories as seen from the file that names them.

    Raises DocumentError, for a cycle of files that extend each other as well.
    """
    real = path.resolve()
    if real in extending:
        cycle = " -> ".join(each.name for each in (*extending[extending.index(real) :], real))
        raise DocumentError(str(path), (Fault("$.extends", f"files extend each other in a circle: {cycle}"),))
    data = data_of(path)
    if not isinstance(data, dict):
        raise DocumentError(str(path), (Fault("$", "expected a table: a domain definition"),))
    data = {key.replace("-", "_"): value for key, value in data.items()}
    named = data.pop("extends", None)
    located(data, path.parent)
    return merged(base_of(named, path, (*extending, real)), data)


def data_of(path: Path) -> JSON:
    """What a file holds, as plain data."""
    if path.suffix.lower() in (".md", ".markdown"):
        from orchestrator.workflow.domainmarkdown import read_markdown_domain

        return read_markdown_domain(read_text(path), str(path))
    return read_document(path)


def base_of(named: JSON, path: Path, extending: tuple[Path, ...]) -> dict[str, JSON]:
    """The data of what a file extends: the built-in base, or another file."""
    base = dict(BASE)
    located(base, path.parent)
    if named is None:
        return base
    if not isinstance(named, str):
        raise DocumentError(str(path), (Fault("$.extends", "expected a string: the file that is extended"),))
    target = path.parent / named
    if target.is_file():
        return resolved(target, extending)
    if named in BASE_NAMES:
        return base
    message = f"{named!r} is no file; the built-in base is {BASE_NAMES[0]!r}"
    raise DocumentError(str(path), (Fault("$.extends", message),))


def located(data: dict[str, JSON], folder: Path) -> None:
    """Have the directories that a file names begin at the file's own."""
    for name in DIRECTORIES:
        if isinstance(data.get(name), str):
            data[name] = str(folder / data[name])


def merged(base: dict[str, JSON], own: dict[str, JSON]) -> dict[str, JSON]:
    """A table over another: tables key by key, everything else replaced."""
    result = dict(base)
    for key, value in own.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def file_faults(file: DomainFile) -> Iterator[Fault]:
    """Phase files that are named and cannot be read."""
    for index, phase in enumerate(as_phases(file.phases)):
        path = phase.path_in(Path(file.phase_directory))
        if path is None or not (phase.file or path.exists()):
            continue
        try:
            read_text(path)
        except DocumentError as error:
            place = step(step("$.phases", index), "file")
            yield from (Fault(place, f"{path}: {fault}") for fault in error.faults)


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
