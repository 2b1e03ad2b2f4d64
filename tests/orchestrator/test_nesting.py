"""Runs inside runs: one tree, one budget, one audit, whatever is cut off where."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from orchestrator import (
    Budget,
    EvalCase,
    Exhausted,
    MergedSpec,
    Orchestrator,
    Passed,
    RunInterruptedError,
    Submission,
    Verdict,
)
from orchestrator.agent.ports import Reply, ToolCall, TurnRequest
from orchestrator.audit import AuditReport, audit
from orchestrator.export import export_json, export_lines
from orchestrator.exports.restoring import import_export
from orchestrator.generators.agent import AgentGenerator
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.nesting import child_id_of
from orchestrator.testing import RecordingSubscriber
from orchestrator.testing.agents import ScriptedProvider
from orchestrator_events.agent import TurnAnswered
from orchestrator_events.budget import Usage
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ChildEnded, ChildStarted, ExecutionStart
from orchestrator_events.journal import Batch
from orchestrator_events.run import CandidateGenerated, GenerationAbandoned, GenerationStarted

SPEC = MergedSpec(
    name="colours",
    intent="Name the colours.",
    evals=(EvalCase(name="red", severity="critical"), EvalCase(name="green")),
)
USED = Usage(input_tokens=40, output_tokens=9)


def judged(submission: Submission) -> Verdict:
    """A case passes when the candidate names it."""
    text = "".join(submission.candidate.files.values()) or submission.candidate.text
    return Verdict.of({case.name: case.name in text or f"no {case.name}" for case in submission.spec.evals})


def wrote(text: str, path: str = "colours.txt") -> Reply:
    """A reply that writes a file."""
    call = ToolCall(id=f"write {path}", tool="write_file", arguments={"path": path, "content": text})
    return Reply(calls=(call,), usage=USED)


def said(text: str) -> Reply:
    """A reply that ends the agent's run."""
    return Reply(blocks=({"type": "text", "text": text},), usage=USED)


def first_red_then_both(request: TurnRequest) -> Reply:
    """The first attempt names one colour, the second one both."""
    return wrote("red" if request.run_id.endswith(".1") else "red green")


class CutJournal(MemoryJournal):
    """A journal that takes so many batches and no more: what it then has is what a crash there would leave."""

    def __init__(self, left: int) -> None:
        super().__init__()
        self.left = left

    async def append(self, batch: Batch) -> None:
        """Store a batch, or be gone."""
        if self.left == 0:
            raise JournalError("the power is out", run_id=batch.run_id)
        self.left -= 1
        await super().append(batch)


def nested(journal: MemoryJournal, workspaces: Path | None, **options: Any) -> Orchestrator:
    """A conformance run whose generator is an agent."""
    provider = options.pop("provider", None) or ScriptedProvider([first_red_then_both, said("done")])
    generator = AgentGenerator(
        provider, model="m-1", parameters={"max_tokens": 60}, workspaces=workspaces, **options.pop("agent", {})
    )
    options.setdefault("budget", Budget(attempts=3))
    return Orchestrator(generator=generator, evaluator=judged, journal=journal, **options)


async def audited(journal: MemoryJournal, run_id: str) -> AuditReport:
    """The audit of a run and all inside it."""
    return audit(parse_export(await export_json(journal, run_id)))


def events(journal: MemoryJournal, run_id: str, kind: type[Any]) -> list[Any]:
    """The events of a kind in one run."""
    return [record.event for record in journal.streams[run_id].records if isinstance(record.event, kind)]


def test_every_attempt_is_a_run_inside_the_run(tmp_path: Path) -> None:
    """'Events nest (parent run id)': each child names root, parent and record, and its end is told with its head."""
    journal = MemoryJournal()
    result = nested(journal, tmp_path).run(SPEC, run_id="top")
    assert isinstance(result, Passed)
    assert (dict(result.candidate.files), result.attempts) == ({"colours.txt": "red green"}, 2)
    starts = [events(journal, child, ExecutionStart)[0] for child in ("top.1", "top.2")]
    announced = [record.sequence for record in result.records if isinstance(record.event, ChildStarted)]
    assert [(each.root_id, each.parent_id, each.parent_sequence) for each in starts] == [
        ("top", "top", sequence) for sequence in announced
    ]
    heads = [asyncio.run(journal.head(child)) for child in ("top.1", "top.2")]
    assert [(end.child_id, end.head, end.count, end.status) for end in events(journal, "top", ChildEnded)] == [
        (f"top.{number}", head.digest, head.count, "completed") for number, head in enumerate(heads, 1)
    ]


def test_all_events_are_on_one_bus(tmp_path: Path) -> None:
    """A subscriber of the run hears of the agent's turns, under the agent's own run id."""
    heard = RecordingSubscriber()
    orchestrator = nested(MemoryJournal(), tmp_path)
    orchestrator.bus.subscribe(heard)
    orchestrator.run(SPEC, run_id="top")
    runs = {record.run_id: record.lifecycle for record in heard.records}
    assert runs == {"top": "run", "top.1": "agent", "top.2": "agent"}


def test_one_audit_covers_the_tree(tmp_path: Path) -> None:
    """The export of the outermost run holds those inside it, and one audit checks them all and finds nothing."""
    journal = MemoryJournal()
    nested(journal, tmp_path).run(SPEC, run_id="top")
    report = asyncio.run(audited(journal, "top"))
    assert (report.findings, report.children) == ((), ("top.1", "top.2"))
    assert {"tree", "turns", "requests", "conversation", "budget", "verdicts"} <= set(report.checks)


def test_the_tree_goes_out_and_in_again(tmp_path: Path) -> None:
    """Export, import and export of a tree give the same text, as a document and as lines."""

    async def round_trip() -> list[tuple[str, str]]:
        journal, restored = MemoryJournal(), [MemoryJournal(), MemoryJournal()]
        await nested(journal, tmp_path).arun(SPEC, run_id="top")
        document = await export_json(journal, "top")
        lines = "".join([line async for line in export_lines(journal, "top")])
        await import_export(restored[0], parse_export(document))
        await import_export(restored[1], parse_export(lines))
        assert audit(parse_export(lines)).is_clean
        return [
            (document, await export_json(restored[1], "top")),
            (lines, "".join([line async for line in export_lines(restored[0], "top")])),
        ]

    for was, now in asyncio.run(round_trip()):
        assert was == now


@pytest.mark.parametrize("budget", [Budget(attempts=3), Budget(attempts=3, tokens=9_000, seconds=60)], ids=str)
def test_a_run_cut_off_at_any_commit_goes_on(tmp_path: Path, budget: Budget) -> None:
    """Wherever the power goes out, the resumed run passes with the same candidate; no answered turn is bought twice."""
    whole = CutJournal(10_000)
    expected = nested(whole, tmp_path / "whole", budget=budget).run(SPEC, run_id="top")
    commits = 10_000 - whole.left
    for cut in range(1, commits):
        journal = CutJournal(cut)
        workspaces = tmp_path / str(cut)
        with pytest.raises(RunInterruptedError):
            nested(journal, workspaces, budget=budget).run(SPEC, run_id="top")
        if not journal.streams:
            continue
        journal.left = 10_000
        script = Turns()
        result = nested(journal, workspaces, budget=budget, provider=script).resume("top")
        report = asyncio.run(audited(journal, "top"))
        assert isinstance(result, Passed), cut
        assert (result.candidate, report.findings) == (expected.candidate, ()), (
            cut,
            [str(each) for each in report.findings],
        )
        bought = [len(events(journal, child, TurnAnswered)) for child in ("top.1", "top.2")]
        assert (bought, len(script.turns) == len(set(script.turns))) == ([2, 2], True), cut


class Turns:
    """A provider that answers by the turn, so that it can be asked from any turn on."""

    name = "scripted"

    def __init__(self) -> None:
        self.turns: list[tuple[str, int]] = []

    async def complete(self, request: TurnRequest) -> Reply:
        """What the turn's script says."""
        self.turns.append((request.run_id, request.turn))
        return first_red_then_both(request) if request.turn == 1 else said("done")


def test_what_a_child_used_is_what_the_run_used(tmp_path: Path) -> None:
    """The children's charges settle the run's reservations: nothing is spent twice or unseen."""
    result = nested(MemoryJournal(), tmp_path, budget=Budget(tokens=9_000)).run(SPEC, run_id="top")
    charges = [
        each.charge for each in (record.event for record in result.records) if isinstance(each, CandidateGenerated)
    ]
    assert [(each.input_tokens, each.output_tokens, each.estimated) for each in charges] == [(80, 18, False)] * 2
    assert (result.usage.input_tokens, result.usage.output_tokens) == (160, 36)


def test_the_budget_of_the_run_bounds_the_agent(tmp_path: Path) -> None:
    """An agent that would go on for ever is concluded by the tokens that its run set aside, and the run by its own."""
    endless = ScriptedProvider([lambda request: wrote("red", f"{request.turn}.txt")], "repeat")
    journal = MemoryJournal()
    result = nested(journal, tmp_path, provider=endless, budget=Budget(attempts=2, tokens=2_000)).run(
        SPEC, run_id="top"
    )
    assert isinstance(result, Exhausted)
    assert result.usage.input_tokens + result.usage.output_tokens <= 2_000
    report = asyncio.run(audited(journal, "top"))
    assert [str(each) for each in report.findings] == []


def test_a_child_begins_with_what_is_set_aside(tmp_path: Path) -> None:
    """The child's own budget is the call's reservation: tokens, and time to conclude before its parent's deadline."""
    journal = MemoryJournal()
    nested(journal, tmp_path, budget=Budget(tokens=9_000, seconds=50)).run(SPEC, run_id="top")
    held = events(journal, "top", GenerationStarted)[0].reservation
    given = events(journal, "top.1", ExecutionStart)[0].budget
    assert given.tokens == held.input_tokens + held.output_tokens
    assert given.seconds is not None
    assert 40 < given.seconds < held.time_us / 1_000_000


def test_cancelling_the_run_cancels_the_agent_in_order(tmp_path: Path) -> None:
    """The child ends first, then the run; the call is charged what the child had used, and a resume goes on."""
    journal = MemoryJournal()
    waiting = asyncio.Event()

    async def hang(_: TurnRequest) -> Reply:
        waiting.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def cancelled() -> None:
        hanging = ScriptedProvider([wrote("red green"), hang])
        task = asyncio.create_task(
            nested(journal, tmp_path, provider=hanging, budget=Budget(tokens=9_000)).arun(SPEC, run_id="top")
        )
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    (abandoned,) = events(journal, "top", GenerationAbandoned)
    (end,) = events(journal, "top", ChildEnded)
    assert (end.status, abandoned.charge.input_tokens < 4_000) == ("cancelled", True)
    result = nested(journal, tmp_path, provider=Turns(), budget=Budget(tokens=9_000)).resume("top")
    assert isinstance(result, Passed)
    assert asyncio.run(audited(journal, "top")).findings == ()


def test_ids_of_children() -> None:
    """A child's id follows from the call's key, and is one that a run may have, however long the run's own is."""
    assert child_id_of("7f3a:2") == "7f3a.2"
    long = [child_id_of(f"{'a' * 128}:{number}") for number in (1, 2)]
    assert (len(set(long)), {len(each) for each in long}) == (2, {128})
