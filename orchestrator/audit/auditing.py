"""The audit of an export: everything it says is derived again from its records, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.audit.accounts import Accounts
from orchestrator.audit.attempts import Attempts
from orchestrator.audit.chain import CHAIN, HEAD, chain_findings, head_findings, head_of
from orchestrator.audit.consents import Consents
from orchestrator.audit.digests import DIGESTS, digest_findings
from orchestrator.audit.markers import Markers
from orchestrator.audit.moves import Moves
from orchestrator.audit.prompts import Prompts
from orchestrator.audit.report import AuditReport, Finding
from orchestrator.audit.results import Results
from orchestrator.audit.trail import RECORDS, Check, begin, decoded, walk
from orchestrator.audit.verdicts import Verdicts
from orchestrator.importing import Export
from orchestrator.run import Run
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.record import Record

__all__ = ["audit"]

SPEC = "spec"
TABLE = "table"


def audit(export: Export, *, head: str | None = None, count: int | None = None) -> AuditReport:
    """Check an export against itself and, where given, against the head and count that the run published.

    Evident to whoever holds the head: without it, a history that was rewritten as a whole, consistently and
    with a new chain, cannot be told from the true one. Never raises for what an export holds.
    """
    records, broken = decoded(export)
    findings = [*chain_findings(export), *head_findings(export, head, count), *broken]
    findings += digest_findings(export, records)
    done = [CHAIN, HEAD, RECORDS, DIGESTS]
    run: Run | None = None
    if records:
        moves, misread = moves_of(export)
        run, unread = begun(records)
        findings += (*misread, *unread)
        if run is not None:
            checks = (*moves, *fresh_checks())
            done += [TABLE] * bool(moves) + [SPEC] + [check.name for check in checks]
            findings += walk(run, records, checks, is_whole=len(records) == len(export.links))
    return AuditReport(
        run_id=export.run_id,
        head=head_of(export),
        state=records[-1].target if records else "",
        spec_digest="" if run is None else run.spec.digest,
        checks=tuple(done),
        findings=tuple(findings),
    )


def fresh_checks() -> Iterator[Check]:
    """The checks that follow the run, beside the moves."""
    yield Markers()
    yield Attempts()
    yield Prompts()
    yield Consents()
    yield Accounts()
    yield Verdicts()
    yield Results()


def moves_of(export: Export) -> tuple[tuple[Check, ...], tuple[Finding, ...]]:
    """The check of the moves, or why there is none."""
    try:
        return (Moves.of(export),), ()
    except OrchestratorError as error:
        return (), (Finding(TABLE, 0, f"{error}; the moves were not checked"),)


def begun(records: Sequence[Record]) -> tuple[Run | None, tuple[Finding, ...]]:
    """The run that the first record begins, or why there is none to follow."""
    try:
        return begin(records[0]), ()
    except (OrchestratorError, ValueError) as error:
        return None, (Finding(SPEC, 1, f"{error}; the run was not followed"),)
