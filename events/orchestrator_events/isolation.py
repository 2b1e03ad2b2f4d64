"""What holds a program or a callable in: the level, what was probed, and what nothing holds back."""

from __future__ import annotations

from typing import Annotated

import attrs

__all__ = ["IN_PROCESS", "LEVELS", "UNKNOWN", "Isolation", "Probe"]

LEVELS = ("none", "basic", "strong")
"""From the weakest: in this process; a contained child process; a sandbox of its own, or another machine."""


@attrs.frozen(weakref_slot=False)
class Probe:
    """One thing that was tried from inside, and what became of it."""

    name: Annotated[str, "What was tried: network, outside write, secret, host signal, forks, survival."]
    outcome: Annotated[str, "denied, bounded, allowed, or untested with the reason."]


@attrs.frozen(kw_only=True, weakref_slot=False)
class Isolation:
    """What was found to hold, not what was configured."""

    level: Annotated[str, "none, basic or strong."]
    backend: Annotated[str, "What does the isolating: bubblewrap, container, containment, remote, in-process."]
    version: Annotated[str, "Version of the backend; empty where it has none."] = ""
    probes: Annotated[tuple[Probe, ...], "What was tried from inside, and what became of it."] = ()
    limits: Annotated[tuple[str, ...], "Limits in force, in words."] = ()
    not_enforced: Annotated[tuple[str, ...], "What nothing holds back, in words."] = ()

    @property
    def label(self) -> str:
        """`strong (bubblewrap 0.8.0)`: what each attempt records."""
        return f"{self.level} ({' '.join(part for part in (self.backend, self.version) if part)})"

    def satisfies(self, level: str) -> bool:
        """Whether this is the asked level or a stronger one."""
        return LEVELS.index(self.level) >= LEVELS.index(level)


IN_PROCESS = Isolation(
    level="none",
    backend="in-process",
    not_enforced=("files", "network", "memory", "processes", "environment", "end of a call that hangs"),
)
"""A callable in our own process: nothing holds it."""

UNKNOWN = Isolation(level="none", backend="unstated", not_enforced=("whatever the adapter does not say",))
"""An adapter of the host's own that says nothing about it."""
