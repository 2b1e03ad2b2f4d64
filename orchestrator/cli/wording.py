"""Numbers in words."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.recordedresult import UsageTotals
from orchestrator.wording import count_of
from orchestrator_events.budget import Budget, Charge

__all__ = ["count_of", "duration", "limit_name", "limits", "money", "short_digest", "tokens", "usage"]


def duration(microseconds: int) -> str:
    """`8.1s`, `2m 05s`, `1h 02m`."""
    seconds = microseconds / 1_000_000
    if seconds < 59.95:  # noqa: PLR2004 -- what rounds to 60.0
        return f"{seconds:.1f}s"
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {whole % 60:02}s"


def tokens(charge: Charge) -> str:
    """Tokens of a call, with a `~` where they are estimated."""
    return f"{'~' if charge.estimated else ''}{count_of(charge.input_tokens + charge.output_tokens, 'token')}"


def usage(totals: UsageTotals) -> str:
    """Time, tokens and money of a run."""
    estimated = "~" if totals.is_estimated else ""
    parts = [
        duration(totals.active_us),
        f"{estimated}{count_of(totals.input_tokens + totals.output_tokens, 'token')}",
    ]
    if totals.money_micro:
        parts.append(f"{estimated}{money(totals.money_micro)}")
    return "  ".join(parts)


def money(micro: int) -> str:
    """Units of the currency, which the generator knows and we do not."""
    return f"{micro / 1_000_000:,.4f} spent"


def limit_name(limit: str) -> str:
    """A limit as the command line calls it: `time`, `money`, `input-tokens`."""
    return {"seconds": "time", "money_micro": "money"}.get(limit, limit).replace("_", "-")


def limits(budget: Budget) -> str:
    """Every limit that holds, in words."""
    return ", ".join(limit_words(budget))


def limit_words(budget: Budget) -> Iterator[str]:
    """One phrase a limit."""
    if budget.attempts is not None:
        yield count_of(budget.attempts, "attempt")
    if budget.seconds is not None:
        yield whole_duration(budget.seconds)
    for noun, limit in (
        ("token", budget.tokens),
        ("input token", budget.input_tokens),
        ("output token", budget.output_tokens),
    ):
        if limit is not None:
            yield count_of(limit, noun)
    if budget.money_micro is not None:
        yield f"{budget.money_micro / 1_000_000:g} to spend"
    if budget.repeats is not None:
        yield count_of(budget.repeats, "repeat")


def whole_duration(seconds: float) -> str:
    """A limit of time as people write it: `10m`, `90s`."""
    if seconds >= 60 and seconds % 60 == 0:  # noqa: PLR2004 -- a minute
        minutes = round(seconds / 60)
        return f"{minutes // 60}h" if minutes % 60 == 0 else f"{minutes}m"
    return f"{seconds:g}s"


def short_digest(digest: str) -> str:
    """The first eight digits."""
    return digest.removeprefix("sha256:")[:8]
