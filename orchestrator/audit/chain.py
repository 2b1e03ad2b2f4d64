"""The chain: every record's digest follows from its bytes and the record before, and none is missing or moved."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.audit.report import Finding
from orchestrator.importing import Export
from orchestrator_events.journal import Head
from orchestrator_events.record import GENESIS, chain_digest

__all__ = ["CHAIN", "HEAD", "chain_findings", "head_findings", "head_of"]

CHAIN = "chain"
HEAD = "head"


def head_of(export: Export) -> Head:
    """Digest and number of the records, computed from their bytes alone."""
    digest = GENESIS
    for link in export.links:
        digest = chain_digest(digest, link.body)
    return Head(digest, len(export.links))


def chain_findings(export: Export) -> Iterator[Finding]:
    """Records out of sequence, or whose stated digests are not those of their bytes."""
    if export.torn:
        yield Finding(CHAIN, len(export.links) + 1, f"the last line is damaged: {export.torn}")
    if not export.links:
        yield Finding(CHAIN, 0, "the export holds no record")
    previous = GENESIS
    for position, link in enumerate(export.links, 1):
        if link.sequence != position:
            yield Finding(CHAIN, position, f"is numbered {link.sequence}, expected {position}")
        if link.previous != previous:
            yield Finding(CHAIN, position, "its `previous` is not the digest of the record before")
        if link.digest != chain_digest(link.previous, link.body):
            yield Finding(CHAIN, position, "its digest is not that of its bytes: it was changed after it was recorded")
        previous = link.digest


def head_findings(export: Export, head: str | None, count: int | None) -> Iterator[Finding]:
    """A recomputed end of the chain that is not the one the export states, or not the published one."""
    found = head_of(export)
    if export.head is not None and export.head != found:
        stated = f"{export.head.digest:.80} of {export.head.count} records"
        yield Finding(HEAD, 0, f"states the head {stated}; its records give {found.digest} of {found.count}")
    if head is not None and head.removeprefix("sha256:") != found.digest:
        yield Finding(HEAD, 0, f"the published head is {head:.80}; the records give {found.digest}")
    if count is not None and count != found.count:
        yield Finding(HEAD, 0, f"the published count is {count}; there are {found.count} records")
