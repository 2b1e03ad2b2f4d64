"""The Context Bus: the state is atomic and versioned, outputs are kept, and nothing unreviewed is published."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.paths import UnsafeRunIdError
from orchestrator.plan.contextbus import (
    ContextBus,
    InvalidContractError,
    MissingArtifactsError,
    StaleStateError,
    UnsafeStepIdError,
)
from orchestrator.plan.decisionrecords import DecisionRecord
from orchestrator.plan.gates import Evidence, EvidenceError
from orchestrator.plan.policyfiles import PolicyError, default_policy
from orchestrator.plan.review import Checklist, Review, ReviewStatus, read_review
from orchestrator.plan.routing import ReviewKind
from orchestrator.plan.studiostate import StudioState, StudioStateError, read_state
from orchestrator.plan.vocabulary import Risk

DECISION = DecisionRecord(
    title="Use sessions, not tokens",
    context="Tokens cannot be withdrawn.",
    decision="Sessions.\n# Not a heading",
    consequences="A table.",
)
ADR = """# 1. `Use sessions, not tokens`

## Status

Accepted

## Context

```
Tokens cannot be withdrawn.
```

## Decision

```
Sessions.
# Not a heading
```

## Consequences

```
A table.
```
"""
PAGE = """# State

Written from state.json; changes made here are lost.

- Plan: `p`
- Lifecycle: executing
- Run: `r1`
- Revision: 1

## Open risks

- `<b>late</b>`

## Decisions

- 0001 `Use sessions, not tokens`, `accepted`: `ADR/ADR-0001-use-sessions-not-tokens.md`

## Completed steps

- `design`

## Contracts

None.

## Artifacts

- `api.md`: step `design`, reviewed

## Failures

- `build`: 2, last `tests failed`
"""


@pytest.fixture
def bus(tmp_path: Path) -> ContextBus:
    """A bus in a directory that is not there yet."""
    return ContextBus(root=tmp_path / "studio")


def test_state_comes_back(bus: ContextBus) -> None:
    """The state is written under the next revision, read as it was, and STATE.md shows it."""
    state = attrs.evolve(bus.read_state(), plan_id="p", lifecycle="executing", run_id="r1", open_risks=("<b>late</b>",))
    state = (
        state.completing("design").completing("design").failing("build", "no output").failing("build", "tests failed")
    )
    state = bus.decide(bus.publish(state, "r1", "design", 1, {"api.md": "x"}), DECISION)
    written = bus.write_state(bus.accept(state, "design"))
    assert (written.revision, bus.read_state()) == (1, written)
    assert (bus.root / "STATE/STATE.md").read_text() == PAGE
    assert (bus.root / "ADR/ADR-0001-use-sessions-not-tokens.md").read_text() == ADR


def test_previous_state_is_kept(bus: ContextBus) -> None:
    """The version before lies beside the newest."""
    first = bus.write_state(StudioState(plan_id="a"))
    bus.write_state(attrs.evolve(first, plan_id="b"))
    previous = read_state((bus.root / "STATE/state.previous.json").read_text(), "previous")
    assert (previous, bus.read_state().plan_id) == (first, "b")
    assert sorted(os.listdir(bus.root / "STATE")) == ["STATE.md", "state.json", "state.previous.json"]


def test_two_writers(bus: ContextBus) -> None:
    """A state made of an older one is refused, and what the other wrote stays."""
    bus.write_state(StudioState(plan_id="a"))
    with pytest.raises(StaleStateError) as caught:
        bus.write_state(StudioState(plan_id="b"))
    assert (caught.value.expected, caught.value.found, bus.read_state().plan_id) == (0, 1, "a")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"revison": 1}', '{"lifecycle": "flying"}', '{"format": "other/1"}'])
def test_damaged_state(bus: ContextBus, text: str) -> None:
    """A damaged state is said to be damaged; it is neither used nor overwritten."""
    bus.files.write("STATE/state.json", text.encode())
    with pytest.raises(StudioStateError):
        bus.read_state()
    with pytest.raises(StudioStateError):
        bus.write_state(StudioState())
    assert (bus.root / "STATE/state.json").read_text() == text


def test_page_is_never_read(tmp_path: Path) -> None:
    """STATE.md can lie where the contract's other sentence puts it, and what people write into it is lost."""
    bus = ContextBus(root=tmp_path, page_path="STATE.md")
    written = bus.write_state(StudioState(plan_id="p"))
    (tmp_path / "STATE.md").write_text("- Plan: `q`")
    assert bus.read_state() == written
    bus.write_page(written)
    assert "- Plan: `p`" in (tmp_path / "STATE.md").read_text()
    with pytest.raises(ValueError, match=r"page_path is '\.\./STATE\.md'"):
        ContextBus(root=tmp_path, page_path="../STATE.md")


def test_required_artifacts(bus: ContextBus) -> None:
    """All artifacts that are missing are told at once."""
    bus.files.write("CONTEXT/a.json", b"{}")
    bus.files.write("CONTEXT/b.json", b"\xff")
    bus.require(["CONTEXT/a.json"])
    with pytest.raises(MissingArtifactsError) as caught:
        bus.require(["CONTEXT/a.json", "CONTEXT/b.json", "CONTEXT/c.json", "../d"])
    assert list(caught.value.missing) == ["CONTEXT/b.json", "CONTEXT/c.json", "../d"]


def test_outputs_are_unreviewed_first(bus: ContextBus) -> None:
    """An output is an input of others at once, marked unreviewed until its review; a context file always counts."""
    bus.files.write("CONTEXT/a.md", b"context")
    state = bus.publish(StudioState(), "r1", "design", 1, {"api.md": "draft " * 100})
    found = bus.resolve(state, ["api.md", "CONTEXT/a.md"], limit=100)
    assert [(each.origin, each.is_reviewed) for each in found] == [("step design", False), ("context", True)]
    assert len(found[0].text) <= 110
    assert "characters cut" in found[0].text
    state = bus.accept(state, "design")
    assert [each.is_reviewed for each in bus.resolve(state, ["api.md"])] == [True]


def test_changed_outputs_are_no_inputs(bus: ContextBus) -> None:
    """An output that somebody changed after it was made is refused, and so is one that is gone."""
    state = bus.publish(StudioState(), "r1", "design", 1, {"a.md": "x", "b.md": "y"})
    (bus.root / state.artifacts["a.md"].path).write_text("z")
    (bus.root / state.artifacts["b.md"].path).unlink()
    bus.files.write("c.md", b"\xff")
    with pytest.raises(MissingArtifactsError) as caught:
        bus.resolve(state, ["a.md", "b.md", "c.md"])
    assert caught.value.missing == {
        "a.md": "was changed since step design made it",
        "b.md": "no such file",
        "c.md": "is not UTF-8 at byte 0",
    }


def test_fixes_keep_earlier_files(bus: ContextBus) -> None:
    """The plain name has the newest output; each attempt stays under its number, and saving twice changes nothing."""
    for attempt, text in ((1, "one"), (2, "two"), (2, "two")):
        assert bus.save_output("r1", "a", attempt, text) == "RUNS/r1/step_a_output.md"
    files = {path.name: path.read_text() for path in (bus.root / "RUNS/r1").iterdir()}
    assert files == {"step_a_output.md": "two", "step_a_output.1.md": "one", "step_a_output.2.md": "two"}


def test_what_a_later_attempt_does_not_make_is_never_approved(bus: ContextBus) -> None:
    """An amended step makes other files: its review says nothing of those it made before, which leave the state."""
    state = bus.publish(StudioState(), "r1", "design", 1, {"a.md": "x"})
    bus.save_output("r1", "design", 2, "y")
    state = bus.accept(bus.publish_output(state, "r1", "design", 2), "design")
    assert {name: (each.path, each.status) for name, each in state.artifacts.items()} == {
        "step_design_output.md": ("RUNS/r1/step_design_output.2.md", "reviewed")
    }


def test_reviews_and_evidence(bus: ContextBus) -> None:
    """Reviews and captured output lie beside the output and come back; altered output is found out."""
    review = Review(
        status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True)
    )
    path = bus.save_review("r1", "a", 1, review)
    assert read_review((bus.root / path).read_text(), step_id="a", risk=Risk.LOW) == review
    evidence = Evidence(kind=ReviewKind.QA, command=("pytest",), exit_status=0, output=b"3 passed \xff")
    path = bus.save_evidence("r1", "a", 2, evidence)
    assert (path, bus.read_evidence(path)) == ("RUNS/r1/step_a_qa.2.1.json", evidence)
    (bus.root / "RUNS/r1/step_a_qa.2.1.log").write_bytes(b"4 passed")
    with pytest.raises(EvidenceError):
        bus.read_evidence(path)
    (bus.root / path).write_text("{")
    with pytest.raises(EvidenceError):
        bus.read_evidence(path)


@pytest.mark.parametrize(
    ("run_id", "step_id", "error"),
    [("../r", "a", UnsafeRunIdError), ("r", "../a", UnsafeStepIdError), ("r", "", UnsafeStepIdError)],
)
def test_ids_that_lead_elsewhere(bus: ContextBus, run_id: str, step_id: str, error: type[Exception]) -> None:
    """An id is checked before it becomes a name."""
    with pytest.raises(error):
        bus.save_output(run_id, step_id, 1, "x")
    assert not bus.root.exists()


def test_long_ids_have_room(bus: ContextBus) -> None:
    """The longest ids and names that are taken can be written."""
    state = bus.publish(StudioState(), "r" * 128, "s" * 100, 1, {"n" * 200: "x"})
    assert [each.text for each in bus.resolve(state, ["n" * 200])] == ["x"]


def test_decisions_are_numbered(bus: ContextBus) -> None:
    """Each decision has the next number; the same one, told again after a crash, is written once."""
    state = bus.decide(StudioState(), DECISION)
    state = bus.decide(bus.decide(state, DECISION), attrs.evolve(DECISION, status="superseded"))
    state = bus.decide(state, attrs.evolve(DECISION, title="日本"))
    assert [each.path for each in state.decisions] == [
        "ADR/ADR-0001-use-sessions-not-tokens.md",
        "ADR/ADR-0002-use-sessions-not-tokens.md",
        "ADR/ADR-0003-decision.md",
    ]
    again = bus.decide(StudioState(), DECISION)
    assert again.decisions == state.decisions[:1]


def test_policy(bus: ContextBus) -> None:
    """The studio's own policy is used where there is one; a broken one is refused and not passed over."""
    assert bus.policy() == default_policy()
    bus.files.write("POLICIES/routing_policy.yaml", b"strategies: []\ndefaults: {primary: Mine}\n")
    assert bus.policy().default.primary == "Mine"
    bus.files.write("POLICIES/routing_policy.yaml", b"strategies: [")
    with pytest.raises(PolicyError):
        bus.policy()


SCHEMA = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "%s"}'


def test_contracts_are_published_when_reviewed(bus: ContextBus) -> None:
    """A contract comes under CONTRACTS/ with its review, if it is valid; an invalid one never does."""
    name = "CONTRACTS/user.json"
    state = bus.publish(StudioState(), "r1", "design", 1, {name: SCHEMA % "objec"})
    with pytest.raises(InvalidContractError) as caught:
        bus.accept(state, "design")
    assert (caught.value.name, (bus.root / name).exists()) == (name, False)
    state = bus.publish(state, "r1", "design", 2, {name: SCHEMA % "object"})
    assert not (bus.root / name).exists()
    state = bus.accept(state, "design")
    found: Any = state.contracts[name]
    assert (found.kind, found.verdict, (bus.root / name).read_text()) == ("JSON Schema", "valid", SCHEMA % "object")
    assert [check.verdict for check in bus.check_contracts().values()] == ["valid"]


def test_lone_surrogates(bus: ContextBus) -> None:
    """Text that no file could hold is written replaced instead of breaking the run."""
    state = bus.publish(StudioState(open_risks=("a\ud800",)), "r1", "a", 1, {"a.md": "b\udfff"})
    assert bus.resolve(state, ["a.md"])[0].text == "b\\udfff"
    bus.write_state(state)
    assert bus.read_state().open_risks == ("a?",)
