"""Digests: every text is the one that a record names, whole, and every candidate is of its form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256

from orchestrator.audit.report import Finding
from orchestrator.candidate import FILES, TEXT
from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.importing import Export
from orchestrator_events.codec import blobs_of
from orchestrator_events.record import Record
from orchestrator_events.run import CandidateGenerated

__all__ = ["DIGESTS", "digest_findings"]

DIGESTS = "digests"


def digest_findings(export: Export, records: Sequence[Record]) -> Iterator[Finding]:
    """Texts that are missing, changed, swapped, or named by no record."""
    sizes = {digest: len(text.encode()) for digest, text in export.blobs.items()}
    for digest, text in export.blobs.items():
        if sha256(text.encode()).hexdigest() != digest:
            yield Finding(DIGESTS, 0, f"the text {digest:.80} has another digest: it was changed or swapped")
    named: set[str] = set()
    for position, record in enumerate(records, 1):
        for blob in blobs_of(record.event):
            named.add(blob.digest)
            if blob.digest not in sizes:
                yield Finding(DIGESTS, position, f"the text {blob.digest:.80} is not in the export")
            elif blob.size != sizes[blob.digest]:
                yield Finding(DIGESTS, position, f"the text {blob.digest:.80} is not {blob.size} bytes long")
        if isinstance(record.event, CandidateGenerated):
            yield from misformed(position, record.event)
    if len(records) == len(export.links):
        for digest in sorted(export.blobs.keys() - named):
            yield Finding(DIGESTS, 0, f"no record names the text {digest:.80}")


def misformed(position: int, event: CandidateGenerated) -> Iterator[Finding]:
    """A candidate that is not what its form says."""
    text = event.candidate.text
    if event.form == FILES and text is not None:
        if not is_table_of_texts(text):
            yield Finding(DIGESTS, position, "the candidate's files are not a JSON object of path to text")
    elif event.form not in (FILES, TEXT):
        yield Finding(DIGESTS, position, f"the candidate has the form {event.form!r:.80}, which there is not")


def is_table_of_texts(text: str) -> bool:
    """Whether files are written as the engine writes them: sorted paths, compact, all of them texts."""
    try:
        files = parse_document(text, ".json", "candidate")
    except DocumentError:
        return False
    if not isinstance(files, dict) or not files or not all(isinstance(each, str) for each in files.values()):
        return False
    return json.dumps(dict(sorted(files.items())), ensure_ascii=False, separators=(",", ":")) == text
