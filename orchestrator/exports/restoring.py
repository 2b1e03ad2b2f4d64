"""Puts an exported run back into a journal, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from orchestrator.errors import DocumentError
from orchestrator.exports.links import opening_of
from orchestrator.faults import Fault
from orchestrator.importing import Export, Link
from orchestrator.paths import UnsafeRunIdError, refuse_unsafe_run_id
from orchestrator_events.codec import blobs_of, decode
from orchestrator_events.errors import EventError, JournalConflictError, JournalError
from orchestrator_events.journal import Batch, Head, Journal
from orchestrator_events.record import GENESIS, Record, chain_digest

__all__ = ["import_export"]


async def import_export(journal: Journal, export: Export) -> Head:
    """Append the records of an export, and of the runs inside it, to a journal that has none of them.

    The head that the outermost run then has there. All of them or none: an export of the journal is then the same
    text. Raises DocumentError when the export is torn or does not hold together, JournalConflictError when the
    journal has one of the runs already.
    """
    batches = tuple(batches_of(export))
    for batch in batches[1:]:
        if (await journal.head(batch.run_id)).count:
            raise JournalConflictError(
                f"the journal has the run {batch.run_id} already: import into another journal",
                run_id=batch.run_id,
                sequence=1,
            )
    for batch in batches:
        await journal.append(batch)
    return Head(export.links[-1].digest, len(export.links))


def batches_of(export: Export) -> Iterator[Batch]:
    """What is appended: the run itself, then those inside it."""
    try:
        refuse_unsafe_run_id(export.run_id)
    except UnsafeRunIdError as error:
        raise refused(export, "$.run", str(error)) from error
    if export.torn:
        raise refused(export, "", f"its end is torn: {export.torn}")
    check_texts(export)
    records = tuple(records_of(export))
    try:
        opening = opening_of(records[0])
    except JournalError as error:
        raise refused(export, "$.table", str(error)) from error
    if (opening["table"], opening.get("tables", {})) != (export.table, export.tables):
        raise refused(export, "$.table", "not the table that the first record names")
    yield Batch(export.run_id, records)
    for child in export.children:
        yield from batches_of(child)


def check_texts(export: Export) -> None:
    """Every text has the digest it is listed under."""
    for digest, text in export.blobs.items():
        if sha256(text.encode()).hexdigest() != digest:
            raise refused(export, f"$.blobs[{digest!r}]", "the text has another digest")


def records_of(export: Export) -> Iterator[Record]:
    """The records, each linked to the one before it, with the texts they name and no others."""
    head = Head(GENESIS, 0)
    named: set[str] = set()
    for link in export.links:
        record = record_of(export, link, head)
        named |= {blob.digest for blob in blobs_of(record.event)}
        head = Head(link.digest, head.count + 1)
        yield record
    if head.count == 0:
        raise refused(export, "$.records", "there is no record")
    if export.head not in (None, head):
        raise refused(export, "$.head", "not the digest and number of the last record")
    if unnamed := sorted(export.blobs.keys() - named):
        raise refused(export, f"$.blobs[{unnamed[0]!r}]", "no record names this text")


def record_of(export: Export, link: Link, head: Head) -> Record:
    """One record, if it follows the head before it."""
    place = f"record {link.sequence}"
    try:
        record = decode(link.body, export.blobs)
    except EventError as error:
        raise refused(export, place, str(error)) from error
    if (link.sequence, record.sequence, record.run_id) != (head.count + 1, head.count + 1, export.run_id):
        raise refused(export, place, f"expected record {head.count + 1} of run {export.run_id}")
    if (link.previous, link.digest) != (head.digest, chain_digest(head.digest, link.body)):
        raise refused(export, place, "the hash chain breaks here")
    if any(blob.text is None for blob in blobs_of(record.event)):
        raise refused(export, place, "a text that it names is not in the export")
    return record


def refused(export: Export, place: str, message: str) -> DocumentError:
    """The error for an export that cannot be put back."""
    return DocumentError(export.source, (Fault(place, f"{message}: audit it to see all that is wrong"),))
