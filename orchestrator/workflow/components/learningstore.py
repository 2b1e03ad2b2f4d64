"""A store of learning records: a value that is exported, imported and merged, and asked what is to be learned."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.jsondata import JSON
from orchestrator.structuring import structure
from orchestrator.workflow.components.records import LearningRecord, day_of, number_of
from orchestrator.workflow.components.similarity import is_similar

__all__ = ["STORE_FORMAT", "Aggregate", "LearningStore", "Recommendation", "record_from"]

Key = TypeVar("Key", str, tuple[str, str, str])
STORE_FORMAT: Final = "orchestrator.learnings/1"


@attrs.frozen
class StoreFile:
    """A store as a file."""

    format: str
    records: tuple[LearningRecord, ...]


@attrs.frozen
class Recommendation:
    """What would prevent failures of a pattern, and how many there were."""

    rule: str
    category: str
    pattern: str
    failures: int


@attrs.frozen
class Aggregate:
    """What the records say together."""

    records: int
    resolved: int
    by_category: Mapping[str, int]
    by_type: Mapping[str, int]
    top_patterns: tuple[tuple[str, int], ...]
    """Most frequent first."""
    recommendations: tuple[Recommendation, ...]


@attrs.frozen
class LearningStore:
    """Learning records in order of their ids; no two have the same id or the same source."""

    records: tuple[LearningRecord, ...] = ()

    @classmethod
    def of(cls, records: Iterable[LearningRecord]) -> LearningStore:
        """A store of records, a later one in place of an earlier one of the same id."""
        return cls(in_order({record.record_id: record for record in records}.values()))

    def get(self, record_id: str) -> LearningRecord | None:
        """The record of this id."""
        return next((record for record in self.records if record.record_id == record_id), None)

    def next_id(self, day: str, taken: Iterable[str] = ()) -> str:
        """The id after the last of a day, YYYY-MM-DD; `taken` are ids that are in use though not in the store."""
        used = (*(record.record_id for record in self.records), *taken)
        last = max((number_of(each) for each in used if day_of(each) == day), default=0)
        return f"lr-{day}-{last + 1:03d}"

    def similar(self, kind: str, error: str, similarity: float) -> tuple[LearningRecord, ...]:
        """The records of failures like this one, latest first: of the same type, with an error of the same words."""
        found = [
            record
            for record in self.records
            if record.failure.type == kind and is_similar(record.failure.context.error, error, similarity)
        ]
        return tuple(sorted(found, key=lambda record: (record.recorded_at, record.record_id), reverse=True))

    def merge(self, other: LearningStore) -> LearningStore:
        """This store with the other's records; merging them again changes nothing.

        Records with the same source are one: the one that was resolved, or resolved later, is kept, under the id it
        has here. A record whose id is taken here gets the next one of its day.
        """
        by_source = {record.source: record for record in self.records}
        by_id = {record.record_id: record for record in self.records}
        last = Counter[str]()
        for record in self.records:
            last[day_of(record.record_id)] = max(last[day_of(record.record_id)], number_of(record.record_id))
        for record in other.records:
            day, record_id = day_of(record.record_id), record.record_id
            known = by_source.get(record.source)
            if known is not None:
                record_id = known.record_id
            elif record_id in by_id:
                record_id = f"lr-{day}-{last[day] + 1:03d}"
            last[day] = max(last[day], number_of(record_id))
            newer = record if known is None else max(known, record, key=maturity)
            by_id[record_id] = by_source[record.source] = attrs.evolve(newer, record_id=record_id)
        return LearningStore(in_order(by_id.values()))

    def aggregate(self, most: int = 5) -> Aggregate:
        """Sums by category and type, the most frequent patterns, and what would prevent them."""
        patterns = Counter(record.classification.pattern for record in self.records)
        return Aggregate(
            records=len(self.records),
            resolved=sum(record.resolution is not None and record.resolution.success for record in self.records),
            by_category=dict(sorted(Counter(record.classification.category for record in self.records).items())),
            by_type=dict(sorted(Counter(record.failure.type for record in self.records).items())),
            top_patterns=tuple(ranked(patterns)[:most]),
            recommendations=self.recommendations(most),
        )

    def recommendations(self, most: int = 5) -> tuple[Recommendation, ...]:
        """The rules that would have prevented most failures, first."""
        rules = Counter[tuple[str, str, str]](
            (record.classification.prevention_rule, record.classification.category, record.classification.pattern)
            for record in self.records
            if record.classification.preventable and record.classification.prevention_rule
        )
        return tuple(
            Recommendation(rule, category, pattern, number)
            for (rule, category, pattern), number in ranked(rules)[:most]
        )

    def exported(self) -> str:
        """The store as JSON text: equal stores give equal texts."""
        data = {"format": STORE_FORMAT, "records": [record.as_json() for record in self.records]}
        return json.dumps(data, ensure_ascii=False, sort_keys=True, indent=2) + "\n"

    @classmethod
    def imported(cls, text: str, source: str = "learnings") -> LearningStore:
        """The store in a text that `exported` made; raises DocumentError with every fault."""
        data = structure(parse_document(text, ".json", source), StoreFile, source)
        faults = []
        if data.format != STORE_FORMAT:
            faults.append(Fault("$.format", f"{data.format!r:.60} is not read here: expected {STORE_FORMAT}"))
        for name in ("record_id", "source"):
            values = [getattr(record, name) for record in data.records]
            faults += [
                Fault(step(step("$.records", index), name), f"{value!r:.80} is there before: each is given once")
                for index, value in enumerate(values)
                if value in values[:index]
            ]
        if faults:
            raise DocumentError(source, tuple(faults))
        return cls(in_order(data.records))


def record_from(data: JSON, source: str) -> LearningRecord:
    """A record from plain data; raises DocumentError with every fault."""
    return structure(data, LearningRecord, source)


def maturity(record: LearningRecord) -> tuple[bool, bool, str, str]:
    """What is greater of two versions of a record: resolved with success, resolved, later; their texts break a tie."""
    resolution = record.resolution
    plain = attrs.evolve(record, record_id="lr-2000-01-01-001").as_json()
    return (
        resolution is not None and resolution.success,
        resolution is not None,
        "" if resolution is None else resolution.resolved_at,
        json.dumps(plain, sort_keys=True),
    )


def ranked(counts: Counter[Key]) -> list[tuple[Key, int]]:
    """The most frequent first; those as frequent in order."""
    return sorted(counts.items(), key=lambda each: (-each[1], each[0]))


def in_order(records: Iterable[LearningRecord]) -> tuple[LearningRecord, ...]:
    """By day and number."""
    return tuple(sorted(records, key=lambda record: (day_of(record.record_id), number_of(record.record_id))))
