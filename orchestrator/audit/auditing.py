"""The audit of an export: everything it says is derived again from its records, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from orchestrator.audit.accounts import Accounts
from orchestrator.audit.attempts import Attempts
from orchestrator.audit.chain import CHAIN, HEAD, chain_findings, head_findings, head_of
from orchestrator.audit.consents import Consents
from orchestrator.audit.digests import DIGESTS, digest_findings
from orchestrator.audit.isolation import IsolationInForce
from orchestrator.audit.markers import Markers
from orchestrator.audit.moves import Moves
from orchestrator.audit.prompts import Prompts
from orchestrator.audit.report import AuditReport, Finding
from orchestrator.audit.results import Results
from orchestrator.audit.trail import RECORDS, Check, begin, decoded, walk
from orchestrator.audit.tree import TREE, Followed, tree_findings
from orchestrator.audit.verdicts import Verdicts
from orchestrator.execution import Execution
from orchestrator.importing import Export
from orchestrator.run import Run
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.record import Record

__all__ = ["audit"]

SPEC = "spec"
TABLE = "table"
OPENING = "opening"


def audit(export: Export, *, head: str | None = None, count: int | None = None) -> AuditReport:
    """Check an export, with the runs inside it, against itself and, where given, against what the run published.

    Evident to whoever holds the head: without it, a history that was rewritten as a whole, consistently and
    with a new chain, cannot be told from the true one. The head of a run covers the runs inside it, as far as it
    tells their ends. Never raises for what an export holds.
    """
    followed = follow(export)
    inside = tuple(descendants(followed))
    findings = [*head_findings(export, head, count), *followed.findings]
    findings += [attrs.evolve(each, run=child.export.run_id) for child in inside for each in child.findings]
    checks = dict.fromkeys([CHAIN, HEAD, *followed.checks, *(check for child in inside for check in child.checks)])
    run = followed.run
    return AuditReport(
        run_id=export.run_id,
        head=head_of(export),
        state=followed.state,
        spec_digest=run.spec.digest if isinstance(run, Run) else "",
        checks=tuple(checks),
        findings=tuple(findings),
        children=tuple(child.export.run_id for child in inside),
    )


def follow(export: Export, root_id: str = "") -> Followed:
    """One run and those inside it, each checked by itself and against the one that it is in."""
    records, broken = decoded(export)
    findings = [*chain_findings(export), *broken, *digest_findings(export, records)]
    done = [RECORDS, DIGESTS]
    run: Execution | None = None
    if records:
        moves, misread = moves_of(export)
        run, unread = begun(records)
        findings += (*misread, *unread)
        if run is not None:
            checks = (*moves, *checks_for(run))
            done += [TABLE] * bool(moves) + [SPEC if isinstance(run, Run) else OPENING]
            done += [check.name for check in checks]
            findings += walk(run, records, checks, is_whole=len(records) == len(export.links))
    inside = tuple(follow(child, root_id or export.run_id) for child in export.children)
    if root_id:  # of the outermost one, the caller may know the head
        findings[:0] = head_findings(export, None, None)
    found = Followed(export, root_id or export.run_id, records, run, inside)
    if inside or found.starts_children:
        findings += tree_findings(found)
        done.append(TREE)
    return attrs.evolve(found, findings=tuple(findings), checks=tuple(done))


def descendants(followed: Followed) -> Iterator[Followed]:
    """The runs inside a run, and those inside them."""
    for child in followed.inside:
        yield child
        yield from descendants(child)


def checks_for(run: Execution) -> Iterator[Check[Execution]]:
    """The checks that follow a run, beside the moves: those for all, and those of its lifecycle."""
    yield Markers()
    yield IsolationInForce()
    yield from of_lifecycle(run)  # type: ignore[misc]  # they take no other run than this one's kind


def of_lifecycle(run: Execution) -> Iterator[Check[Run]]:
    """The checks of a lifecycle's own, the one of consents among them; of one without a fold, that one alone."""
    if isinstance(run, Run):
        yield Attempts()
        yield Prompts()
        yield Consents()
        yield Accounts()
        yield Verdicts()
        yield Results()
        return
    yield Consents()
    if run.lifecycle == "agent":
        from orchestrator.audit.agent.checks import agent_checks

        yield from agent_checks()  # type: ignore[misc]  # as above
    if run.lifecycle == "workflow":
        from orchestrator.audit.workflows import WorkflowSteps

        yield WorkflowSteps()  # type: ignore[misc]  # as above
    if run.lifecycle == "plan":
        from orchestrator.audit.plans import PlanLife

        yield PlanLife()  # type: ignore[misc]  # as above
    if run.lifecycle == "step":
        from orchestrator.audit.steps import StepLife

        yield StepLife()  # type: ignore[misc]  # as above


def moves_of(export: Export) -> tuple[tuple[Check[Execution], ...], tuple[Finding, ...]]:
    """The check of the moves, or why there is none."""
    try:
        return (Moves.of(export),), ()
    except OrchestratorError as error:
        return (), (Finding(TABLE, 0, f"{error}; the moves were not checked"),)


def begun(records: Sequence[Record]) -> tuple[Execution | None, tuple[Finding, ...]]:
    """The run that the first record begins, or why there is none to follow."""
    try:
        return begin(records[0]), ()
    except (OrchestratorError, ValueError) as error:
        check = SPEC if records[0].lifecycle == "run" else OPENING
        return None, (Finding(check, 1, f"{error}; the run was not followed"),)
