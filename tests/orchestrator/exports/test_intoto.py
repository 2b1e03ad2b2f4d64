"""in-toto: a valid statement about one candidate, or none at all."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.exports.decisive import start_of
from orchestrator.exports.intoto import NothingToAttestError, export_intoto
from orchestrator.history import report_of
from orchestrator.run import Run
from orchestrator_states.run import RUN

GOLDEN = Path(__file__).parents[2] / "golden" / "in-toto-test-result.schema.json"


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    """The specification as a schema."""
    schema = json.loads(GOLDEN.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


@pytest.mark.parametrize("ending", ["passed", "passed with files", "exhausted", "interrupted", "hostile"])
def test_statements_are_valid(run_called: Callable[[str], Run], validator: Draft202012Validator, ending: str) -> None:
    """A statement about any judged candidate keeps to the specification."""
    statement = json.loads(export_intoto(run_called(ending)))
    assert [error.message for error in validator.iter_errors(statement)] == []


@pytest.mark.parametrize(
    "broken",
    [{"subject": []}, {"subject": [{"name": "candidate"}]}, {"_type": "Statement"}, {"predicate": {"result": "OK"}}],
)
def test_the_schema_refuses_what_is_no_statement(
    run_called: Callable[[str], Run], validator: Draft202012Validator, broken: dict[str, Any]
) -> None:
    """The schema that the statements are held against is a strict one."""
    assert not validator.is_valid({**json.loads(export_intoto(run_called("passed"))), **broken})


def test_a_statement_in_full(run_called: Callable[[str], Run]) -> None:
    """Subject, configuration and result are those of the closest candidate and its run."""
    run = run_called("exhausted")
    statement = json.loads(export_intoto(run))
    *_, runner, record = statement["predicate"]["configuration"]
    identity, head = start_of(run).identity.encode(), report_of(run).journal_head
    annotations = {
        "kind": "workflow result; not a verification for deployment",
        "run": "7f3a", "state": "exhausted", "attempt": 1,
        "isolation": {"generator": "none (in-process)", "evaluator": "none (in-process)"}, "integrity": "host",
        "head": head.digest, "count": head.count,
    }  # fmt: skip
    assert b64decode(runner.pop("content")) == identity
    assert json.loads(b64decode(record.pop("content"))) == annotations
    assert statement == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "candidate", "digest": {"sha256": sha256(b"red blue").hexdigest()}}],
        "predicateType": "https://in-toto.io/attestation/test-result/v0.1",
        "predicate": {
            "result": "FAILED",
            "configuration": [
                {
                    "name": "spec",
                    "digest": {"sha256": sha256(run.spec.canonical.encode()).hexdigest()},
                    "annotations": {"name": "colours"},
                },
                {"name": "lifecycle", "digest": {"sha256": RUN.digest}, "annotations": {"name": "run"}},
                {
                    "name": "runner",
                    "digest": {"sha256": sha256(identity).hexdigest()},
                    "mediaType": "application/json",
                },
                {"name": "record", "mediaType": "application/json", "annotations": annotations},
            ],
            "passedTests": ["palette::red"],
            "failedTests": ["palette::green", "only"],
        },
    }


def test_files_are_subjects_too(run_called: Callable[[str], Run]) -> None:
    """A candidate of several files is attested as a whole and file by file."""
    run = run_called("passed with files")
    assert run.last is not None
    assert run.last.candidate is not None
    statement = json.loads(export_intoto(run))
    assert (statement["predicate"]["result"], statement["subject"]) == (
        "PASSED",
        [
            {"name": "candidate", "digest": {"sha256": run.last.candidate.digest}},
            {"name": "candidate/a.txt", "digest": {"sha256": sha256(b"red\n").hexdigest()}},
            {"name": "candidate/b/c.txt", "digest": {"sha256": sha256(b"green\n").hexdigest()}},
        ],
    )


@pytest.mark.parametrize("ending", ["nothing generated", "interrupted at once"])
def test_nothing_to_attest(run_called: Callable[[str], Run], ending: str) -> None:
    """Without a judged candidate there is no statement."""
    with pytest.raises(NothingToAttestError) as caught:
        export_intoto(run_called(ending))
    assert str(caught.value) == ("run 7f3a has no judged candidate to attest: export it as json to have its history")
