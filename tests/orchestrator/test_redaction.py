"""Secrets: registered once, shown nowhere, except in the candidate that holds one, which nobody alters."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import pickle
import sqlite3
import traceback
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import structlog

from orchestrator import (
    Augmentations,
    Budget,
    CodeSeed,
    Constraint,
    EvalCase,
    Example,
    Generation,
    MergedSpec,
    Orchestrator,
    Request,
    RunFailedError,
    RunInterruptedError,
    Verdict,
)
from orchestrator.adapter_errors import GenerationError, TransientGenerationError
from orchestrator.audit import audit
from orchestrator.candidate import Candidate
from orchestrator.exports.ctrf import export_ctrf
from orchestrator.exports.document import export_json
from orchestrator.exports.intoto import export_intoto
from orchestrator.exports.junit import export_junit
from orchestrator.exports.markdown import export_markdown
from orchestrator.exposure import SecretExposedError
from orchestrator.history import load_run, report_of
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.ports import Refinement
from orchestrator.redaction import RedactingStream, Secrets, UnfitSecretError
from orchestrator.replay import replay
from orchestrator.retries import RetryPolicy
from orchestrator.secretforms import pieces_of
from orchestrator.testing import ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.bus import Bus
from orchestrator_events.decision import AskUser, Decision, Inject, Modify
from orchestrator_events.execution import SecretFound
from orchestrator_events.question import Question
from orchestrator_events.run import EvaluationRequested, GenerationRequested, RefinementRequested
from orchestrator_events.subscribers.log import log_attempts, log_records

KEY = 'sk-Tq7/"Zk+0é9\\Wm4x'
SECRETS = Secrets({"openai": KEY, "database": "correct horse battery"})
MARK = "[redacted key]"
SPEC = MergedSpec(intent="Add.", evals=(EvalCase(name="a"), EvalCase(name="b")))


def shows_key(text: str, value: str = KEY) -> list[str]:
    """The pieces of a secret in a text, in whatever common form."""
    forms = [
        value,
        b64encode(value.encode()).decode(),
        quote(value, safe=""),
        json.dumps(value)[1:-1],
        repr(value)[1:-1],
    ]
    return [piece for form in forms for piece in pieces_of(form) if piece in text]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"key": "short"}, "secret 'key' has fewer than 8 characters: redacting it would hit innocent text"),
        ({"key": "--------"}, "secret 'key' has fewer than 4 different characters, as innocent text has"),
        ({"key": "password1\n"}, "has white space around it: strip it, or the stripped value would be shown"),
        ({"key": "pass\ud800word"}, "secret 'key' holds a lone surrogate, which no text that is stored can hold"),
        ({"key": b"password1"}, "secret 'key' is bytes, not str"),
        ({"the key]": "password1"}, "needs a name of at most 64 letters, digits, dots, dashes and underscores"),
        ({"password": "my-password1"}, "secret 'password' is named by a part of a secret: choose another name"),
    ],
)
def test_values_that_cannot_be_redacted(values: dict[str, Any], reason: str) -> None:
    """What would hit innocent text, or could be shown after all, is refused with the reason and without the value."""
    with pytest.raises(UnfitSecretError) as caught:
        Secrets(values)
    assert reason in str(caught.value)
    assert [value for value in values.values() if str(value) in str(caught.value)] == []


def test_values_are_never_shown() -> None:
    """Neither the registry nor an orchestrator shows a value; nothing of it can be copied out by pickling."""
    made = Orchestrator(generator=ScriptedGenerator([]), evaluator=ScriptedEvaluator([]), secrets=SECRETS)
    assert repr(SECRETS) == "Secrets(openai, database)"
    assert shows_key(repr(made) + str(SECRETS)) == []
    assert copy.deepcopy(SECRETS) is SECRETS
    with pytest.raises(TypeError):
        pickle.dumps(SECRETS)


def test_overlapping_secrets_leave_nothing() -> None:
    """Where one secret begins in another, the mark of the first stands for both."""
    secrets = Secrets({"one": "abcdefgh-12345678", "two": "12345678-stuvwxyz"})
    assert secrets.redact("<abcdefgh-12345678-stuvwxyz> 12345678-stuvwxyz") == "<[redacted one]> [redacted two]"
    assert secrets.found("12345678-stuvwxyz abcdefgh-12345678") == ("one", "two")


@pytest.mark.parametrize("length", [64, 76])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n", "\n    "])
@pytest.mark.parametrize("after", ["", "\n"])
def test_base64_in_lines_is_found(length: int, end: str, after: str) -> None:
    """A long value that base64(1) or OpenSSL wrote in lines is gone, whatever stands between the lines."""
    value = "".join(f"{number:x}-{number * number:x}." for number in range(100, 130))
    encoded = b64encode((value + after).encode()).decode()
    lines = end.join(encoded[start : start + length] for start in range(0, len(encoded), length))
    redacted = Secrets({"long": value}).redact(f"before {lines} after")
    kept = redacted.replace("[redacted long]", "").replace(end, "").removeprefix("before ").removesuffix(" after")
    assert (redacted != lines, len(kept) < 8) == (True, True)


def test_a_value_of_several_lines_is_found_with_other_ends_of_lines() -> None:
    """What a terminal makes of line feeds hides nothing."""
    value = "first-line-of-it\nsecond-line-of-it"
    assert Secrets({"pem": value}).redact(value.replace("\n", "\r\n")) == "[redacted pem]"


def test_a_stream_holds_back_only_what_may_be_a_secret() -> None:
    """Text comes out as soon as it is decided; a stream without secrets holds nothing back."""
    stream = RedactingStream(Secrets({"key": "0123456789"}))
    assert [stream.feed("x" * 100)[:3], stream.feed("0123"), stream.feed("456789y"), stream.end()][0] == "xxx"
    shown = [stream.feed(part) for part in ["a" * 30, "01234", "56789", "b" * 30]]
    assert "".join(shown) + stream.end() == "a" * 30 + "[redacted key]" + "b" * 30
    assert RedactingStream(Secrets({})).feed("abc") == "abc"
    assert [stream.feed("words, 01"), stream.feed("2 more"), stream.feed(" words")] == ["words, ", "012 more", " words"]
    assert [stream.feed("0123456789"), stream.feed("012345678"), stream.feed("9")] == [MARK, "", MARK]


def test_a_stream_that_pauses_shows_what_is_too_short_for_a_secret() -> None:
    """Seven characters at most; should the secret go on after the pause, its mark stands for the rest of it."""
    stream = RedactingStream(Secrets({"key": "0123456789"}))
    shown = [stream.feed("a 01234"), stream.pause(), stream.feed("567"), stream.pause(), stream.feed("89 b")]
    assert shown == ["a ", "01234", "", "", "[redacted key] b"]
    assert [stream.feed("a 0"), stream.pause(), stream.pause(), stream.feed("b"), stream.end()] == [
        "a ",
        "0",
        "",
        "b",
        "",
    ]


@pytest.mark.parametrize(("text", "rest"), [("a 0123456", "0123456"), ("a 01234567", "[redacted key]"), ("a", "")])
def test_a_stream_that_is_cut_off_shows_no_piece_of_a_secret(text: str, rest: str) -> None:
    """The beginning of one is redacted like any text that was cut, from eight characters on; what follows is new."""
    stream = RedactingStream(Secrets({"key": "0123456789"}))
    stream.feed(text)
    assert [stream.cut(), stream.feed("89 b"), stream.end()] == [rest, "89 b", ""]


def leaky_generator() -> Callable[[Request], Any]:
    """Says the key in every way it can, then answers with it, then well."""

    def generate(request: Request) -> Any:
        match request.attempt:
            case 1:
                if generate.__dict__.setdefault("tries", 0) == 0:
                    generate.__dict__["tries"] = 1
                    raise TransientGenerationError(f"503 with {KEY}")
                raise GenerationError(f"denied: {quote(KEY, safe='')} {KEY[:-2]!r:.60}", answer=f"my key is {KEY}")
            case 2:
                raise OSError(f"{b64encode(f'user:{KEY}'.encode()).decode()} {'x' * 5_000}{KEY}")
            case 3:
                made = Candidate(files={"a.py": f"KEY = {KEY!r}\n# {KEY}\n", "b.py": "pass"})
                return Generation(candidate=made, answer=f"Here is {KEY}", extraction="fenced")
            case 4:
                return f"text with {KEY}"
        return "clean"

    return generate


class LeakyStrategy:
    """Puts the key wherever a strategy can."""

    name = "leaky"

    def refine(self, _: object, attempt: object) -> Refinement:
        """Notes and parameters with the key."""
        if attempt is None:
            return Refinement()
        return Refinement(notes=(f"use {KEY}",), parameters={"header": f'"{KEY}"', KEY: [KEY, 1]})


class Yes:
    """A person who says yes and remembers the questions."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def approve(self, run_id: str, prompt: str) -> bool:
        """Yes."""
        self.asked.append(f"{run_id} {prompt}")
        return True


def leaky_gates(bus: Bus) -> None:
    """Subscribers that put the key into prompts, questions and decisions, and one that fails with it."""

    def inject(question: Question) -> Decision:
        assert isinstance(question.gate, GenerationRequested)
        if question.gate.attempt == 1:
            return Modify({"parameters": json.dumps({"key": KEY})})
        return Inject(f"The key is {KEY}.")

    bus.answer(GenerationRequested, inject)
    bus.answer(EvaluationRequested, lambda _: AskUser(f"May {KEY} be judged?"))
    bus.answer(RefinementRequested, lambda _: AskUser(f"Again, with {KEY}?"))


MESSAGES = {"a": f"expected {KEY} in …{KEY[4:]}", "b": f"{'y' * 3_995}{KEY}"}


def leaky_run(journal: SqliteJournal, **options: Any) -> tuple[Orchestrator, ScriptedGenerator]:
    """An orchestrator whose every part leaks."""
    generator = ScriptedGenerator([leaky_generator()], "repeat")
    bus = Bus()
    leaky_gates(bus)
    made = Orchestrator(
        generator=generator,
        evaluator=ScriptedEvaluator([MESSAGES, MESSAGES, {"a": True, "b": True}], "repeat"),
        strategy=LeakyStrategy(),
        journal=journal,
        bus=bus,
        secrets=SECRETS,
        retries=RetryPolicy(first_wait=0.001),
        budget=Budget(attempts=6),
        **options,
    )
    return made, generator


def test_a_secret_is_stored_and_shown_nowhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever says it, generator, suite, strategy or gate, no record, prompt, log or export has a piece of it."""
    caplog.set_level(logging.DEBUG)
    person = Yes()
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        made, generator = leaky_run(journal, approver=person)
        lines: list[str] = []

        def kept(_: object, __: str, line: Any) -> Any:
            lines.append(line)
            return line

        logger = structlog.wrap_logger(
            structlog.PrintLogger(),
            processors=[structlog.processors.JSONRenderer(), kept],
        ).bind()
        log_records(made.bus, logger)
        log_attempts(made.bus, logger)
        result = made.run(SPEC, run_id="r")
        loaded = asyncio.run(load_run(journal, "r"))
        document = asyncio.run(export_json(journal, "r"))
    shown = [export_markdown(loaded), export_junit(loaded), export_ctrf(loaded), export_intoto(loaded)]
    shown += [*generator.prompts, *map(repr, generator.requests), *person.asked, *lines, caplog.text]
    shown += [*capfd.readouterr(), json.dumps(result.as_json())]
    candidates = {attempt.candidate.blob.text for attempt in result.history if attempt.candidate is not None}
    exported = parse_export(document)
    shown += [link.body.decode() for link in exported.links]
    shown += [text for text in exported.blobs.values() if text not in candidates]
    stored = (tmp_path / "journal.sqlite").read_bytes()
    for text in candidates:
        assert text is not None
        stored = stored.replace(text.encode(), b"")
    assert [shows_key(text) for text in [*shown, stored.decode("latin-1"), stored.decode(errors="replace")]] == [
        [] for _ in range(len(shown) + 2)
    ]
    assert (result.status, audit(exported).findings) == ("passed", ())
    assert len(replay(exported)) == len(result.records)


def test_what_is_sent_is_what_is_recorded(tmp_path: Path) -> None:
    """The generator reads the recorded prompt and parameters, with a mark in place of the secret."""
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        made, generator = leaky_run(journal, approver=Yes())
        result = made.run(SPEC, run_id="r")
    sent = {request.attempt: (request.prompt, dict(request.parameters)) for request in generator.requests}
    assert sent == {attempt.number: (attempt.prompt, attempt.parameters) for attempt in result.history}
    assert sent[1][1] == {"key": "[redacted openai]"}
    assert "The key is [redacted openai]." in sent[2][0]
    assert sent[3][1] == {"key": "[redacted openai]"} or "[redacted openai]" in json.dumps(sent[3][1])


def test_a_loaded_run_equals_the_live_one(tmp_path: Path) -> None:
    """The fold sees what is recorded, so that a run read back is the run as it was."""
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        made, _ = leaky_run(journal, approver=Yes())
        live = made.run(SPEC, run_id="r")
        loaded = report_of(asyncio.run(load_run(journal, "r")))
    assert [record.event for record in live.records] == [record.event for record in loaded.records]
    assert live.journal_head == loaded.journal_head


def test_a_candidate_is_kept_and_reported() -> None:
    """A candidate with a secret is judged and kept as it came; where the secret stands is recorded beside it."""
    files = {"a.py": f"KEY = '{KEY}'", "b.py": "correct horse battery"}
    journal = MemoryJournal()
    evaluator = ScriptedEvaluator([{"a": True, "b": True}])
    made = Orchestrator(generator=ScriptedGenerator([files]), evaluator=evaluator, secrets=SECRETS, journal=journal)
    result = made.run(SPEC, run_id="r")
    shown = export_markdown(asyncio.run(load_run(journal, "r")))
    digest = Candidate(files=files).digest
    assert result.candidate == Candidate(files=files)
    assert "Not shown here: it holds `openai`, `database`, which must stay secret." in shown
    assert (shows_key(shown), "correct horse" in shown) == ([], False)
    assert [record.event for record in result.records if isinstance(record.event, SecretFound)] == [
        SecretFound(secret="openai", place=f"{digest} a.py"),
        SecretFound(secret="database", place=f"{digest} b.py"),
    ]


def test_a_candidate_can_be_refused() -> None:
    """With `refuse_secrets` it fails without being judged, says why, and the next attempt goes on."""
    evaluator = ScriptedEvaluator([{"a": True, "b": True}])
    generator = ScriptedGenerator([f"KEY = '{KEY}'", f"KEY = '{KEY}'", "KEY = environ['KEY']"])
    made = Orchestrator(generator=generator, evaluator=evaluator, secrets=SECRETS, refuse_secrets=True)
    result = made.run(SPEC)
    found = [record.event.is_refused for record in result.records if isinstance(record.event, SecretFound)]
    reason = "the candidate holds what must stay secret (openai): leave it out"
    assert (result.status, result.attempts, found, len(evaluator.submissions)) == ("passed", 3, [True, True], 1)
    assert [case.message for case in result.history[0].failing] == [reason]
    assert (reason in generator.prompts[1], "KEY = '[redacted openai]'" in generator.prompts[1]) == (True, True)


@pytest.mark.parametrize(
    ("options", "spec", "place"),
    [
        ({}, {"intent": f"Call it with {KEY}."}, "the spec's section Intent"),
        ({}, {"intent": "x", "constraints": (Constraint("c", KEY),)}, "the spec's section Constraints"),
        ({}, {"intent": "x", "evals": (EvalCase(name="c", input={"a": [f"<{KEY}>"]}),)}, "eval case 1 of the spec"),
        ({}, {"intent": "x", "name": KEY}, "the spec's name"),
        ({"parameters": {"api_key": KEY}}, {"intent": "x"}, "the configuration (generator,"),
        ({"augmentations": Augmentations(seeds=[CodeSeed("s", KEY)])}, {"intent": "x"}, "what the configuration adds"),
        (
            {"augmentations": Augmentations(examples=[Example("s", KEY)])},
            {"intent": "x"},
            "what the configuration adds",
        ),
    ],
)
def test_a_secret_in_what_is_never_altered_is_refused(
    options: dict[str, Any], spec: dict[str, Any], place: str
) -> None:
    """Spec and configuration go out as they are, so a secret in one is refused by name before anything is spent."""
    generator = ScriptedGenerator([])
    made = Orchestrator(generator=generator, evaluator=ScriptedEvaluator([]), secrets=SECRETS, **options)
    with pytest.raises(SecretExposedError, match="holds the secret 'openai'") as caught:
        made.run(MergedSpec(**spec))
    assert (caught.value.secret, caught.value.place.startswith(place)) == ("openai", True)
    assert (generator.requests, shows_key("".join(traceback.format_exception(caught.value)))) == ([], [])


def test_a_run_that_began_before_the_secret_was_known_is_refused(tmp_path: Path) -> None:
    """A resume looks at the spec as well: nothing is written."""
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        parts: dict[str, Any] = {"evaluator": ScriptedEvaluator([]), "journal": journal}
        with pytest.raises(RunInterruptedError):
            Orchestrator(generator=ScriptedGenerator([]), **parts).run(MergedSpec(intent=KEY), run_id="r")
        made = Orchestrator(generator=ScriptedGenerator([]), secrets=SECRETS, **parts)
        with pytest.raises(SecretExposedError):
            made.resume("r")


def test_a_resumed_run_keeps_its_secrets(tmp_path: Path) -> None:
    """What is registered at a resume is redacted from there, also in what was recorded before it was known."""
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        parts: dict[str, Any] = {
            "evaluator": ScriptedEvaluator([{"a": KEY}, {"a": True, "b": True}]),
            "journal": journal,
        }
        with pytest.raises(RunInterruptedError):
            Orchestrator(generator=ScriptedGenerator(["x"]), **parts).run(SPEC, run_id="r")
        generator = ScriptedGenerator([f"KEY = {KEY!r}"], "repeat")
        result = Orchestrator(generator=generator, secrets=SECRETS, **parts).resume("r")
        findings = audit(parse_export(asyncio.run(export_json(journal, "r")))).findings
    found = [record.event.secret for record in result.records if isinstance(record.event, SecretFound)]
    assert (result.status, found, findings) == ("passed", ["openai"], ())
    assert ("[redacted openai]" in generator.prompts[0], shows_key(generator.prompts[0])) == (True, [])


def chained() -> Exception:
    """An error whose causes, notes and group members all hold the key."""
    try:
        try:
            dict[str, str]()[KEY]
        except KeyError as error:
            raise ExceptionGroup("several", [OSError(KEY), ValueError("fine")]) from error
    except ExceptionGroup as group:
        group.add_note(f"look at {KEY}")
        return group
    raise AssertionError("unreachable")


@pytest.mark.parametrize("error", [chained(), ValueError(f"{'x' * 5_000} {KEY[:12]}"), SyntaxError(KEY)])
def test_errors_that_reach_the_host(error: Exception) -> None:
    """Neither the error of an interrupted run nor anything it was caused by shows a piece of a secret."""
    made = Orchestrator(
        generator=ScriptedGenerator(["x"]), evaluator=ScriptedEvaluator([error]), secrets=SECRETS, budget=Budget()
    )
    with pytest.raises(RunInterruptedError) as caught:
        made.run(SPEC)
    rendered = "".join(traceback.format_exception(caught.value))
    assert (shows_key(rendered), "CleansedError" in rendered) == ([], True)


def test_errors_of_the_hosts_own_code() -> None:
    """The same for a strategy that raises, which fails the run."""

    class Broken:
        name = "broken"

        def refine(self, *_: object) -> Refinement:
            raise RuntimeError(f"no such header: {KEY}")

    made = Orchestrator(
        generator=ScriptedGenerator([]), evaluator=ScriptedEvaluator([]), strategy=Broken(), secrets=SECRETS
    )
    with pytest.raises(RunFailedError) as caught:
        made.run(SPEC)
    assert shows_key("".join(traceback.format_exception(caught.value))) == []
    assert str(caught.value).endswith("RuntimeError: no such header: [redacted openai]")


def test_an_error_without_a_secret_stays_as_it_is() -> None:
    """The host finds the very error that was raised as the cause, with secrets as without."""
    error = ValueError("plain")
    made = Orchestrator(generator=ScriptedGenerator(["x"]), evaluator=ScriptedEvaluator([error]), secrets=SECRETS)
    with pytest.raises(RunInterruptedError) as caught:
        made.run(SPEC)
    assert caught.value.__cause__ is error


def test_ids_and_verdicts_are_what_they_were() -> None:
    """Redaction changes neither the cases of the spec nor what passed."""
    verdict: dict[str, bool | str] = {"a": True, "b": KEY}
    made = Orchestrator(
        generator=ScriptedGenerator(["x"]),
        evaluator=ScriptedEvaluator([Verdict.of(verdict)]),
        secrets=SECRETS,
        budget=Budget(attempts=1),
    )
    (attempt,) = made.run(SPEC).history
    assert (attempt.passed, [(case.id, case.message) for case in attempt.failing]) == (
        ("a",),
        [("b", "[redacted openai]")],
    )


def test_the_journal_holds_the_candidate_alone(tmp_path: Path) -> None:
    """Cell by cell, the database has the secret in the candidates' blobs and nowhere else."""
    with SqliteJournal(tmp_path / "journal.sqlite") as journal:
        made, _ = leaky_run(journal, approver=Yes())
        result = made.run(SPEC, run_id="r")
    with sqlite3.connect(tmp_path / "journal.sqlite") as database:
        tables = [name for (name,) in database.execute("select name from sqlite_master where type = 'table'")]
        rows = [row for table in tables for row in database.execute(f"select * from {table}")]
    cells = b"|".join(cell if isinstance(cell, bytes) else str(cell).encode() for row in rows for cell in row)
    candidates = [attempt.candidate.blob.data for attempt in result.history if attempt.candidate is not None]
    holding = [data for data in candidates if shows_key(data.decode())]
    assert [cells.count(data) for data in holding] == [1, 1]
    for data in holding:
        cells = cells.replace(data, b"")
    assert shows_key(cells.decode(errors="replace")) == []
