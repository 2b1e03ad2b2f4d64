"""The commands `runs` and `show`: what the journal says of runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

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
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.wording import count_of, duration
from orchestrator.history import find_run, load_run, report_of
from orchestrator.outcome import attempt_json
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_states.run import RunState

__all__ = ["list_runs", "show_run"]

REASON = 200
NAME = 40


def list_runs(place: RunPlace, *, newest: int, color: ColorChoice, as_json: bool) -> None:
    """The newest runs, oldest first, a line each."""
    with closing(place.journal_to_read()) as journal:
        ids = run_blocking(journal.run_ids())
        runs = [run_blocking(load_run(journal, run_id)) for run_id in ids[-newest:]]
    if as_json:
        sys.stdout.write(json.dumps([summary(run) for run in runs], indent=2) + "\n")
        return
    console, marks = console_on(sys.stdout, color), marks_for(sys.stdout)
    width = max((len(one_line(run.spec.name, NAME)) for run in runs), default=0)
    for run in runs:
        console.print(run_line(run, width, marks))
    if len(ids) > len(runs):
        console.print(Text(f"{len(ids) - len(runs)} older: --newest {len(ids)} shows all", "dim"))


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
    """A run with its attempts, one attempt with its failing cases, a prompt, or a candidate."""
    run = loaded(place, name)
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
        if chosen is None:
            show_attempts(console, run, marks)
        else:
            show_attempt(console, run, chosen, marks)


def loaded(place: RunPlace, name: str) -> Run:
    """The run that is called so."""
    with closing(place.journal_to_read()) as journal:
        return run_blocking(load_run(journal, run_blocking(find_run(journal, name))))


def show_attempts(console: Console, run: Run, marks: Marks) -> None:
    """One line an attempt, and how the run stands."""
    for each in run.attempts:
        console.print(attempt_line(run, each, marks))
    console.print(standing(run))


def show_attempt(console: Console, run: Run, attempt: Attempt, marks: Marks) -> None:
    """One attempt: what was sent and what came back, then every failing case with its message."""
    console.print(attempt_line(run, attempt, marks))
    generated = attempt.generated
    facts = {
        "prompt": f"sha256:{attempt.ready.prompt.digest}",
        "parameters": json.dumps(attempt.parameters),
        "seed": attempt.seed,
        "candidate": f"sha256:{generated.candidate.digest}" if generated else "none",
        "error": attempt.error,
    }
    for name, value in facts.items():
        if value and value != "{}":
            console.print(f"  {name:<10}  {inert(value)}")
    for case in attempt.failing:
        console.print(case_line(case, marks, shows_message=False))
        for line in inert(case.message).splitlines():
            console.print(f"      {line}")


def standing(run: Run) -> Text:
    """How a run ended, or where it was left."""
    after = count_of(run.ledger.attempts, "attempt")
    match run.state:
        case RunState.PASSED:
            return Text(f"conforms after {after}", "bold green")
        case RunState.EXHAUSTED if run.exhausted is not None:
            told = Text(f"exhausted ({run.exhausted.limit}) after {after}", "bold red")
            return joined(told, one_line(run.exhausted.detail, REASON))
        case _:
            reasons = [record.event.reason for record in run.records if isinstance(record.event, ExecutionEnd)]
            is_open = run.state not in (RunState.CANCELLED, RunState.FAILED)
            told = Text(f"{'left open, ' if is_open else ''}{run.state} after {after}", "bold")
            return joined(told, one_line(reasons[-1], REASON) if reasons else "not ended: it runs, or was cut off")


def run_line(run: Run, width: int, marks: Marks) -> Text:
    """Id, spec, state, attempts, best verdict and time of one run."""
    best = "" if run.closest is None else passed_of(run.closest)
    return joined(
        Text(run.run_id, "bold"),
        f"{one_line(run.spec.name, NAME, marks.ellipsis):<{width}}",
        f"{run.state:<10}",
        f"{count_of(run.ledger.attempts, 'attempt'):<11}",
        f"{best:>7}",
        f"{duration(run.ledger.elapsed_us()):>7}",
        f"{run.records[0].time:%Y-%m-%d %H:%M:%S} UTC",
    )


def summary(run: Run) -> dict[str, Any]:
    """What `run_line` shows, as data."""
    best = run.closest
    return {
        "run": run.run_id,
        "spec": {"name": run.spec.name, "digest": run.spec.digest},
        "state": str(run.state),
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


def start_of(run: Run) -> ExecutionStart:
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
