"""A model behind an OpenAI-compatible server as a generator."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.commandline import shorter
from orchestrator.extraction import EXTRACTIONS, INSTRUCTIONS, ExtractionRule, extract
from orchestrator.generators.openai.credentials import ApiKey, key_of
from orchestrator.generators.openai.endpoint import OPENAI, Endpoint
from orchestrator.generators.openai.failures import Failure, Meaning
from orchestrator.generators.openai.reception import Reception
from orchestrator.ports import Generation, Request
from orchestrator.prices import Price, PriceTable
from orchestrator_events.budget import Usage, is_duration
from orchestrator_events.isolation import Isolation

if TYPE_CHECKING:
    import ssl

    from orchestrator.generators.openai.call import ChatCall

__all__ = ["OpenAIGenerator"]

REMOTE: Final = Isolation(
    level="strong",
    backend="remote",
    limits=("time of a call", "bytes of an answer"),
    not_enforced=("what the server does with the prompt",),
)
"""Nothing of the model runs on this machine; its answer is bounded and strictly decoded here."""

OURS: Final = frozenset({"messages", "model", "n", "stream", "stream_options"})
"""Parameters that this adapter sets itself."""
OUTPUT_LIMITS: Final = ("max_completion_tokens", "max_tokens")
STREAMED: Final = 64
"""Bytes of a stream to one of its text at most: servers wrap each token into some 250 bytes of JSON."""
ESCAPED: Final = 8
"""Bytes of a JSON document to one of its text at most: an escaped character may take six."""
FRAME: Final = 65_536
"""Bytes of a body beside its text."""


def _is_count(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise ValueError(f"{attribute.name} must be a whole number above 0, not {value!r}")


def _is_duration(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not is_duration(value):
        raise ValueError(f"{attribute.name} must be a number above 0 or None, not {value!r}")


def _is_rule(_: object, __: object, value: str) -> None:
    if value not in EXTRACTIONS:
        raise ValueError(f"{value!r} is no rule of extraction: choose one of {', '.join(EXTRACTIONS)}")


def _is_not_ours(_: object, attribute: attrs.Attribute[Any], value: Mapping[str, Any]) -> None:
    if taken := OURS.intersection(value):
        raise ValueError(f"{attribute.name} may not hold {', '.join(sorted(taken))}, which this generator sets itself")


@attrs.define(eq=False)
class OpenAIGenerator:
    """Asks for one chat completion a call: one HTTP request, never a redirect, never a retry of its own.

    Raises GeneratorUnavailableError when it is made without the SDK (extra `openai`), and UnpricedModelError when
    `prices` do not name the model.
    """

    model: str
    base_url: str = attrs.field(default=OPENAI, kw_only=True)
    """The server, up to and with `/v1`; environment variables do not change it."""
    api_key: str | None = attrs.field(default=None, kw_only=True, repr=False)
    """None: what `api_key_variable` holds at the time of the call. Servers on this machine need none."""
    api_key_variable: str = attrs.field(default="OPENAI_API_KEY", kw_only=True)
    name: str = attrs.field(default="", kw_only=True)
    """Identifies it in records and over a resume; by default the model, the server, and what shapes its answers."""
    system: str = attrs.field(default="", kw_only=True, repr=False)
    """A system message before the prompt; empty for none."""
    stream: bool = attrs.field(default=True, kw_only=True)
    extraction: ExtractionRule = attrs.field(default="none", kw_only=True, validator=_is_rule)
    """What of the answer is the candidate: see `orchestrator.extraction`."""
    prices: PriceTable | None = attrs.field(default=None, kw_only=True, repr=False)
    seconds: float | None = attrs.field(default=600.0, kw_only=True, validator=_is_duration)
    """Time of one call, everything included; the shorter of this and what the request allows holds."""
    answer_limit: int = attrs.field(default=1_000_000, kw_only=True, validator=_is_count)
    """Largest answer, bytes; a server that sends more is cut off."""
    max_tokens_name: Literal["", "max_tokens", "max_completion_tokens"] = attrs.field(default="", kw_only=True)
    """What the server calls the limit of output tokens; by default max_completion_tokens for OpenAI's own."""
    extra_body: Mapping[str, Any] = attrs.field(factory=dict, kw_only=True, repr=False, validator=_is_not_ours)
    """Further members of every request; generation parameters of the same name win."""
    trust_env: bool = attrs.field(default=False, kw_only=True)
    """Whether proxies of the environment are used."""
    max_prompt_characters: int | None = attrs.field(default=None, kw_only=True, validator=_is_count)
    isolation: str = attrs.field(default=REMOTE.label, init=False)
    _endpoint: Endpoint = attrs.field(init=False, repr=False)
    _price: Price | None = attrs.field(init=False, repr=False)
    _tls: ssl.SSLContext | None = attrs.field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._endpoint = Endpoint(self.base_url)
        self._price = None if self.prices is None else self.prices.price_of(self.model)
        self.name = self.name or self._default_name()
        try:
            import openai  # noqa: F401 -- half a second, better spent here than within the time of the first call
        except ImportError as error:
            raise GeneratorUnavailableError(
                f"{self.name} needs the SDK: install orchestrator-fsm[openai] ({error})"
            ) from None

    @property
    def answer_instruction(self) -> str:
        """How a prompt asks for what `extraction` takes from the answer."""
        return INSTRUCTIONS[self.extraction]

    async def isolate(self, require: str = "none") -> Isolation:  # noqa: ARG002 -- the port's shape
        """Strong by construction: the model runs on the server, and only text comes back."""
        return REMOTE

    async def generate(self, request: Request) -> Generation:
        """The model's answer, or the candidate in it.

        Raises GeneratorUnavailableError when the server will not do (no key, not authorised, no such model,
        a redirect), TransientGenerationError when the same call may succeed later (busy, cut off), and
        GenerationError for everything else that is no answer, with what was received.
        """
        from orchestrator.generators.openai.call import receive

        key = key_of(
            self.api_key, self.api_key_variable, is_needed=not self._endpoint.is_local, server=self._endpoint.host
        )
        reception = Reception(limit=self.answer_limit, progress=request.progress, key=key)
        failure = await receive(self._call(request, key), reception)
        if failure is not None:
            failure = self._advised(failure, key)
            raise failure.error(self.name, key, reception.text, self._used(reception, failure))
        return self._generation(request, reception)

    def _call(self, request: Request, key: ApiKey) -> ChatCall:
        from orchestrator.generators.openai.call import ChatCall

        return ChatCall(
            base_url=self._endpoint.base_url,
            key=key,
            body=self._body(request),
            idempotency_key=request.idempotency_key,
            seconds=shorter(self.seconds, request.seconds),
            document_limit=self.answer_limit * ESCAPED + FRAME,
            stream_limit=self.answer_limit * STREAMED + FRAME,
            trust_env=self.trust_env,
            tls=self._trusted(),
        )

    def _body(self, request: Request) -> dict[str, Any]:
        if taken := OURS.intersection(request.parameters):
            raise GeneratorUnavailableError(
                f"{self.name} sets {', '.join(sorted(taken))} itself: remove it from the generation parameters"
            )
        asked = [{"role": "system", "content": self.system}] if self.system else []
        body: dict[str, Any] = {
            **self.extra_body,
            **request.parameters,
            "model": self.model,
            "messages": [*asked, {"role": "user", "content": request.prompt}],
            "stream": self.stream,
        }
        if self.stream:
            body["stream_options"] = {"include_usage": True}
        return self._limited(body, request.max_tokens)

    def _limited(self, body: dict[str, Any], max_tokens: int | None) -> dict[str, Any]:
        """The body with one limit of output tokens: the least of what was reserved and what is configured."""
        found = {name: body.pop(name) for name in OUTPUT_LIMITS if body.get(name) is not None}
        if wrong := [name for name, limit in found.items() if type(limit) is not int or limit < 1]:
            raise GeneratorUnavailableError(f"{self.name} takes a whole number above 0 for {' and '.join(wrong)}")
        if limits := [limit for limit in (*found.values(), max_tokens) if limit is not None]:
            is_new = self._endpoint.is_openai or "max_completion_tokens" in found
            body[self.max_tokens_name or ("max_completion_tokens" if is_new else "max_tokens")] = min(limits)
        return body

    def _trusted(self) -> ssl.SSLContext:
        # Reading the machine's certificates takes longer than anything else about a call, so once is enough.
        if self._tls is None:
            import httpx2

            self._tls = httpx2.create_ssl_context(trust_env=self.trust_env)
        return self._tls

    def _advised(self, failure: Failure, key: ApiKey) -> Failure:
        """The failure with the remedy that only the configuration knows; it names the variable, never the key."""
        if failure.status != HTTPStatus.UNAUTHORIZED:
            return failure
        if self.api_key is not None:
            return attrs.evolve(failure, reason=f"{failure.reason}: give another api_key")
        remedy = f"the environment variable {self.api_key_variable}" + (" anew" if key.secret else "")
        return attrs.evolve(failure, reason=f"{failure.reason}: set {remedy}")

    def _used(self, reception: Reception, failure: Failure) -> Usage | None:
        told = reception.usage.usage(self._price)
        return reception.counted() if told is None and failure.meaning is Meaning.PASSING else told

    def _generation(self, request: Request, reception: Reception) -> Generation:
        answer, usage = reception.text, reception.usage.usage(self._price)
        is_cut = reception.finish == "length"
        try:
            extracted = extract(answer, self.extraction, request.language)
        except GenerationError as error:
            error.usage = usage
            if is_cut:
                error.reason += "; it was cut off at the limit of its output tokens"
                error.args = (error.reason,)
            raise
        if self.extraction == "none":
            return Generation(candidate=extracted.candidate, usage=usage)
        rule = f"{extracted.rule} (cut off at the limit of output tokens)" if is_cut else extracted.rule
        return Generation(candidate=extracted.candidate, usage=usage, answer=answer, extraction=rule)

    def _default_name(self) -> str:
        shaping = {"system": self.system, "extra_body": dict(self.extra_body)}
        digest = hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest()[:8]
        parts = (
            f"openai:{self.model}",
            "" if self._endpoint.base_url == OPENAI else f"@{self._endpoint.host}",
            "" if self.extraction == "none" else f"+{self.extraction}",
            f"+settings-{digest}" if self.system or self.extra_body else "",
            "" if self.prices is None else f"+prices-{self.prices.as_of}-{self.prices.digest[:8]}",
        )
        return "".join(parts)
