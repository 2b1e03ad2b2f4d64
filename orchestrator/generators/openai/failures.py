"""What a failed call means: the run stops, the attempt is lost, or the same call may be made again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from http import HTTPStatus
from typing import Any, Final, assert_never

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError, TransientGenerationError
from orchestrator.excerpt import excerpt
from orchestrator.generators.openai.credentials import ApiKey
from orchestrator_events.budget import Usage

__all__ = ["QUOTED", "CallFailedError", "Failure", "Meaning", "lost", "passing", "status_failure", "told_failure"]

QUOTED: Final = 1_000
"""Longest quotation of a server's words, characters."""


class Meaning(Enum):
    """What follows from a failure."""

    TERMINAL = "terminal"
    """Trying again is pointless until somebody changes something: the run is interrupted."""
    LOST = "lost"
    """This call gave no candidate: the attempt is lost, another may succeed."""
    PASSING = "passing"
    """The same call may succeed later."""


@attrs.frozen
class Failure:
    """Why a call gave no candidate; a value, so that nothing of the SDK hangs on the error that is raised."""

    meaning: Meaning
    reason: str
    status: int | None = None
    retry_after: float | None = None
    is_unreachable: bool = False
    """Whether no connection came about, so that the server knows nothing of the call."""

    def error(self, name: str, key: ApiKey, answer: str, usage: Usage | None) -> Exception:
        """The failure as the error the port asks for; an answer that holds the key is not kept."""
        reason = f"{name} {self.reason}"
        kept = "" if key.is_in(answer) else answer
        match self.meaning:
            case Meaning.TERMINAL:
                return GeneratorUnavailableError(reason)
            case Meaning.LOST:
                return GenerationError(reason, answer=kept, usage=usage)
            case Meaning.PASSING:
                return TransientGenerationError(
                    reason,
                    retry_after=self.retry_after,
                    status=self.status,
                    usage=usage,
                    is_unreachable=self.is_unreachable,
                )
            case _:
                assert_never(self.meaning)


class CallFailedError(Exception):
    """Carries a failure up to where the call was made; never leaves the adapter."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def lost(reason: str) -> CallFailedError:
    """The call gave no candidate."""
    return CallFailedError(Failure(Meaning.LOST, reason))


def passing(reason: str) -> CallFailedError:
    """The call failed in passing."""
    return CallFailedError(Failure(Meaning.PASSING, reason))


_PASSING: Final = frozenset({408, 409, 425, 429})
_TERMINAL: Final = frozenset({401, 402, 403, 404, 405, 407, 410, 501, 505})
_CODES: Final = {
    Meaning.TERMINAL: frozenset(
        {
            "account_deactivated",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_quota",
            "invalid_api_key",
            "model_not_found",
            "unknown_parameter",
            "unsupported_parameter",
            "unsupported_value",
        }
    ),
    Meaning.PASSING: frozenset(
        {"overloaded", "overloaded_error", "rate_limit_error", "rate_limit_exceeded", "server_error", "timeout"}
    ),
}
"""Words of `error.code` and `error.type` that say more than the status."""

_REQUEST: Final = frozenset({400, 422})
"""Statuses that are about what one request says."""
_UNSUPPORTED: Final = re.compile(
    r"\b(?:unsupported|unrecognized|unknown|unexpected) (?:request |keyword )?(?:parameter|argument|value)"
    r"(?: supplied)?s?:? *['\"`]?([A-Za-z_][\w.-]{0,63})?",
    re.IGNORECASE,
)
"""How servers that send no code say that they do not know a parameter, and which one."""

_WORDS: Final = {
    402: "asks for payment",
    403: "forbids the call",
    404: "knows no such model or path",
    429: "limits the rate of calls",
}


def status_failure(status: int, told: object, key: ApiKey, retry_after: float | None) -> Failure:
    """What an HTTP status outside 200 to 299 means; `told` is the decoded body, or its text.

    A 400, 413 or 422 is about this one request (a prompt that is too long, a value out of range) and loses the
    attempt: the next one has another prompt. Only its code may say that no request will do.
    """
    if 300 <= status < 400:  # noqa: PLR2004 -- RFC 9110 §15.4
        return Failure(
            Meaning.TERMINAL,
            f"answered with a redirect (HTTP {status}), which is not followed: set base_url to where it leads",
            status,
        )
    if status == HTTPStatus.UNAUTHORIZED:
        # A server quotes half of the key it refuses; its code says enough.
        words = "refused the API key" if key.secret else "asks for an API key, and none was sent"
        return Failure(Meaning.TERMINAL, f"{words} (HTTP {_label(status, told)})", status, retry_after)
    meaning, words = _meaning_of_words(told) or _meaning_of_status(status), _WORDS.get(status, "answered with an error")
    if status in _REQUEST and (parameter := _unsupported(told)) is not None:
        meaning, words = Meaning.TERMINAL, _refusal_of(parameter) if parameter else words
    return Failure(meaning, f"{words} (HTTP {_label(status, told)}){_quoted(told, key)}", status, retry_after)


def told_failure(told: Mapping[str, Any], key: ApiKey) -> Failure:
    """What an error object means that came with a good status, in the middle of an answer for example."""
    code = told.get("code")
    status = code if type(code) is int and 400 <= code < 600 else None  # noqa: PLR2004 -- an HTTP status of an error
    meaning = _meaning_of_words(told) or (Meaning.LOST if status is None else _meaning_of_status(status))
    return Failure(meaning, f"answered with an error{_quoted(told, key)}", status)


def _unsupported(told: object) -> str | None:
    """The parameter that the server does not take; empty when it names none, None when it is about something else."""
    said = told.get("message") if isinstance(told, Mapping) else told
    found = _UNSUPPORTED.search(said[:QUOTED]) if isinstance(said, str) else None
    if found is None and _meaning_of_words(told) is not Meaning.TERMINAL:
        return None
    return _word(told, "param") or (found and found[1]) or ""


def _refusal_of(parameter: str) -> str:
    match parameter:
        case "max_tokens" | "max_completion_tokens":
            remedy = "choose another max_tokens_name"
        case "stream" | "stream_options":
            remedy = "set stream = false"
        case _:
            remedy = "take it out of parameters or extra_body, or change its value"
    return f"does not take the parameter {parameter} as it was sent, {remedy}"


def _meaning_of_status(status: int) -> Meaning:
    if status in _TERMINAL:
        return Meaning.TERMINAL
    return Meaning.PASSING if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR else Meaning.LOST


def _meaning_of_words(told: object) -> Meaning | None:
    words = {_word(told, "code"), _word(told, "type")}
    return next((meaning for meaning, known in _CODES.items() if words & known), None)


def _word(told: object, name: str) -> str:
    found = told.get(name) if isinstance(told, Mapping) else None
    return found if isinstance(found, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", found) else ""


def _label(status: int, told: object) -> str:
    code = _word(told, "code")
    return f"{status}, {code}" if code else str(status)


def _quoted(told: object, key: ApiKey) -> str:
    said = told.get("message") if isinstance(told, Mapping) else told
    # Redacted before it is cut, so that no half of a key stays.
    words = excerpt(key.redacted(said), QUOTED).strip() if isinstance(said, str) else ""
    return f": {words}" if words else ""
