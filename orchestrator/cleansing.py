"""What is recorded and raised, without secrets: events by the types of their fields, errors with all they carry."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from traceback import format_exception
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import attrs

from orchestrator.wording import describe
from orchestrator_events.blob import Blob
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event
from orchestrator_events.run import CandidateGenerated

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["CleansedError", "cleansed_error", "cleansed_event", "cleansed_json_blob", "kind_of"]

Cleanser = Callable[[Any, "Secrets"], Any]
AnyEvent = TypeVar("AnyEvent", bound=Event)

MAY_BE_CUT = frozenset({"answer", "error", "message", "reason", "remedy"})
"""Fields with words of programs and errors, which anyone may have cut before they came here."""
JSON_TEXTS = frozenset({"block", "identity", "input", "messages", "parameters", "reply", "tool_input"})
JSON_BLOBS = JSON_TEXTS | {"definition", "evidence", "message", "review"}
"""Fields that hold JSON, and must still do so afterwards."""
OUR_OWN = frozenset(
    {
        "action", "child_id", "event", "form", "gate", "head", "into", "key", "limit", "parent_id", "response",
        "root_id", "secret", "stage", "status", "suite_digest", "table_digest",
    }
)  # fmt: skip
"""Fields with words, keys and digests that the engine makes itself."""


class CleansedError(OrchestratorError):
    """Stands for an error whose own text holds a secret: its type and its message, redacted.

    `kind` is the type of that error, by which it is still decided what follows; `status_code` its HTTP status, if any.
    """

    def __init__(self, message: str, kind: type[BaseException], status_code: int | None = None) -> None:
        self.kind = kind
        self.status_code = status_code
        super().__init__(message)


def cleansed_event(event: AnyEvent, secrets: Secrets) -> AnyEvent:
    """The event without any secret in its texts, but for a candidate; the same object when it had none."""
    cleansed: AnyEvent = cleansed_value(event, secrets)
    return cleansed


def cleansed_error(error: BaseException, secrets: Secrets) -> BaseException:
    """The error itself, or a stand-in where its traceback (causes, notes and all) shows a part of a secret."""
    shown = "".join(format_exception(error))
    return error if secrets.redact_pieces(shown) is shown else stand_in(error, secrets, set())


def cleansed_value(value: Any, secrets: Secrets) -> Any:
    """An attrs value, its fields cleansed."""
    changes: dict[str, Any] = {}
    for name, cleanse in plan_of(type(value)):  # type: ignore[arg-type]  # mypy takes the hash of its instances
        was = getattr(value, name)
        now = cleanse(was, secrets)
        if now is not was:
            changes[name] = now
    return attrs.evolve(value, **changes) if changes else value


@cache
def plan_of(declared: type[Any]) -> tuple[tuple[str, Cleanser], ...]:
    """The fields of a class that can hold a secret, each with what is done to it; made once a class."""
    hints = get_type_hints(declared)
    fields = {field.name: cleanser_of(hints[field.name], field.name) for field in attrs.fields(declared)}
    if declared is CandidateGenerated:
        del fields["candidate"]
    return tuple((name, cleanse) for name, cleanse in fields.items() if cleanse is not None)


def cleanser_of(declared: Any, name: str) -> Cleanser | None:
    """What is done to values of a type in a field of this name; None where there is nothing to do."""
    origin = get_origin(declared)
    if origin is Annotated:
        return cleanser_of(get_args(declared)[0], name)
    if origin in (Union, UnionType):
        found = [(each, cleanser_of(each, name)) for each in get_args(declared) if each is not NoneType]
        inner = next((cleanse for each, cleanse in found if cleanse is not None and isinstance(each, type)), None)
        return None if inner is None else lambda value, secrets: None if value is None else inner(value, secrets)
    if origin is tuple:
        return items_cleanser(cleanser_of(get_args(declared)[0], name))
    if declared is Blob:
        return cleansed_json_blob if name in JSON_BLOBS else cleansed_cut_blob if name == "answer" else cleansed_blob
    if declared is str:
        return None if name in OUR_OWN else text_cleanser(name)
    return cleansed_value if attrs.has(declared) and plan_of(declared) else None


def items_cleanser(each: Cleanser | None) -> Cleanser | None:
    """What is done to a tuple of which each item is cleansed so."""
    if each is None or each is cleansed_json_blob:
        return None if each is None else cleansed_json_blobs
    return lambda values, secrets: cleansed_items(values, each, secrets)


def text_cleanser(name: str) -> Cleanser:
    """What is done to the texts of a field."""
    if name in MAY_BE_CUT:
        return lambda text, secrets: secrets.redact_pieces(text)
    if name in JSON_TEXTS:
        return cleansed_json
    if name == "id":
        return cleansed_id
    return lambda text, secrets: secrets.redact(text)


def cleansed_items(values: tuple[Any, ...], cleanse: Cleanser, secrets: Secrets) -> tuple[Any, ...]:
    """A tuple, its items cleansed; the same object when nothing changes."""
    cleansed = tuple([cleanse(value, secrets) for value in values])
    return values if all(new is old for new, old in zip(cleansed, values, strict=True)) else cleansed


def cleansed_blob(blob: Blob, secrets: Secrets) -> Blob:
    """A text that is stored beside its record."""
    if blob.text is None:
        return blob
    text = secrets.redact(blob.text)
    return blob if text is blob.text else Blob(text)


def cleansed_json_blob(blob: Blob, secrets: Secrets) -> Blob:
    """JSON that is stored beside its record; it is looked through once, however many records name it."""
    if blob.text is None or blob.free_of is secrets.stamp:
        return blob
    text = cleansed_json(blob.text, secrets)
    cleansed = blob if text is blob.text else Blob(text)
    cleansed.free_of = secrets.stamp
    return cleansed


def cleansed_json_blobs(blobs: tuple[Blob, ...], secrets: Secrets) -> tuple[Blob, ...]:
    """The messages of a request, of which all but the last few were in the one before."""
    stamp = secrets.stamp
    for blob in blobs:
        if blob.free_of is not stamp:
            return cleansed_items(blobs, cleansed_json_blob, secrets)
    return blobs


def cleansed_cut_blob(blob: Blob, secrets: Secrets) -> Blob:
    """A stored text that may have been cut at its ends, where half a secret is looked for too."""
    if blob.text is None:
        return blob
    text, reach = secrets.redact(blob.text), secrets.longest
    tail = text[max(reach, len(text) - reach) :]
    text = secrets.redact_pieces(text[:reach]) + text[reach : len(text) - len(tail)] + secrets.redact_pieces(tail)
    return blob if text == blob.text else Blob(text)


def cleansed_id(text: str, secrets: Secrets) -> str:
    """The id of a case: the spec's own stays as it is; one that the suite made up may have been cut."""
    return secrets.redact_pieces(text) if "…" in text else secrets.redact(text)


def cleansed_json(text: str, secrets: Secrets) -> str:
    """JSON, cleansed text by text so that it stays JSON; the keys too."""
    if secrets.redact(text) is text:
        return text
    try:
        data = json.loads(text)
    except ValueError:
        return secrets.redact(text)
    return json.dumps(cleansed_data(data, secrets), sort_keys=True, separators=(",", ":"))


def cleansed_data(data: Any, secrets: Secrets) -> Any:
    """Decoded JSON, its texts cleansed."""
    if isinstance(data, str):
        return secrets.redact(data)
    if isinstance(data, list):
        return [cleansed_data(item, secrets) for item in data]
    if isinstance(data, dict):
        return {secrets.redact(key): cleansed_data(item, secrets) for key, item in data.items()}
    return data


def kind_of(error: BaseException) -> type[BaseException]:
    """The type of an error, or of the one that it stands for."""
    return error.kind if isinstance(error, CleansedError) else type(error)


def stand_in(error: BaseException, secrets: Secrets, seen: set[int]) -> BaseException:
    """An error of ours with the same traceback, words and causes, all redacted."""
    seen.add(id(error))
    status = getattr(error, "status_code", None)
    made = CleansedError(
        secrets.redact_pieces(describe(error)), kind_of(error), status if type(status) is int else None
    )
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and id(cause) not in seen:
        made.__cause__ = stand_in(cause, secrets, seen)
    for note in getattr(error, "__notes__", ()):
        made.add_note(secrets.redact_pieces(str(note)))
    return made.with_traceback(error.__traceback__)
