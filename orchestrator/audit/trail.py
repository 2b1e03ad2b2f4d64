"""The records of an export, decoded and folded one by one, while the checks look on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from orchestrator.audit.report import Finding
from orchestrator.execution import Execution
from orchestrator.history import RecordedClock, begin_execution
from orchestrator.importing import Export
from orchestrator.journal.memory import MemoryJournal
from orchestrator_events.codec import decode
from orchestrator_events.errors import EventError, OrchestratorError
from orchestrator_events.record import Record

__all__ = ["RECORDS", "Check", "begin", "decoded", "walk"]

RECORDS = "records"


Followed = TypeVar("Followed", bound=Execution)
Looked_contra = TypeVar("Looked_contra", bound=Execution, contravariant=True)


class Check(Protocol[Looked_contra]):
    """Looks at each record before it is folded into the run, and once more when there are no more."""

    name: str

    def look(self, run: Looked_contra, record: Record) -> Iterator[str]:
        """What is wrong with a record, the run being where all records before it have led."""
        ...

    def end(self, run: Looked_contra) -> Iterator[str]:
        """What is wrong with the run as the last record leaves it."""
        ...


def decoded(export: Export) -> tuple[tuple[Record, ...], tuple[Finding, ...]]:
    """The records up to the first that cannot be read, and what is wrong with them."""
    records: list[Record] = []
    findings: list[Finding] = []
    for position, link in enumerate(export.links, 1):
        try:
            record = decode(link.body, export.blobs)
        except EventError as error:
            findings.append(Finding(RECORDS, position, f"{error}; what follows it was not followed"))
            break
        if record.run_id != export.run_id:
            findings.append(Finding(RECORDS, position, f"belongs to run {record.run_id!r:.80}"))
        if record.sequence != position:
            findings.append(Finding(RECORDS, position, f"its bytes number it {record.sequence}"))
        records.append(record)
    return tuple(records), tuple(findings)


def begin(record: Record) -> Execution:
    """The run that the first record begins; JournalError when it begins none, or its spec cannot be read."""
    clock = RecordedClock(record.at)
    return begin_execution(record, clock, MemoryJournal())


def walk(
    run: Followed, records: Sequence[Record], checks: Sequence[Check[Followed]], *, is_whole: bool
) -> Iterator[Finding]:
    """Fold the records into the run; each check looks at each record first, and at the end if they are all."""
    clock = run.clock
    sequence = 0
    for sequence, record in enumerate(records, 1):
        for check in checks:
            if isinstance(clock, RecordedClock):
                clock.at = record.at
            yield from said(check, sequence, check.look(run, record))
        try:
            run.apply(record)
        except (OrchestratorError, ValueError, KeyError, TypeError, AttributeError) as error:
            yield Finding(RECORDS, sequence, f"{record.event.name} cannot be folded: {error}")
    for check in checks if is_whole else ():
        yield from said(check, sequence, check.end(run))


def said(check: Check[Followed], sequence: int, messages: Iterator[str]) -> Iterator[Finding]:
    """The messages as findings; what keeps a check from looking is one too."""
    try:
        for message in messages:
            yield Finding(check.name, sequence, message)
    except (OrchestratorError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield Finding(check.name, sequence, f"cannot be checked: {error}")
