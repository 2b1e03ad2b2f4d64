"""What a model behind a server promises when the server misbehaves: a typed error, in time, without the key."""

from __future__ import annotations

import asyncio
import base64
import gzip
import logging
import time
import traceback
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import attrs
import pytest

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError, TransientGenerationError
from orchestrator.candidate import Candidate
from orchestrator.generators.openai import OpenAIGenerator
from orchestrator.ports import Request
from orchestrator.retries import RetryPolicy
from orchestrator_events.budget import Usage

KEY = "sk-test-0123456789/abcdef+"
REQUEST = Request(
    run_id="run",
    attempt=1,
    prompt="Write.",
    parameters=MappingProxyType({}),
    language="python",
    max_tokens=None,
    seconds=20,
    idempotency_key="run:1",
    spec_digest="ab",
)
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def failed(server: Any, seconds: float = 20, **settings: Any) -> Exception:
    """What one call raises; nothing of the SDK hangs on it, and the key is nowhere in it, locals included."""
    url = server if isinstance(server, str) else server.url
    generator = OpenAIGenerator("m", base_url=url, api_key=KEY, name="mine", **settings)
    with pytest.raises((GenerationError, GeneratorUnavailableError)) as caught:
        asyncio.run(generator.generate(attrs.evolve(REQUEST, seconds=seconds)))
    error = caught.value
    told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    kept = repr((generator, error, error.args, getattr(error, "answer", ""), told))
    leaked = [core for core in forms_of_the_key().values() if core in kept]
    theirs = [library for library in ("openai", "httpx2", "httpcore2") if f"site-packages/{library}/" in told]
    assert (error.__context__, error.__cause__, leaked, theirs) == (None, None, [], [])
    return error


def forms_of_the_key() -> dict[str, str]:
    """The key as a server may send it back, and what of that is the key's alone."""
    forms = {KEY: KEY, quote(KEY, safe=""): quote(KEY, safe="")}
    for head in (b"", b"a", b"ab"):
        encoded = base64.b64encode(head + KEY.encode() + b"...").decode()
        forms[encoded] = encoded[4:-8]
    return forms


@pytest.mark.parametrize(
    ("status", "body", "error", "reason"),
    [
        ("400 Bad", {"error": {"message": "too long", "code": "context_length_exceeded"}},
            GenerationError, "mine answered with an error (HTTP 400, context_length_exceeded): too long"),
        ("400 Bad", {"error": {"message": "no top_k", "code": "unsupported_parameter"}},
            GeneratorUnavailableError, "mine answered with an error (HTTP 400, unsupported_parameter): no top_k"),
        ("400 Bad", {"error": {"message": "no", "code": "unsupported_parameter", "param": "top_k"}},
            GeneratorUnavailableError, ("mine does not take the parameter top_k as it was sent, take it out of "
            "parameters or extra_body, or change its value (HTTP 400, unsupported_parameter): no")),
        ("400 Bad", {"error": {"message": "Unsupported parameter: 'max_tokens' is not", "param": None}},
            GeneratorUnavailableError, ("mine does not take the parameter max_tokens as it was sent, choose another "
            "max_tokens_name (HTTP 400): Unsupported parameter: 'max_tokens' is not")),
        ("422 Bad", {"message": "unknown argument: stream_options"},
            GeneratorUnavailableError, ("mine does not take the parameter stream_options as it was sent, set "
            "stream = false (HTTP 422): unknown argument: stream_options")),
        ("400 Bad", {"error": {"message": "bad", "param": "messages"}},
            GenerationError, "mine answered with an error (HTTP 400): bad"),
        ("401 Unauthorized", {"error": {"message": "key sk-te**bcde is wrong", "code": "invalid_api_key"}},
            GeneratorUnavailableError, "mine refused the API key (HTTP 401, invalid_api_key): give another api_key"),
        ("402 Pay", {"error": {"message": "no credit"}},
            GeneratorUnavailableError, "mine asks for payment (HTTP 402): no credit"),
        ("403 Forbidden", "<html>", GeneratorUnavailableError, "mine forbids the call (HTTP 403)"),
        ("404 Not Found", {"error": {"message": "no model m"}},
            GeneratorUnavailableError, "mine knows no such model or path (HTTP 404): no model m"),
        ("422 Unprocessable", {"detail": []}, GenerationError, "mine answered with an error (HTTP 422)"),
        ("429 Slow down", {"error": {"type": "insufficient_quota", "message": "pay"}},
            GeneratorUnavailableError, "mine limits the rate of calls (HTTP 429): pay"),
        ("408 Late", "", TransientGenerationError, "mine answered with an error (HTTP 408)"),
        ("409 Conflict", "[" * 9_000, TransientGenerationError, "mine answered with an error (HTTP 409)"),
        ("429 Slow down", b"\xff\xfe", TransientGenerationError, "mine limits the rate of calls (HTTP 429)"),
        ("500 Oops", "<html>" * 99, TransientGenerationError, "mine answered with an error (HTTP 500)"),
        ("502 Oops", "{}", TransientGenerationError, "mine answered with an error (HTTP 502)"),
        ("503 Oops", {"error": {"message": "\x1b[31mbusy"}},
            TransientGenerationError, "mine answered with an error (HTTP 503): busy"),
        ("504 Oops", {"error": "late"}, TransientGenerationError, "mine answered with an error (HTTP 504): late"),
        ("529 Busy", "{}", TransientGenerationError, "mine answered with an error (HTTP 529)"),
    ],
)  # fmt: skip
def test_each_status_has_its_meaning(wire: Any, status: str, body: Any, error: type[Exception], reason: str) -> None:
    """Stop, lose the attempt, or try again; with the server's own words where it says any."""
    server = wire.serve(wire.http(body, status))
    found = failed(server)
    assert (type(found), str(found), len(server.asked)) == (error, reason, 1)


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (KEY, "m refused the API key (HTTP 401): set the environment variable THEIR_KEY anew"),
        ("", "m asks for an API key, and none was sent (HTTP 401): set the environment variable THEIR_KEY"),
    ],
)
def test_a_refused_key_names_its_variable(wire: Any, monkeypatch: pytest.MonkeyPatch, held: str, reason: str) -> None:
    """What to set, never what is in it; and where no key was sent, that."""
    monkeypatch.setenv("THEIR_KEY", held)
    server = wire.serve(wire.http({"error": {"message": f"bad {KEY}"}}, "401 Unauthorized"))
    generator = OpenAIGenerator("m", base_url=server.url, api_key_variable="THEIR_KEY", name="m")
    with pytest.raises(GeneratorUnavailableError) as caught:
        asyncio.run(generator.generate(REQUEST))
    assert (str(caught.value), "authorization" in server.asked[0].headers) == (reason, bool(held))


@pytest.mark.parametrize("body", [b"x" * 3_000_000, gzip.compress(b"x" * 9_000_000)])
def test_the_body_of_an_error_is_not_read_to_its_end(wire: Any, body: bytes) -> None:
    """A flood, and a small body that would unpack to one, change nothing about what the status means."""
    server = wire.serve(wire.http(body, "503 Oops", ["Content-Encoding: gzip"]))
    found = failed(server)
    assert (type(found), str(found)) == (TransientGenerationError, "mine answered with an error (HTTP 503)")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ([], None),
        (["Retry-After: 2"], 2.0),
        (["Retry-After: 259200"], 259_200.0),
        (["Retry-After-Ms: 1500", "Retry-After: 2"], 1.5),
        (["Date: Sat, 31 Jan 2026 10:00:00 GMT", "Retry-After: Sat, 31 Jan 2026 10:01:30 GMT"], 90.0),
        (["Date: Sat, 31 Jan 2026 10:00:00 GMT", "Retry-After: Sat, 31 Jan 2026 09:00:00 GMT"], 0.0),
        (["Retry-After: soon"], None),
        (["Retry-After: -5"], None),
        (["Retry-After: nan"], None),
        (["Retry-After: 1e999"], None),
        (["Retry-After: " + "9" * 99_000], float("9" * 200)),
    ],
    ids=lambda value: str(value)[:60],
)
def test_retry_after_is_handed_on_and_never_slept(wire: Any, headers: list[str], seconds: float | None) -> None:
    """Seconds, milliseconds or a date by the server's own clock; what is none of these says nothing."""
    found = failed(wire.serve(wire.http("{}", "429 Slow down", headers)))
    assert isinstance(found, TransientGenerationError)
    if found.status == 429:
        assert found.retry_after == seconds
        assert RetryPolicy().wait(0, found.retry_after, 60.0) == (None if (seconds or 0) > 60 else max(1, seconds or 0))


@pytest.mark.parametrize(
    ("behaviour", "seconds"),
    [("silent", 0.1), ("drip", 0.2), ("headers", 0.1), ("comments", 0.1), ("error", 0.1)],
)
def test_the_deadline_holds_whatever_the_server_does(wire: Any, behaviour: str, seconds: float) -> None:
    """A byte now and then keeps no call alive: the time is for everything together."""
    drip = [bytes([byte]) for byte in b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}' * 9]
    server = wire.serve(
        {
            "silent": wire.hang(),
            "drip": wire.raw(STREAM, *drip, pause=0.02),
            "headers": wire.raw(b"HTTP/1.1 200 OK\r\n", *[b"X-A: b\r\n"] * 999, pause=0.02),
            "comments": wire.raw(STREAM, *[b": wait\n\n"] * 999, pause=0.02),
            "error": wire.raw(b"HTTP/1.1 503 Oops\r\n\r\n", *[b"x"] * 999, pause=0.02),
        }[behaviour]
    )
    begun = time.monotonic()
    found = failed(server, seconds)
    assert (type(found), str(found)) == (
        GenerationError,
        f"mine timed out after {seconds:g} s, 0 bytes of answer in",
    )
    assert time.monotonic() - begun < seconds + 2


def test_the_shorter_time_holds(wire: Any) -> None:
    """The generator's own, when the request allows more; what came until then is kept."""
    begun = STREAM + b'data: {"choices":[{"index":0,"delta":{"content":"x = 1"}}]}\n\n'
    generator = OpenAIGenerator("m", base_url=wire.serve(wire.hang(begun)).url, name="mine", seconds=0.2)
    with pytest.raises(GenerationError) as caught:
        asyncio.run(generator.generate(REQUEST))
    reason = "mine timed out after 0.2 s, 5 bytes of answer in"
    assert (str(caught.value), caught.value.answer) == (reason, "x = 1")


def test_a_cancelled_call_ends_at_once(wire: Any) -> None:
    """And closes its connection."""

    async def cancel(url: str) -> bool:
        task = asyncio.create_task(OpenAIGenerator("m", base_url=url).generate(REQUEST))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait({task}, timeout=5)
        return task.cancelled()

    assert asyncio.run(cancel(wire.serve(wire.hang(STREAM)).url))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (STREAM + b"x" * 900_000, "a line of more than 145536 bytes"),
        (STREAM + b"data: x\n" * 99_999, "an event of more than 145536 bytes"),
        (STREAM + b": wait\n\n" * 99_999, "longer than 705536 bytes of HTTP body"),
        (
            STREAM + b'data: {"choices":[{"delta":{"content":"\xc3\xa4\xc3\xa4"}}]}\n\n' * 9_999,
            "longer than 10000 bytes",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 900_000, "a document of more than 145536 bytes"),
    ],
)
def test_a_flood_is_cut_off(wire: Any, body: bytes, reason: str) -> None:
    """Without line ends, in one event, of comments, of text, or in place of an answer."""
    found = failed(wire.serve(wire.raw(body)), answer_limit=10_000)
    assert type(found) is GenerationError
    assert str(found).startswith("mine was stopped because")
    assert reason in str(found)


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 99_999 + b"\r\n", b"HTTP/1.1 200 " + b"O" * 900_000 + b"\r\n\r\n"],
)
def test_huge_headers_are_refused(wire: Any, head: bytes) -> None:
    """The HTTP client stops at 100 KiB."""
    found = failed(wire.serve(wire.raw(head)))
    assert type(found) is TransientGenerationError
    assert "mine gave no answer: RemoteProtocolError" in str(found)


def test_an_encoded_answer_is_refused(wire: Any) -> None:
    """None was asked for, and a small one may unpack to anything."""
    server = wire.serve(wire.http(gzip.compress(b"x" * 9_000_000), headers=["Content-Encoding: gzip"]))
    found = failed(server)
    assert (type(found), str(found)) == (
        GenerationError,
        "mine answered with content-encoding 'gzip', though none was asked for",
    )


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_is_never_followed(wire: Any, status: str) -> None:
    """Where it leads gets no request and no key."""
    other = wire.serve(wire.http(wire.completion()))
    server = wire.serve(wire.http("", status, [f"Location: {other.url}/chat/completions"]))
    found = failed(server)
    assert (type(found), str(found), other.connections) == (
        GeneratorUnavailableError,
        f"mine answered with a redirect (HTTP {status[:3]}), which is not followed: set base_url to where it leads",
        0,
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("<html>Log in</html>", "what is not JSON (Expecting value: line 1 column 1 (char 0)): <html>Log in</html>"),
        ("", "what is not JSON (Expecting value: line 1 column 1 (char 0)): "),
        (b"\xff", "what is not UTF-8, at byte 0"),
        ("[" * 100_000, "JSON that nests too deep"),
        ("[]", "JSON that is an array, not an object"),
        ("null", "JSON that is null, not an object"),
        ({}, "no text"),
        ({"choices": []}, "no text"),
        ({"choices": {}}, "choices that are an object, not an array"),
        ({"choices": [7]}, "a choice that is a number, not an object"),
        ({"choices": [{"message": "x"}]}, "a message that is a string, not an object"),
        ({"choices": [{"message": {"content": ["x"]}}]}, "content that is an array, not a string"),
        ({"choices": [{"message": {"content": True}}]}, "content that is a boolean, not a string"),
        ({"choices": [{"message": {"content": " \n"}}]}, "no text"),
        ({"choices": [{"index": 1, "message": {"content": "x"}}]}, "no text"),
        ({"choices": [{"message": {"tool_calls": [{}]}}]}, "a tool call and no text"),
        ('{"choices": [{"message": {"content": "a\\ud800"}}]}',
            "a lone surrogate, which is no text, at character 1"),
        ('{"choices": [{"message": {"content": NaN}}]}', "NaN, which is no number of JSON"),
        ({"error": {"message": "broken", "type": "invalid_request_error"}}, "an error: broken"),
        ({"error": "broken"}, "an error: broken"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
def test_what_is_no_answer_is_a_failed_generation(wire: Any, body: Any, reason: str) -> None:
    """Each with words of its own, at status 200."""
    found = failed(wire.serve(wire.http(body, kind="text/html")))
    assert (type(found), str(found)) == (GenerationError, f"mine answered with {reason}")


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ('"usage": {}, "usage": {}', "JSON that gives the key 'usage' more than once"),
        ('"usage": {"prompt_tokens": 1, "prompt_tokens": 9}',
            "JSON that gives the key 'prompt_tokens' more than once"),
        (f'"{KEY}": 1, "{KEY}": 2', "JSON that gives the key '[the API key]' more than once"),
        ('"usage": {"prompt_tokens": NaN}', "NaN, which is no number of JSON"),
        ('"more": [Infinity]', "Infinity, which is no number of JSON"),
        ('"more": -Infinity', "-Infinity, which is no number of JSON"),
        ('"more": 1e999', "1e999, which is no number of JSON"),
        ('"more": ' + "[" * 64 + "]" * 64, "JSON that nests too deep"),
    ],
    ids=lambda value: str(value)[:40],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["document", "chunk", "last chunk"])
def test_what_readers_of_json_disagree_about_is_no_answer(wire: Any, kind: str, members: str, reason: str) -> None:
    """Keys given twice, numbers that are none and deep nesting, in a document as in any chunk of a stream."""
    text = f'{{"choices": [{{"index": 0, "message": {{"content": "x"}}, "finish_reason": "stop"}}], {members}}}'
    serving = {
        "document": wire.http(text),
        "chunk": wire.events(text, wire.chunk("y", finish="stop")),
        "last chunk": wire.events(wire.chunk("y", finish="stop"), text),
    }
    found = failed(wire.serve(serving[kind]))
    assert (type(found), str(found)) == (GenerationError, f"mine answered with {reason}")


@pytest.mark.parametrize(
    "members", ['"created": 1763770000000000001', '"more": ' + "[" * 62 + "]" * 62, '"more": [{"a": 1}, {"a": 1}]']
)
def test_what_is_odd_but_clear_does_not_cost_an_answer(wire: Any, members: str) -> None:
    """Stamps in nanoseconds, nesting that is just not too deep, and the same key in two objects."""
    text = f'{{"choices": [{{"message": {{"content": "x"}}}}], {members}}}'
    server = wire.serve(wire.http(text))
    made = asyncio.run(OpenAIGenerator("m", base_url=server.url).generate(REQUEST))
    assert made.candidate == Candidate("x")


@pytest.mark.parametrize(
    "body",
    ['{"error": {"message": "a"}, "error": {"message": "b"}}', '{"error": {"message": "a", "code": NaN}}'],
)
def test_an_error_that_cannot_be_read_strictly_is_told_by_its_status(wire: Any, body: str) -> None:
    """Neither of two messages is believed."""
    found = failed(wire.serve(wire.http(body, "403 No")))
    assert (type(found), str(found)) == (GeneratorUnavailableError, "mine forbids the call (HTTP 403)")


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ({"message": {"refusal": "I will \x1b[1mnot."}}, "mine refused to answer: I will not."),
        ({"message": {"content": "x"}, "finish_reason": "content_filter"},
            "mine refused to answer (its content filter held it back)"),
        ({"message": {"content": ""}, "finish_reason": "length"},
            "mine used up its output tokens before it wrote any text: raise max_tokens"),
    ],
)  # fmt: skip
def test_a_refusal_is_no_candidate(wire: Any, choice: Any, reason: str) -> None:
    """What it cost is known all the same."""
    usage = {"prompt_tokens": 4, "completion_tokens": 2}
    found = failed(wire.serve(wire.http({"choices": [choice], "usage": usage})))
    assert isinstance(found, GenerationError)
    assert (str(found), found.usage) == (reason, Usage(input_tokens=4, output_tokens=2))


@pytest.mark.parametrize(
    ("stream", "error", "reason"),
    [
        ([b"data: {broken\n\n"], GenerationError, "what is not JSON"),
        ([b"data: \xff\n\n"], GenerationError, "what is not UTF-8, at byte 0"),
        ([{"error": {"message": "busy", "code": 503}}], TransientGenerationError, "mine answered with an error: busy"),
        ([{"error": {"type": "server_error"}}], TransientGenerationError, "mine answered with an error"),
        ([{"error": {"message": "no", "code": "x"}}], GenerationError, "mine answered with an error: no"),
        ([], TransientGenerationError, "in the middle of the answer, after 1 bytes of it"),
    ],
)
def test_a_stream_may_go_wrong_in_the_middle(wire: Any, stream: list[Any], error: type[Exception], reason: str) -> None:
    """A good beginning promises nothing; what came is counted or kept."""
    found = failed(wire.serve(wire.events(wire.chunk("x"), *stream, end=b"")))
    assert (type(found), reason in str(found)) == (error, True), str(found)


@pytest.mark.parametrize(
    "answer",
    [
        [CHUNKED + b'80\r\ndata: {"choices":[{"index":0,"delta":{"content":"x = 123456"}}]}\n\n'],
        [STREAM + b'data: {"choices":[{"index":0,"delta":{"content":"x = 123456"}}]}\n\n'],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"],
        [b"HTTP/1.1 200 OK\r\nContent-"],
        [b""],
        [b"\x00\x01\x02 nonsense\r\n\r\n"],
    ],
)
def test_a_connection_that_breaks_off_may_be_tried_again(wire: Any, answer: list[bytes]) -> None:
    """Before, in or after the headers, in a stream or in a document shorter than announced."""
    found = failed(wire.serve(wire.raw(*answer)))
    assert isinstance(found, TransientGenerationError)
    assert found.usage == (Usage(output_tokens=3) if b"123456" in answer[0] else None)


def test_a_document_longer_than_announced_is_no_answer(wire: Any) -> None:
    """What stands beyond the announced length is not read."""
    found = failed(wire.serve(wire.raw(b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"choices": []}')))
    assert (type(found), "what is not JSON" in str(found)) == (GenerationError, True)


def test_a_server_that_is_not_there_may_be_tried_again() -> None:
    """It may just be starting."""
    found = failed("http://127.0.0.1:9/v1")
    assert type(found) is TransientGenerationError
    assert "mine cannot be reached: ConnectionRefusedError: " in str(found)


def test_a_passing_failure_passes(wire: Any) -> None:
    """One request a call: the second call is the caller's own decision."""
    server = wire.serve(wire.http("{}", "503 Oops"), wire.http(wire.completion("x")))
    first = failed(server)
    again = asyncio.run(OpenAIGenerator("m", base_url=server.url).generate(REQUEST))
    assert (type(first), again.candidate, len(server.asked)) == (TransientGenerationError, Candidate("x"), 2)


@pytest.mark.parametrize("form", forms_of_the_key())
@pytest.mark.parametrize("place", ["error", "page", "header", "midstream", "refusal", "answer", "kind"])
def test_a_server_that_sends_the_key_back_spreads_it_nowhere(
    wire: Any, place: str, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in an error, a traceback with its locals, a log at any level, or an answer that would be kept."""
    caplog.set_level(logging.DEBUG)
    half = len(form) // 2
    said = f"you sent {form}!"
    server = wire.serve(
        {
            "error": wire.http({"error": {"message": "x" * 990 + said}}, "403 No"),
            "page": wire.http(said, kind="text/html"),
            "header": wire.http("{}", f"500 {said}", [f"X-Request-Id: {form}", f"Retry-After: {form}"]),
            "midstream": wire.events(wire.chunk("x"), {"error": {"message": said}}),
            "refusal": wire.http({"choices": [{"message": {"refusal": said}}]}),
            "answer": wire.events(
                wire.chunk(said[: half + 9]), wire.chunk(said[half + 9 :]), wire.chunk(finish="stop")
            ),
            "kind": wire.http(said, kind=f"text/{form}"),
        }[place]
    )
    failed(server)
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith("httpcore2")]
    assert [message for message in ours if forms_of_the_key()[form] in message] == []
