"""What counts as an answer: bounded, valid, not empty text. Everything else is a failed generation."""

from __future__ import annotations

from orchestrator.adapter_errors import GenerationError
from orchestrator.candidate import Candidate
from orchestrator.ports import Generation
from orchestrator_events.blob import Blob
from orchestrator_events.errors import EventError

__all__ = ["checked_answer"]


def checked_answer(answer: object, limit: int) -> tuple[str, Blob]:
    """Form and content of an answer's candidate.

    GenerationError when it is none, empty, over `limit` bytes or not valid text.
    """
    if not isinstance(answer, Generation) or not isinstance(answer.candidate, Candidate):
        raise GenerationError(f"the generator returned {type(answer).__name__}, not a candidate")
    candidate = answer.candidate
    if not isinstance(candidate.text, str):
        raise GenerationError(f"the candidate's text is {type(candidate.text).__name__}, not str")
    if candidate.files and not all(type(part) is str for file in candidate.files.items() for part in file):
        raise GenerationError("the candidate's files are not texts by path")
    if "" in candidate.files:
        raise GenerationError("a file of the candidate has no name")
    if not candidate.text and not candidate.files:
        raise GenerationError("the generator returned nothing")
    blob = candidate.blob
    try:
        size = len(blob.data)
    except EventError as error:
        raise GenerationError(f"the candidate is not valid text: {error}") from error
    if size > limit:
        raise GenerationError(f"the candidate has {size} bytes, the limit is {limit}")
    return candidate.form, blob
