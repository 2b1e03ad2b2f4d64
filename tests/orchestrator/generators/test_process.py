"""What a Python function in a child process promises as a generator."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from types import MappingProxyType

import pytest

from orchestrator.adapter_errors import (
    CandidateRefusedError,
    GenerationError,
    GeneratorUnavailableError,
    TransientGenerationError,
)
from orchestrator.candidate import Candidate
from orchestrator.generators.callable import as_generator
from orchestrator.generators.process import ProcessGenerator
from orchestrator.ports import Generation, Request
from orchestrator.process import CONTAINMENT, Launcher
from orchestrator_events.budget import Usage

REQUEST = Request(
    run_id="run",
    attempt=2,
    prompt="Write ü.\n",
    parameters=MappingProxyType({"temperature": 0.5}),
    language="python",
    max_tokens=100,
    seconds=20,
    idempotency_key="run:2",
    spec_digest="ab",
)

MODULE = """
import os, subprocess, sys, time
from pathlib import Path

from orchestrator import Candidate, GenerationError, Generation, GeneratorUnavailableError, Usage
from orchestrator.adapter_errors import TransientGenerationError

LIMIT = 5

def told(request):
    return f"{request.prompt}|{request.attempt}|{request.parameters['temperature']}|{request.seconds}"

def files(request):
    return {"a.py": "one", "b/c.py": "two"}

def whole(request):
    return Generation(candidate=Candidate("made"), usage=Usage(input_tokens=3, money_micro=7))

def noisy(request):
    print("printed by the function")
    os.system("echo printed by a program")
    sys.__stdout__.write("written to the first standard output")
    return "clean"

def broken(request):
    print("about to fail")
    raise ValueError("no such luck")

def unavailable(request):
    raise GeneratorUnavailableError("no key is set")

def refused(request):
    raise GenerationError("the model refused")

def busy(request):
    raise TransientGenerationError("busy", retry_after=2.5)

def wrong(request):
    return 7

def empty(request):
    os._exit(0)

def crashed(request):
    os.abort()

def outside(request):
    return {"../a.py": "one"}

def surrogate(request):
    raise ValueError("\\ud800")

def endless(request):
    return "x" * 2_000_000

def environment(request):
    return " ".join(sorted(name for name in os.environ if name.startswith("MODEL_")))

def slow(request):
    program = subprocess.Popen(["sleep", "1000"])
    Path("ids").write_text(f"{os.getpid()} {program.pid}")
    time.sleep(1000)

async def asynchronous(request):
    return "never"

class Named:
    @staticmethod
    def inner(request):
        return "by a dotted name"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a module of functions, which is the current one."""
    (tmp_path / "my_model.py").write_text(MODULE)
    (tmp_path / "broken_module.py").write_text("import does_not_exist")
    (tmp_path / "raising.py").write_text("1 / 0")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "models.py").write_text("def generate(request): return 'from a package'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(function: str, request: Request = REQUEST, *, launcher: Launcher | None = CONTAINMENT) -> Generation:
    """Ask a function once."""
    return asyncio.run(ProcessGenerator(function, launcher=launcher).generate(request))


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("my_model:told", Generation(candidate=Candidate("Write ü.\n|2|0.5|20"))),
        ("my_model:files", Generation(candidate=Candidate(files={"a.py": "one", "b/c.py": "two"}))),
        ("my_model:whole", Generation(candidate=Candidate("made"), usage=Usage(input_tokens=3, money_micro=7))),
        ("my_model:noisy", Generation(candidate=Candidate("clean"))),
        ("my_model:Named.inner", Generation(candidate=Candidate("by a dotted name"))),
        ("package.models:generate", Generation(candidate=Candidate("from a package"))),
    ],
)
def test_a_function_answers_as_it_would_in_this_process(function: str, answer: Generation) -> None:
    """It gets the request, may answer in every form that a callable may, and may print what it likes."""
    assert ask(function) == answer


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("my_model", "'my_model' names no function: write it as 'module:function', such as 'my_model:generate'"),
        ("my_model:", "'my_model:' names no function"),
        ("a b:c", "'a b:c' names no function"),
        ("my_modle:told", "no module 'my_modle' (did you mean 'my_model'?); looked in "),
        ("package.model:generate", "no module 'package.model' (did you mean 'package.models'?)"),
        ("my_model:tolled", "function 'my_model:tolled': my_model has no 'tolled' (did you mean 'told'?)"),
        ("my_model:LIMIT", "function 'my_model:LIMIT' is int: name a function"),
        ("my_model:Named", "function 'my_model:Named' is type: name a function"),
        ("my_model:asynchronous", "function 'my_model:asynchronous' is async: name a plain function"),
        ("broken_module:generate", "module 'broken_module' cannot be imported: No module named 'does_not_exist'"),
        ("raising:generate", "module 'raising' cannot be imported: ZeroDivisionError: division by zero"),
        ("my_model:unavailable", "no key is set"),
    ],
)
def test_what_cannot_be_called_is_unavailable(function: str, told: str) -> None:
    """A name that leads to no function is told with what was probably meant; so is the function's own refusal."""
    with pytest.raises(GeneratorUnavailableError) as caught:
        ask(function)
    assert str(caught.value).startswith(told)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("my_modle:told", "no module 'my_modle' (did you mean 'my_model'?); looked in "),
        ("my_model:tolled", "function 'my_model:tolled': my_model has no 'tolled' (did you mean 'told'?)"),
        ("raising:generate", "module 'raising' cannot be imported: ZeroDivisionError: division by zero"),
        ("leaving:generate", "'leaving:generate' cannot be imported: its process ended with status 3:\nenough"),
        ("hanging:generate", "'hanging:generate' cannot be imported: its process timed out after 1 s"),
    ],
)
def test_a_function_is_looked_up_before_a_run(place: Path, function: str, told: str) -> None:
    """In the child process, in bounded time; nothing is called, and what is there is found."""
    (place / "leaving.py").write_text("import os\nos.write(2, b'enough')\nos._exit(3)\n")
    (place / "hanging.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(GeneratorUnavailableError) as caught:
        asyncio.run(ProcessGenerator(function, seconds=1 if "hanging" in function else None).isolate())
    asyncio.run(ProcessGenerator("my_model:broken").isolate())
    assert str(caught.value).startswith(told)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (
            "my_model:broken",
            ("my_model:broken failed: ValueError: no such luck:\nabout to fail\nTraceback ", "no such luck"),
        ),
        ("my_model:refused", ("my_model:refused failed: the model refused",)),
        ("my_model:wrong", ("my_model:wrong failed: the function returned int: return a str, ",)),
        ("my_model:empty", ("my_model:empty ended without an answer",)),
        ("my_model:crashed", ("my_model:crashed was killed by SIGABRT",)),
        ("my_model:surrogate", ("my_model:surrogate failed: ValueError: ",)),
        ("my_model:endless", ("my_model:endless answered with more than 1000000 bytes",)),
    ],
)
def test_a_call_without_a_candidate_costs_the_attempt(function: str, told: tuple[str, ...]) -> None:
    """The reason is what the function raised, and the last that it printed."""
    with pytest.raises(GenerationError) as caught:
        ask(function)
    assert str(caught.value).startswith(told[0])
    assert all(part in str(caught.value) for part in told)


@pytest.mark.usefixtures("place")
def test_an_unsafe_path_is_refused() -> None:
    """Files are checked like those of any generator."""
    with pytest.raises(CandidateRefusedError):
        ask("my_model:outside")


@pytest.mark.usefixtures("place")
def test_a_busy_server_is_told_as_such() -> None:
    """What the function says may be tried again is tried again by the loop's one retry policy."""
    with pytest.raises(TransientGenerationError) as caught:
        ask("my_model:busy")
    assert (str(caught.value), caught.value.retry_after) == ("busy", 2.5)


def test_only_named_variables_are_passed_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is clean but for what is named."""
    monkeypatch.setenv("MODEL_KEY", "1")
    monkeypatch.setenv("MODEL_OTHER", "2")
    generator = ProcessGenerator(
        "my_model:environment", environment=("MODEL_KEY",), path=(place,), launcher=CONTAINMENT
    )
    assert asyncio.run(generator.generate(REQUEST)) == Generation(candidate=Candidate("MODEL_KEY"))


@pytest.mark.usefixtures("place")
def test_the_deadline_holds() -> None:
    """A function that takes too long is killed, and the attempt fails."""
    with pytest.raises(GenerationError, match=r"^my_model:slow timed out after 0.05 s"):
        asyncio.run(ProcessGenerator("my_model:slow", seconds=0.05, launcher=CONTAINMENT).generate(REQUEST))


def test_nothing_of_a_cancelled_call_lives_on(place: Path) -> None:
    """The child process and what it started are gone when the call is."""

    async def cancelled() -> list[int]:
        task = asyncio.create_task(ProcessGenerator("my_model:slow", launcher=CONTAINMENT).generate(REQUEST))
        told = await asyncio.to_thread((place / "ids").read_text)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return [int(number) for number in told.split()]

    os.mkfifo(place / "ids")
    ids = asyncio.run(cancelled())
    until = time.monotonic() + 1
    while any(is_alive(each) for each in ids) and time.monotonic() < until:
        os.sched_yield()
    assert [each for each in ids if is_alive(each)] == []


@pytest.mark.usefixtures("place")
def test_the_best_sandbox_is_found_at_the_first_use() -> None:
    """Nobody has to name one; what was found is told, and the function works in it."""
    generator = ProcessGenerator("my_model:noisy")
    assert generator.isolation == "none"
    assert asyncio.run(generator.generate(REQUEST)) == Generation(candidate=Candidate("clean"))
    assert generator.isolation == asyncio.run(generator.isolate()).label
    assert asyncio.run(generator.isolate()).satisfies("basic")


def test_it_is_a_generator() -> None:
    """The port is filled; its name is that of the function unless another is given."""
    generator = ProcessGenerator("my_model:told")
    assert (as_generator(generator), generator.name, ProcessGenerator("a:b", name="mine").name) == (
        generator, "my_model:told", "mine",
    )  # fmt: skip


def test_a_lone_text_is_no_path() -> None:
    """It would be taken letter by letter."""
    with pytest.raises(TypeError, match="path must be a list of directories"):
        ProcessGenerator("my_model:told", path="src")


def is_alive(process: int) -> bool:
    """Whether a process of this id runs, and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
