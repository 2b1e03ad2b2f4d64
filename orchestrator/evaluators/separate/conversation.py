"""Starts the two processes with one socket between them, and sees both to their end."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import attrs

import orchestrator
from orchestrator.evaluators.reports import LARGEST_REPORT
from orchestrator.evaluators.separate.layout import Layout
from orchestrator.process import Completed, run_process
from orchestrator.sandbox.port import Launcher, Place

__all__ = ["Conversation", "Endings"]

LAUNCH: Final = str(Path(orchestrator.__file__).with_name("runner") / "launch.py")
LEAVE_S: Final = 1.0
"""How long the candidate's process may take to end when the judge has, seconds."""


@attrs.frozen(kw_only=True)
class Endings:
    """How the two processes ended; None for a candidate's that was stopped because the judge was done."""

    judge: Completed
    candidate: Completed | None


@attrs.frozen(kw_only=True)
class Conversation:
    """What the two processes are started with."""

    launcher: Launcher
    layout: Layout
    judge_place: Place
    candidate_place: Place
    environment: Mapping[str, str]
    seconds: float | None
    output_limit: int

    async def held(self, options: Mapping[str, Any]) -> Endings:
        """Run both; the judge's end is the end. Raises OSError or ValueError when one cannot be started."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            candidate = asyncio.ensure_future(self._candidate(theirs))
            try:
                judge = await self._judge(ours, options)
                ours.close()
                with suppress(asyncio.TimeoutError):
                    return Endings(judge=judge, candidate=await asyncio.wait_for(candidate, LEAVE_S))
                return Endings(judge=judge, candidate=None)
            finally:
                candidate.cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({candidate})

    async def _judge(self, end: socket.socket, options: Mapping[str, Any]) -> Completed:
        described = json.dumps({**options, "descriptor": end.fileno()})
        return await self._run("judge", described, self.judge_place, end, report_limit=LARGEST_REPORT)

    async def _candidate(self, end: socket.socket) -> Completed:
        try:
            described = json.dumps({"descriptor": end.fileno()})
            return await self._run("candidate", described, self.candidate_place, end)
        finally:
            # The judge hears of the end of the candidate's process once nobody holds that end of the socket.
            end.close()

    async def _run(
        self, side: str, options: str, place: Place, end: socket.socket, report_limit: int | None = None
    ) -> Completed:
        temporary = str(self.layout.temporary(place.directory))
        return await run_process(
            [self.launcher.python, LAUNCH, side, options],
            cwd=place.directory,
            environment={**self.environment, "TMPDIR": temporary, "PYTHONDONTWRITEBYTECODE": "1"},
            seconds=self.seconds,
            stdout_limit=self.output_limit,
            stderr_limit=self.output_limit,
            launcher=self.launcher,
            place=place,
            inherit=(end.fileno(),),
            report_limit=report_limit,
        )
