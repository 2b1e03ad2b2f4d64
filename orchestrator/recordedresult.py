"""What every result carries, whichever lifecycle the run has."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar, Self

import attrs

from orchestrator.charges import spent, total
from orchestrator.jsondata import JSON
from orchestrator_events.budget import Charge
from orchestrator_events.journal import Head
from orchestrator_events.ledger import Ledger
from orchestrator_events.record import GENESIS, Record, chain_digest

__all__ = ["RecordedResult", "UsageTotals"]


@attrs.frozen(kw_only=True)
class UsageTotals:
    """What the run used, all invocations together."""

    input_tokens: int
    output_tokens: int
    money_micro: int
    """Millionths of the currency."""
    active_us: int
    """Active time, microseconds."""
    is_estimated: bool
    """Whether any figure is ours and not the generator's."""

    @classmethod
    def of(cls, ledger: Ledger, others: Iterable[Charge] = ()) -> Self:
        """What a ledger says was used, and what others were charged that count with it."""
        used = total([spent(ledger), *others])
        return cls(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            money_micro=used.money_micro,
            active_us=ledger.elapsed_us(),
            is_estimated=used.estimated,
        )


@attrs.frozen(kw_only=True, eq=False)
class RecordedResult:
    """What a run came to, and the records that it stands on."""

    status: ClassVar[str] = "open"
    """One word for how it ended."""
    run_id: str
    usage: UsageTotals
    records: tuple[Record, ...] = attrs.field(repr=False)
    """The run's records, in order. Not in the repr, which asyncio.run makes of every result."""

    @cached_property
    def journal_head(self) -> Head:
        """Digest and number of the records: keep it, and truncation and rewriting will show."""
        from orchestrator_events.codec import encode

        digest = GENESIS
        for record in self.records:
            digest = chain_digest(digest, encode(record))
        return Head(digest, len(self.records))

    def head_json(self) -> dict[str, JSON]:
        """The head as plain data."""
        return attrs.asdict(self.journal_head)
