"""What counts as an answer: bounded, valid, not empty text. Everything else is a failed generation."""

from __future__ import annotations

from orchestrator.adapter_errors import GenerationError
from orchestrator.candidate import Candidate
from orchestrator.ports import Generation

__all__ = ["checked_answer"]


def checked_answer(answer: object, limit: int) -> Candidate:
    """The candidate of an answer; GenerationError when it is none, empty, over `limit` bytes or not valid text."""
    if not isinstance(answer, Generation) or not isinstance(answer.candidate, Candidate):
        raise GenerationError(f"the generator returned {type(answer).__name__}, not a candidate")
    candidate = answer.candidate
    if not isinstance(candidate.text, str):
        raise GenerationError(f"the candidate's text is {type(candidate.text).__name__}, not str")
    if not candidate.text and not candidate.files:
        raise GenerationError("the generator returned nothing")
    try:
        size = candidate.blob.size
    except UnicodeEncodeError as error:
        raise GenerationError(f"the candidate is not valid text: lone surrogate at character {error.start}") from error
    if size > limit:
        raise GenerationError(f"the candidate has {size} bytes, the limit is {limit}")
    return candidate
