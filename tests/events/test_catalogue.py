"""The catalogue: every field has its sentence, and the roles given appear."""

from __future__ import annotations

import pytest

from orchestrator_events import Blob, CaseResult, event_class, event_names
from orchestrator_events.budget import Budget, Charge, Reservation
from orchestrator_events.catalogue import Field, Role, as_markdown, as_text, fields_of, value_classes
from orchestrator_events.decision import DecisionTaken

DOCUMENTED = [*map(event_class, event_names()), *value_classes()]


@pytest.mark.parametrize("documented", DOCUMENTED, ids=lambda documented: str(documented.__name__))
def test_every_field_has_a_sentence(documented: type) -> None:
    """A field without one, or one that does not end, fails here with its name."""
    faults = [field.name for field in fields_of(documented) if not field.sentence.endswith(".")]
    assert faults == []


def test_the_values_that_events_hold_are_found_however_deep() -> None:
    """Optional ones and those in lists are described as well; a blob is a text."""
    known = {Budget, CaseResult, Charge, DecisionTaken, Reservation}
    assert known <= set(value_classes())
    assert Blob not in value_classes()


def test_types_are_put_in_words() -> None:
    """No reader of the catalogue has to know Python."""
    kinds = {field.name: field.kind for field in fields_of(event_class("attempt:failed"))}
    assert kinds["attempt"] == "whole number"
    assert kinds["failing"] == "list of [CaseResult](#caseresult)"
    assert kinds["charge"] == "[Charge](#charge) or none"
    assert fields_of(CaseResult)[1] == Field(
        "status",
        "one of `passed`, `failed`, `error`, `skipped`, `timed out`, `missing`, `unexpected`, `duplicate`",
        "Outcome; everything but passed counts as not passed.",
    )


def test_roles_say_where_an_event_moves_and_notes() -> None:
    """What the caller knows of its lifecycles is in the overview and with the event."""
    roles = [
        Role("execution:start", "run", (("ready", "prompting"),), ("passed",)),
        Role("execution:start", "agent", notes=("acting",)),
    ]
    text = as_markdown(roles)
    overview = next(line for line in text.splitlines() if line.startswith("| [`execution:start`]"))
    section = text.partition("\n## execution:start\n")[2].partition("\n## ")[0]
    assert overview.split(" | ")[1:3] == ["fact", "run: moves and notes; agent: notes"]
    assert [line for line in section.splitlines() if line.startswith("- ")] == [
        "- run: `ready` → `prompting`",
        "- run: noted in `passed`",
        "- agent: noted in `acting`",
    ]


def test_a_gate_says_what_may_be_modified() -> None:
    """The fields a decision may change are with the gate."""
    section = as_markdown(()).partition("\n## generation:requested\n")[2].partition("\n## ")[0]
    assert "A decision may modify: `prompt`, `parameters`, `max_tokens`." in section


def test_the_text_form_is_an_aligned_table() -> None:
    """A line an event, under a head, in columns."""
    lines = as_text([Role("attempt:passed", "run", (("evaluating", "passed"),))]).splitlines()
    column = lines[0].index("LIFECYCLES")
    assert len(lines) == len(event_names()) + 1
    assert {line[column - 1] for line in lines} == {" "}
    assert next(line for line in lines if line.startswith("attempt:passed"))[column:].startswith("run: moves")
