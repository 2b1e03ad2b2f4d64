"""Attends one workflow for a terminal: its screen, decisions by whoever is there, the result in words and status."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any

import attrs
from rich.text import Text

from orchestrator.cli.appearance import console_on, marks_for
from orchestrator.cli.attemptlines import joined
from orchestrator.cli.choices import DisplayChoice
from orchestrator.cli.conducting import Manner
from orchestrator.cli.exitcodes import ExitCode, RequestError, code_of_error
from orchestrator.cli.failures import say
from orchestrator.cli.inert import indented, one_line
from orchestrator.cli.interruption import SignalledError, run_until_signalled
from orchestrator.cli.recordscreens import NoScreen, RecordScreen
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.streams import printing_aside
from orchestrator.cli.wording import count_of, usage
from orchestrator.cli.workflows.asking import asked_at_terminal, can_ask
from orchestrator.cli.workflows.collecting import collected_json
from orchestrator.cli.workflows.resumeline import resume_line
from orchestrator.cli.workflows.screens import ChecklistScreen, LinesScreen
from orchestrator.cli.workflows.waiting import command_lines, waiting_lines
from orchestrator.workflow.decisions import About, ChoiceError
from orchestrator.workflow.engine import Workflow
from orchestrator.workflow.outcome import (
    WorkflowAborted,
    WorkflowDone,
    WorkflowEndedError,
    WorkflowPaused,
    WorkflowReport,
    WorkflowResult,
)
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import DecisionNeeded
from orchestrator_states.workflow import WORKFLOW

__all__ = ["Attendant"]

REASON = 300

Go = Callable[[], Coroutine[Any, Any, WorkflowResult]]


@attrs.define(eq=False, kw_only=True)
class Attendant:
    """Sees a workflow through on a terminal; `begun` is told the id of a run before it does anything."""

    workflow: Workflow
    place: RunPlace
    manner: Manner
    begun: Callable[[str], None]
    run_id: str
    is_told: bool = False
    """Whether what has to be decided was shown when it came up."""

    def attend(self, go: Go) -> ExitCode:
        """Do the work, ask whoever is at the terminal, keep and tell what came of it; the exit status."""
        try:
            result = self.watch(go())
            while isinstance(result, WorkflowPaused) and can_ask():
                choice = asked_at_terminal(result.decision)
                if not choice:
                    break
                self.is_told = False
                result = self.watch(self.workflow.aresume(result.run_id, choice=choice))
        except SignalledError as error:
            say(f"the workflow was stopped by {error.number.name}; its history is saved in {self.place.journal_file}")
            say(f"go on with it: {resume_line(self.place, self.run_id)}")
            raise
        except ChoiceError as error:
            raise RequestError(str(error)) from error
        except WorkflowEndedError as error:
            return self.ended_by(error)
        code = code_of(result)
        self.keep(result, code)
        self.tell(result)
        return code

    def watch(self, work: Coroutine[Any, Any, WorkflowResult]) -> WorkflowResult:
        """One invocation, with its progress on a screen."""
        screen = self.screen()

        def seen(record: Record) -> None:
            if record.lifecycle == WORKFLOW.name and record.sequence == 1:
                self.run_id = record.run_id  # another one, where somebody chose to start afresh
                self.begun(record.run_id)
            if record.run_id == self.run_id:
                screen.show(record)
                self.is_told |= isinstance(record.event, DecisionNeeded | BudgetExhausted)

        def told(number: signal.Signals) -> None:
            screen.close()
            say(f"{number.name}: ending the workflow in order; a second signal ends it at once")

        with ExitStack() as subscriptions:
            subscriptions.enter_context(printing_aside())
            subscriptions.enter_context(self.workflow.bus.subscribe(seen, name="progress"))
            try:
                return run_until_signalled(work, told, screen.close)
            finally:
                screen.close()

    def ended_by(self, error: WorkflowEndedError) -> ExitCode:
        """Keep what there is, and say what broke and how to go on; the status that fits the cause."""
        code = code_of_error(error.__cause__ or error)
        try:
            self.keep(error.report, code, error.reason)
        except OSError as unkept:  # what ended the workflow may be why: its own message comes last
            say(f"the result is not written below {self.place.root}: {unkept}")
        say(indented(f"error: {error}"))
        say(f"go on with it, when that is mended: {resume_line(self.place, error.report.run_id)}")
        return code

    def screen(self) -> RecordScreen:
        """What shows progress on standard error."""
        manner, marks = self.manner, marks_for(sys.stderr)
        if manner.display is DisplayChoice.QUIET:
            return NoScreen()
        if manner.draws_live:
            return ChecklistScreen(console_on(sys.stderr, manner.color), marks)
        return LinesScreen(manner.lines(), marks)

    def keep(self, report: WorkflowReport, code: int, reason: str = "") -> None:
        """Write result.json beside the run, and print it if asked to."""
        result: dict[str, Any] = {
            **report.as_json(),
            **collected_json(report.records),
            "exit_code": int(code),
            "journal": str(self.place.journal_file),
            **({"reason": reason} if reason else {}),
        }
        self.place.keep_result(report.run_id, result)
        if self.manner.as_json:
            sys.stdout.write(json.dumps(result, indent=2) + "\n")

    def tell(self, result: WorkflowResult) -> None:
        """The outcome in one line on standard output; what is to be done next on standard error."""
        if not self.manner.as_json:
            is_plain = self.manner.display is DisplayChoice.PLAIN
            console = console_on(sys.stdout, self.manner.color, by_itself=not is_plain)
            console.print(outcome_line(result))
            sys.stdout.flush()
        if isinstance(result, WorkflowPaused):
            decision, records = result.decision, result.records
            if self.manner.display is DisplayChoice.QUIET or not self.is_told:
                say("\n".join(waiting_lines(decision.message, records, decision.options)))
            say(command_lines(self.place, result.run_id, decision.about, decision.options, records))
            if decision.about != About.BUDGET:
                say(f"go on with it: {resume_line(self.place, result.run_id)}")


def code_of(result: WorkflowResult) -> ExitCode:
    """The status of a workflow that has a result."""
    match result:
        case WorkflowDone():
            return ExitCode.CONFORMS
        case WorkflowPaused():
            return ExitCode.PAUSED
        case WorkflowAborted():
            return ExitCode.INTERNAL


def outcome_line(result: WorkflowResult) -> Text:
    """`Workflow complete!  small-tools  13 executions  3.1s  0 tokens`."""
    used = (one_line(result.name, 80), count_of(sum(result.executions.values()), "execution"), usage(result.usage))
    match result:
        case WorkflowDone():
            return joined(Text("Workflow complete!", "bold green"), *used)
        case WorkflowPaused():
            return joined(Text(f"paused in {one_line(result.phase, 80)}", "bold yellow"), result.decision.about, *used)
        case WorkflowAborted():
            return joined(Text("aborted", "bold red"), one_line(result.reason, REASON), *used)
