"""The commands `runs` and `show`: what the journal says of runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from rich.console import Console
from rich.text import Text

from orchestrator.attempt import Attempt
from orchestrator.blocking import run_blocking
from orchestrator.candidate import Candidate
from orchestrator.cli.appearance import Marks, console_on, marks_for
from orchestrator.cli.attemptlines import attempt_line, case_line, header, joined, passed_of
from orchestrator.cli.choices import ColorChoice
from orchestrator.cli.exitcodes import RequestError
from orchestrator.cli.inert import inert, one_line
from orchestrator.cli.isolationlines import isolation_lines, trust_lines, unheld_line
from orchestrator.cli.openruns import is_worked_on, standing_of, unjudged_line
from orchestrator.cli.plain import pinned_words
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.tallies import tally, tally_data
from orchestrator.cli.wording import duration, limit_name
from orchestrator.excerpt import in_short
from orchestrator.execution import Execution
from orchestrator.history import load_execution, report_of
from orchestrator.narration import told
from orchestrator.outcome import attempt_json
from orchestrator.run import Run
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.journal import Journal
from orchestrator_states.run import RunState

__all__ = ["list_runs", "show_run"]

REASON = 200
NAME = 40


def list_runs(place: RunPlace, *, newest: int, color: ColorChoice, as_json: bool) -> None:
    """The newest runs, oldest first, a line each."""
    with closing(place.journal_to_read()) as journal:
        ids = run_blocking(journal.run_ids())
        runs = [read(journal, run_id) for run_id in ids[-newest:]]
        held = {run.run_id for run in runs if not isinstance(run, Unreadable) and is_worked_on(journal, run)}
    if as_json:
        shown = [summary(run, is_held=run.run_id in held) for run in runs]
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
        return
    console, marks = console_on(sys.stdout, color), marks_for(sys.stdout)
    width = max((len(one_line(subject(run), NAME)) for run in runs), default=0)
    for run in runs:
        console.print(run_line(run, width, marks, is_held=run.run_id in held))
    if len(ids) > len(runs):
        console.print(Text(f"{len(ids) - len(runs)} older: --newest {len(ids)} shows all", "dim"))


@attrs.frozen
class Unreadable:
    """A run that the journal has and that cannot be read; the others can all the same."""

    run_id: str
    reason: str


def read(journal: Journal, run_id: str) -> Execution | Unreadable:
    """A run of whichever lifecycle, or why it cannot be read."""
    try:
        return run_blocking(load_execution(journal, run_id))
    except OrchestratorError as error:
        return Unreadable(run_id, str(error))


def subject(run: Execution | Unreadable) -> str:
    """What a run is about: its spec's name, an agent's prompt, a workflow's id and domain, a plan's id."""
    match run:
        case Unreadable():
            return ""
        case Run():
            return run.spec.name
        case _ if run.lifecycle == "agent":
            return " ".join((start_of(run).prompt.text or "").split()[:12])
        case _ if run.lifecycle == "workflow":
            return "  ".join(named_workflow(run).values())
        case _ if run.lifecycle in ("plan", "step"):
            return " ".join([run.lifecycle, *json.loads(start_of(run).identity).values()])
    return run.lifecycle


def named_workflow(run: Execution) -> dict[str, str]:
    """A workflow's id, or `workflow-new` before it has one, and its domain."""
    from orchestrator.workflow.running import WorkflowRun

    assert isinstance(run, WorkflowRun)
    return {"workflow": run.name, "domain": run.phases.table.name}


def show_run(
    place: RunPlace,
    name: str,
    *,
    attempt: int | None,
    prompt: bool,
    candidate: bool,
    color: ColorChoice,
    as_json: bool,
) -> None:
    """Of a conformance run: the run with its attempts, one attempt with its failing cases, a prompt, or a candidate."""
    run, held = loaded(place, name)
    if not isinstance(run, Run):
        wants_attempt = attempt is not None or prompt or candidate
        return show_other(run, wants_attempt=wants_attempt, color=color, as_json=as_json, is_held=held)
    chosen = None if attempt is None else numbered(run, attempt)
    if prompt:
        write_text((chosen or latest(run)).prompt)
    elif candidate:
        write_candidate(run, chosen or run.closest)
    elif as_json:
        shown = report_of(run).as_json() if chosen is None else attempt_json(chosen)
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    else:
        console, marks = console_on(sys.stdout, color), marks_for(sys.stdout)
        console.print(header(run, start_of(run), marks))
        show_isolation(console, run, marks)
        if chosen is None:
            show_attempts(console, run, marks, is_held=held)
        else:
            show_attempt(console, run, chosen, marks, is_held=held)
    return None


def show_other(run: Execution, *, wants_attempt: bool, color: ColorChoice, as_json: bool, is_held: bool) -> None:
    """A run of another lifecycle, record by record, in words."""
    if wants_attempt:
        raise RequestError(
            f"run {run.run_id} is of the lifecycle {run.lifecycle!r}, which has no attempts: leave it out"
        )
    if as_json:
        sys.stdout.write(json.dumps(other_json(run, is_held=is_held), indent=2) + "\n")
        return
    console, marks = console_on(sys.stdout, color), marks_for(sys.stdout)
    console.print(run_line(run, 0, marks, is_held=is_held))
    for record in run.records:
        decision = in_short(told(record.event), REASON, marks.ellipsis)
        console.print(f"{record.sequence:>4}  {record.target:<11}  {record.event.name:<22}  {decision}".rstrip())
    console.print(standing(run, is_held=is_held))


def other_json(run: Execution, *, is_held: bool) -> dict[str, Any]:
    """What there is of a run of another lifecycle."""
    if run.lifecycle != "agent":
        return summary(run, is_held=is_held)
    from orchestrator.agent.reporting import report_on
    from orchestrator.agent.run import AgentRun

    assert isinstance(run, AgentRun)
    name = str(json.loads(start_of(run).identity).get("name", ""))
    return dict(report_on(run, name).as_json())


def show_isolation(console: Console, run: Run, marks: Marks) -> None:
    """What held generator and evaluation in, and a line that no option leaves out where nothing did."""
    if run.isolation is not None:
        for line in isolation_lines(run.isolation, marks):
            console.print(line)
    if run.pinned is not None:
        console.print(Text(f"pinned  {pinned_words(run.pinned)}", "dim"))
    if unheld := unheld_line(run.isolation):
        console.print(unheld)


def loaded(place: RunPlace, name: str) -> tuple[Execution, bool]:
    """The run that is called so, and whether somebody works on it."""
    with closing(place.journal_to_read()) as journal:
        run = run_blocking(load_execution(journal, place.found(journal, name)))
        return run, is_worked_on(journal, run)


def show_attempts(console: Console, run: Run, marks: Marks, *, is_held: bool) -> None:
    """One line an attempt, the one that was cut off included, and how the run stands."""
    for each in attempts_of(run):
        is_judged = each.outcome is not None
        console.print(attempt_line(run, each, marks) if is_judged else unjudged_line(run, each, marks, is_held=is_held))
    console.print(standing(run, is_held=is_held))
    for line in trust_lines(report_of(run)):
        console.print(line)


def show_attempt(console: Console, run: Run, attempt: Attempt, marks: Marks, *, is_held: bool) -> None:
    """One attempt: what was sent and what came back, then every failing case with its message."""
    if attempt.outcome is not None:
        console.print(attempt_line(run, attempt, marks))
    else:
        console.print(unjudged_line(run, attempt, marks, is_held=is_held))
    generated = attempt.generated
    facts = {
        "prompt": f"sha256:{attempt.ready.prompt.digest}",
        "parameters": json.dumps(attempt.parameters),
        "seed": attempt.seed,
        "answer": f"sha256:{attempt.answer.answer.digest}" if attempt.answer else "",
        "extraction": attempt.answer.extraction if attempt.answer else "",
        "candidate": f"sha256:{generated.candidate.digest}" if generated else "none",
        "generator": attempt.generator_isolation,
        "evaluator": attempt.evaluator_isolation,
        "integrity": attempt.integrity,
        "error": attempt.error,
        "remedy": attempt.remedy,
    }
    for name, value in facts.items():
        if value and value != "{}":
            console.print(f"  {name:<10}  {inert(value)}")
    for case in attempt.failing:
        console.print(case_line(case, marks, shows_message=False))
        for line in inert(case.message).splitlines():
            console.print(f"      {line}")


def standing(run: Execution, *, is_held: bool) -> Text:
    """How a run ended, or where it was left."""
    after = tally(run)
    if isinstance(run, Run) and run.state == RunState.PASSED:
        return Text(f"conforms after {after}", "bold green")
    if isinstance(run, Run) and run.state == RunState.EXHAUSTED and run.exhausted is not None:
        shown = Text(f"exhausted ({limit_name(run.exhausted.limit)}) after {after}", "bold red")
        return joined(shown, one_line(run.exhausted.detail, REASON))
    reasons = [record.event.reason for record in run.records if isinstance(record.event, ExecutionEnd)]
    stands = standing_of(run, is_held=is_held)
    if stands in ("running", "cut off"):
        return Text(f"{stands}, {run.state} after {after}", "bold")
    how = "" if run.is_over else "waiting, " if stands == "waiting" else "left open, "
    shown = Text(f"{how}{run.state} after {after}", "bold")
    return joined(shown, in_short(reasons[-1], REASON) if reasons else "")


def run_line(run: Execution | Unreadable, width: int, marks: Marks, *, is_held: bool) -> Text:
    """Id, subject, standing, attempts, best verdict and time of one run; of one that cannot be read, why."""
    if isinstance(run, Unreadable):
        return joined(Text(run.run_id, "bold"), Text("cannot be read", "bold red"), one_line(run.reason, REASON))
    parent = start_of(run).parent_id
    return joined(
        Text(run.run_id, "bold"),
        f"{one_line(subject(run), NAME, marks.ellipsis):<{width}}",
        f"{standing_of(run, is_held=is_held):<11}",
        f"{tally(run):<11}",
        f"{best_of(run):>7}",
        f"{duration(run.ledger.elapsed_us()):>7}",
        f"{run.records[0].time:%Y-%m-%d %H:%M:%S} UTC",
        f"inside {one_line(parent, NAME)}" if parent else "",
    )


def best_of(run: Execution) -> str:
    """The best verdict of a run, where there is one."""
    if isinstance(run, Run):
        return "" if run.closest is None else passed_of(run.closest)
    best = getattr(getattr(run, "progress", None), "best", None)
    return "" if best is None else f"{best.passed}/{best.total}"


def summary(run: Execution | Unreadable, *, is_held: bool) -> dict[str, Any]:
    """What `run_line` shows, as data."""
    if isinstance(run, Unreadable):
        return {"run": run.run_id, "error": run.reason}
    if not isinstance(run, Run):
        start = start_of(run)
        inside = {"parent": start.parent_id} if start.parent_id else {}
        return {
            "run": run.run_id,
            "lifecycle": run.lifecycle,
            **(named_workflow(run) if run.lifecycle == "workflow" else {}),
            **inside,
            "state": str(run.state),
            "standing": standing_of(run, is_held=is_held),
            **tally_data(run),
            "started": run.records[0].time.isoformat(),
            "active_us": run.ledger.elapsed_us(),
        }
    best = run.closest
    return {
        "run": run.run_id,
        "spec": {"name": run.spec.name, "digest": run.spec.digest},
        "state": str(run.state),
        "standing": standing_of(run, is_held=is_held),
        "attempts": run.ledger.attempts,
        "best_passed": None if best is None else len(best.passed),
        "started": run.records[0].time.isoformat(),
        "active_us": run.ledger.elapsed_us(),
    }


def numbered(run: Run, number: int) -> Attempt:
    """The attempt with this number."""
    found = next((each for each in attempts_of(run) if each.number == number), None)
    if found is None:
        known = ", ".join(str(each.number) for each in attempts_of(run)) or "none"
        raise RequestError(f"run {run.run_id} has no attempt {number}; there are: {known}")
    return found


def latest(run: Run) -> Attempt:
    """The last attempt, judged or not."""
    *_, last = (None, *attempts_of(run))
    if last is None:
        raise RequestError(f"run {run.run_id} has no attempt yet, so there is no prompt")
    return last


def attempts_of(run: Run) -> Iterator[Attempt]:
    """Every attempt, the one that was cut off included."""
    yield from run.attempts
    if run.ready is not None and (run.last is None or run.last.number < run.ready.attempt):
        yield Attempt(run.ready, run.started, run.generated)


def start_of(run: Execution) -> ExecutionStart:
    """The first record's event, which loading has checked."""
    event = run.records[0].event
    assert isinstance(event, ExecutionStart)
    return event


def write_candidate(run: Run, attempt: Attempt | None) -> None:
    """The candidate: byte for byte into a file or pipe, made inert on a terminal."""
    made: Candidate | None = None if attempt is None else attempt.candidate
    if made is None:
        which = "" if attempt is None else f" in attempt {attempt.number}"
        raise RequestError(f"run {run.run_id} has no candidate{which}")
    if not made.files:
        write_text(made.text)
        return
    for path, text in made.files.items():
        write_text(f"==> {path} <==\n{text}" + ("" if text.endswith("\n") else "\n"))


def write_text(text: str) -> None:
    """The text: byte for byte into a file or pipe, made inert on a terminal."""
    if sys.stdout.isatty():
        sys.stdout.write(inert(text).rstrip("\n") + "\n")
        return
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        buffer.write(text.encode())


def place_of(runs: Path) -> RunPlace:
    """Where runs are read from: a directory of runs, or a journal file."""
    return RunPlace.at(runs) if not runs.is_file() else RunPlace.at(runs.parent, runs)
