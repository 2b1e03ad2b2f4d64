"""What generators of other distributions promise: found by name, loaded only then."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.generators.entry_points import load_generator

MODULE = """
class Offered:
    name = "offered"
    isolation = "none"
    max_prompt_characters = None

    async def generate(self, request):
        raise NotImplementedError

ready = Offered()

def function(request):
    return "x"

wrong = 7
"""

POINTS = """[orchestrator.generators]
class = offered_generators:Offered
ready = offered_generators:ready
function = offered_generators:function
wrong = offered_generators:wrong
absent = offered_generators:absent
broken = no_such_module_anywhere:x
twice = offered_generators:ready
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two distributions that offer generators."""
    (tmp_path / "offered_generators.py").write_text(MODULE)
    for name, points in (
        ("one", POINTS),
        ("two", "[orchestrator.generators]\ntwice = offered_generators:function\n"),
    ):
        folder = tmp_path / f"{name}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (folder / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("offered_generators", None)


@pytest.mark.usefixtures("installed")
def test_classes_objects_and_functions_can_be_offered() -> None:
    """A class is made without arguments, an object taken as it is, a function wrapped."""
    names = [load_generator(name).name for name in ("class", "ready", "function")]
    assert names == ["offered", "offered", "offered_generators.function"]


@pytest.mark.usefixtures("installed")
def test_nothing_is_imported_before_it_is_named() -> None:
    """Looking for one generator does not load the others."""
    with pytest.raises(GeneratorUnavailableError):
        load_generator("nonsense")
    assert "offered_generators" not in sys.modules


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "redy",
            r"no generator is called 'redy' \(did you mean 'ready'\?\); available: absent, broken, class,",
        ),
        ("broken", r"'broken' \(no_such_module_anywhere:x\) cannot be loaded: No module named"),
        ("absent", "cannot be loaded: module 'offered_generators' has no attribute 'absent'"),
        ("wrong", "cannot be loaded: int is no generator"),
        ("twice", "offered more than once: offered_generators:function, offered_generators:ready"),
    ],
)
def test_a_generator_that_cannot_be_had_is_unavailable(name: str, message: str) -> None:
    """The message says what there is, or what is wrong with it."""
    with pytest.raises(GeneratorUnavailableError, match=message):
        load_generator(name)


def test_importing_the_adapters_loads_nothing_heavy() -> None:
    """Report readers and plug-in discovery are imported where they are used."""
    program = (
        "import sys, orchestrator.generators, orchestrator.evaluators\n"
        "print(sorted({'junitparser', 'yaml', 'rich', 'cattrs', 'importlib.metadata'} & set(sys.modules)))"
    )

    async def ask() -> bytes:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{program}", stdout=-1
        )
        return (await process.communicate())[0]

    assert asyncio.run(ask()) == b"[]\n"
