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
from orchestrator.configuration import Configuration, configuration_json, load_configuration, settled
from orchestrator.errors import DocumentError
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.evaluators.separate import SeparateEvaluator
from orchestrator.generators.command import CommandGenerator
from orchestrator.generators.process import ProcessGenerator
from orchestrator.pins import Pins, save_pins
from orchestrator.prices import load_prices
from orchestrator.retries import RetryPolicy
from orchestrator.sandbox.choice import SandboxChoice
from orchestrator.sandbox.port import EVAL, Limits

WHOLE = """
language = "go"
journal = "kept/journal.sqlite"
require-isolation = "basic"
secrets = ["CONFIGURED_SECRET"]
refuse-secrets = true

[generator]
command = "cat answer"
name = "reader"
input = "json"
output = "json"
environment = ["API_KEY", "MODEL_*"]
network = "none"
readable = ["weights", "/opt/model"]
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
readable = ["vectors"]
work = "scratch"
time = 30

[sandbox]
backend = "containment"
memory = "512M"
memory-total = "2 GiB"
processes = 40
file-size = "unlimited"
scratch = 1_000_000
open-files = "1k"

[retries]
retries = 5
first-wait = "100ms"
factor = 3
longest-wait = 60

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


def test_everything(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key of the file arrives where it belongs, paths below the file's own directory."""
    monkeypatch.setenv("CONFIGURED_SECRET", "sk-0123456789abcdef")
    made = assemble(load_configuration(directory / "loop.toml"))
    generator, evaluator = made.driver.generator, made.driver.evaluator
    assert isinstance(generator, CommandGenerator)
    assert isinstance(evaluator, CommandEvaluator)
    assert (
        generator.command, generator.name, generator.input, generator.output, generator.environment,
        generator.cwd, generator.seconds, generator.max_prompt_characters, generator.output_limit,
        generator.network, generator.readable, generator.sandbox,
    ) == (
        ("cat", "answer"), "reader", "json", "json", ("API_KEY", "MODEL_*"), directory, 120, 100_000, 5_000,
        "none", (directory / "weights", Path("/opt/model")), SandboxChoice(backend="containment"),
    )  # fmt: skip
    assert (
        evaluator.command, evaluator.suite, evaluator.candidate_file, evaluator.report, evaluator.report_file,
        evaluator.name, evaluator.environment, evaluator.seconds, evaluator.work, evaluator.readable,
        evaluator.sandbox, evaluator.limits,
    ) == (
        (str(directory / "judge"), "{candidate}"), directory / "suite", "answer.go", "ctrf", "report.json",
        "judge", ("GOPATH",), 30, "scratch", (directory / "vectors",), SandboxChoice(backend="containment"),
        Limits(
            processes=40, memory_bytes=512 * 1024**2, memory_total_bytes=2 * 1024**3, file_bytes=None,
            scratch_bytes=1_000_000, open_files=1_000,
        ),
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
    assert (made.require_isolation, made.retries, repr(made.secrets), made.refuse_secrets) == (
        "basic",
        RetryPolicy(retries=5, first_wait=0.1, factor=3, longest_wait=60),
        "Secrets(CONFIGURED_SECRET)",
        True,
    )
    assert load_configuration(directory / "loop.toml").journal == directory / "kept" / "journal.sqlite"


def test_nothing(tmp_path: Path) -> None:
    """An empty file is the default configuration but for the place it lies in."""
    (tmp_path / "loop.json").write_text("{}")
    loaded = load_configuration(tmp_path / "loop.json")
    assert loaded.budget.budget() == Budget()
    assert loaded.strategies == Configuration().strategies
    assert loaded.generator.directory == tmp_path
    assert (loaded.require_isolation, loaded.retries.policy(), loaded.sandbox.choice()) == (
        "none", RetryPolicy(), SandboxChoice(),
    )  # fmt: skip
    assert loaded.sandbox.limits(EVAL.limits) == EVAL.limits


def test_a_function(tmp_path: Path) -> None:
    """A function is found from the directory of the file, whatever the current one is."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "loop.toml").write_text(
        """
        [generator]
        function = "models:generate"
        path = ["sources"]
        environment = ["API_KEY"]
        network = "none"
        readable = ["~/weights"]
        sandbox = "containment"
        time = "30s"
        output-limit = 5_000
        max-prompt-characters = 100
        [evaluator]
        suite = "suite"
        """
    )
    made = assemble(load_configuration(tmp_path / "loop.toml")).driver.generator
    assert isinstance(made, ProcessGenerator)
    assert (
        made.function, made.name, made.path, made.cwd, made.environment, made.network, made.readable, made.seconds,
        made.output_limit, made.max_prompt_characters, made.sandbox,
    ) == (
        "models:generate", "models:generate", (tmp_path / "sources",), tmp_path, ("API_KEY",), "none",
        (Path.home() / "weights",), 30, 5_000, 100, SandboxChoice(backend="containment"),
    )  # fmt: skip


def test_a_separate_judge(tmp_path: Path) -> None:
    """A judge in a process of its own takes the keys of its kind; pins and controls are the run's."""
    (tmp_path / "suite").mkdir()
    pins = Pins(spec_digest="sha256:" + "0" * 64, cases=("test_answer::test_it",))
    save_pins(pins, tmp_path / "pins.json")
    (tmp_path / "loop.toml").write_text(
        """
        [generator]
        command = "cat"
        [evaluator]
        runner = "separate"
        suite = "suite"
        candidate-file = "answer.py"
        modules = ["answer"]
        shared = ["words.json"]
        framework = "unittest"
        arguments = ["test_answer"]
        call-time = "2s"
        time = "30s"
        environment = ["MODE"]
        readable = ["vectors"]
        work = "scratch"
        pins = "pins.json"
        controls = ["test_answer::test_must_fail"]
        """
    )
    made = assemble(load_configuration(tmp_path / "loop.toml"))
    judge = made.driver.evaluator
    assert isinstance(judge, SeparateEvaluator)
    assert (
        judge.suite, judge.candidate_file, judge.modules, judge.shared, judge.framework, judge.arguments,
        judge.call_seconds, judge.seconds, judge.environment, judge.readable, judge.work, made.pins, made.controls,
    ) == (
        tmp_path / "suite", "answer.py", ("answer",), ("words.json",), "unittest", ("test_answer",),
        2, 30, ("MODE",), (tmp_path / "vectors",), "scratch", pins, ("test_answer::test_must_fail",),
    )  # fmt: skip


PRICES = """
as-of = "2026-01-31"
currency = "EUR"
[models.small]
input = "0.10"
output = "0.40"
"""


def test_a_model(tmp_path: Path) -> None:
    """A model behind a server takes the keys that say which, how it is asked, and what of its answer counts."""
    pytest.importorskip("openai", reason="the SDK is not installed")
    from orchestrator.generators.openai import OpenAIGenerator

    (tmp_path / "suite").mkdir()
    (tmp_path / "prices.toml").write_text(PRICES)
    (tmp_path / "loop.toml").write_text(
        """
        [generator]
        model = "small"
        base-url = "http://127.0.0.1:8080/v1"
        api-key-variable = "LOCAL_KEY"
        stream = false
        extraction = "fenced"
        prices = "prices.toml"
        system = "Answer with code."
        extra-body = { top_k = 3 }
        max-tokens-name = "max_tokens"
        use-proxies = true
        parameters = { temperature = 0.2 }
        time = 30
        output-limit = 5_000
        [evaluator]
        suite = "suite"
        candidate-file = "answer.py"
        """
    )
    made = assemble(load_configuration(tmp_path / "loop.toml"))
    generator = made.driver.generator
    assert isinstance(generator, OpenAIGenerator)
    assert (
        generator.model, generator.base_url, generator.api_key_variable, generator.stream, generator.extraction,
        generator.system, generator.extra_body, generator.max_tokens_name, generator.trust_env, generator.seconds,
        generator.answer_limit, generator.prices, made.parameters,
    ) == (
        "small", "http://127.0.0.1:8080/v1", "LOCAL_KEY", False, "fenced", "Answer with code.", {"top_k": 3},
        "max_tokens", True, 30, 5_000, load_prices(tmp_path / "prices.toml"), {"temperature": 0.2},
    )  # fmt: skip


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
            (
                "command and entry-point at once: a generator is one of command, function, entry-point, model, "
                "so keep one of them"
            ),
        ),
        (
            '[generator]\nfunction = "a:b"\nmodel = "small"\ncommand = "cat"',
            (
                "$.generator: command and function and model at once: a generator is one of command, function, "
                "entry-point, model, so keep one of them"
            ),
        ),
        (
            '[generator]\ncommand = "cat"\nbase-url = "http://localhost/v1"',
            "$.generator.base_url: a generator named by command does not take it: remove it",
        ),
        (
            '[generator]\nmodel = "small"\nnetwork = "none"',
            "$.generator.network: a generator named by model does not take it: remove it",
        ),
        (
            '[generator]\nmodel = "small"\napi-key-variable = "sk-123"',
            (
                "$.generator.api_key_variable: expected the name of an environment variable, such as OPENAI_API_KEY, "
                "and not its value"
            ),
        ),
        (
            'secrets = ["sk-0123456789"]',
            "$.secrets: expected the name of an environment variable, such as OPENAI_API_KEY, and not its value",
        ),
        (
            '[evaluator]\nrunner = "separate"\nreport = "ctrf"',
            '$.evaluator.report: an evaluator with runner = "separate" does not take it: remove it',
        ),
        (
            '[evaluator]\nmodules = ["a"]',
            '$.evaluator.modules: an evaluator with runner = "command" does not take it: remove it',
        ),
        (
            '[sandbox]\nbackend = "container"',
            "$.sandbox.image: a container needs an image: name one that has what is run",
        ),
        (
            '[sandbox]\nimage = "python:3"',
            '$.sandbox.image: belongs to backend = "container": add that, or remove it',
        ),
        (
            '[sandbox]\nscratch = "unlimited"',
            "$.sandbox.scratch: scratch space is memory and has to end: write a size such as 256M",
        ),
        (
            '[sandbox]\nmemory = "lots"',
            "$.sandbox.memory: expected a size above 0 such as 512M, 4 GiB, 65536, or 'unlimited', found 'lots'",
        ),
        (
            '[retries]\nlongest-wait = "unlimited"',
            "$.retries.longest_wait: a wait has to end: write a duration such as 30s",
        ),
        ("[retries]\nretries = -1", "$.retries.retries: must be 0 or more, found -1"),
        (
            'require-isolation = "stong"',
            (
                "$.require-isolation: expected one of 'none', 'basic', 'strong', found a string 'stong' "
                "(did you mean 'strong'?)"
            ),
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
        ('secrets = ["NOT_SET_HERE"]' + COMPLETE, ConfigurationError, "secrets name NOT_SET_HERE, which is not set"),
        (
            COMPLETE.replace('command = "cat"', 'function = "generate"'),
            GeneratorUnavailableError,
            "'generate' names no function: write it as 'module:function'",
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


def test_every_wrong_key_of_a_kind_is_told_at_once(tmp_path: Path) -> None:
    """Keys that belong to another kind of generator are listed together with the faults of other tables."""
    text = '[generator]\nentry-point = "x"\ninput = "json"\nsystem = "s"\n[retries]\nfactor = 0.5'
    assert refused(tmp_path, text) == [
        "$.generator.input: a generator named by entry-point does not take it: remove it",
        "$.generator.system: a generator named by entry-point does not take it: remove it",
        "$.retries.factor: must be 1 or more, found 0.5",
    ]


def test_a_configuration_that_is_kept_says_the_same(directory: Path) -> None:
    """What is kept beside a run is read back as it was, from wherever that is done."""
    configuration = load_configuration(directory / "loop.toml")
    kept = settled(configuration, directory, "reader", "judge")
    (directory / "elsewhere").mkdir()
    (directory / "elsewhere" / "kept.json").write_text(json.dumps(configuration_json(kept)))
    assert load_configuration(directory / "elsewhere" / "kept.json") == kept


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
