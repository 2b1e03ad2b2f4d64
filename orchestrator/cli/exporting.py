"""The commands `export` and `schema`: a run in a form for other programs, and what our own forms are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from types import MappingProxyType
from typing import Final

from orchestrator.blocking import run_blocking
from orchestrator.cli.choices import ExportFormat
from orchestrator.cli.exitcodes import RequestError
from orchestrator.cli.runplace import RunPlace
from orchestrator.exports.ctrf import export_ctrf
from orchestrator.exports.document import export_json
from orchestrator.exports.intoto import NothingToAttestError, export_intoto
from orchestrator.exports.junit import export_junit
from orchestrator.exports.lines import export_lines
from orchestrator.exports.markdown import export_markdown
from orchestrator.history import ForeignLifecycleError, load_run
from orchestrator.run import Run
from orchestrator.schemas import KINDS, UnknownKindError, schema_text
from orchestrator_events.journal import Journal
from orchestrator_states.plan import PLAN

__all__ = ["export_run", "print_schema"]

FROM_RUN: Final[Mapping[ExportFormat, Callable[[Run], str]]] = MappingProxyType(
    {
        ExportFormat.JUNIT: export_junit,
        ExportFormat.CTRF: export_ctrf,
        ExportFormat.IN_TOTO: export_intoto,
        ExportFormat.MARKDOWN: export_markdown,
    }
)


def export_run(place: RunPlace, name: str, form: ExportFormat) -> None:
    """A run in one of the forms, on standard output."""
    with closing(place.journal_to_read()) as journal:
        run_id = place.found(journal, name)
        if form is ExportFormat.JSON:
            sys.stdout.write(run_blocking(export_json(journal, run_id)))
        elif form is ExportFormat.JSONL:
            run_blocking(write_lines(journal, run_id))
        elif form is ExportFormat.MARKDOWN and run_blocking(is_plan(journal, run_id)):
            write_text(run_blocking(plan_markdown(journal, run_id)))
        else:
            write_whole(FROM_RUN[form], conformance_run(journal, run_id, form))


async def is_plan(journal: Journal, run_id: str) -> bool:
    """Whether a run is a plan's, by its first record."""
    async for entry in journal.read(run_id):
        return entry.record.lifecycle == PLAN.name
    return False


async def plan_markdown(journal: Journal, run_id: str) -> str:
    """A plan's report."""
    from orchestrator.exports.planmarkdown import export_plan_markdown
    from orchestrator.plan.resuming import load_recorded_plan

    return export_plan_markdown(*await load_recorded_plan(journal, run_id))


def conformance_run(journal: Journal, run_id: str, form: ExportFormat) -> Run:
    """The run to report on; RequestError for one that is no conformance run."""
    try:
        return run_blocking(load_run(journal, run_id))
    except ForeignLifecycleError as error:
        raise RequestError(f"{form.value} reports on conformance runs, and {error}: use json or jsonl") from error


def print_schema(kind: str) -> None:
    """The JSON Schema of a form, or the list of forms for an empty `kind`."""
    if not kind:
        width = max(map(len, KINDS))
        sys.stdout.writelines(f"{name:<{width}}  {meaning}\n" for name, meaning in KINDS.items())
        return
    try:
        sys.stdout.write(schema_text(kind))
    except UnknownKindError as error:
        raise RequestError(str(error)) from None


async def write_lines(journal: Journal, run_id: str) -> None:
    """JSON lines, each as soon as it is read."""
    async for line in export_lines(journal, run_id):
        sys.stdout.write(line)


def write_whole(export: Callable[[Run], str], run: Run) -> None:
    """The export of a run; RequestError where there is nothing to export."""
    try:
        text = export(run)
    except NothingToAttestError as error:
        raise RequestError(str(error)) from error
    write_text(text)


def write_text(text: str) -> None:
    """The text as UTF-8, which its own head may promise, whatever the terminal's encoding is."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(text)
    else:
        buffer.write(text.encode())
