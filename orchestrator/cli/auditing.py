"""The commands `audit` and `replay`: a recorded run held against itself, and walked through again."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from orchestrator.assembly import made_evaluator, may_answer_with_files
from orchestrator.audit import AuditReport, audit
from orchestrator.audit.chain import chain_findings, head_findings
from orchestrator.audit.report import Finding
from orchestrator.blocking import run_blocking
from orchestrator.cli.exitcodes import ExitCode, RequestError
from orchestrator.cli.failures import requirement_named, say
from orchestrator.cli.inert import inert, one_line
from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.wording import count_of
from orchestrator.configuration import load_configuration
from orchestrator.excerpt import in_short
from orchestrator.export import export_json
from orchestrator.faults import closest_name
from orchestrator.importing import Export, parse_export, read_export
from orchestrator.isolating import isolation_of
from orchestrator.replay import Rejudgement, ReplayError, Step, rejudge, replay, runs_in
from orchestrator_events.errors import EventError, JournalError

__all__ = ["audit_export", "replay_export"]

DECISION = 200


def audit_export(name: str, place: RunPlace, *, head: str | None, count: int | None, as_json: bool) -> ExitCode:
    """Audit an export file or a run of the journal; DIFFERENCE when anything does not follow from its records."""
    try:
        export = export_called(name, place)
    except (JournalError, EventError) as error:
        return damaged(error, as_json=as_json)
    report = audit(export, head=head, count=count)
    if as_json:
        sys.stdout.write(json.dumps(report.as_json(), indent=2) + "\n")
    else:
        tell(report)
    return ExitCode.CONFORMS if report.is_clean else ExitCode.DIFFERENCE


def replay_export(
    name: str, place: RunPlace, *, only: str = "", config: Path | None, evaluates: bool, as_json: bool
) -> ExitCode:
    """Show each decision of a recorded run and of those inside it, or of the one that `only` names with those inside.

    With `evaluates`, run the suite again on its candidates and compare.
    """
    if evaluates and config is None:
        raise RequestError("--evaluate needs the eval suite: name a configuration with --config")
    try:
        export = export_called(name, place)
    except (JournalError, EventError) as error:
        return damaged(error, as_json=as_json)
    broken = "; ".join(map(str, chained(export)))
    export = inside(export, only) if only else export
    steps, difference = ((), broken) if broken else replayed(export)
    compared = rejudged(export, config) if config is not None and evaluates and not difference else ()
    if as_json:
        shown = {"steps": [step.as_json() for step in steps], "rejudged": [each.as_json() for each in compared]}
        sys.stdout.write(json.dumps({**shown, "difference": difference}, indent=2) + "\n")
    else:
        width = max((len(step.run) for step in steps), default=0) if export.children else 0
        sys.stdout.writelines([*(step_line(step, width) for step in steps), *map(comparison_line, compared)])
    if difference:
        say(f"difference: {difference}")
    is_same = not difference and all(each.is_same for each in compared)
    return ExitCode.CONFORMS if is_same else ExitCode.DIFFERENCE


def export_called(name: str, place: RunPlace) -> Export:
    """The export in a file of this name, else that of the run of this name."""
    if Path(name).exists() or name.endswith((".json", ".jsonl")):
        return read_export(name)
    with closing(place.journal_to_read()) as journal:
        run_id = place.found(journal, name)
        return parse_export(run_blocking(export_json(journal, run_id)), f"run {run_id}")


def inside(export: Export, run_id: str) -> Export:
    """The run of this id in an export; RequestError with those that are there."""
    runs = {each.run_id: each for each in runs_in(export)}
    if run_id not in runs:
        near = closest_name(run_id, list(runs))
        remedy = f"did you mean {near}?" if near else "the lines of a replay without --only begin with their runs"
        raise RequestError(f"{export.source} holds no run {one_line(run_id, DECISION)}: {remedy}")
    return runs[run_id]


def damaged(error: Exception, *, as_json: bool) -> ExitCode:
    """A journal that cannot be read is a difference by itself."""
    if as_json:
        sys.stdout.write(json.dumps({"is_clean": False, "difference": str(error)}, indent=2) + "\n")
    say(f"difference: {error}")
    return ExitCode.DIFFERENCE


def tell(report: AuditReport) -> None:
    """The report for people."""
    lines = [
        f"run {report.run_id} {report.state or 'no state'} {report.head.count} records head {report.head.digest}",
        *([report.spec_digest.replace("sha256:", "spec sha256:")] if report.spec_digest else []),
        f"checked: {', '.join(report.checks)}",
        *(f"difference: {finding}" for finding in report.findings),
        "clean" if report.is_clean else count_of(len(report.findings), "difference"),
    ]
    sys.stdout.writelines(f"{one_line(line, 2 * DECISION)}\n" for line in lines)


def chained(export: Export) -> Iterator[Finding]:
    """Where the chain of the run, or of one inside it, is broken: what was altered is not worth walking through."""
    yield from chain_findings(export)
    yield from head_findings(export, None, None)
    for child in export.children:
        yield from chained(child)


def replayed(export: Export) -> tuple[tuple[Step, ...], str]:
    """The steps, and where they end before the records do."""
    try:
        return replay(export), ""
    except ReplayError as error:
        return error.steps, str(error)


def rejudged(export: Export, config: Path) -> tuple[Rejudgement, ...]:
    """The suite's verdicts on the recorded candidates, now; IsolationRefusedError below what is required."""
    configuration = load_configuration(config)
    may_lack_file = may_answer_with_files(configuration.generator)
    evaluator = made_evaluator(configuration.evaluator, configuration.sandbox, may_lack_file=may_lack_file)
    with requirement_named(f"require-isolation in {config}"):
        run_blocking(isolation_of(evaluator, "the evaluator", configuration.require_isolation))
    return run_blocking(rejudge(export, evaluator))


def step_line(step: Step, width: int = 0) -> str:
    """A record in one line: of which run, where there are several, where it led, and the decision."""
    way = step.source if step.source == step.target else f"{step.source} > {step.target}"
    decision = in_short(step.decision, DECISION)
    run = f"{one_line(step.run, width):<{width}}  " if width else ""
    line = f"{step.sequence:>4}  {step.time:%H:%M:%S}  {run}{inert(way):<23}  {step.event:<21}  {decision}"
    return f"{line.rstrip()}\n"


def comparison_line(compared: Rejudgement) -> str:
    """A candidate judged again, in one line."""
    (passed, _), (passes, _) = compared.was, compared.now
    if compared.is_same:
        return f"attempt {compared.attempt}: the same verdict, {len(passed)} passed\n"
    cases = sorted({*compared.was[1], *compared.now[1]} - ({*compared.was[1]} & {*compared.now[1]}))
    differing = ", ".join(sorted({case for case, _ in cases} | (set(passed) ^ set(passes))))
    return f"attempt {compared.attempt}: another verdict on {one_line(differing, DECISION)}\n"
