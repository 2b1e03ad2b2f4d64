"""Secrets in an answer that is shown while it is written: no piece shows what the pieces together must not."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import combinations
from typing import Any

import attrs
import pytest

from orchestrator.agent import Agent, AgentCancelledError, ProviderCallError, Reply, TurnRequest
from orchestrator.redaction import Secrets
from orchestrator.retries import RetryPolicy
from orchestrator.testing import ScriptedProvider
from orchestrator_events.agent import (
    ContentBlockDelta,
    ContentBlockEnd,
    ContentBlockStart,
    ProviderResponse,
    ThinkingDelta,
    ThinkingFinal,
)
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Question
from orchestrator_events.decision import Decision, Proceed
from orchestrator_events.event import Live

KEY = "sk-3fa85f64"
SECRETS = Secrets({"key": KEY})
ENCODED = b64encode(KEY.encode()).decode()
SHOWN = "It is [redacted key] as you see."
LIVE = (ContentBlockStart, ContentBlockDelta, ContentBlockEnd, ThinkingDelta, ThinkingFinal)

Piece = tuple[int, str, str]
"""Index and type of a block, and what is written of it."""


def splits(text: str, most: int) -> Iterator[list[str]]:
    """The text in one to `most` pieces, in every way."""
    for count in range(most):
        for cuts in combinations(range(1, len(text)), count):
            yield [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def writing(pieces: Iterable[Piece], reply: Reply | Exception) -> Callable[[TurnRequest], Reply | Exception]:
    """A call that tells the pieces, then replies or raises."""

    def write(request: TurnRequest) -> Reply | Exception:
        assert request.delta is not None
        for piece in pieces:
            request.delta(*piece)
        return reply

    return write


def reply_of(*texts: str, kind: str = "text") -> Reply:
    """An answer of blocks of a kind, after which a model would stop."""
    return Reply(blocks=(*({"type": kind, kind: text} for text in texts), {"type": "text", "text": "Done."}))


def agent_of(*replies: object, secrets: Secrets | None = SECRETS, **options: Any) -> Agent:
    """An agent with a secret that tries each call three times."""
    retries = RetryPolicy(retries=2, first_wait=0.0)
    return Agent(providers={"p": ScriptedProvider(replies)}, secrets=secrets, retries=retries, **options)


def as_stream(agent: Agent) -> list[Live]:
    """The live events of a run, as its stream yields them."""

    async def streamed() -> list[Live]:
        return [event async for event in agent.stream("Go.") if isinstance(event, LIVE)]

    return asyncio.run(streamed())


def as_subscriber(agent: Agent) -> list[Live]:
    """The live events of a run that may fail, as a subscriber of the bus is told them."""
    told: list[Any] = []
    with agent.bus.subscribe(lambda record: told.append(record.event), *LIVE), suppress(ProviderCallError):
        agent.run("Go.")
    return told


def deltas(events: Iterable[Live], index: int = 0) -> list[str]:
    """The pieces of a block that were shown."""
    return [event.delta for event in events if isinstance(event, ContentBlockDelta) and event.block_index == index]


def block_texts(events: Iterable[Live], kind: str) -> list[str]:
    """The texts of the whole blocks of a kind."""
    blocks = [json.loads(event.block) for event in events if isinstance(event, ContentBlockEnd)]
    return [block[kind] for block in blocks if kind in block]


@pytest.mark.parametrize("told_by", [as_stream, as_subscriber])
@pytest.mark.parametrize("kind", ["text", "thinking"])
@pytest.mark.parametrize(("form", "most"), [(KEY, len(KEY)), (ENCODED, 4)])
def test_however_a_secret_is_split_the_pieces_make_the_redacted_text(
    told_by: Callable[[Agent], list[Live]], kind: str, form: str, most: int
) -> None:
    """Of every block the joined pieces are its redacted text, as it is at its end; none of them is empty."""
    ways = list(splits(form, most))
    pieces = [
        (index, kind, piece) for index, way in enumerate(ways) for piece in ["It", " is ", *way, " as you ", "see."]
    ]
    agent = agent_of(writing(pieces, reply_of(*(f"It is {form} as you see." for _ in ways), kind=kind)))
    told = told_by(agent)
    shown = [deltas(told, index) for index in range(len(ways))]
    assert {"".join(each) for each in shown} == {SECRETS.redact(f"It is {form} as you see.")} == {SHOWN}
    assert [each for each in shown if "" in each] == []
    thoughts = [event.delta for event in told if isinstance(event, ThinkingDelta)]
    assert "".join(thoughts) == (SHOWN * len(ways) if kind == "thinking" else "")
    assert {text for text in block_texts(told, kind) if text != "Done."} == {SHOWN}


@pytest.mark.parametrize("told_by", [as_stream, as_subscriber])
@pytest.mark.parametrize("kind", ["text", "thinking"])
@pytest.mark.parametrize("form", [KEY, ENCODED])
def test_a_secret_that_ends_a_block_is_shown_as_its_mark_when_the_answer_is_there(
    told_by: Callable[[Agent], list[Live]], kind: str, form: str
) -> None:
    """Split anywhere, one block a run; what looks like a secret's beginning to the last is shown then, too."""
    for way in splits(form, 2):
        told = told_by(agent_of(writing([(0, kind, piece) for piece in way], reply_of(form, kind=kind))))
        assert ("".join(deltas(told)), block_texts(told, kind)[0]) == ("[redacted key]", "[redacted key]")
        beginning = way[0][:-1]
        told = told_by(
            agent_of(writing([(0, kind, "a "), (0, kind, beginning)], reply_of(f"a {beginning}", kind=kind)))
        )
        expected = SECRETS.redact(f"a {beginning}")
        assert ("".join(deltas(told)), block_texts(told, kind)[0]) == (expected, expected)


def test_what_cannot_be_a_secret_is_shown_at_once_and_the_end_of_a_block_before_the_next() -> None:
    """Nothing but a secret's beginning waits, and less than eight characters of one no longer than their block."""
    thought, text = ["Is it", " s", "k", "? sk-3fa"], ["S", "o s", "k-3fa85 is", " it"]
    pieces = [*((0, "thinking", piece) for piece in thought), *((1, "text", piece) for piece in text)]
    told = as_stream(agent_of(writing(pieces, Reply(blocks=({"type": "text", "text": "So."},)))))
    shown = [
        event.delta if isinstance(event, ContentBlockDelta) else "start"
        for event in told
        if isinstance(event, ContentBlockStart | ContentBlockDelta)
    ]
    assert shown == ["start", "Is it", " ", "sk? ", "sk-3fa", "start", "S", "o ", "sk-3fa85 i", "s it"]


def test_blocks_that_are_written_by_turns_show_no_secret() -> None:
    """A block that went on after all: no more than seven characters of a secret stand before its mark."""
    pieces = [(index, "text", character) for character in KEY for index in (0, 1)]
    told = as_stream(agent_of(writing(pieces, reply_of(KEY, KEY))))
    assert [deltas(told, index) for index in (0, 1)] == [[*"sk-3fa8", "[redacted key]"]] * 2


def test_the_rest_is_shown_before_the_answer_is_put_to_the_gate() -> None:
    """Whoever decides on an answer for long keeps nothing of it back; what is told after it concerns nobody."""
    seen: list[list[str]] = []
    told: list[Any] = []
    provider = ScriptedProvider([writing([(0, "text", "yes"), (0, "text", "s")], reply_of("yess"))])
    agent = Agent(providers={"p": provider}, secrets=SECRETS)

    def decide(_: Question) -> Decision:
        writing([(0, "text", "k-3fa85f64")], reply_of())(provider.requests[0])
        seen.append(deltas(told))
        return Proceed()

    agent.bus.answer(ProviderResponse, decide)
    agent.bus.subscribe(lambda record: told.append(record.event), *LIVE)
    agent.run("Go.")
    assert (seen, deltas(told)) == ([["ye", "s", "s"]], ["ye", "s", "s"])


def test_another_try_begins_anew() -> None:
    """What the failed try held back is shown as text that was cut off; it tells nothing more, and hides nothing."""
    lost = ProviderCallError("lost", is_retryable=True)
    first = writing([(0, "text", "It is sk-3fa85")], lost)

    def second(request: TurnRequest) -> object:
        writing([(0, "text", "f64. Is it "), (0, "text", "sk-3")], lost)(provider.requests[0])  # nobody hears it
        return writing([(0, "text", "f64. Is it "), (0, "text", "sk-3")], lost)(request)

    third = writing([(0, "text", "fa85f64 or sk-3"), (0, "text", "fa85f64?")], reply_of("fa85f64 or ?"))
    provider = ScriptedProvider([first, second, third])
    agent = Agent(providers={"p": provider}, secrets=SECRETS, retries=RetryPolicy(retries=2, first_wait=0.0))
    assert deltas(as_stream(agent)) == [
        *("It is ", "[redacted key]"),
        *("f64. Is it ", "sk-3"),
        *("fa85f64 or ", "[redacted key]?"),
    ]


@pytest.mark.parametrize(("end", "shown"), [("s", "s"), (KEY[:7], KEY[:7]), (KEY[:-1], "[redacted key]")])
def test_a_call_that_fails_for_good_loses_nothing_that_was_written(end: str, shown: str) -> None:
    """It is shown as text that was cut off: no eight characters of a secret."""
    told = as_subscriber(agent_of(writing([(0, "text", f"It is {end}")], ProviderCallError("gone"))))
    assert deltas(told) == ["It is ", shown]


def test_a_call_that_takes_too_long_shows_what_it_wrote() -> None:
    """The run's time is up in the midst of a block: what was written of it is shown."""

    async def hang(request: TurnRequest) -> object:
        writing([(0, "text", f"It is {KEY[:-1]}")], reply_of())(request)
        return await asyncio.Event().wait()

    told = as_subscriber(agent_of(hang, budget=Budget(seconds=0.05)))
    assert deltas(told) == ["It is ", "[redacted key]"]


@attrs.define
class Token:
    """A wish to stop that comes as soon as it is set."""

    state: str = "none"


@pytest.mark.parametrize("beginning", [KEY[:3], KEY[:-1], ENCODED[:7]])
@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_cancelling_shows_nothing_of_a_secret_that_was_held_back(beginning: str, kind: str) -> None:
    """Neither the host's token nor the end of the stream brings out what might have become a secret."""
    token = Token()

    async def hang(request: TurnRequest) -> object:
        writing([(0, kind, "It is "), (0, kind, beginning)], reply_of())(request)
        token.state = "immediate"
        return await asyncio.Event().wait()

    async def stopped() -> list[str]:
        agent = agent_of(hang)
        told: list[Any] = []
        agent.bus.subscribe(lambda record: told.append(record.event), *LIVE)
        with suppress(AgentCancelledError):
            await agent.arun("Go.", cancellation=token)
        return [event.delta for event in told if isinstance(event, ThinkingDelta | ContentBlockDelta)]

    async def closed() -> list[str]:
        shown = []
        stream = agent_of(hang).stream("Go.")
        async for event in stream:
            if isinstance(event, ThinkingDelta | ContentBlockDelta):
                shown.append(event.delta)
            if isinstance(event, ContentBlockDelta):
                break
        await stream.aclose()
        return shown

    expected = ["It is "] * (2 if kind == "thinking" else 1)
    assert (asyncio.run(stopped()), asyncio.run(closed())) == (expected, expected)


@pytest.mark.parametrize("secrets", [None, Secrets({})])
def test_without_secrets_every_piece_is_shown_as_it_was_written(secrets: Secrets | None) -> None:
    """One event a piece, whatever is in it."""
    pieces = ["", "It is", f" {KEY[:4]}", KEY[4:], ""]
    told = as_stream(agent_of(writing([(0, "text", piece) for piece in pieces], reply_of("")), secrets=secrets))
    assert deltas(told) == pieces


def test_a_whole_block_is_json_without_the_secret_too() -> None:
    """Though the secret's end is what JSON writes before a quotation mark."""
    secrets = Secrets({"key": "sk-3fa85f64\\"})
    text = 'Is it sk-3fa85f64" or sk-3fa85f64\\?'
    told = as_stream(agent_of(writing([(0, "text", each) for each in text], reply_of(text)), secrets=secrets))
    expected = 'Is it sk-3fa85f64" or [redacted key]?'
    assert ("".join(deltas(told)), block_texts(told, "text")[0]) == (expected, expected)
