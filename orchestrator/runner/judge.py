"""The judge's process: runs the suite with the candidate's modules standing in for themselves, and reports."""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import sys
import threading
from typing import Any, Final

from orchestrator.runner import grants
from orchestrator.runner.cases import Case
from orchestrator.runner.modules import install
from orchestrator.runner.peer import Peer
from orchestrator.runner.wire import PROTOCOL, Wire

__all__ = ["JudgePeer", "main"]

REPORT: Final = "orchestrator.report/1"
REPORT_VARIABLE: Final = "ORCHESTRATOR_REPORT_FD"
CANDIDATE: Final = "(candidate)"
"""Id of the case that stands for the candidate as a whole."""
LONGEST_MESSAGE: Final = 20_000
"""Longest message of a case, characters."""


def main(options: dict[str, Any]) -> int:
    """Run the suite; the exit status of its framework."""
    report = int(os.environ.pop(REPORT_VARIABLE))
    os.set_inheritable(report, False)
    seal()
    peer = JudgePeer(Wire(options["descriptor"]), call_seconds=options["call_seconds"])
    if peer.ask("hello") != PROTOCOL:
        raise peer.fault("the candidate's process speaks another protocol", is_over=True)
    sys.path.insert(0, os.getcwd())
    install(peer, options["modules"], options["others"])
    if options["framework"] == "pytest":
        from orchestrator.runner.pytest_suite import run_suite
    else:
        from orchestrator.runner.unittest_suite import run_suite
    sys.argv[:] = [options["framework"], *options["arguments"]]
    try:
        cases, status = run_suite(peer, options["arguments"])
    except BaseException:
        if not peer.failures:
            raise
        cases, status = [], 1
    if not cases and peer.failures:
        cases = [Case(CANDIDATE, "error", peer.failures[0])]
    write(report, cases)
    return status


class JudgePeer(Peer):
    """The candidate's process, as the judge sees it."""

    def __init__(self, wire: Wire, *, call_seconds: float | None) -> None:
        super().__init__(wire, trusts=False, call_seconds=call_seconds)
        self.exits: list[str] = []
        """Attempts to leave the process, which the judge's own frameworks may take for its own."""
        self.imports: list[str] = []
        """Modules of the candidate that could not be imported, each with the reason."""
        self.services |= {"input": _input, "stdin": _stdin, "await": _await}

    @property
    def failures(self) -> list[str]:
        """What the candidate has to answer for if there is no case at all."""
        return [*self.faults, *self.imports, *self.exits]

    def permit(self, target: Any, do: str, name: str) -> None:
        """Let the candidate do only what cannot reach the judge."""
        grants.check(target, do, name, is_given=not isinstance(target, type) or target in self.given)

    def show(self, output: str, errors: str) -> None:
        """What the candidate wrote is written here, where the suite may look for it."""
        if output:
            sys.stdout.write(output)
        if errors:
            sys.stderr.write(errors)

    def bearable(self, error: BaseException) -> BaseException:
        """The error, unless it would end the judge."""
        if isinstance(error, KeyboardInterrupt | GeneratorExit):
            return LeftError(f"the candidate raised {type(error).__name__}")
        if isinstance(error, SystemExit):
            self.exits.append(f"the candidate raised SystemExit: {error}")
        return error


class LeftError(BaseException):
    """The candidate raised what only the user or the interpreter raises."""


def seal() -> None:
    """Keep processes of the same user out of this one's memory and descriptors, where the system can."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
    except (ImportError, OSError, AttributeError):
        return


def write(report: int, cases: list[Case]) -> None:
    """Write the report: ids, statuses and messages, nothing else."""
    told = [{"id": each.id, "status": each.status, "message": each.message[:LONGEST_MESSAGE]} for each in cases]
    with open(report, "wb") as file:
        file.write(json.dumps({"protocol": REPORT, "cases": told}).encode())


def _input(_target: Any, _name: str, args: list[Any], _kwargs: dict[str, Any]) -> Any:
    return builtins.input(*args)


def _stdin(_target: Any, name: str, args: list[Any], _kwargs: dict[str, Any]) -> Any:
    return sys.stdin.readline(*args) if name == "readline" else sys.stdin.read(*args)


def _await(target: Any, _name: str, _args: list[Any], _kwargs: dict[str, Any]) -> Any:
    """Something awaitable of the suite, run beside the loop that may be running here."""
    outcome: list[Any] = []

    async def result() -> Any:
        return await target

    def run() -> None:
        try:
            outcome.append((asyncio.run(result()), None))
        except BaseException as error:  # noqa: BLE001 -- it is raised where it is waited for
            outcome.append((None, error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    value, error = outcome[0]
    if error is not None:
        raise error
    return value
