"""What a model behind an OpenAI-compatible server promises when the server behaves."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs
import pytest

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.generators.callable import as_generator
from orchestrator.generators.openai import OpenAIGenerator
from orchestrator.ports import Generation, Request
from orchestrator.prices import PriceTable, UnpricedModelError, read_prices
from orchestrator_events.budget import Usage

KEY = "sk-test-0123456789abcdef"
USAGE = {"prompt_tokens": 7, "completion_tokens": 3}
REQUEST = Request(
    run_id="run",
    attempt=2,
    prompt="Write ü.\n",
    parameters=MappingProxyType({"temperature": 0.5, "vendor_option": {"deep": [1]}}),
    language="python",
    max_tokens=100,
    seconds=20,
    idempotency_key="run:2",
    spec_digest="ab",
)
PRICES: PriceTable = read_prices(
    {
        "as_of": "2026-01-31",
        "currency": "USD",
        "models": {"m": {"input": "0.15", "output": "0.60", "cached_input": "0.075"}},
    }
)


def generate(server: Any, request: Request = REQUEST, **settings: Any) -> Generation:
    """Ask the model on this server once."""
    return asyncio.run(OpenAIGenerator("m", base_url=server.url, api_key=KEY, **settings).generate(request))


def answered(text: str, **usage: int) -> Generation:
    """A generation whose candidate is the answer."""
    return Generation(candidate=Candidate(text), usage=Usage(**usage) if usage else None)


def test_a_streamed_answer_is_the_candidate_byte_for_byte(wire: Any) -> None:
    """Nothing is stripped or added, and the usage that comes last is read."""
    server = wire.serve(
        wire.events(
            wire.chunk(""),
            wire.chunk("\r\nx = "),
            wire.chunk("'ü😀'\n "),
            wire.chunk(finish="stop"),
            {"choices": [], "usage": USAGE},
        )
    )
    assert generate(server) == answered("\r\nx = 'ü😀'\n ", input_tokens=7, output_tokens=3)


@pytest.mark.parametrize("stream", [True, False])
def test_a_whole_answer_is_taken_as_it_comes(wire: Any, stream: bool) -> None:
    """A server that does not stream, asked to or not, answers with one document."""
    server = wire.serve(wire.http(wire.completion("x\n", usage=USAGE)))
    assert generate(server, stream=stream) == answered("x\n", input_tokens=7, output_tokens=3)


@pytest.mark.parametrize("piece", [1, 2, 3, 7])
def test_characters_and_events_may_be_cut_anywhere(wire: Any, piece: int) -> None:
    """How bytes arrive changes nothing: not in UTF-8 sequences, escapes, line ends or events."""
    stream = (
        b'\xef\xbb\xbf: comment\r\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}\r\n\r\n'
        b'event: x\ndata:{"choices":[{"delta":\ndata: {"content":"\\ude00 \xc3\xa4\xf0\x9f\x98\x80"},'
        b'"finish_reason":"stop"}]}\n\n'
    )
    server = wire.serve(wire.events(stream, piece=piece))
    assert generate(server) == answered("😀 ä😀")


def test_one_request_says_everything(wire: Any) -> None:
    """Prompt, system message, parameters known or not, the lower limit of tokens, and the key of the call."""
    server = wire.serve(wire.http(wire.completion()))
    request = attrs.evolve(REQUEST, parameters={**REQUEST.parameters, "max_tokens": 900, "seed": 3})
    generate(server, request, system="Only code.", extra_body={"seed": 1, "top_k": 5})
    asked = server.asked[0]
    names = ("accept-encoding", "authorization", "idempotency-key", "content-type")
    assert (asked.line, {name: asked.headers[name] for name in names}, asked.body, server.connections) == (
        "POST /v1/chat/completions HTTP/1.1",
        {
            "accept-encoding": "identity",
            "authorization": f"Bearer {KEY}",
            "idempotency-key": "run:2",
            "content-type": "application/json",
        },
        {
            "model": "m",
            "messages": [{"role": "system", "content": "Only code."}, {"role": "user", "content": "Write ü.\n"}],
            "temperature": 0.5,
            "vendor_option": {"deep": [1]},
            "seed": 3,
            "top_k": 5,
            "max_tokens": 100,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        1,
    )


def test_nothing_of_the_environment_is_sent(wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK would add an organisation, custom headers, other keys and proxies to whatever server it is given."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: gateway-secret\nAuthorization: Bearer ambient-secret")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server = wire.serve(wire.http(wire.completion()))
    generate(server)
    assert sorted(server.asked[0].headers) == [
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "idempotency-key",
        "user-agent",
    ]


@pytest.mark.parametrize("exempt", [False, True])
def test_a_proxy_of_the_environment_is_used_where_that_is_asked(
    wire: Any, monkeypatch: pytest.MonkeyPatch, exempt: bool
) -> None:
    """Except for the hosts that the environment exempts."""
    server = wire.serve(wire.http(wire.completion()))
    for name in ("http_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", server.url.removesuffix("/v1"))
    if exempt:
        monkeypatch.setenv("no_proxy", "127.0.0.1")
    base_url = server.url if exempt else "http://models.invalid/v1"
    asyncio.run(OpenAIGenerator("m", base_url=base_url, api_key=KEY, trust_env=True).generate(REQUEST))
    assert server.asked[0].line == (f"POST {'' if exempt else 'http://models.invalid'}/v1/chat/completions HTTP/1.1")


def test_progress_is_told_while_the_answer_comes(wire: Any) -> None:
    """Estimated output tokens so far; thoughts of the model are output as well."""
    told: list[int] = []
    server = wire.serve(
        wire.events(
            {"choices": [{"index": 0, "delta": {"reasoning_content": "well now"}}]},
            wire.chunk("1234"),
            wire.chunk("5"),
            wire.chunk(finish="stop"),
        )
    )
    generate(server, attrs.evolve(REQUEST, progress=told.append))
    assert told == [2, 3, 4]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ([], None),
        ({}, None),
        ({"prompt_tokens": -1, "completion_tokens": True}, None),
        ({"prompt_tokens": 1.0, "completion_tokens": "2"}, None),
        ({"prompt_tokens": 2**53, "completion_tokens": 10**5000}, None),
        ({"prompt_tokens": 5, "completion_tokens": -3}, Usage(input_tokens=5)),
        ({"prompt_tokens": 0, "completion_tokens": 4}, Usage(input_tokens=0, output_tokens=4)),
    ],
)
def test_absurd_usage_is_no_usage(wire: Any, usage: Any, expected: Usage | None) -> None:
    """What is no sane count is left to the estimate of the ledger, each count by itself."""
    sys.set_int_max_str_digits(0)
    try:
        server = wire.serve(wire.http(wire.completion("x", usage=usage)))
    finally:
        sys.set_int_max_str_digits(4300)
    assert generate(server).usage == expected


@pytest.mark.parametrize(
    ("details", "money"),
    [({}, 18), ({"cached_tokens": 20}, 17), ({"cached_tokens": 99}, 15), ({"cached_tokens": -1}, 18)],
)
def test_money_is_reckoned_with_the_prices_given(wire: Any, details: dict[str, int], money: int) -> None:
    """Whole millionths, rounded up once: 40 tokens at 0.15 and 20 at 0.60; cached ones at 0.075."""
    usage = {"prompt_tokens": 40, "completion_tokens": 20, "prompt_tokens_details": details}
    server = wire.serve(wire.http(wire.completion("x", usage=usage)))
    assert generate(server, prices=PRICES) == answered("x", input_tokens=40, output_tokens=20, money_micro=money)


def test_a_candidate_is_extracted_only_where_that_is_configured(wire: Any) -> None:
    """With a rule the raw answer is kept beside the candidate; without one the answer is the candidate."""
    answer = "Here:\n```python\nx = 1\n```\nDone."
    server = wire.serve(wire.http(wire.completion(answer)))
    assert [generate(server), generate(server, extraction="fenced")] == [
        answered(answer),
        Generation(candidate=Candidate("x = 1\n"), answer=answer, extraction="fenced"),
    ]


def test_an_answer_without_a_candidate_is_kept_with_what_it_used(wire: Any) -> None:
    """The reason says that the answer was cut off, when it was."""
    server = wire.serve(wire.http(wire.completion("```\nx", finish="length", usage=USAGE)))
    with pytest.raises(GenerationError) as caught:
        generate(server, extraction="fenced")
    reason = (
        "the last fenced code block of the answer has no end: the answer may be cut off; "
        "it was cut off at the limit of its output tokens"
    )
    error = caught.value
    used = Usage(input_tokens=7, output_tokens=3)
    assert (str(error), error.reason, error.answer, error.usage) == (reason, reason, "```\nx", used)


def test_a_candidate_from_an_answer_that_was_cut_off_says_so(wire: Any) -> None:
    """It may still be whole, so it is evaluated."""
    server = wire.serve(wire.http(wire.completion("```\nx\n```\nAnd now", finish="length")))
    assert generate(server, extraction="fenced").extraction == "fenced (cut off at the limit of output tokens)"


def test_a_loop_of_its_own_for_every_call(wire: Any) -> None:
    """A generator holds nothing that belongs to an event loop."""
    server = wire.serve(wire.http(wire.completion("x")))
    generator = OpenAIGenerator("m", base_url=server.url)
    assert [asyncio.run(generator.generate(REQUEST)) for _ in range(2)] == [answered("x")] * 2


def test_a_local_server_needs_no_key(wire: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And gets none, unless there is one."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    server = wire.serve(wire.http(wire.completion("x")))
    asyncio.run(OpenAIGenerator("m", base_url=server.url).generate(REQUEST))
    monkeypatch.setenv("MY_KEY", KEY)
    asyncio.run(OpenAIGenerator("m", base_url=server.url, api_key_variable="MY_KEY").generate(REQUEST))
    assert [asked.headers.get("authorization") for asked in server.asked] == [None, f"Bearer {KEY}"]


@pytest.mark.parametrize("key", ["", "sk-line\nbreak", "sk with blank", "sk-ü"])
def test_without_a_usable_key_nothing_is_asked(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is named, the key is not."""
    monkeypatch.setenv("MY_KEY", key)
    generator = OpenAIGenerator("m", base_url="https://models.invalid/v1", api_key_variable="MY_KEY")
    with pytest.raises(GeneratorUnavailableError, match="MY_KEY") as caught:
        asyncio.run(generator.generate(REQUEST))
    assert not key or key not in str(caught.value)


def test_its_name_tells_apart_what_answers_differently() -> None:
    """Model, server, rule of extraction, settings and prices; never the key."""
    made = [
        OpenAIGenerator("gpt-x", api_key=KEY),
        OpenAIGenerator("m", base_url="http://localhost:8000/v1"),
        OpenAIGenerator("m", base_url="https://models.invalid:443/v1", extraction="files"),
        OpenAIGenerator("m", prices=PRICES),
        OpenAIGenerator("m", name="mine", system="x"),
    ]
    assert [generator.name for generator in made] == [
        "openai:gpt-x",
        "openai:m@localhost:8000",
        "openai:m@models.invalid+files",
        f"openai:m+prices-2026-01-31-{PRICES.digest[:8]}",
        "mine",
    ]
    settings = [OpenAIGenerator("m", system=text).name for text in ("a", "b")]
    assert len(set(settings)) == 2
    assert all(name.startswith("openai:m+settings-") for name in settings)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"base_url": "ftp://x/v1"}, "does not begin with http"),
        ({"base_url": "https:///v1"}, "names no host"),
        ({"base_url": f"https://user:{KEY}@x/v1"}, "user name or password"),
        ({"base_url": f"https://x/v1?key={KEY}"}, "a query"),
        ({"base_url": "https://x:port/v1"}, "is no URL"),
        ({"base_url": "https://x/v1\n"}, "line break"),
        ({"extraction": "best"}, "choose one of none, fenced, files"),
        ({"seconds": 0}, "seconds must be a number above 0"),
        ({"answer_limit": 0}, "answer_limit must be a whole number above 0"),
        ({"extra_body": {"stream": True}}, "may not hold stream"),
    ],
)
def test_a_wrong_setting_is_told_when_it_is_made(settings: dict[str, Any], fault: str) -> None:
    """And a URL that may hold a secret is not quoted."""
    with pytest.raises(ValueError, match=fault) as caught:
        OpenAIGenerator("m", **settings)
    assert KEY not in str(caught.value)


def test_a_model_without_a_price_is_told_when_it_is_made() -> None:
    """A table that does not know the model would count nothing."""
    with pytest.raises(UnpricedModelError, match=r"no model 'mm' \(did you mean 'm'\?\)"):
        OpenAIGenerator("mm", prices=PRICES)


def test_parameters_cannot_take_over_the_request(wire: Any) -> None:
    """Nothing is asked; a run that would repeat the mistake is interrupted."""
    server = wire.serve(wire.http(wire.completion()))
    with pytest.raises(GeneratorUnavailableError, match="sets model, n itself"):
        generate(server, attrs.evolve(REQUEST, parameters={"model": "other", "n": 3}))
    assert server.connections == 0


@pytest.mark.parametrize(
    ("parameters", "max_tokens", "settings", "sent"),
    [
        ({}, None, {}, {}),
        ({"max_tokens": None}, None, {}, {"max_tokens": None}),
        ({"max_tokens": 50}, 100, {}, {"max_tokens": 50}),
        ({"max_tokens": 50, "max_completion_tokens": 40}, 100, {}, {"max_completion_tokens": 40}),
        ({"max_tokens": 50}, 20, {"max_tokens_name": "max_completion_tokens"}, {"max_completion_tokens": 20}),
    ],
)
def test_one_limit_of_output_tokens_is_sent(
    wire: Any, parameters: dict[str, Any], max_tokens: int | None, settings: dict[str, Any], sent: dict[str, Any]
) -> None:
    """The least of what was reserved and configured, under the name the server knows."""
    server = wire.serve(wire.http(wire.completion()))
    generate(server, attrs.evolve(REQUEST, parameters=parameters, max_tokens=max_tokens), **settings)
    body = server.asked[0].body
    assert {name: body[name] for name in body if name.startswith("max_")} == sent


@pytest.mark.parametrize("limit", ["100", 0, 1.5, True])
def test_a_limit_that_is_no_count_is_told_before_anything_is_asked(wire: Any, limit: Any) -> None:
    """It is neither dropped nor sent."""
    server = wire.serve(wire.http(wire.completion()))
    with pytest.raises(GeneratorUnavailableError, match="takes a whole number above 0 for max_tokens"):
        generate(server, attrs.evolve(REQUEST, parameters={"max_tokens": limit}))
    assert server.connections == 0


def test_it_fills_the_port_and_says_what_isolates_it() -> None:
    """Nothing of the model runs on this machine."""
    generator = OpenAIGenerator("m", max_prompt_characters=9)
    isolation = asyncio.run(generator.isolate("strong"))
    assert (as_generator(generator), generator.isolation, isolation.level, generator.max_prompt_characters) == (
        generator,
        isolation.label,
        "strong",
        9,
    )


def test_the_sdk_is_imported_only_for_a_generator(tmp_path: Path) -> None:
    """Naming the class costs nothing; making one without the extra says what to install."""
    program = (
        "import sys\n"
        "from orchestrator.generators.openai import OpenAIGenerator\n"
        "assert not {'openai', 'httpx2', 'pydantic'} & set(sys.modules)\n"
        "sys.modules['openai'] = None\n"
        "try: OpenAIGenerator('m')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.startswith(
        "GeneratorUnavailableError openai:m needs the SDK: install orchestrator-fsm[openai] ("
    ), said.stderr
