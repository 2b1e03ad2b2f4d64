"""`[sandbox]`: which sandbox holds programs, and what an eval suite may use in it."""

from __future__ import annotations

from typing import Any, Literal

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.quantities import parse_count, parse_size
from orchestrator.sandbox.choice import SandboxChoice
from orchestrator.sandbox.port import Limits
from orchestrator.sections.checking import read_by, was_set

__all__ = ["SandboxSection"]


def _bounded_size(value: str | int) -> int:
    size = parse_size(value)
    if size is None:
        raise ValueError("scratch space is memory and has to end: write a size such as 256M")
    return size


@attrs.frozen(kw_only=True)
class SandboxSection:
    """`[sandbox]`: the backend for generator and eval suite; the limits are those of the eval suite.

    "unlimited" lifts a limit, and what is left out has the default of the profile.
    """

    backend: Literal["auto", "bubblewrap", "container", "containment"] = "auto"
    """auto: the best one that works here."""
    engine: str = ""
    """Of a container: docker or podman; by default the one that is on PATH."""
    image: str = ""
    """Of a container: one that is there, with everything that is run."""
    memory: str | int | None = attrs.field(default=None, validator=read_by(parse_size))
    """Address space of each process."""
    memory_total: str | int | None = attrs.field(default=None, validator=read_by(parse_size))
    """Memory of all processes together, where a control group or a container can hold it."""
    processes: str | int | None = attrs.field(default=None, validator=read_by(parse_count))
    file_size: str | int | None = attrs.field(default=None, validator=read_by(parse_size))
    """Of each file that is written."""
    scratch: str | int | None = attrs.field(default=None, validator=read_by(_bounded_size))
    """Size of the scratch space."""
    open_files: str | int | None = attrs.field(default=None, validator=read_by(parse_count))

    def __attrs_post_init__(self) -> None:
        if self.backend == "container" and not self.image:
            fault = Fault("$.image", "a container needs an image: name one that has what is run")
            raise DocumentError("[sandbox]", (fault,))
        if self.backend != "container":
            strays = [name for name in ("engine", "image") if was_set(self, name)]
            faults = [Fault(f"$.{name}", 'belongs to backend = "container": add that, or remove it') for name in strays]
            if faults:
                raise DocumentError("[sandbox]", tuple(faults))

    def choice(self, backend: str | None = None) -> SandboxChoice:
        """The sandbox as adapters take it, with another backend if there is one."""
        return SandboxChoice(backend=backend or self.backend, engine=self.engine, image=self.image)

    def limits(self, usual: Limits) -> Limits:
        """The usual limits with those that are named in their place."""
        sizes = {
            "memory_bytes": self.memory,
            "memory_total_bytes": self.memory_total,
            "file_bytes": self.file_size,
            "scratch_bytes": self.scratch,
        }
        changes: dict[str, Any] = {name: parse_size(value) for name, value in sizes.items() if value is not None}
        counts = {"processes": self.processes, "open_files": self.open_files}
        changes |= {name: parse_count(value) for name, value in counts.items() if value is not None}
        return attrs.evolve(usual, **changes)
