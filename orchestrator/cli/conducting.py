"""Conducts one run for a terminal: progress while it goes on, then the result in words, files and status."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from orchestrator.adapter_errors import CandidateRefusedError
from orchestrator.blocking import run_blocking
from orchestrator.cli.appearance import console_on, draws_live, marks_for
from orchestrator.cli.attemptlines import case_line, joined, passed_of
from orchestrator.cli.choices import ColorChoice, DisplayChoice
from orchestrator.cli.exitcodes import ExitCode, code_of_error, code_of_report
from orchestrator.cli.failures import say
from orchestrator.cli.inert import one_line
from orchestrator.cli.interruption import SignalledError, run_until_signalled
from orchestrator.cli.isolationlines import trust_lines, unheld_line
from orchestrator.cli.live import LiveScreen
from orchestrator.cli.plain import PlainScreen
from orchestrator.cli.progress import Progress, QuietScreen, Screen
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.wording import count_of, limit_name, usage
from orchestrator.configuration import Configuration, settled
from orchestrator.engine import Orchestrator, new_run_id
from orchestrator.history import load_run, report_of
from orchestrator.outcome import Exhausted, Passed, RunEndedError, RunReport
from orchestrator.run import Run
from orchestrator.spec import MergedSpec
from orchestrator_events.journal import Journal
from orchestrator_events.run import GenerationProgressed
from orchestrator_states.run import RUN

__all__ = ["Conductor", "Manner"]

SHOWN_CASES = 10
REASON = 300


@attrs.frozen(kw_only=True)
class Manner:
    """How a run is shown."""

    display: DisplayChoice = DisplayChoice.AUTO
    color: ColorChoice = ColorChoice.AUTO
    as_json: bool = False

    @property
    def draws_live(self) -> bool:
        """Whether progress is redrawn in place."""
        return draws_live(self.display, sys.stderr)

    def screen(self) -> Screen:
        """What shows progress on standard error."""
        if self.display is DisplayChoice.QUIET:
            return QuietScreen()
        if self.draws_live:
            return LiveScreen(console_on(sys.stderr, self.color), marks_for(sys.stderr))
        return PlainScreen(self.lines(), marks_for(sys.stderr))

    def lines(self) -> Console:
        """Standard error as lines, which are coloured by themselves only beside a live display."""
        return console_on(sys.stderr, self.color, by_itself=self.draws_live)


@attrs.frozen(kw_only=True)
class Conductor:
    """Runs a spec with an orchestrator whose journal lies in `place`."""

    orchestrator: Orchestrator
    place: RunPlace
    manner: Manner
    configuration: Configuration | None = None
    """Kept beside a new run, so that it can be resumed without naming everything again."""

    def conduct(self, spec: MergedSpec) -> ExitCode:
        """Run, show, keep and tell; the exit status. Raises SignalledError and whatever ends a run."""
        run_blocking(self.orchestrator.isolation())  # what is refused leaves nothing behind
        run_id = new_run_id()
        if self.configuration is not None:
            driver = self.orchestrator.driver
            kept = settled(self.configuration, Path.cwd(), driver.generator.name, driver.evaluator.name)
            self.place.keep_configuration(run_id, kept)
        mirror = Run.blank(run_id, RUN, self.orchestrator.budget, self.orchestrator.clock, self.journal, spec=spec)
        return self.attend(mirror, self.orchestrator.arun(spec, run_id=run_id))

    def resume(self, run_id: str) -> ExitCode:
        """Go on with a run of the journal; otherwise as `conduct`."""
        run_blocking(self.orchestrator.isolation())
        mirror = run_blocking(load_run(self.journal, run_id))
        mirror.clock = mirror.ledger.clock = self.orchestrator.clock
        return self.attend(mirror, self.orchestrator.aresume(run_id))

    @property
    def journal(self) -> Journal:
        """The orchestrator's journal, which a conducted one always has."""
        assert self.orchestrator.journal is not None
        return self.orchestrator.journal

    def attend(self, mirror: Run, work: Coroutine[Any, Any, Passed | Exhausted]) -> ExitCode:
        """Do the work of one invocation, show it on `mirror`, keep and tell what came of it."""
        run_id = mirror.run_id
        if unheld := unheld_line(self.orchestrator.known_isolation):
            say(unheld)  # whatever the display: it has to be known
        try:
            report: RunReport = self.watch(mirror, work)
        except SignalledError as error:
            stopped = f"run {run_id} was stopped by {error.number.name}"
            self.keep(self.recorded(run_id), error.code, reason=stopped)
            say(f"{stopped}; its history is saved in {self.place.journal_file}")
            say(f"go on with it: {self.place.resume_command(run_id)}")
            raise
        except RunEndedError as error:
            try:
                self.keep(error.report, code_of_error(error), reason=str(error))
            except OSError as unkept:  # what ended the run may be why: its own message comes last
                say(f"the result is not written below {self.place.root}: {unkept}")
            mended = "when that is mended, under the same configuration"
            error.add_note(f"go on with it, {mended}: {self.place.resume_command(run_id)}")
            raise
        code = code_of_report(report)
        where = self.keep(report, code)
        self.tell(report, where)
        return code

    def watch(self, mirror: Run, work: Coroutine[Any, Any, Passed | Exhausted]) -> Passed | Exhausted:
        """The work itself, with its progress on a screen."""
        orchestrator, screen = self.orchestrator, self.manner.screen()

        def told(number: signal.Signals) -> None:
            screen.close()
            say(f"{number.name}: ending the run in order; a second signal ends it at once")

        bus, run_id = orchestrator.bus, mirror.run_id
        with ExitStack() as subscriptions:
            subscriptions.enter_context(bus.subscribe(Progress(mirror, screen), run_id=run_id, name="progress"))
            if isinstance(screen, LiveScreen):  # to be told costs a little, so only who shows it asks
                live = bus.subscribe(screen.progress, GenerationProgressed, run_id=run_id, name="live progress")
                subscriptions.enter_context(live)
            try:
                return run_until_signalled(work, told, screen.close)
            finally:
                screen.close()

    def recorded(self, run_id: str) -> RunReport:
        """What the journal holds of a run that was cut off."""
        return report_of(run_blocking(load_run(self.journal, run_id)))

    def keep(self, report: RunReport, code: int, reason: str = "") -> str:
        """Write the candidate and result.json, print JSON if asked to; where the candidate is, or empty."""
        where = ""
        closest = None if report.closest is None else report.closest.candidate
        candidate = report.candidate if isinstance(report, Passed) else closest
        if candidate is not None:
            folder = "candidate" if isinstance(report, Passed) else "closest"
            try:
                where = str(self.place.keep_candidate(report.run_id, candidate, folder))
            except CandidateRefusedError as error:
                say(f"the {folder} is not written: {error}")
                say(f"it is in the journal: {self.place.show_command(report.run_id)} --candidate")
        result: dict[str, Any] = {
            **report.as_json(),
            "exit_code": int(code),
            "candidate_path": where or None,
            "journal": str(self.place.journal_file),
        }
        if reason:
            result["reason"] = reason
        self.place.keep_result(report.run_id, result)
        if self.manner.as_json:
            sys.stdout.write(json.dumps(result, indent=2) + "\n")
        return where

    def tell(self, report: RunReport, where: str) -> None:
        """The outcome in one line on standard output; who held the judge and what is lacking, on standard error."""
        if self.manner.display is not DisplayChoice.QUIET:
            for line in trust_lines(report):
                self.manner.lines().print(line)
        if isinstance(report, Exhausted) and self.manner.display is not DisplayChoice.QUIET:
            self.explain(report)
        if not self.manner.as_json:
            is_plain = self.manner.display is DisplayChoice.PLAIN
            console = console_on(sys.stdout, self.manner.color, by_itself=not is_plain)
            console.print(outcome_line(report, where))

    def explain(self, report: Exhausted) -> None:
        """Which limit ended the run, and what the closest candidate fails."""
        console, marks = self.manner.lines(), marks_for(sys.stderr)
        console.print(one_line(f"limit reached: {limit_name(report.limit)}: {report.detail}", REASON, marks.ellipsis))
        if report.closest is None:
            console.print("no attempt gave a candidate")
        for case in report.failing[:SHOWN_CASES]:
            console.print(case_line(case, marks))
        if len(report.failing) > SHOWN_CASES:
            console.print(f"  and {len(report.failing) - SHOWN_CASES} more")
        if report.history:
            command, told = self.place.show_command(report.run_id), report.closest or report.history[-1]
            console.print(f"look at it: {command} --attempt {told.number}")
        console.print(f"go on with it: {self.place.resume_command(report.run_id)} {raised(report)}")


def raised(report: Exhausted) -> str:
    """The options that raise the limit which ended a run: attempts by three, another as the user sees fit."""
    option = limit_name(report.limit)
    return f"--{option} {report.attempts + 3 if option == 'attempts' else 'MORE'}"


def outcome_line(report: RunReport, where: str) -> Text:
    """`conforms after 4 attempts  3.1s  9,432 tokens  runs/…/durations.py`."""
    after = count_of(report.attempts, "attempt")
    match report:
        case Passed():
            return joined(Text(f"conforms after {after}", "bold green"), usage(report.usage), where)
        case Exhausted():
            told = Text(f"exhausted ({limit_name(report.limit)}) after {after}", "bold red")
            closest = report.closest
            found = "" if closest is None else f"closest #{closest.number} {passed_of(closest)}"
            return joined(told, found, usage(report.usage), where)
        case _:
            return joined(Text(f"{report.state} after {after}", "bold"), usage(report.usage))
