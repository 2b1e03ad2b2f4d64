"""A domain: its phases, its components and its state, as a file declares them or code makes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, closest_name, step
from orchestrator.jsondata import JSON
from orchestrator.workflow.cascade import CascadeRule
from orchestrator.workflow.components.settings import ComponentSettings
from orchestrator.workflow.decisions import Policy
from orchestrator.workflow.jsonshape import Schema, schema_faults, value_faults
from orchestrator_states.catalogue import LIFECYCLES
from orchestrator_states.checks import LifecycleError
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.workflow import phases_lifecycle

__all__ = ["DONE", "OWN_FIELDS", "Domain", "DomainError", "Phase", "load_domain"]

DONE: Final = "done"
"""The terminal phase of every domain; it has no file (contract 4)."""
OWN_FIELDS: Final = (
    "phase",
    "workflow_id",
    "last_updated",
    "error",
    "retry_count",
    "cascade_detected",
    "schema_version",
    "parameters",
)
"""Fields of the state that the engine keeps; a domain's schema does not speak of them."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
CALLABLE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class DomainError(DocumentError):
    """A domain definition is malformed; `faults` lists everything that is wrong with it."""


@attrs.frozen(kw_only=True)
class Phase:
    """One phase: a Markdown file that a generator executes, or a callable."""

    id: str
    title: str = ""
    purpose: str = ""
    file: str = ""
    """In the phase directory; empty: `<id>.md` (contract 4). `-`: none."""
    call: str = attrs.field(default="", alias="callable")
    """`module:function` of a callable that executes it; empty: its file is executed."""
    following: tuple[str, ...] | None = attrs.field(default=None, alias="next")
    """Phases that may come next; None: any."""
    generator: str = ""
    """Which of the workflow's generators executes the file; empty: the default one."""
    seconds: float | None = None
    """How long one execution may take; None: as long as the budget lasts."""

    def path_in(self, directory: Path) -> Path | None:
        """Its file, of those in the phase directory; None where it has none."""
        if self.id == DONE or self.call or self.file == "-":
            return None
        return directory / (self.file or f"{self.id}.md")


def as_phases(phases: Sequence[Phase | str]) -> tuple[Phase, ...]:
    """The phases, those that are given as an id alone made one."""
    return tuple(Phase(id=phase) if isinstance(phase, str) else phase for phase in phases)


@attrs.frozen(kw_only=True, eq=False)
class Domain:
    """What a workflow of this kind is made of (contract 4). Making one raises DomainError with every fault."""

    name: str
    phases: tuple[Phase, ...] = attrs.field(converter=as_phases)
    """In order; the last one is `done`."""
    title: str = ""
    phase_directory: Path = attrs.field(default=Path("phases"), converter=Path)
    state_directory: Path = attrs.field(default=Path("state"), converter=Path)
    components: ComponentSettings = attrs.field(factory=ComponentSettings)
    state: Schema = attrs.field(factory=dict)
    """JSON Schema of the domain's own fields of the state; every merge is checked against it."""
    parameters: Mapping[str, Schema] | None = None
    """Schema of each parameter of a run, those without a `default` required; None: anything may be given."""
    policy: Policy = attrs.field(factory=Policy)
    cascade: CascadeRule = attrs.field(factory=CascadeRule)
    item: str = "current_item"
    """Field of the state that names what the workflow is working on."""
    source: str = "the domain"
    """Where it comes from, as errors name it."""

    def __attrs_post_init__(self) -> None:
        faults = (*phase_faults(self), *declaration_faults(self))
        if faults:
            raise DomainError(self.source, faults)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of its phases, in order."""
        return tuple(phase.id for phase in self.phases)

    @property
    def first(self) -> str:
        """The phase that a new workflow begins with."""
        return self.phases[0].id

    @cached_property
    def lifecycle(self) -> Lifecycle:
        """Its phases as a lifecycle of their own, to be drawn, exported and audited."""
        following = {phase.id: phase.following for phase in self.phases if phase.following is not None}
        return phases_lifecycle(self.name, self.ids, following)

    def phase(self, name: str) -> Phase:
        """The phase of this id; KeyError without one."""
        return next(phase for phase in self.phases if phase.id == name)

    def choices_after(self, name: str) -> tuple[str, ...]:
        """The phases that may come after this one."""
        following = self.phase(name).following
        return () if name == DONE else self.ids if following is None else following

    def skipped_to(self, name: str) -> str:
        """The phase that follows when this one is skipped: the first that it declares, else the next in order."""
        following = self.phase(name).following
        others = [each for each in following or () if each != name]
        return others[0] if others else self.ids[self.ids.index(name) + 1]

    def path_of(self, phase: Phase) -> Path | None:
        """The file of a phase; None where it has none."""
        return phase.path_in(self.phase_directory)

    def parameter_faults(self, parameters: Mapping[str, JSON]) -> Iterator[Fault]:
        """What is wrong with the parameters of a run."""
        if self.parameters is None:
            return
        for name, value in parameters.items():
            if name not in self.parameters:
                declared = ", ".join(self.parameters) or "none"
                message = f"unknown parameter: the domain {self.name} declares {declared}"
                yield Fault(step("$", name), message, closest_name(name, self.parameters))
            else:
                yield from value_faults(value, self.parameters[name], step("$", name))
        for name, schema in self.parameters.items():
            if name not in parameters and "default" not in schema:
                yield Fault(step("$", name), f"required parameter is missing: {schema.get('description', 'give it')}")

    def with_defaults(self, parameters: Mapping[str, JSON]) -> dict[str, JSON]:
        """The parameters, those that were not given at their defaults."""
        declared = self.parameters or {}
        defaults = {name: schema["default"] for name, schema in declared.items() if "default" in schema}
        return {**defaults, **parameters}

    def state_faults(self, state: Mapping[str, JSON]) -> tuple[Fault, ...]:
        """In what the domain's own fields of a state are not what it declares."""
        own = {name: value for name, value in state.items() if name not in OWN_FIELDS}
        if "metrics" not in self.state.get("properties", {}):
            own.pop("metrics", None)
        return tuple(value_faults(own, {**self.state, "required": []}))


def load_domain(path: str | os.PathLike[str]) -> Domain:
    """The domain that a .yaml, .toml, .json or .md file defines, with what it extends.

    Raises DomainError with every fault of the file, of those it extends, and of its phase files.
    """
    from orchestrator.workflow.domainfiles import read_domain

    return read_domain(Path(path))


def phase_faults(domain: Domain) -> Iterator[Fault]:
    """What is wrong with the phases."""
    ids = domain.ids
    if not ids or ids[-1] != DONE:
        yield Fault("$.phases", f"the last phase must be {DONE!r}, which ends the workflow: add it")
    if len(ids) == 1:
        yield Fault("$.phases", "there is no phase to execute: name at least one before the last")
    for index, phase in enumerate(domain.phases):
        path = step("$.phases", index)
        if not NAME.fullmatch(phase.id) or phase.id == "begun":
            yield Fault(step(path, "id"), f"{phase.id!r:.80} is no id: use letters, digits, '.', '_' and '-'")
        if phase.id in ids[:index]:
            yield Fault(step(path, "id"), f"{phase.id!r:.80} is the id of two phases: ids tell them apart")
        if phase.id == DONE and index < len(ids) - 1:
            yield Fault(path, f"{DONE!r} ends the workflow: put it last")
        yield from detail_faults(phase, ids, path)


def detail_faults(phase: Phase, ids: tuple[str, ...], path: str) -> Iterator[Fault]:
    """What is wrong with what one phase declares."""
    if phase.following is not None:
        if phase.id == DONE:
            yield Fault(step(path, "next"), f"nothing comes after {DONE!r}: leave it out")
        elif not phase.following:
            yield Fault(step(path, "next"), "names no phase: leave it out to allow any")
        for index, target in enumerate(phase.following):
            if target not in ids:
                message = f"there is no phase {target!r:.80}: there are {', '.join(ids)}"
                yield Fault(step(step(path, "next"), index), message, closest_name(target, ids))
    if phase.call and phase.file:
        yield Fault(path, "has a file and a callable: keep one of them")
    if phase.call and not CALLABLE.fullmatch(phase.call):
        yield Fault(step(path, "callable"), f"{phase.call!r:.80} is not of the form module:function")
    if phase.id == DONE and (phase.call or phase.file not in ("", "-")):
        yield Fault(path, f"{DONE!r} has no file and no callable: it is where the workflow ends")
    if phase.seconds is not None and not phase.seconds > 0:
        yield Fault(step(path, "seconds"), f"{phase.seconds!r} is no time: give a number above 0")


def declaration_faults(domain: Domain) -> Iterator[Fault]:
    """What is wrong with the rest of a domain."""
    if not NAME.fullmatch(domain.name):
        yield Fault("$.domain", f"{domain.name!r:.80} is no name: use letters, digits, '.', '_' and '-'")
    elif domain.name in LIFECYCLES:
        yield Fault("$.domain", f"{domain.name!r} is the name of a built-in lifecycle: choose another")
    yield from schema_faults(domain.state, "$.state")
    if "required" in domain.state:
        message = (
            "is not checked, since phases fill the state one by one: leave it out, and test for the field in a phase"
        )
        yield Fault("$.state.required", message)
    properties = domain.state.get("properties", {})
    for name in properties if isinstance(properties, Mapping) else ():
        if name in OWN_FIELDS:
            yield Fault(step("$.state.properties", name), "the engine keeps this field itself: leave it out")
    for name, schema in (domain.parameters or {}).items():
        yield from schema_faults(schema, step("$.parameters", name))
    if not any(phase_faults(domain)) and NAME.fullmatch(domain.name):
        try:
            _ = domain.lifecycle
        except LifecycleError as error:
            yield from (Fault("$.phases", fault) for fault in error.faults)
