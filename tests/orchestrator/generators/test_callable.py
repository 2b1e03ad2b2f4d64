"""What a callable as a generator promises."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from orchestrator.adapter_errors import GenerationError
from orchestrator.candidate import Candidate
from orchestrator.generators.callable import CallableGenerator, as_generator
from orchestrator.generators.command import CommandGenerator
from orchestrator.ports import Generation, Request

REQUEST = Request(
    run_id="run",
    attempt=1,
    prompt="p",
    parameters={},
    language="python",
    max_tokens=None,
    seconds=None,
    idempotency_key="run:1",
    spec_digest="ab",
)


def generate(call: Any) -> Generation:
    """Ask a callable once, through the adapter."""
    return asyncio.run(as_generator(call).generate(REQUEST))


@pytest.mark.parametrize(
    ("answer", "candidate"),
    [
        ("x", Candidate("x")),
        ({"a.py": "x"}, Candidate(files={"a.py": "x"})),
        (Candidate("x"), Candidate("x")),
        (Generation(candidate=Candidate("x")), Candidate("x")),
    ],
)
def test_text_files_candidates_and_generations_are_answers(answer: Any, candidate: Candidate) -> None:
    """The simplest callable returns a text; richer answers are taken as they are."""
    assert generate(lambda _: answer) == Generation(candidate=candidate)


@pytest.mark.parametrize("answer", [None, 7, b"x", ["x"], {"a.py": 1}, {1: "x"}])
def test_any_other_answer_is_a_failed_generation(answer: Any) -> None:
    """The reason names the type and what to return instead."""
    with pytest.raises(GenerationError, match=f"returned {type(answer).__name__}: return a str"):
        generate(lambda _: answer)


async def answer_async(request: Request) -> str:
    """An async callable that tells its thread."""
    return f"{request.prompt} {threading.get_ident()}"


class AnsweringObject:
    """A callable object whose call is async."""

    async def __call__(self, request: Request) -> str:
        """Tell the thread."""
        return await answer_async(request)


def answer_later(request: Request) -> Awaitable[str]:
    """A plain function that returns an awaitable."""
    return answer_async(request)


@pytest.mark.parametrize(
    "call", [answer_async, functools.partial(answer_async), AnsweringObject(), answer_later], ids=str
)
def test_async_callables_run_in_the_loop(call: Callable[[Request], Awaitable[str]]) -> None:
    """Functions, partials and callable objects that are async are awaited, not sent to a thread."""
    assert generate(call).candidate.text == f"p {threading.get_ident()}"


def test_sync_callables_do_not_block_the_loop() -> None:
    """They run in a thread, so that others go on meanwhile."""
    arrived = threading.Barrier(3)

    def meet(request: Request) -> str:
        arrived.wait(10)
        return request.prompt

    async def three() -> list[Generation]:
        generator = CallableGenerator(meet)
        return await asyncio.gather(*(generator.generate(REQUEST) for _ in range(3)))

    assert asyncio.run(three()) == [Generation(candidate=Candidate("p"))] * 3


@pytest.mark.parametrize("is_async", [False, True])
def test_what_it_raises_comes_through(is_async: bool) -> None:
    """The engine, not the adapter, decides what an error costs."""

    def fail(_: Request) -> str:
        raise LookupError("no model")

    async def fail_async(request: Request) -> str:
        return fail(request)

    with pytest.raises(LookupError, match="no model"):
        generate(fail_async if is_async else fail)


def test_its_name_is_the_callables_own() -> None:
    """Records say which function it was, unless a name is given."""
    names = [
        CallableGenerator(functools.partial(answer_async)).name,
        CallableGenerator(AnsweringObject()).name,
    ]
    assert names == [f"{__name__}.answer_async", f"{__name__}.AnsweringObject"]
    assert CallableGenerator(answer_async, "mine").name == "mine"


class WithoutName:
    """Has the method of the port and not its facts."""

    isolation = "none"

    async def generate(self, request: Request) -> Generation:
        """Never called."""
        raise AssertionError(request)


class Synchronous(WithoutName):
    """Has everything, but its method is not async."""

    name = "sync"
    max_prompt_characters = None

    def generate(self, request: Request) -> Generation:  # type: ignore[override] # the mistake under test
        """Never called."""
        raise AssertionError(request)


def test_a_generator_stays_what_it_is() -> None:
    """What fills the port is not wrapped."""
    generator = CommandGenerator("true")
    assert as_generator(generator) is generator


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        (WithoutName(), "lacks name, max_prompt_characters: add"),
        (Synchronous(), "must be written as `async def`"),
        (CommandGenerator, r"must be an instance: write CommandGenerator\(\.\.\.\)"),
        ("llm -m model", "str is no generator: pass a Generator or a callable"),
        (None, "NoneType is no generator"),
    ],
)
def test_anything_else_is_refused_with_the_fix(wrong: Any, fix: str) -> None:
    """A mistake is told when the engine is built, not in the middle of a run."""
    with pytest.raises(TypeError, match=fix):
        as_generator(wrong)
