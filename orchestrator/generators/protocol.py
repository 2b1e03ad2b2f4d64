"""What goes to a generating program as JSON, and what may come back as JSON."""

from __future__ import annotations

import json
from typing import Final

import attrs

from orchestrator.adapter_errors import GenerationError
from orchestrator.candidate import Candidate
from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.excerpt import excerpt
from orchestrator.paths import refuse_unsafe_paths
from orchestrator.ports import Generation, Request
from orchestrator.structuring import structure
from orchestrator_events.budget import Usage

__all__ = ["REQUEST_PROTOCOL", "Answer", "read_generation", "write_request"]

REQUEST_PROTOCOL: Final = "orchestrator.request/1"
"""Name and version of the object that a program reads."""

_SOURCE: Final = "the generator's output"


def write_request(request: Request) -> bytes:
    """The request as one JSON object: its fields, and `protocol`."""
    fields = attrs.asdict(request, recurse=False, filter=is_sent) | {"parameters": dict(request.parameters)}
    return json.dumps({"protocol": REQUEST_PROTOCOL, **fields}).encode()


def read_generation(text: str) -> Generation:
    """What a program answered: `{"candidate": text}` or `{"files": {path: text}}`, and perhaps `usage`.

    `usage` may hold input_tokens, output_tokens and money_micro, whole numbers from 0. Anything else, and
    anything that JSON parsers disagree about, is a GenerationError that names every fault and its place.
    """
    try:
        answer = structure(parse_document(text, ".json", _SOURCE), Answer, _SOURCE)
    except DocumentError as error:
        raise GenerationError(excerpt(str(error))) from None
    if (answer.candidate is None) == (answer.files is None):
        raise GenerationError(f'{_SOURCE} must hold either "candidate" or "files"')
    refuse_unsafe_paths(answer.files or ())
    candidate = Candidate(answer.candidate or "", answer.files or {})
    usage = None if answer.usage is None else Usage(**attrs.asdict(answer.usage))
    return Generation(candidate=candidate, usage=usage)


def is_sent(field: attrs.Attribute[object], _: object) -> bool:
    """Whether a field of a request goes to a generating program."""
    return field.metadata.get("is_sent", True) is True


def _from_zero(_: object, __: object, value: int | None) -> None:
    if value is not None and value < 0:
        raise ValueError(f"must be 0 or more, found {value}")


@attrs.frozen
class AnsweredUsage:
    """What a program says it used; what it leaves out is estimated."""

    input_tokens: int | None = attrs.field(default=None, validator=_from_zero)
    output_tokens: int | None = attrs.field(default=None, validator=_from_zero)
    money_micro: int | None = attrs.field(default=None, validator=_from_zero)


@attrs.frozen
class Answer:
    """What a program answers: `candidate` or `files`, one of the two."""

    candidate: str | None = None
    files: dict[str, str] | None = None
    usage: AnsweredUsage | None = None
