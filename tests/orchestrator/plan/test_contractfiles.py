"""Contracts: what is checked is valid or not, and what cannot be checked is never called valid."""

from __future__ import annotations

import sys

import pytest

from orchestrator.plan.contractfiles import ContractKind, Verdict, check_contract

OPENAPI = """
openapi: 3.1.0
info: {title: Sign-in, version: "1"}
paths:
  /session:
    post:
      responses:
        "201": {description: created}
"""
PROTO = """
syntax = "proto3";
package sign.in;
message Session { string id = 1; map<string, int32> tries = 2; }
service Sessions { rpc Open(Session) returns (stream Session); }
"""
JSON_SCHEMA = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}'


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("api.yaml", OPENAPI, ContractKind.OPENAPI),
        ("api.yaml", OPENAPI.replace("3.1.0", "3.0.3"), ContractKind.OPENAPI),
        ("user.json", JSON_SCHEMA, ContractKind.JSON_SCHEMA),
        ("user.schema.json", '{"type": "object"}', ContractKind.JSON_SCHEMA),
        ("session.proto", PROTO, ContractKind.PROTOBUF),
    ],
)
def test_valid(name: str, text: str, kind: ContractKind) -> None:
    """Each kind is known by its name or keys."""
    found = check_contract(name, text)
    assert (found.kind, found.verdict, found.faults) == (kind, Verdict.VALID, ())


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("api.yaml", OPENAPI.replace('version: "1"', "v: 1"), "$.info"),
        ("api.yaml", OPENAPI.replace("3.1.0", "9.0"), "$.openapi"),
        ("api.yaml", OPENAPI.replace("{description: created}", "{$ref: 'http://localhost:1/x'}"), ""),
        ("api.yaml", OPENAPI.replace("{description: created}", "{$ref: '/etc/passwd'}"), ""),
        ("user.json", JSON_SCHEMA.replace("object", "objec"), "$.type"),
        ("user.json", "{", "line 1, column 2"),
        ("a.yaml", "a: &a [1]\nb: *a", "line 1, column 4"),
        ("session.proto", PROTO.replace("= 1;", "= ;"), "line 4, column 31"),
        ("session.proto", "message A {", "line 1, column 12"),
        ("session.proto", "message A " + "{ message B " * 5_000, ""),
        ("session.proto", "// " + "x" * 300_000, ""),
        ("a.json", '"' + "x" * 1_100_000 + '"', ""),
    ],
)
def test_invalid(name: str, text: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A fault has its place; references that leave the document are faults; nothing is printed."""
    found = check_contract(name, text)
    assert (found.verdict, found.faults[0].path) == (Verdict.INVALID, place)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "text", "library"),
    [
        ("api.yaml", OPENAPI, "openapi_spec_validator"),
        ("user.json", JSON_SCHEMA, "jsonschema"),
        ("session.proto", PROTO, "proto_schema_parser.parser"),
    ],
)
def test_without_the_library(monkeypatch: pytest.MonkeyPatch, name: str, text: str, library: str) -> None:
    """Without its library a contract is not validated, and says what to install."""
    monkeypatch.setitem(sys.modules, library, None)
    found = check_contract(name, text)
    assert found.verdict is Verdict.NOT_VALIDATED
    assert found.reason.endswith("is not installed: install the extra 'contracts' to have it validated")


@pytest.mark.parametrize(("name", "text"), [("notes.md", "# x"), ("a.json", "{}"), ("a.json", "3"), ("none", "x")])
def test_unknown(name: str, text: str) -> None:
    """What is of no known kind is not validated."""
    found = check_contract(name, text)
    assert (found.kind, found.verdict) == (ContractKind.UNKNOWN, Verdict.NOT_VALIDATED)
