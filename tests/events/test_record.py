"""Records and the hash chain over their bytes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

import pytest

from orchestrator_events import BudgetExhausted, Record
from orchestrator_events.record import GENESIS, chain_digest

EXHAUSTED = BudgetExhausted(limit="tokens", detail="10 of 10 used")
MakeRecord = Callable[..., Record]


def test_the_stamp_is_utc_to_the_microsecond(record: MakeRecord) -> None:
    """`at` counts whole microseconds, and none is lost on the way to a datetime."""
    expected = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert record(EXHAUSTED, at=1_767_323_045_678_901).time == expected


def test_a_record_cannot_be_changed(record: MakeRecord) -> None:
    """What subscribers receive is a value."""
    with pytest.raises(AttributeError):
        record(EXHAUSTED).sequence = 2  # type: ignore[misc]  # what is refused here


def test_the_digest_is_that_of_domain_previous_length_and_body() -> None:
    """Anyone can compute it: SHA-256 over the four parts, as documented."""
    data = b"orchestrator.record.v1\0" + GENESIS.encode() + b"4\0" + b"body"
    assert chain_digest(GENESIS, b"body") == sha256(data).hexdigest()


@pytest.mark.parametrize("bodies", [(b"A", b"b", b"c"), (b"a", b"B", b"c"), (b"ab", b"", b"c"), (b"b", b"a", b"c")])
def test_any_change_of_an_earlier_body_changes_the_head(bodies: tuple[bytes, ...]) -> None:
    """Changed, moved and swapped bytes all show at the end of the chain."""

    def head(parts: tuple[bytes, ...]) -> str:
        digest = GENESIS
        for part in parts:
            digest = chain_digest(digest, part)
        return digest

    assert head(bodies) != head((b"a", b"b", b"c"))
