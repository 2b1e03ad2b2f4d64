"""The learning recorder: records of failures, what they have in common, and stores that are merged."""

from __future__ import annotations

import asyncio
from itertools import permutations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import DocumentError
from orchestrator.workflow.components.learnings import UnknownRecordError
from orchestrator.workflow.components.learningstore import LearningStore, Recommendation
from orchestrator.workflow.components.records import (
    Classification,
    Failure,
    FailureContext,
    LearningRecord,
    Resolution,
    time_of,
)
from orchestrator.workflow.components.testing import RecordingHost
from orchestrator_events.budget import Charge
from orchestrator_events.workflow import LearningRecorded, PhaseFailed

MISSING = "ModuleNotFoundError: No module named 'yaml'"
AT = "2026-01-01T00:00:00.000000Z"


def test_a_failure_is_recorded_with_id_classification_and_prevention() -> None:
    """A record has an id lr-YYYY-MM-DD-NNN, where it failed, what kind of failure it is and what would prevent it."""
    host = RecordingHost(phase="04-test")

    async def phase() -> LearningRecord:
        context = FailureContext(error="", file="a.py", line=3, story_id="s1", chunk_id="c2", stack_trace="…")
        return await host.components().learnings.record_failure("test", MISSING, retry_count=2, context=context)

    record = asyncio.run(phase())

    assert record == LearningRecord(
        record_id="lr-2026-01-01-001",
        recorded_at=AT,
        source="workflow/lr-2026-01-01-001",
        failure=Failure(
            type="test",
            retry_count=2,
            context=FailureContext(
                error=MISSING, phase="04-test", file="a.py", line=3, story_id="s1", chunk_id="c2", stack_trace="…"
            ),
        ),
        classification=Classification(
            category="environment",
            pattern="ModuleNotFoundError: No module named <value>",
            preventable=True,
            prevention_rule="Check that what is imported or called is installed before the work starts.",
        ),
    )
    (event,) = host.history
    assert isinstance(event, LearningRecorded)
    assert event.record_id == record.record_id


def test_ids_count_within_a_day_and_go_on_past_999() -> None:
    """The number begins anew each day, in UTC; the thousandth of a day has four digits."""
    host = RecordingHost()

    async def phase() -> list[str]:
        learnings = host.components().learnings
        ids = [learnings.failure_event("test", "boom").record_id for _ in range(1_000)]
        host.clock.advance(86_400)
        return [ids[0], ids[998], ids[999], learnings.failure_event("test", "boom").record_id]

    assert asyncio.run(phase()) == [
        "lr-2026-01-01-001",
        "lr-2026-01-01-999",
        "lr-2026-01-01-1000",
        "lr-2026-01-02-001",
    ]


def test_side_by_side_failures_get_different_ids() -> None:
    """Two tasks of a phase that record at once never share an id."""
    host = RecordingHost()

    async def phase() -> set[str]:
        learnings = host.components().learnings
        records = await asyncio.gather(*(learnings.record_failure("test", f"boom {number}") for number in range(9)))
        return {record.record_id for record in records}

    assert len(asyncio.run(phase())) == 9


def test_a_resolution_is_added_to_its_record_and_outlives_a_crash() -> None:
    """The last version of a record is the one that counts, also for a phase that begins again from the events."""
    host = RecordingHost()

    async def fail_and_resolve() -> LearningRecord:
        learnings = host.components().learnings
        record = await learnings.record_failure("build", "TypeError: missing 1 required argument")
        return await learnings.resolve(record.record_id, "pass the argument", success=True, files_changed=["a.py"])

    resolved = asyncio.run(fail_and_resolve())

    async def again() -> LearningStore:
        return host.components().learnings.store

    assert resolved.resolution == Resolution(
        action="pass the argument", success=True, files_changed=("a.py",), resolved_at=AT
    )
    assert asyncio.run(again()) == LearningStore((resolved,))


def test_resolving_what_nobody_recorded_is_refused() -> None:
    """The message names the id and the fix."""
    host = RecordingHost()

    async def phase() -> None:
        await host.components().learnings.resolve("lr-2026-01-01-009", "x", success=True)

    with pytest.raises(UnknownRecordError, match="no learning record 'lr-2026-01-01-009': record the failure first"):
        asyncio.run(phase())


def test_similar_failures_are_found_whatever_varies_in_them() -> None:
    """Numbers, paths, addresses and quoted values do not matter; another type of failure does. The third asks."""
    host = RecordingHost()
    alike = [
        "/a/b.py:3: KeyError: 'x' at 0xdeadbeef",
        "/c/d.py:99: KeyError: 'yy' at 0x1234",
        "./e.py:1: KeyError: 'z' at 0xf",
    ]

    async def phase() -> tuple[list[str], list[bool]]:
        learnings = host.components().learnings
        asks = []
        for error in alike:
            await learnings.record_failure("test", error)
            host.clock.advance(1)
            asks.append(learnings.asks_for_diagnosis("test", alike[0]))
        await learnings.record_failure("test", "AssertionError: expected 2, found 3")
        await learnings.record_failure("build", alike[0])
        return [record.record_id[-3:] for record in learnings.similar("test", alike[1])], asks

    assert asyncio.run(phase()) == (["003", "002", "001"], [False, False, True])


def test_aggregation_sums_up_and_recommends_what_would_prevent_most() -> None:
    """Sums by category and type, the most frequent pattern first, rules by how many failures they stand for."""
    host = RecordingHost()

    async def phase() -> LearningStore:
        learnings = host.components().learnings
        for error in (MISSING, MISSING, "SyntaxError: invalid syntax", "AssertionError: 1 != 2"):
            await learnings.record_failure("test", error)
        await learnings.record_failure("review", "layer violated: architecture")
        await learnings.resolve("lr-2026-01-01-001", "installed it", success=True)
        return learnings.store

    sums = asyncio.run(phase()).aggregate(most=2)

    installed = "Check that what is imported or called is installed before the work starts."
    parsed = "Parse every changed file before tests are run."
    assert (sums.records, sums.resolved) == (5, 1)
    assert sums.by_category == {"architecture": 1, "environment": 2, "logic": 1, "syntax": 1}
    assert sums.by_type == {"review": 1, "test": 4}
    assert sums.top_patterns[0] == ("ModuleNotFoundError: No module named <value>", 2)
    assert sums.recommendations == (
        Recommendation(installed, "environment", "ModuleNotFoundError: No module named <value>", 2),
        Recommendation(parsed, "syntax", "SyntaxError: invalid syntax", 1),
    )


def test_a_cascade_is_diagnosed_from_the_records() -> None:
    """The diagnosis names each kind of failure with the records like it; what helped before is recommended first."""
    host = RecordingHost()
    failures = [
        PhaseFailed(phase="04-test", error=f"ImportError: no module {number}", retry_count=number, charge=Charge())
        for number in (1, 2)
    ]
    other = PhaseFailed(phase="05-review", error="nobody answered", retry_count=1, charge=Charge())

    async def phase() -> tuple[str, str]:
        learnings = host.components().learnings
        await learnings.record_failure("test", "ImportError: no module 7")
        await learnings.resolve("lr-2026-01-01-001", "install it", success=True)
        return learnings.diagnose([*failures, other])

    diagnosis, recommendation = asyncio.run(phase())

    assert diagnosis == (
        "- 04-test, 2 times: ImportError: no module # (1 learning record like it: lr-2026-01-01-001; environment)\n"
        "- 05-review, once: nobody answered (no learning record like it)"
    )
    assert recommendation == (
        "Helped before: install it\nCheck that what is imported or called is installed before the work starts."
    )


def test_another_workflow_s_records_are_merged_and_recorded() -> None:
    """What is new becomes events of the run; a record whose id is taken gets the next one; once is enough."""
    one, other = RecordingHost(run_id="one"), RecordingHost(run_id="other")

    async def fail(host: RecordingHost, *errors: str) -> str:
        learnings = host.components().learnings
        for error in errors:
            await learnings.record_failure("test", error)
        return learnings.exported()

    asyncio.run(fail(one, "mine"))
    text = asyncio.run(fail(other, "theirs", "theirs too"))

    async def merge() -> list[tuple[str, str]]:
        learnings = one.components().learnings
        await learnings.merge(text)
        store = await learnings.merge(text)
        return [(record.record_id[-3:], record.source) for record in store.records]

    assert asyncio.run(merge()) == [
        ("001", "one/lr-2026-01-01-001"),
        ("002", "other/lr-2026-01-01-001"),
        ("003", "other/lr-2026-01-01-002"),
    ]
    assert len(one.history) == 3


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
times = st.integers(0, 4_000_000_000_000_000).map(time_of)
ids = st.builds("lr-2026-01-0{}-{:03d}".format, st.integers(1, 2), st.integers(1, 4))
resolutions = st.builds(
    Resolution, action=words, success=st.booleans(), files_changed=st.lists(words).map(tuple), resolved_at=times
)
records = st.builds(
    LearningRecord,
    record_id=ids,
    recorded_at=times,
    source=st.sampled_from([f"{run}/{number}" for run in "abc" for number in range(3)]),
    failure=st.builds(
        Failure,
        type=st.sampled_from(["test", "review", "build", "implementation"]),
        retry_count=st.integers(0, 9),
        context=st.builds(FailureContext, error=words, phase=words, line=st.integers(0, 99)),
    ),
    classification=st.builds(
        Classification, category=st.sampled_from(["syntax", "logic"]), pattern=words, preventable=st.booleans()
    ),
    resolution=st.none() | resolutions,
)
stores = st.lists(records, max_size=6, unique_by=(lambda record: record.record_id, lambda record: record.source)).map(
    LearningStore.of
)


@given(stores)
def test_export_import_export_is_equal(store: LearningStore) -> None:
    """A store is what its export says, and says the same again."""
    text = store.exported()
    again = LearningStore.imported(text)
    assert (again, again.exported()) == (store, text)


@given(stores, stores)
def test_a_merge_is_idempotent_and_loses_nothing(one: LearningStore, other: LearningStore) -> None:
    """Merging the same records again changes nothing; every source is there once, own ids stay."""
    merged = one.merge(other)

    assert merged.merge(other) == merged.merge(one) == merged
    assert one.merge(one) == one
    sources = [record.source for record in merged.records]
    assert sorted(sources) == sorted({record.source for store in (one, other) for record in store.records})
    assert len({record.record_id for record in merged.records}) == len(merged.records)
    kept = {record.source: record.record_id for record in merged.records}
    assert all(kept[record.source] == record.record_id for record in one.records)


@given(stores, stores, stores)
def test_the_order_of_merging_decides_ids_and_nothing_else(
    a: LearningStore, b: LearningStore, c: LearningStore
) -> None:
    """Whoever merges what first, the same failures with the same resolutions are known."""
    merged = [first.merge(second).merge(third) for first, second, third in permutations((a, b, c))]
    known = [
        sorted(str(attrs.evolve(record, record_id="lr-2000-01-01-001")) for record in each.records) for each in merged
    ]
    assert all(each == known[0] for each in known)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("{", "line 1, column 2"),
        ('{"format": "other/1", "records": []}', "$.format"),
        ('{"format": "orchestrator.learnings/1", "records": [{"record_id": "lr-1"}]}', "$.records[0].record_id"),
        ('{"format": "orchestrator.learnings/1", "records": 7, "more": 1}', "$.records"),
    ],
)
def test_a_file_that_is_no_store_says_what_is_wrong(text: str, path: str) -> None:
    """What others wrote is read strictly: every fault, each with its place."""
    with pytest.raises(DocumentError) as caught:
        LearningStore.imported(text, "learnings.json")
    assert path in [fault.path for fault in caught.value.faults]


def test_a_store_with_one_id_or_source_twice_is_refused() -> None:
    """Ids and sources tell records apart."""
    record = LearningRecord(
        record_id="lr-2026-01-01-001",
        recorded_at=AT,
        source="run/1",
        failure=Failure(type="test", context=FailureContext(error="x")),
        classification=Classification(category="logic", pattern="x"),
    )
    with pytest.raises(DocumentError) as caught:
        LearningStore.imported(LearningStore((record, record)).exported())
    assert [fault.path for fault in caught.value.faults] == ["$.records[1].record_id", "$.records[1].source"]
