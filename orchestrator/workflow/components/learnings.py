"""The learning recorder: failures and their resolutions as events, and what they say of the next failure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import attrs

from orchestrator.agent.plainjson import bounded, clean
from orchestrator.workflow.components.classifying import classified
from orchestrator.workflow.components.learningstore import Aggregate, LearningStore, record_from
from orchestrator.workflow.components.port import ComponentHost
from orchestrator.workflow.components.records import (
    FAILURE_TYPES,
    Classification,
    Failure,
    FailureContext,
    LearningRecord,
    Resolution,
    time_of,
)
from orchestrator.workflow.components.settings import LearningSettings
from orchestrator.workflow.components.similarity import pattern_of
from orchestrator_events.blob import Blob
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event
from orchestrator_events.workflow import LearningRecorded, PhaseFailed

__all__ = ["Diagnosis", "Learnings", "UnknownRecordError", "diagnosed", "store_of"]

LONGEST_ERROR = 4_000
LONGEST_TRACE = 16_000
SHOWN_RULES = 3


class UnknownRecordError(OrchestratorError, KeyError):
    """There is no learning record of this id; `record_id` is what was asked for."""

    def __init__(self, record_id: str) -> None:
        self.record_id = record_id
        self.message = f"there is no learning record {record_id[:60]!r}: record the failure first, or import it"
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


class Diagnosis(NamedTuple):
    """What the learning records say of some failures, and what they suggest; empty without a suggestion."""

    diagnosis: str
    recommendation: str


@attrs.define(eq=False)
class Learnings:
    """Records what failed and how it was resolved; the store is the fold of the run's events."""

    settings: LearningSettings
    host: ComponentHost
    issued: set[str] = attrs.field(factory=set, init=False)
    """Ids that were given away."""
    folded: int = attrs.field(default=0, init=False)
    """Events of the history that are in the store."""
    known: LearningStore = attrs.field(factory=LearningStore, init=False)

    @property
    def store(self) -> LearningStore:
        """All records so far."""
        news = self.host.history[self.folded :]
        if news:
            self.folded += len(news)
            self.known = store_of(news, self.known)
        return self.known

    async def record_failure(
        self,
        kind: str,
        error: str,
        *,
        retry_count: int = 0,
        context: FailureContext | None = None,
        classification: Classification | None = None,
    ) -> LearningRecord:
        """Record a failure of a type (test, review, build, implementation); ValueError for any other.

        Without a classification the words of the error give one. The context's phase and error are filled in.
        """
        event = self.failure_event(kind, error, retry_count=retry_count, context=context, classification=classification)
        return record_of(await self.recorded(event))

    def failure_event(
        self,
        kind: str,
        error: str,
        *,
        retry_count: int = 0,
        context: FailureContext | None = None,
        classification: Classification | None = None,
    ) -> LearningRecorded:
        """The event of a failure, for the caller to record with others."""
        if kind not in FAILURE_TYPES:
            raise ValueError(f"{kind!r:.60} is no type of failure: use one of {', '.join(FAILURE_TYPES)}")
        error = bounded(error, LONGEST_ERROR)
        at = time_of(self.host.clock.now())
        record_id = self.store.next_id(at[:10], self.issued)
        self.issued.add(record_id)
        where = attrs.evolve(context or FailureContext(error=error), error=error)
        where = attrs.evolve(where, phase=where.phase or self.host.phase)
        record = LearningRecord(
            record_id=record_id,
            recorded_at=at,
            source=f"{self.host.run_id}/{record_id}",
            failure=Failure(
                type=kind,  # type: ignore[arg-type]  # checked above
                retry_count=retry_count,
                context=attrs.evolve(where, stack_trace=bounded(where.stack_trace, LONGEST_TRACE)),
            ),
            classification=classification or classified(error),
        )
        return event_of(record)

    async def resolve(
        self,
        record_id: str,
        action: str,
        *,
        success: bool,
        files_changed: Iterable[str] = (),
        classification: Classification | None = None,
    ) -> LearningRecord:
        """Record what was done about a failure, and what it turned out to be; UnknownRecordError."""
        known = self.store.get(record_id)
        if known is None:
            raise UnknownRecordError(record_id)
        resolution = Resolution(
            action=bounded(action, LONGEST_ERROR),
            success=success,
            files_changed=tuple(files_changed),
            resolved_at=time_of(self.host.clock.now()),
        )
        classification = classification or known.classification
        changed = attrs.evolve(known, resolution=resolution, classification=classification)
        return record_of(await self.recorded(event_of(changed)))

    def similar(self, kind: str, error: str) -> tuple[LearningRecord, ...]:
        """Records of failures like this one, latest first."""
        return self.store.similar(kind, error, self.settings.similarity)

    def asks_for_diagnosis(self, kind: str, error: str) -> bool:
        """Whether there were so many failures like this one that a person should look for the cause."""
        return len(self.similar(kind, error)) >= self.settings.similar_failures

    def aggregate(self) -> Aggregate:
        """Sums by category and type, frequent patterns, recommendations."""
        return self.store.aggregate()

    def diagnose(self, failures: Sequence[PhaseFailed]) -> Diagnosis:
        """What the records say of the failures of a cascade; pure."""
        return diagnosed(failures, self.store, self.settings)

    def exported(self) -> str:
        """All records as JSON text."""
        return self.store.exported()

    async def merge(self, text: str, source: str = "learnings") -> LearningStore:
        """Take in records that another store exported; what is new is recorded. Raises DocumentError.

        A record keeps its id unless that is taken here.
        """
        return await self.take_in(LearningStore.imported(text, source))

    async def take_in(self, store: LearningStore) -> LearningStore:
        """Take in the records of another store; what is new is recorded."""
        before = self.store
        merged = before.merge(store)
        self.issued.update(record.record_id for record in merged.records)
        events = [event_of(record) for record in merged.records if record not in before.records]
        if events:
            await self.host.record(*events)
        return self.store

    async def recorded(self, event: LearningRecorded) -> LearningRecorded:
        """The event as it was recorded."""
        (event_now,) = await self.host.record(event)
        assert isinstance(event_now, LearningRecorded)
        return event_now


def store_of(history: Iterable[Event], before: LearningStore | None = None) -> LearningStore:
    """The records that a run's events hold, each in its last version."""
    known = LearningStore() if before is None else before
    news = [record_of(event) for event in history if isinstance(event, LearningRecorded)]
    return LearningStore.of((*known.records, *news)) if news else known


def diagnosed(failures: Sequence[PhaseFailed], store: LearningStore, settings: LearningSettings) -> Diagnosis:
    """What the records of a store say of some failures, in words; pure."""
    if not failures:
        return Diagnosis("No failures to diagnose.", "")
    patterns = dict.fromkeys((failure.phase, pattern_of(failure.error)) for failure in failures)
    lines: list[str] = []
    rules: list[str] = []
    for phase, pattern in patterns:
        alike = [
            record
            for kind in FAILURE_TYPES
            for record in store.similar(kind, errors_of(failures, phase, pattern)[-1], settings.similarity)
        ]
        number = len(errors_of(failures, phase, pattern))
        lines.append(f"- {phase}, {'once' if number == 1 else f'{number} times'}: {pattern} ({told(alike)})")
        rules += suggestions(alike)
    return Diagnosis("\n".join(lines), "\n".join(list(dict.fromkeys(rules))[:SHOWN_RULES]))


def errors_of(failures: Sequence[PhaseFailed], phase: str, pattern: str) -> list[str]:
    """The errors of a phase that are of one pattern."""
    return [each.error for each in failures if each.phase == phase and pattern_of(each.error) == pattern]


def told(records: Sequence[LearningRecord]) -> str:
    """Which records are like a failure."""
    if not records:
        return "no learning record like it"
    ids = ", ".join(record.record_id for record in records[:3])
    categories = ", ".join(sorted({record.classification.category for record in records}))
    noun = "record" if len(records) == 1 else "records"
    return f"{len(records)} learning {noun} like it: {ids}{' …' if len(records) > 3 else ''}; {categories}"  # noqa: PLR2004 -- as many as are shown


def suggestions(records: Sequence[LearningRecord]) -> list[str]:
    """What helped with failures like it, and what would prevent them."""
    helped = [each.resolution.action for each in records if each.resolution is not None and each.resolution.success]
    rules = [each.classification.prevention_rule for each in records if each.classification.prevention_rule]
    return [*(f"Helped before: {action}" for action in helped), *rules]


def event_of(record: LearningRecord) -> LearningRecorded:
    """The event that records a record."""
    text = json.dumps(record.as_json(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return LearningRecorded(record_id=record.record_id, record=Blob(clean(text)))


def record_of(event: LearningRecorded) -> LearningRecord:
    """The record that an event holds."""
    return record_from(json.loads(event.record.data.decode()), event.record_id)
