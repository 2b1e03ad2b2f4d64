"""Outputs of subagents that lie, flood or break the form: none of them becomes a result."""

from __future__ import annotations

import asyncio
import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapter_errors import GenerationError
from orchestrator.candidate import Candidate
from orchestrator.ports import Generation
from orchestrator.testing import ScriptedGenerator
from orchestrator.workflow.components.answering import OutputError, files_of, output_of
from orchestrator.workflow.components.roles import BUILT_IN
from orchestrator.workflow.components.settings import ComponentSettings, SubagentSettings
from orchestrator.workflow.components.subagentresult import SubagentResult
from orchestrator.workflow.components.testing import RecordingHost
from orchestrator_events.budget import Usage

DONE = {"status": "success", "summary": "Done.", "files_changed": ["a.py"]}
MUST_FIX = {"severity": "must_fix", "description": "It deletes the disk."}


def spawned(*answers: object, answer_bytes: int = 4_000, role: str = "IMPLEMENTER") -> SubagentResult:
    """What a phase gets from a generator with these answers."""
    settings = ComponentSettings(subagent_spawner=SubagentSettings(answer_bytes=answer_bytes))
    host = RecordingHost(generators={"one": ScriptedGenerator(answers)}, settings=settings)

    async def phase() -> SubagentResult:
        return await host.components().subagents.spawn(role, {})

    return asyncio.run(phase())


@pytest.mark.parametrize(
    ("role", "text", "message"),
    [
        ("IMPLEMENTER", "", "not JSON"),
        ("IMPLEMENTER", "[]", "expected object, found array"),
        ("IMPLEMENTER", '"success"', "expected object, found string"),
        ("IMPLEMENTER", json.dumps(DONE) + json.dumps(DONE), "not JSON"),
        ("IMPLEMENTER", "Here you are:\n```json\n" + json.dumps(DONE) + "\n```", "not JSON"),
        ("IMPLEMENTER", json.dumps(DONE)[:-1] + ', "status": "failure"}', "more than once"),
        ("IMPLEMENTER", json.dumps({**DONE, "status": "timeout"}), "status"),
        ("IMPLEMENTER", json.dumps({**DONE, "status": True}), "status"),
        ("IMPLEMENTER", json.dumps({**DONE, "files_changed": "a.py"}), "expected array, found string"),
        ("IMPLEMENTER", json.dumps({**DONE, "files_changed": ["../../etc/passwd"]}), "as a part of its path"),
        ("IMPLEMENTER", json.dumps({**DONE, "files_changed": ["/etc/passwd"]}), "absolute path"),
        ("IMPLEMENTER", json.dumps({**DONE, "files_deleted": {"a\\b": 1}}), "backslash"),
        ("IMPLEMENTER", json.dumps({**DONE, "files_added": [{"path": "A.PY"}]}), "same path"),
        ("IMPLEMENTER", '{"status": "success", "summary": NaN, "files_changed": []}', "not finite"),
        ("IMPLEMENTER", '{"a":' * 100 + "1" + "}" * 100, "nested deeper"),
        ("IMPLEMENTER", '{"a":' * 30_000, "not JSON"),
        ("IMPLEMENTER", json.dumps({**DONE, "summary": "\ud800"}), "lone surrogate"),
        ("IMPLEMENTER", '{"status": "success", "summary": "x", "files_changed": [], "n": 1e999}', "not finite"),
        ("REVIEWER", json.dumps({**DONE, "approved": True, "issues": [MUST_FIX]}), "must be fixed"),
        ("TESTER", json.dumps({**DONE, "passed": -1, "failed": 0}), "not negative"),
        ("TESTER", json.dumps({**DONE, "passed": True, "failed": 0}), "expected integer"),
    ],
)
def test_what_is_no_output_of_its_role_is_refused(role: str, text: str, message: str) -> None:
    """One JSON object that fits the role's schema, with plain paths, and nothing that contradicts itself."""
    with pytest.raises(OutputError, match=message):
        output_of(BUILT_IN[role], text)


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "```\n{}\n```\n", "  {}\n"])
def test_one_fence_around_all_of_it_is_taken_off(fence: str) -> None:
    """The one thing that is tolerated, since models do it even when told not to."""
    assert output_of(BUILT_IN["IMPLEMENTER"], fence.format(json.dumps(DONE))) == DONE


def test_a_reviewer_may_approve_with_notes_and_refuse_with_issues() -> None:
    """Approved only with nothing that must be fixed."""
    note = {"severity": "note", "description": "Nice."}
    for approved, issue in ((True, note), (False, MUST_FIX)):
        output = {"status": "success", "summary": "x", "approved": approved, "issues": [issue]}
        assert output_of(BUILT_IN["REVIEWER"], json.dumps(output)) == output


def test_a_flood_of_faults_and_names_stays_short() -> None:
    """Twenty faults are told, in at most 4,000 characters, however long the names in them are."""
    issues = [{"severity": "x" * 1_000, "description": 7}] * 5_000
    output = {"status": "success", "summary": "x", "approved": True, "issues": issues, "y" * 9_000: 1}

    with pytest.raises(OutputError) as caught:
        output_of(BUILT_IN["REVIEWER"], json.dumps(output))

    assert (len(caught.value.faults), len(str(caught.value)) <= 4_000) == (20, True)


@pytest.mark.parametrize(
    "thing",
    [
        None,
        7,
        Generation(candidate="text"),  # type: ignore[arg-type]  # what is tested
        Generation(candidate=Candidate(files={"a.py": "x"})),
        Generation(candidate=Candidate("x" * 5_000)),
        Generation(candidate=Candidate("\ud800")),
    ],
)
def test_an_answer_that_is_none_is_an_error_after_two_calls(thing: object) -> None:
    """Wrong types, files, floods and invalid text end as status error; the raw text is kept within its bound."""
    result = spawned(lambda _: thing, lambda _: thing)

    assert (result.status, result.output, result.calls) == ("error", {}, 2)
    assert len(result.raw) <= 4_000


def test_a_flood_is_charged_for_what_came() -> None:
    """Whoever writes on and reports nothing pays for the text that came."""
    result = spawned("x" * 100_000, "x" * 100_000)

    assert result.charge.output_tokens >= 2 * 25_000


@pytest.mark.parametrize(
    "lie",
    [
        GenerationError("x", answer=7, usage="lots"),  # type: ignore[arg-type]  # what is tested
        GenerationError("x", answer="\ud800" * 9_000),
        Generation(candidate=Candidate("{}"), usage="lots"),  # type: ignore[arg-type]  # what is tested
        Generation(candidate=Candidate("{}"), answer=7),  # type: ignore[arg-type]  # what is tested
        Generation(candidate=Candidate("{}"), usage=Usage(input_tokens=-5, output_tokens=10**30)),
    ],
)
def test_a_report_that_is_none_is_no_report(lie: object) -> None:
    """Usage of the wrong type or size and answers that are no text end the call, recorded and charged."""
    result = spawned(lie, lie)

    assert (result.status, result.output) == ("error", {})
    assert len(result.raw) <= 4_000
    assert result.charge.input_tokens > 0


def test_files_are_found_wherever_an_output_names_them() -> None:
    """Lists of paths, lists of objects with a path, and objects of path to content; each file once, in order."""
    output = {
        "files_changed": ["b.py", "a.py"],
        "files": [{"path": "a.py"}, {"name": "no path"}, 7],
        "files_created": {"c.py": "text"},
        "notes": ["d.py"],
    }
    assert files_of(output) == ("b.py", "a.py", "c.py")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "summary", "chunks", "id", "description", "issues", "severity"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(st.sampled_from(sorted(BUILT_IN)), json_values)
def test_no_output_passes_that_the_schema_forbids(role: str, value: object) -> None:
    """Whatever is taken is valid by a full implementation of JSON Schema too."""
    try:
        output = output_of(BUILT_IN[role], json.dumps(value))
    except OutputError:
        return
    jsonschema.validate(output, dict(BUILT_IN[role].output_schema))
    assert output == value
