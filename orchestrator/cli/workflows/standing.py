"""The commands `workflow status`, `learnings`, and `decide` without a choice: what the journal says of a workflow."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from rich.text import Text

from orchestrator.blocking import run_blocking
from orchestrator.cli.appearance import console_on, marks_for, print_hanging
from orchestrator.cli.attemptlines import joined
from orchestrator.cli.conducting import Manner
from orchestrator.cli.exitcodes import ExitCode, RequestError
from orchestrator.cli.inert import inert, one_line
from orchestrator.cli.inspecting import place_of
from orchestrator.cli.openruns import is_worked_on, standing_of
from orchestrator.cli.wording import count_of, duration
from orchestrator.cli.workflows.checklist import checklist_lines
from orchestrator.cli.workflows.collecting import collected_json, collected_lines
from orchestrator.cli.workflows.places import find_workflow
from orchestrator.cli.workflows.resumeline import resume_line
from orchestrator.cli.workflows.waiting import command_lines, waiting_lines
from orchestrator.history import load_execution
from orchestrator.workflow.comparing import compared
from orchestrator.workflow.components.learnings import store_of
from orchestrator.workflow.messages import grounds_in
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.todos import TodoView, read_todos
from orchestrator_events.workflow import StateUnreadable, TodosUpdated
from orchestrator_states.workflow import WorkflowState

__all__ = ["export_learnings", "show_decision", "show_status"]

REASON = 300
ENDINGS = {
    WorkflowState.DONE: ("Workflow complete!", "bold green"),
    WorkflowState.ABORTED: ("aborted", "bold red"),
    WorkflowState.FAILED: ("failed", "bold red"),
    WorkflowState.PAUSED: ("paused until somebody decides", "bold yellow"),
}


def show_status(name: str, runs: Path, manner: Manner) -> None:
    """The checklist, how the workflow stands, what it waits for, and its state as JSON."""
    run, is_held = loaded(name, runs)
    changed = None if is_held else changed_file(run)
    if manner.as_json:
        sys.stdout.write(json.dumps(summary(run, changed, is_held=is_held), indent=2) + "\n")
        return
    console, marks = console_on(sys.stdout, manner.color), marks_for(sys.stdout)
    view = todos_of(run)
    if view is not None:
        for line in checklist_lines(view, marks, shows_status=True):
            console.print(line)
    console.print(standing(run, is_held=is_held))
    if changed is not None:
        console.print(f"  state file: {one_line(changed.message, REASON)}; a resume asks which state holds")
    if run.decision is not None:
        about, message, options = run.decision
        for told in waiting_lines(message, run.records, options):
            print_hanging(console, Text(f"  {told}"))
        console.print(command_lines(place_of(runs), run.run_id, about, options, run.records))
    elif not run.is_over and not is_held:
        console.print(f"go on with it: {resume_line(place_of(runs), run.run_id)}")
    for told in collected_lines(run.records, place_of(runs), run.run_id):
        console.print(told)
    if run.state_text:
        console.print(Text("state", "bold"))
        console.print(inert(run.state_text).rstrip())


def show_decision(name: str, runs: Path, manner: Manner) -> ExitCode:
    """What a workflow waits for; PAUSED, or CONFORMS where it waits for nothing."""
    run, _ = loaded(name, runs)
    if manner.as_json:
        sys.stdout.write(json.dumps(decision_json(run), indent=2) + "\n")
    elif run.decision is None:
        sys.stdout.write(f"workflow {run.name} waits for no decision: it is {run.state}\n")
    else:
        about, message, options = run.decision
        lines = waiting_lines(message, run.records, options, head=f"{about} in phase {run.phase}: ")
        commands = command_lines(place_of(runs), run.run_id, about, options, run.records)
        sys.stdout.writelines(f"{line}\n" for line in (*lines, commands))
    return ExitCode.CONFORMS if run.decision is None else ExitCode.PAUSED


def export_learnings(name: str, runs: Path) -> None:
    """The learning records of a workflow on standard output, in the form that `--learnings` reads."""
    records = loaded(name, runs)[0].records
    sys.stdout.write(store_of(record.event for record in records).exported())


def loaded(name: str, runs: Path) -> tuple[WorkflowRun, bool]:
    """The workflow of this name, and whether a process works on it."""
    with closing(place_of(runs).journal_to_read()) as journal:
        run = run_blocking(load_execution(journal, find_workflow(journal, name)))
        is_held = is_worked_on(journal, run)
    if not isinstance(run, WorkflowRun):
        raise RequestError(f"run {run.run_id} is no workflow, but of the lifecycle {run.lifecycle!r}: use `show`")
    return run, is_held


def changed_file(run: WorkflowRun) -> StateUnreadable | None:
    """What is wrong with the state file, which a resume reads; None where nothing is, or it is told already."""
    if not run.file_text or run.state in (WorkflowState.DONE, WorkflowState.ABORTED):
        return None
    found = compared(run, Path(run.file_path).parent)
    return None if isinstance(found, str) or found == run.trouble else found


def todos_of(run: WorkflowRun) -> TodoView | None:
    """The last checklist, all of it completed once the workflow is done; None before the first one."""
    for record in reversed(run.records):
        if isinstance(record.event, TodosUpdated):
            view = read_todos(record.event.todos.data.decode())
            return all_done(view) if run.state == WorkflowState.DONE else view
    return None


def all_done(view: TodoView) -> TodoView:
    """The list once nothing is left to do: the loop does not map its terminal phase again."""
    phases = [todo for todo in view.todos if not todo.content.startswith("Item:")]
    return TodoView(view.title, tuple(attrs.evolve(todo, status="completed") for todo in phases))


def standing(run: WorkflowRun, *, is_held: bool) -> Text:
    """How it stands, in one line."""
    is_open = f"{'running' if is_held else 'left open'}, {run.state}"
    words, style = ENDINGS.get(WorkflowState(run.state), (is_open, "bold"))
    executed = count_of(sum(run.executions.values()), "execution")
    told = one_line(run.given_up, REASON) if run.given_up else ""
    return joined(Text(words, style), f"phase {run.phase}", executed, duration(run.ledger.elapsed_us()), told)


def summary(run: WorkflowRun, changed: StateUnreadable | None, *, is_held: bool) -> dict[str, Any]:
    """What `show_status` shows, as data."""
    view = todos_of(run)
    return {
        "workflow_id": run.taken_id,
        "run": run.run_id,
        "status": str(run.state),
        "standing": standing_of(run, is_held=is_held),
        "phase": run.phase,
        "title": "" if view is None else view.title,
        "todos": [] if view is None else [{"content": each.content, "status": each.status} for each in view.todos],
        "executions": run.executions,
        "active_us": run.ledger.elapsed_us(),
        **decision_json(run),
        **collected_json(run.records),
        "state": run.current,
        "state_file": {"path": run.file_path, "problem": changed.problem if changed else ""},
    }


def decision_json(run: WorkflowRun) -> dict[str, Any]:
    """What it waits for; null where it waits for nothing."""
    if run.decision is None:
        return {"decision": None}
    about, message, options = run.decision
    details = [line.text for line in grounds_in(run.records)]
    return {"decision": {"about": about, "message": message, "options": list(options), "details": details}}
