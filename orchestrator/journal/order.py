"""The one rule of every store: a batch follows the run's last record, and no older writer comes back."""

from __future__ import annotations

from orchestrator_events.errors import JournalConflictError, JournalError
from orchestrator_events.journal import Batch

__all__ = ["check_order"]


def check_order(batch: Batch, last: int, epoch: int) -> None:
    """Raise JournalConflictError unless the batch goes on after `last` with an epoch that is not older.

    Raises JournalError for a batch that no journal could take: empty, with a gap, or of several runs.
    """
    records, run_id = batch.records, batch.run_id
    if not records:
        raise JournalError(f"run {run_id}: an empty batch has nothing to append", run_id=run_id)
    head, tail = records[0], records[-1]
    first = head.sequence
    if first != last + 1:
        raise JournalConflictError(
            f"run {run_id}: a batch starts at record {first}, but the journal holds {last}: another "
            "writer was first, or this one is behind; resume the run from the journal",
            run_id=run_id,
            sequence=first,
        )
    if batch.epoch < epoch:
        raise JournalConflictError(
            f"run {run_id}: a writer of epoch {batch.epoch} was replaced by one of epoch {epoch}: "
            "let the newer one go on",
            run_id=run_id,
            sequence=first,
        )
    if tail.sequence - first + 1 != len(records) or head.run_id != run_id or tail.run_id != run_id:
        raise JournalError(
            f"run {run_id}: the batch holds records {first} to {tail.sequence} of run "
            f"{head.run_id}, {len(records)} in all: append the records of one run without a gap",
            run_id=run_id,
            sequence=first,
        )
