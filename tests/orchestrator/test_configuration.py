"""The configuration file, read strictly, and the orchestrator it describes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator import (
    Augmentations,
    Budget,
    CodeSeed,
    Composition,
    EvaluationError,
    Example,
    FailureFeedback,
    GeneratorUnavailableError,
    NaiveRetry,
    ParameterVariation,
    SeedMixing,
)
from orchestrator.assembly import ConfigurationError, assemble
from orchestrator.configuration import Configuration, load_configuration
from orchestrator.errors import DocumentError
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.generators.command import CommandGenerator

WHOLE = """
language = "go"
journal = "kept/journal.sqlite"

[generator]
command = "cat answer"
name = "reader"
input = "json"
output = "json"
environment = ["API_KEY", "MODEL_*"]
parameters = { temperature = 0.2, max_tokens = 4000 }
time = "2m"
max-prompt-characters = 100_000
output-limit = 5_000

[evaluator]
command = ["./judge", "{candidate}"]
suite = "suite"
candidate-file = "answer.go"
report = "ctrf"
report-file = "report.json"
name = "judge"
environment = ["GOPATH"]
time = 30

[budget]
attempts = "unlimited"
time = "10m"
tokens = "200k"
input-tokens = 150_000
output-tokens = "50k"
money = 1.5
repeats = 2

[[strategy]]
kind = "parameter-variation"
values = { temperature = [0.5, 0.9] }

[[strategy]]
kind = "seed-mixing"

[augmentations]
examples = ["examples/parse.md"]
style = ["style.md"]
seeds = ["seeds/lexer.go"]
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with everything that the whole configuration names."""
    for name, text in {
        "loop.toml": WHOLE,
        "examples/parse.md": "parse('1') is 1",
        "style.md": "- Short names.\n\n- No globals.\n",
        "seeds/lexer.go": "package lexer",
        "suite/answer_test.go": "package answer",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_everything(directory: Path) -> None:
    """Each key of the file arrives where it belongs, paths below the file's own directory."""
    made = assemble(load_configuration(directory / "loop.toml"))
    generator, evaluator = made.driver.generator, made.driver.evaluator
    assert isinstance(generator, CommandGenerator)
    assert isinstance(evaluator, CommandEvaluator)
    assert (
        generator.command, generator.name, generator.input, generator.output, generator.environment,
        generator.cwd, generator.seconds, generator.max_prompt_characters, generator.output_limit,
    ) == (
        ("cat", "answer"), "reader", "json", "json", ("API_KEY", "MODEL_*"), directory, 120, 100_000, 5_000,
    )  # fmt: skip
    assert (
        evaluator.command, evaluator.suite, evaluator.candidate_file, evaluator.report, evaluator.report_file,
        evaluator.name, evaluator.environment, evaluator.seconds,
    ) == (
        (str(directory / "judge"), "{candidate}"), directory / "suite", "answer.go", "ctrf", "report.json",
        "judge", ("GOPATH",), 30,
    )  # fmt: skip
    assert (made.language, made.parameters, made.budget, made.strategy, made.augmentations) == (
        "go",
        {"temperature": 0.2, "max_tokens": 4000},
        Budget(
            attempts=None, seconds=600, tokens=200_000, input_tokens=150_000, output_tokens=50_000,
            money_micro=1_500_000, repeats=2,
        ),
        Composition((ParameterVariation({"temperature": (0.5, 0.9)}), SeedMixing(("lexer",)))),
        Augmentations(
            examples=(Example("parse", "parse('1') is 1"),),
            style=("Short names.", "No globals."),
            seeds=(CodeSeed("lexer", "package lexer"),),
        ),
    )  # fmt: skip
    assert load_configuration(directory / "loop.toml").journal == directory / "kept" / "journal.sqlite"


def test_nothing(tmp_path: Path) -> None:
    """An empty file is the default configuration but for the place it lies in."""
    (tmp_path / "loop.json").write_text("{}")
    loaded = load_configuration(tmp_path / "loop.json")
    assert loaded.budget.budget() == Budget()
    assert loaded.strategies == Configuration().strategies
    assert loaded.generator.directory == tmp_path


def refused(tmp_path: Path, text: str) -> list[str]:
    """The faults of a configuration, one a line, without the name of the file."""
    file = tmp_path / "loop.toml"
    file.write_text(text)
    with pytest.raises(DocumentError) as caught:
        load_configuration(file)
    return [line.removeprefix(f"{file}: ") for line in str(caught.value).splitlines()]


def test_all_faults_at_once(tmp_path: Path) -> None:
    """Every fault is reported with its path, and with what was probably meant."""
    assert refused(
        tmp_path,
        """
        langauge = "python"
        [generator]
        command = "cat 'x"
        output = "file"
        [budget]
        attempts = 0
        time = "soon"
        money = true
        """,
    ) == [
        "$.langauge: unknown key (did you mean 'language'?)",
        "$.generator.output: expected one of 'text', 'json', 'files', found a string 'file' (did you mean 'files'?)",
        "$.generator.command: No closing quotation",
        "$.budget.money: expected a string or a number, found a boolean True",
        "$.budget.attempts: expected a whole number above 0 such as 5, 200k, 1.5m, or 'unlimited', found 0",
        "$.budget.time: expected a duration such as 90s, 10m, 1h30m, or 'unlimited', found 'soon'",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("strategy = []", "$.strategy: an empty list: name a strategy, or leave the key out"),
        (
            '[generator]\ncommand = "cat"\nentry-point = "x"',
            "a generator is either a command or an entry-point: remove one of them",
        ),
        (
            '[strategy]\nkind = "naive-retry"\nvalues = {a = [1]}',
            "naive-retry takes no values: they belong to parameter-variation",
        ),
        ('[strategy]\nlabels = ["a"]', "failure-feedback takes no labels: they belong to seed-mixing"),
        (
            '[strategy]\nkind = "parameter-variation"\nvalues = {a = []}',
            "parameter-variation needs parameters, each with at least one value",
        ),
    ],
)
def test_what_does_not_fit_together(tmp_path: Path, text: str, told: str) -> None:
    """Keys that contradict each other are refused."""
    (fault,) = refused(tmp_path, text)
    assert fault.endswith(told)


COMPLETE = """
[generator]
command = "cat"
[evaluator]
suite = "suite"
candidate-file = "answer.py"
"""


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        (COMPLETE.replace('"cat"', '"no-such-program"'), GeneratorUnavailableError, "no program 'no-such-program'"),
        ('[generator]\nentry-point = "nobody"', GeneratorUnavailableError, "no generator is called 'nobody'"),
        (COMPLETE + 'command = "no-such-runner"', EvaluationError, "no program 'no-such-runner'"),
        (COMPLETE.replace('"suite"', '"siute"'), ConfigurationError, "is not a directory"),
        (COMPLETE.replace("candidate-file", "name"), ConfigurationError, "no candidate file"),
        (COMPLETE.replace("answer.py", "test_answer.py"), ConfigurationError, "holds 'test_answer.py' itself"),
        (COMPLETE + '[budget]\nattempts = "unlimited"', ConfigurationError, "a budget needs at least one of"),
        (COMPLETE + '[strategy]\nkind = "seed-mixing"', ConfigurationError, "seed-mixing needs code seeds"),
        (
            COMPLETE + '[strategy]\nkind = "seed-mixing"\nlabels = ["sed"]\n[augmentations]\nseeds = ["seed.py"]',
            ConfigurationError,
            "no code seed is labelled 'sed': did you mean 'seed'?",
        ),
        (COMPLETE + '[augmentations]\nstyle = ["none.md"]', DocumentError, "none.md: no such file"),
    ],
)
def test_what_cannot_be_started(tmp_path: Path, text: str, error: type[Exception], told: str) -> None:
    """What a run would fail at later is found before it starts."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "test_answer.py").write_text("")
    (tmp_path / "seed.py").write_text("x = 1")
    (tmp_path / "loop.toml").write_text(text)
    with pytest.raises(error, match=told):
        assemble(load_configuration(tmp_path / "loop.toml"))


def test_files_need_no_name(tmp_path: Path) -> None:
    """A generator whose candidates bring their own file names needs no candidate file."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "loop.toml").write_text('[generator]\ncommand = "cat"\noutput = "files"\n[evaluator]\nsuite = "suite"')
    made = assemble(load_configuration(tmp_path / "loop.toml"))
    assert isinstance(made.strategy, FailureFeedback)


def test_one_strategy_is_no_composition(tmp_path: Path) -> None:
    """A single strategy stands for itself, in the name that is recorded as well."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "loop.json").write_text(
        json.dumps(
            {
                "generator": {"command": ["cat"]},
                "evaluator": {"suite": "suite", "candidate_file": "answer.py"},
                "strategy": [{"kind": "naive-retry"}],
            }
        )
    )
    assert assemble(load_configuration(tmp_path / "loop.json")).strategy == NaiveRetry()
