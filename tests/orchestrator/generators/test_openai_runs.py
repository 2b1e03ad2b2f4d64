"""What a run with a model behind a server promises: retries and raw answers are journaled, the key is not."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from typing import Any

import attrs
import pytest

from orchestrator import (
    Budget,
    EvalCase,
    MergedSpec,
    Orchestrator,
    Passed,
    PromptTemplate,
    RunInterruptedError,
    Submission,
    Verdict,
)
from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.export import export_json
from orchestrator.generators.openai import OpenAIGenerator
from orchestrator.journal.memory import MemoryJournal
from orchestrator.retries import RetryPolicy
from orchestrator.testing import RecordingSubscriber

KEY = "sk-test-0123456789abcdef"
SPEC = MergedSpec(name="x", intent="Set x to 1.", evals=(EvalCase(name="sets-x"),))
AT_ONCE = RetryPolicy(first_wait=0)


def judged(submission: Submission) -> Verdict:
    """Passes for the right line."""
    return Verdict.of({"sets-x": submission.candidate.text == "x = 1\n"})


def orchestrated(server: Any, seen: RecordingSubscriber, journal: MemoryJournal, **settings: Any) -> Orchestrator:
    """An orchestrator that asks this server."""
    made = Orchestrator(
        generator=OpenAIGenerator("m", base_url=server.url, api_key=KEY, name="model", **settings),
        evaluator=judged,
        budget=Budget(attempts=6, seconds=60),
        retries=AT_ONCE,
        journal=journal,
    )
    made.bus.subscribe(seen)
    return made


def exported(journal: MemoryJournal) -> str:
    """The run as it is exported, its texts as they were."""
    return json.dumps(json.loads(asyncio.run(export_json(journal, "run"))), ensure_ascii=False)


def about_calls(seen: RecordingSubscriber) -> list[str]:
    """Names of the events about calls and attempts, in order."""
    return [name for name in seen.names if name.startswith(("generation:", "answer:", "candidate:", "attempt:"))]


def test_a_busy_server_is_asked_again_and_both_are_recorded(wire: Any) -> None:
    """One policy, in the driver: the attempt is not lost, and the raw answer stands beside its candidate."""
    answer = "Here:\n```python\nx = 1\n```\n"
    usage = {"prompt_tokens": 9, "completion_tokens": 8}
    server = wire.serve(
        wire.http("{}", "503 Oops"),
        wire.raw(b""),
        wire.events(wire.chunk(answer), wire.chunk(finish="stop"), {"choices": [], "usage": usage}),
    )
    seen, journal = RecordingSubscriber(), MemoryJournal()
    result = orchestrated(server, seen, journal, extraction="fenced").run(SPEC, run_id="run")
    assert isinstance(result, Passed)
    assert (about_calls(seen), result.candidate.text, result.usage.output_tokens) == (
        [
            "generation:started",
            "generation:retried",
            "generation:retried",
            "answer:received",
            "candidate:generated",
            "attempt:passed",
        ],
        "x = 1\n",
        8,
    )
    assert json.dumps(answer)[1:-1] in exported(journal)
    assert [asked.headers["idempotency-key"] for asked in server.asked] == ["run:1"] * 3


def test_a_server_that_asks_for_days_is_not_waited_for(wire: Any) -> None:
    """The run is left open for later, no attempt is burned, and the reason says what the server said."""
    server = wire.serve(wire.http("{}", "429 Slow down", ["Retry-After: 259200"]), wire.http(wire.completion()))
    said = r"model limits the rate of calls \(HTTP 429\): the server asks to wait 259200 s, at most 600 s are waited"
    with pytest.raises(RunInterruptedError, match=said) as interrupted:
        orchestrated(server, RecordingSubscriber(), MemoryJournal()).run(SPEC)
    assert (interrupted.value.report.attempts, len(server.asked)) == (1, 1)


def test_a_refused_key_interrupts_the_run(wire: Any) -> None:
    """No further attempt is spent on it."""
    server = wire.serve(wire.http("{}", "401 Unauthorized"))
    with pytest.raises(RunInterruptedError, match=r"model refused the API key \(HTTP 401\)"):
        orchestrated(server, RecordingSubscriber(), MemoryJournal()).run(SPEC)
    assert len(server.asked) == 1


def test_the_key_is_in_no_record_log_or_prompt(wire: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Even of a server that sends it back wherever it can."""
    caplog.set_level(logging.DEBUG)
    server = wire.serve(
        wire.http({"error": {"message": f"bad {KEY}"}}, "500 Oops"),
        wire.http(wire.completion(f"key = '{KEY}'\n")),
        wire.http(f"<html>{KEY}"),
        wire.http(wire.completion("y = 2\n")),
        wire.http(wire.completion("x = 1\n")),
    )
    seen, journal = RecordingSubscriber(), MemoryJournal()
    result = orchestrated(server, seen, journal).run(SPEC, run_id="run")
    asked = json.dumps([asked.body for asked in server.asked])
    everything = (exported(journal), repr(seen.records), repr(result), caplog.text, asked)
    assert (result.status, result.attempts, [KEY in text for text in everything]) == ("passed", 4, [False] * 5)


def test_a_server_that_is_down_costs_no_attempt() -> None:
    """It is tried as often as the policy says; then the run is left open, with what the system said as the reason."""
    seen = RecordingSubscriber()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        generator = OpenAIGenerator(
            "m", base_url=f"http://127.0.0.1:{unused.getsockname()[1]}/v1", api_key=KEY, name="model"
        )
        made = Orchestrator(generator=generator, evaluator=judged, budget=Budget(attempts=5), retries=AT_ONCE)
        made.bus.subscribe(seen)
        with pytest.raises(RunInterruptedError) as caught:
            made.run(SPEC)
    error = caught.value
    told = (
        type(error.__cause__),
        "model cannot be reached: ConnectionRefusedError: " in error.reason,
        error.reason.endswith("is it running? see base_url (tried 3 times)"),
        error.report.state,
        error.report.usage.input_tokens,
        about_calls(seen),
    )
    assert told == (
        GeneratorUnavailableError, True, True, "generating", 0,
        ["generation:started", "generation:retried", "generation:retried", "generation:abandoned"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("extraction", "asked"),
    [
        ("none", "nothing else: no explanation, no Markdown fence."),
        ("fenced", "in one fenced code block (between ``` lines) and no other."),
        ("files", "with its path behind the language, as in ```python package/module.py."),
    ],
)
def test_prompts_ask_for_what_is_extracted(wire: Any, extraction: str, asked: str) -> None:
    """The first prompt and a retry's; a host's own wording stays."""
    server = wire.serve(wire.http(wire.completion("nothing")))
    seen, journal = RecordingSubscriber(), MemoryJournal()
    made = orchestrated(server, seen, journal, extraction=extraction)
    made = attrs.evolve(made, budget=Budget(attempts=2))
    history = made.run(SPEC).history
    told = attrs.evolve(made, template=PromptTemplate(answer="As you like.")).first_prompt(SPEC)
    lines = [attempt.prompt.splitlines()[3] for attempt in history]
    assert ([line.endswith(asked) for line in lines], told.splitlines()[3]) == ([True, True], "As you like.")
