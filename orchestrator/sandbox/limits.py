"""Limits as the kernel takes them, and as people read them."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from typing import Final

from orchestrator.sandbox.port import Limits

__all__ = ["in_words", "resource_limits", "size"]

_UNITS: Final = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def resource_limits(limits: Limits, seconds: float | None, *, processes: bool) -> dict[int, int]:
    """The resource limits of each process; `processes` where the count is the program's own.

    Elsewhere the kernel counts all processes of the user, and the limit would refuse the first fork.
    """
    cpu = None if seconds is None else math.ceil(seconds * (os.cpu_count() or 1)) + 1
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_NPROC: limits.processes if processes else None,
    }
    return {number: value for number, value in wanted.items() if value is not None}


def in_words(limits: Limits, *, processes: bool, scratch: bool, memory_total: bool) -> tuple[str, ...]:
    """The limits that hold, one text each."""
    return tuple(_words(limits, processes=processes, scratch=scratch, memory_total=memory_total))


def size(count: int) -> str:
    """A number of bytes: 268435456 is `256 MiB`."""
    for unit, name in _UNITS:
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} bytes"


def _words(limits: Limits, *, processes: bool, scratch: bool, memory_total: bool) -> Iterator[str]:
    if processes and limits.processes is not None:
        yield f"{limits.processes} processes"
    if memory_total and limits.memory_total_bytes is not None:
        yield f"{size(limits.memory_total_bytes)} of memory in all"
    if limits.memory_bytes is not None:
        yield f"{size(limits.memory_bytes)} of address space per process"
    if limits.file_bytes is not None:
        yield f"{size(limits.file_bytes)} per file"
    if scratch:
        yield f"{size(limits.scratch_bytes)} of scratch space"
    if limits.open_files is not None:
        yield f"{limits.open_files} descriptors per process"
    yield "processor time within the time of the call"
