"""The log: one structlog line an attempt, or one a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.bus import Bus, Subscription
from orchestrator_events.execution import ExecutionEnd, ExecutionStart, SubscriberFailed
from orchestrator_events.record import Record
from orchestrator_events.run import AttemptFailed, AttemptPassed, BudgetExhausted, BudgetOverrun

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

__all__ = ["log_attempts", "log_records"]


def log_attempts(bus: Bus, logger: FilteringBoundLogger | None = None) -> Subscription:
    """Log a line at info for each start, attempt, limit and end; the host's structlog setup renders it."""
    log = logger or host_logger()

    def attempts(record: Record) -> None:
        match record.event:
            case AttemptFailed() as event:
                log.info(
                    event.name,
                    run=record.run_id,
                    attempt=event.attempt,
                    stage=event.stage,
                    passed=len(event.passed),
                    failed=len(event.failing),
                )
            case AttemptPassed() as event:
                log.info(event.name, run=record.run_id, attempt=event.attempt, passed=len(event.passed))
            case BudgetExhausted() as event:
                log.info(event.name, run=record.run_id, limit=event.limit, detail=event.detail)
            case BudgetOverrun() as event:
                log.warning(event.name, run=record.run_id, attempt=event.attempt, limits=event.limits)
            case SubscriberFailed() as event:
                log.warning(event.name, run=record.run_id, subscriber=event.subscriber, error=event.error)
            case ExecutionEnd() as event:
                log.info(event.name, run=record.run_id, status=event.status, state=record.target)
            case _:
                log.info(record.event.name, run=record.run_id)

    shown = (
        AttemptFailed,
        AttemptPassed,
        BudgetExhausted,
        BudgetOverrun,
        SubscriberFailed,
        ExecutionStart,
        ExecutionEnd,
    )
    return bus.subscribe(attempts, *shown, name="log")


def log_records(bus: Bus, logger: FilteringBoundLogger | None = None) -> Subscription:
    """Log every record at debug: its sequence, the move it made and its event's fields, texts by digest."""
    log = logger or host_logger()

    def records(record: Record) -> None:
        log.debug(
            record.event.name,
            run=record.run_id,
            sequence=record.sequence,
            source=record.source,
            target=record.target,
            fields=attrs.asdict(record.event, value_serializer=as_plain),
        )

    return bus.subscribe(records, name="log")


def as_plain(_event: object, _field: object, value: object) -> object:
    """A field's value without texts that are stored by digest: a log line stays short."""
    return {"bytes": value.size, "sha256": value.digest} if isinstance(value, Blob) else value


def host_logger() -> FilteringBoundLogger:
    """The logger as the host configured structlog; we configure nothing."""
    import structlog

    logger: FilteringBoundLogger = structlog.get_logger("orchestrator")
    # Where the host has its loggers cached on first use, that is now: the lazy one looks itself up at every line.
    return logger.bind() if structlog.get_config()["cache_logger_on_first_use"] else logger
