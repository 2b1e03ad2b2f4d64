"""The commands `workflow status` and `workflow decide` without a choice: what the journal says of a workflow."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from rich.text import Text

from orchestrator.blocking import run_blocking
from orchestrator.cli.appearance import console_on, marks_for
from orchestrator.cli.attemptlines import joined
from orchestrator.cli.conducting import Manner
from orchestrator.cli.exitcodes import ExitCode, RequestError
from orchestrator.cli.inert import inert, one_line
from orchestrator.cli.inspecting import place_of
from orchestrator.cli.wording import count_of, duration
from orchestrator.cli.workflows.checklist import checklist_lines
from orchestrator.cli.workflows.places import find_workflow
from orchestrator.cli.workflows.resumeline import decide_line, resume_line
from orchestrator.history import load_execution
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.todos import TodoView, read_todos
from orchestrator_events.workflow import TodosUpdated
from orchestrator_states.workflow import WorkflowState

__all__ = ["show_decision", "show_status"]

REASON = 300
ENDINGS = {
    WorkflowState.DONE: ("Workflow complete!", "bold green"),
    WorkflowState.ABORTED: ("aborted", "bold red"),
    WorkflowState.FAILED: ("failed", "bold red"),
    WorkflowState.PAUSED: ("paused until somebody decides", "bold yellow"),
}


def show_status(name: str, runs: Path, manner: Manner) -> None:
    """The checklist, how the workflow stands, what it waits for, and its state as JSON."""
    run = loaded(name, runs)
    if manner.as_json:
        sys.stdout.write(json.dumps(summary(run), indent=2) + "\n")
        return
    console, marks = console_on(sys.stdout, manner.color), marks_for(sys.stdout)
    view = todos_of(run)
    if view is not None:
        for line in checklist_lines(view, marks, shows_status=True):
            console.print(line)
    console.print(standing(run))
    if run.decision is not None:
        _, message, options = run.decision
        console.print("\n".join(f"  {line}" for line in inert(message).splitlines()))
        console.print(f"  options: {', '.join(options)}")
        console.print(f"decide it: {decide_line(place_of(runs), run.run_id, options)}")
    elif not run.is_over:
        console.print(f"go on with it: {resume_line(place_of(runs), run.run_id)}")
    if run.state_text:
        console.print(Text("state", "bold"))
        console.print(inert(run.state_text).rstrip())


def show_decision(name: str, runs: Path, manner: Manner) -> ExitCode:
    """What a workflow waits for; PAUSED, or CONFORMS where it waits for nothing."""
    run = loaded(name, runs)
    if manner.as_json:
        sys.stdout.write(json.dumps(decision_json(run), indent=2) + "\n")
    elif run.decision is None:
        sys.stdout.write(f"workflow {run.name} waits for no decision: it is {run.state}\n")
    else:
        about, message, options = run.decision
        sys.stdout.write(f"{about} in phase {run.phase}: {inert(message)}\noptions: {', '.join(options)}\n")
        sys.stdout.write(f"decide it: {decide_line(place_of(runs), run.run_id, options)}\n")
    return ExitCode.CONFORMS if run.decision is None else ExitCode.PAUSED


def loaded(name: str, runs: Path) -> WorkflowRun:
    """The workflow of this name."""
    with closing(place_of(runs).journal_to_read()) as journal:
        run = run_blocking(load_execution(journal, find_workflow(journal, name)))
    if not isinstance(run, WorkflowRun):
        raise RequestError(f"run {run.run_id} is no workflow, but of the lifecycle {run.lifecycle!r}: use `show`")
    return run


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


def standing(run: WorkflowRun) -> Text:
    """How it stands, in one line."""
    words, style = ENDINGS.get(WorkflowState(run.state), (f"left open, {run.state}", "bold"))
    executed = count_of(sum(run.executions.values()), "execution")
    told = one_line(run.given_up, REASON) if run.given_up else ""
    return joined(Text(words, style), f"phase {run.phase}", executed, duration(run.ledger.elapsed_us()), told)


def summary(run: WorkflowRun) -> dict[str, Any]:
    """What `show_status` shows, as data."""
    view = todos_of(run)
    return {
        "workflow_id": run.workflow_id,
        "run": run.run_id,
        "status": str(run.state),
        "phase": run.phase,
        "title": "" if view is None else view.title,
        "todos": [] if view is None else [{"content": each.content, "status": each.status} for each in view.todos],
        "executions": run.executions,
        "active_us": run.ledger.elapsed_us(),
        **decision_json(run),
        "state": run.current,
    }


def decision_json(run: WorkflowRun) -> dict[str, Any]:
    """What it waits for; null where it waits for nothing."""
    if run.decision is None:
        return {"decision": None}
    about, message, options = run.decision
    return {"decision": {"about": about, "message": message, "options": list(options)}}
