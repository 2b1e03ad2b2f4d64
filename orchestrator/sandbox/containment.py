"""The level without a sandbox: a session of its own, resource limits, a clean environment; the floor of the ladder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from orchestrator.sandbox.limits import in_words, resource_limits
from orchestrator.sandbox.port import EVAL, Launch, Profile, Start
from orchestrator_events.isolation import Isolation

__all__ = ["CONTAINMENT", "Containment"]

NOT_ENFORCED: Final = (
    "files of the user",
    "network",
    "secrets in files and in other processes of the user",
    "signals to other processes of the user",
    "number of processes",
    "memory in all",
    "scratch space",
    "processes that leave the session",
    "system calls",
)


@attrs.frozen
class Containment:
    """Starts the command itself. It bounds accidents, not attacks: files, network and memory are the user's own.

    The session is killed when the program ends; what made a session of its own, a daemon, is out of reach.
    """

    profile: Profile = EVAL
    python: str = sys.executable
    collects: bool = False

    @property
    def isolation(self) -> Isolation:
        """Level basic; nothing is probed, for nothing is claimed but the limits that the kernel was given."""
        return Isolation(
            level="basic",
            backend="containment",
            limits=in_words(self.profile.limits, processes=False, scratch=False, memory_total=False),
            not_enforced=NOT_ENFORCED,
        )

    @contextmanager
    def prepared(self, launch: Launch) -> Iterator[Start]:
        """The command itself, with its limits."""
        report = () if launch.report is None else (launch.report,)
        yield Start(
            command=launch.command
            if launch.report is None
            else tuple(word.replace("{report}", f"/dev/fd/{launch.report}") for word in launch.command),
            directory=launch.place.directory,
            environment=launch.environment,
            inherit=(*launch.inherit, *report),
            limits=resource_limits(launch.place.profile.limits, launch.seconds, processes=False),
        )


CONTAINMENT: Final = Containment()
