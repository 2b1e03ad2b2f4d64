"""Checks interface definitions: OpenAPI, JSON Schema and Protocol Buffers, through libraries of the extra `contracts`.

Without the library a file is `not validated`, and never `valid`. No reference to another file or to the network is
followed: one that leaves the document is a fault.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib.util import find_spec
from itertools import islice
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final

import attrs

from orchestrator.documents import MAXIMUM_BYTES, parse_document
from orchestrator.errors import DocumentError
from orchestrator.excerpt import excerpt
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON
from orchestrator.wording import describe

__all__ = ["ContractCheck", "ContractKind", "Verdict", "check_contract", "why_never_validated"]

MOST_FAULTS: Final = 20
INSTALL: Final = "install the extra 'contracts' to have it validated"
SUFFIXES: Final = (".json", ".yaml", ".yml")
NEEDED: Final = MappingProxyType(
    {".proto": ("proto_schema_parser",), **dict.fromkeys(SUFFIXES, ("openapi_spec_validator", "jsonschema"))}
)
"""Libraries of which one has to be there for a file with this suffix."""
DEEPEST_BRACES: Final = 60
LONGEST_PROTO: Final = 262_144
"""Longest file, characters: its parser takes seconds for more."""


class Verdict(StrEnum):
    """What a check found."""

    VALID = "valid"
    INVALID = "invalid"
    NOT_VALIDATED = "not validated"


class ContractKind(StrEnum):
    """What a definition is written in."""

    OPENAPI = "OpenAPI"
    JSON_SCHEMA = "JSON Schema"
    PROTOBUF = "Protocol Buffers"
    UNKNOWN = "unknown"


@attrs.frozen(kw_only=True)
class ContractCheck:
    """What a definition is, whether it is valid, and what is wrong or missing."""

    kind: ContractKind
    verdict: Verdict
    faults: tuple[Fault, ...] = ()
    reason: str = ""
    """Why it was not validated."""


class SyntaxFaultError(Exception):
    """A parser's first objection."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class FirstError:
    """What the parser of Protocol Buffers tells its errors to; the names of the methods are the parser's."""

    def syntaxError(self, *told: Any) -> None:  # noqa: N802
        """Stop at the first error."""
        _, _, line, column, message, _ = told
        raise SyntaxFaultError(Fault(f"line {line}, column {column + 1}", str(message)))

    def reportAmbiguity(self, *told: Any) -> None:  # noqa: N802
        """Not of interest."""

    def reportAttemptingFullContext(self, *told: Any) -> None:  # noqa: N802
        """Not of interest."""

    def reportContextSensitivity(self, *told: Any) -> None:  # noqa: N802
        """Not of interest."""


class ReferenceLeavesError(Exception):
    """A definition refers to something outside itself."""


def check_contract(name: str, text: str) -> ContractCheck:
    """What `text`, a file of this name, is as an interface definition.

    A .proto file is Protocol Buffers; a .json or .yaml file with a key `openapi` or `swagger` is OpenAPI, one with
    `$schema` or a name that ends in `.schema.json` JSON Schema. Only the syntax of Protocol Buffers is looked at.
    """
    suffix = PurePosixPath(name).suffix.lower()
    if len(text.encode("utf-8", "surrogatepass")) > MAXIMUM_BYTES:
        return invalid(ContractKind.UNKNOWN, [Fault("", f"larger than {MAXIMUM_BYTES} bytes: split it")])
    if suffix == ".proto":
        return tried(ContractKind.PROTOBUF, lambda: proto_faults(text))
    if suffix in SUFFIXES:
        return checked_data(name, text, suffix)
    return unknown(no_kind(name))


def why_never_validated(name: str) -> str:
    """Why no file of this name can be validated here, whatever it holds; empty where one can."""
    needed = NEEDED.get(PurePosixPath(name).suffix.lower())
    if needed is None:
        return no_kind(name)
    is_schema = ".schema." in PurePosixPath(name).name
    libraries = needed[-1:] if is_schema else needed
    return "" if any(map(find_spec, libraries)) else missing(" or ".join(libraries))


def checked_data(name: str, text: str, suffix: str) -> ContractCheck:
    """What a JSON or YAML file is as an interface definition."""
    try:
        data = parse_document(text, suffix, name)
    except DocumentError as error:
        return invalid(ContractKind.UNKNOWN, list(error.faults))
    keys = data.keys() if isinstance(data, dict) else frozenset[str]()
    if "openapi" in keys or "swagger" in keys:
        return tried(ContractKind.OPENAPI, lambda: openapi_faults(data))
    if "$schema" in keys or ".schema." in PurePosixPath(name).name:
        return tried(ContractKind.JSON_SCHEMA, lambda: json_schema_faults(data))
    return unknown("it has neither `openapi` nor `$schema`, so it is data of no known kind")


def no_kind(name: str) -> str:
    """That the suffix tells of no kind."""
    return f"no kind of definition is known for {PurePosixPath(name).suffix.lower() or 'a name without a suffix'}"


def missing(library: str) -> str:
    """That a library is not there."""
    return f"{library} is not installed: {INSTALL}"


def unknown(reason: str) -> ContractCheck:
    """A check of what nobody here can check."""
    return ContractCheck(kind=ContractKind.UNKNOWN, verdict=Verdict.NOT_VALIDATED, reason=reason)


def tried(kind: ContractKind, faults: Callable[[], list[Fault]]) -> ContractCheck:
    """What a library finds; not validated where it is not installed."""
    try:
        found = faults()
    except ImportError as error:
        reason = missing(error.name or "a library")
        return ContractCheck(kind=kind, verdict=Verdict.NOT_VALIDATED, reason=reason)
    except ReferenceLeavesError as error:
        found = [Fault("", str(error))]
    except Exception as error:  # noqa: BLE001  # the text is a stranger's, and so is what it does to a parser
        found = [Fault("", f"the validator failed: {describe(error)}")]
    return invalid(kind, found) if found else ContractCheck(kind=kind, verdict=Verdict.VALID)


def invalid(kind: ContractKind, faults: list[Fault]) -> ContractCheck:
    """A check that found faults."""
    shown = tuple(attrs.evolve(fault, message=excerpt(fault.message, 500)) for fault in faults[:MOST_FAULTS])
    return ContractCheck(kind=kind, verdict=Verdict.INVALID, faults=shown)


def openapi_faults(data: dict[str, JSON]) -> list[Fault]:
    """What openapi-spec-validator has against a document."""
    import openapi_spec_validator

    refuse_references_out(data)
    version = str(data.get("openapi") or data.get("swagger"))
    validators = {
        "2.": openapi_spec_validator.OpenAPIV2SpecValidator,
        "3.0": openapi_spec_validator.OpenAPIV30SpecValidator,
        "3.1": openapi_spec_validator.OpenAPIV31SpecValidator,
        "3.2": openapi_spec_validator.OpenAPIV32SpecValidator,
    }
    validator = next((each for start, each in validators.items() if version.startswith(start)), None)
    if validator is None:
        return [Fault("$.openapi", f"version {version!a:.40} is not known: use 2.0, 3.0, 3.1 or 3.2")]
    errors = validator(data).iter_errors()
    return [Fault(getattr(error, "json_path", "$"), str(error.message)) for error in islice(errors, MOST_FAULTS)]


def json_schema_faults(data: JSON) -> list[Fault]:
    """What jsonschema has against a schema."""
    import jsonschema

    refuse_references_out(data)
    kind = jsonschema.validators.validator_for(data, default=jsonschema.Draft202012Validator)
    errors = kind(kind.META_SCHEMA).iter_errors(data)
    return [Fault(error.json_path, str(error.message)) for error in islice(errors, MOST_FAULTS)]


def proto_faults(text: str) -> list[Fault]:
    """The first syntax error that a parser of Protocol Buffers finds; it is not given what takes it minutes."""
    from proto_schema_parser.parser import Parser

    if deepest(text) > DEEPEST_BRACES:
        return [Fault("", f"nested deeper than {DEEPEST_BRACES} levels: flatten it")]
    if len(text) > LONGEST_PROTO:
        return [Fault("", f"more than {LONGEST_PROTO} characters: split it")]

    def quiet(source: Any) -> None:
        # By default errors are printed and the parser goes on as if nothing had been.
        source.removeErrorListeners()
        source.addErrorListener(FirstError())

    try:
        Parser(setup_lexer=quiet, setup_parser=quiet).parse(text)
    except SyntaxFaultError as error:
        return [error.fault]
    return []


def refuse_references_out(data: JSON) -> None:
    """Raise ReferenceLeavesError for a `$ref` that does not begin with '#'."""
    for reference in references(data):
        if not reference.startswith("#"):
            shown = json.dumps(reference[:120])
            raise ReferenceLeavesError(f"refers to {shown}, outside itself: put the definition into the document")


def references(data: JSON) -> Iterator[str]:
    """The references in a document."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif isinstance(data, list):
        for item in data:
            yield from references(item)


def deepest(text: str) -> int:
    """How deep braces nest; those in comments and texts count too."""
    depth = most = 0
    for character in text:
        depth += (character in "{[(<") - (character in "}])>" and depth > 0)
        most = max(most, depth)
    return most
