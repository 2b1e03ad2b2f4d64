"""What the commands of `plan` do."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.asking import NobodyToAskError
from orchestrator.cli.appearance import console_on, marks_for
from orchestrator.cli.conducting import Manner
from orchestrator.cli.exitcodes import ExitCode, RequestError, code_of_error
from orchestrator.cli.failures import say
from orchestrator.cli.inert import inert
from orchestrator.cli.interruption import SignalledError, run_until_signalled
from orchestrator.cli.isolationlines import unheld_line
from orchestrator.cli.plans.lines import is_rejected, report_lines
from orchestrator.cli.plans.screens import LinesScreen, TableScreen
from orchestrator.cli.plans.studiofile import load_studio_file, made_orchestrator
from orchestrator.cli.recordscreens import NoScreen, RecordScreen
from orchestrator.cli.runplace import RunPlace
from orchestrator.history import UnknownRunError
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.errors import MissingArtifactsError
from orchestrator.plan.outcome import (
    PlanBlockedResult,
    PlanEndedError,
    PlanExhaustedResult,
    PlanReport,
)
from orchestrator.plan.plan import load_plan
from orchestrator.plan.review import Checklist, Review, ReviewStatus

if TYPE_CHECKING:
    from orchestrator.journal.sqlite import SqliteJournal

__all__ = ["PlanCommand", "check_plan"]

RUNS = Path("runs")


@attrs.frozen(kw_only=True)
class PlanCommand:
    """One command on a plan: the plan's file, the configuration, and where the journal lies."""

    plan_file: Path
    config: Path | None
    runs: Path
    manner: Manner

    def review(self, by: str, changes: tuple[str, ...], *, is_approved: bool) -> ExitCode:
        """Record a person's review, or have the model that the configuration names give one."""
        given = None
        if changes:
            given = decided(ReviewStatus.CHANGES_REQUESTED, changes)
        elif is_approved:
            given = decided(ReviewStatus.APPROVED, ())
        if given is not None and not by:
            raise RequestError("say who reviewed the plan: --by NAME")
        return self.brief(lambda orchestrator: orchestrator.areview(given, by))

    def lock(self, by: str = "") -> ExitCode:
        """Lock the reviewed plan."""
        return self.brief(lambda orchestrator: orchestrator.alock(by))

    def amend(self, reason: str, by: str = "") -> ExitCode:
        """Record that the plan's file changed, why, and who changed it."""
        return self.brief(lambda orchestrator: orchestrator.aamend(orchestrator.plan, reason, by))

    def abandon(self, reason: str, by: str = "") -> ExitCode:
        """Give the plan up."""
        return self.brief(lambda orchestrator: orchestrator.aabandon(reason, by))

    def status(self) -> ExitCode:
        """Show where the plan is."""
        try:
            return self.brief(lambda orchestrator: orchestrator.astatus(), is_reading=True)
        except UnknownRunError as error:
            reason = f"plan {error.run_id} has no run below {self.runs}"
            raise RequestError(f"{reason}: begin with {self.command('review')}") from None

    def execute(self, *, is_resumed: bool, retry: tuple[str, ...] = (), reason: str = "", by: str = "") -> ExitCode:
        """Execute the plan, with progress on a screen; steps in `retry` begin anew."""

        def go(orchestrator: PlanOrchestrator) -> Coroutine[Any, Any, PlanReport]:
            return orchestrator.aresume(retry, reason, by) if is_resumed else orchestrator.arun()

        return self.brief(go)

    def brief(
        self, go: Callable[[PlanOrchestrator], Coroutine[Any, Any, PlanReport]], *, is_reading: bool = False
    ) -> ExitCode:
        """One invocation; what came of it in words or as JSON, and its status."""
        with self.orchestrator(is_reading=is_reading) as orchestrator:
            screen = self.screen(orchestrator)
            try:
                with orchestrator.bus.subscribe(screen.show, name="progress"):
                    report = run_until_signalled(
                        go(orchestrator), lambda number: told(screen, number.name), screen.close
                    )
            except SignalledError:
                say(f"the plan was stopped; its history is saved: go on with it: {self.command('resume')}")
                raise
            except PlanEndedError as error:
                screen.close()
                say(f"error: {error}")
                say(f"go on with it, when that is mended: {self.command('resume')}")
                return code_of_ended(error)
            finally:
                screen.close()
        self.tell(report)
        if unheld := unheld_line(orchestrator.parts.holds.of_all):
            say(unheld)
        if report.digest != orchestrator.plan.digest:
            file, recorded = orchestrator.plan.digest, report.digest
            say(f"{self.plan_file} has another plan, {file}, than the recorded one, {recorded}")
        return code_of(report)

    @contextmanager
    def orchestrator(self, *, is_reading: bool) -> Iterator[PlanOrchestrator]:
        """The orchestrator of the plan, on the journal of the runs."""
        plan, file = load_plan(self.plan_file), load_studio_file(self.config)
        with closing(self.journal(is_reading=is_reading)) as journal:
            yield made_orchestrator(file, plan, journal, TerminalApprover())

    def journal(self, *, is_reading: bool) -> SqliteJournal:
        """The journal of the runs; RequestError where there is none to read, or none can be written."""
        place = RunPlace.at(self.runs)
        if is_reading:
            if not place.journal_file.is_file():
                begin = f"begin with {self.command('review')}, or name the directory with --runs"
                raise RequestError(f"no journal at {place.journal_file}: {begin}")
            return place.journal_to_read()
        return place.journal_to_write()

    def command(self, name: str) -> str:
        """A command on this plan, as it is typed in the current directory."""
        words = ["orchestrator", "plan", name, str(self.plan_file)]
        words += [] if self.config is None else ["--config", str(self.config)]
        words += [] if self.runs == RUNS else ["--runs", str(self.runs)]
        return shlex.join(words)

    def screen(self, orchestrator: PlanOrchestrator) -> RecordScreen:
        """What shows progress on standard error."""
        from orchestrator.cli.choices import DisplayChoice

        if self.manner.display is DisplayChoice.QUIET:
            return NoScreen()
        marks = marks_for(sys.stderr)
        if self.manner.draws_live:
            return TableScreen(console_on(sys.stderr, self.manner.color), marks, orchestrator.plan)
        return LinesScreen(self.manner.lines(), marks)

    def tell(self, report: PlanReport) -> None:
        """The report on standard output."""
        if self.manner.as_json:
            sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
            return
        for line in report_lines(report, self):
            sys.stdout.write(inert(line) + "\n")


class TerminalApprover:
    """Asks whoever is at the terminal."""

    @property
    def is_there(self) -> bool:
        """Whether there is a terminal."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
        """Whether the answer is yes; NobodyToAskError without a terminal."""
        import asyncio

        if not self.is_there:
            raise NobodyToAskError(prompt)
        say(f"{prompt} [y/N]")
        answer = await asyncio.to_thread(sys.stdin.readline)
        return answer.strip().lower() in ("y", "yes")


def check_plan(plan_file: Path, config: Path | None, *, as_json: bool) -> ExitCode:
    """Say what is wrong with a plan and its configuration, all at once, without a journal."""
    from orchestrator.journal.memory import MemoryJournal

    plan, file = load_plan(plan_file), load_studio_file(config)
    approver = TerminalApprover()
    orchestrator = made_orchestrator(file, plan, MemoryJournal(), approver if approver.is_there else None)
    faults = list(orchestrator.check())
    try:
        orchestrator.studio.require(plan.context_requirements)
    except MissingArtifactsError as error:
        faults += [f"the artifact {name} is missing: {reason}" for name, reason in error.missing.items()]
    if as_json:
        told = {"plan": plan.plan_id, "digest": plan.digest, "steps": len(plan.steps), "faults": faults}
        sys.stdout.write(json.dumps(told, indent=2) + "\n")
    else:
        lines = faults or [f"plan {plan.plan_id}: {len(plan.steps)} steps, {plan.digest}, ready to be executed"]
        sys.stdout.write("".join(f"{inert(line)}\n" for line in lines))
    return ExitCode.USAGE if faults else ExitCode.CONFORMS


def decided(status: ReviewStatus, changes: tuple[str, ...]) -> Review:
    """A person's review of the plan."""
    checklist = Checklist(correctness=True, security=True, tests_passed=True)
    return Review(status=status, checklist=checklist, required_fixes=changes)


def told(screen: RecordScreen, name: str) -> None:
    """Say that a signal came."""
    screen.close()
    say(f"{name}: ending the plan in order; a second signal ends it at once")


def code_of(report: PlanReport) -> ExitCode:
    """The status of a command that has a result."""
    match report:
        case PlanBlockedResult():
            return ExitCode.PAUSED
        case PlanExhaustedResult():
            return ExitCode.EXHAUSTED
        case _:
            return ExitCode.PAUSED if is_rejected(report) else ExitCode.CONFORMS


def code_of_ended(error: PlanEndedError) -> ExitCode:
    """The status of an invocation that was interrupted."""
    code = code_of_error(error.__cause__ or error)
    return ExitCode.INTERNAL if code is ExitCode.USAGE else code  # usage is what nothing was spent on
