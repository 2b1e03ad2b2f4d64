"""The configuration file of a run: which generator, which eval suite, which limits, which strategy.

    language = "python"

    [generator]                       # or: entry-point = "name"
    command = "llm -m qwen3"
    parameters = { temperature = 0.2 }

    [evaluator]                       # command: pytest, unless another one is named
    suite = "suite"
    candidate-file = "durations.py"

    [budget]
    attempts = 5
    time = "10m"
    tokens = "200k"

Paths are relative to the file. A list of `[[strategy]]` tables is a composition.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from orchestrator.commandline import split_command
from orchestrator.documents import read_document, read_text
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.prompt import Augmentations, CodeSeed
from orchestrator.quantities import parse_count, parse_duration, parse_money
from orchestrator.spec import Example
from orchestrator.structuring import structure
from orchestrator_events.budget import Budget

__all__ = [
    "PYTEST",
    "AugmentationsSection",
    "BudgetSection",
    "Configuration",
    "EvaluatorSection",
    "GeneratorSection",
    "StrategySection",
    "configuration_json",
    "load_configuration",
    "settled",
]

PYTEST: Final = ("{python}", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={report}")
"""The eval runner unless another one is named."""


def _read_by(parse: Callable[[Any], object]) -> Callable[[object, object, Any], None]:
    def check(_instance: object, _attribute: object, value: Any) -> None:
        if value is not None:
            parse(value)

    return check


def _names_a_program(_instance: object, _attribute: object, command: str | tuple[str, ...]) -> None:
    if command != ():
        split_command(command)


@attrs.frozen(kw_only=True)
class GeneratorSection:
    """`[generator]`: a program, or the entry point of an installed distribution."""

    command: str | tuple[str, ...] = attrs.field(default=(), validator=_names_a_program)
    """Program and arguments, as one text or a list; no shell ever runs."""
    entry_point: str = attrs.field(default="")
    name: str = ""
    input: Literal["text", "json"] = "text"
    output: Literal["text", "json", "files"] = "text"
    environment: tuple[str, ...] = ()
    """Names of variables to pass on beside the harmless ones."""
    parameters: dict[str, Any] = attrs.Factory(dict[str, Any])
    time: str | float | None = attrs.field(default=None, validator=_read_by(parse_duration))
    """Longest time of one call."""
    max_prompt_characters: int | None = None
    output_limit: int = 1_000_000
    """Largest answer, bytes."""
    directory: Path | None = None
    """Where the program runs; by default the directory of the file."""

    @entry_point.validator
    def _is_one_of_two(self, _attribute: object, entry_point: str) -> None:
        if entry_point and self.command:
            raise ValueError("a generator is either a command or an entry-point: remove one of them")


@attrs.frozen(kw_only=True)
class EvaluatorSection:
    """`[evaluator]`: the program that runs the eval suite, and the suite."""

    command: str | tuple[str, ...] = attrs.field(default=PYTEST, validator=_names_a_program)
    """Program and arguments; `{python}`, `{report}` and `{candidate}` are filled in."""
    suite: Path | None = None
    """Directory of the suite; it is copied for each evaluation."""
    candidate_file: str = ""
    """Name under which a candidate that is one text stands beside the suite."""
    report: Literal["junit", "ctrf", "json"] = "junit"
    report_file: str = "report.xml"
    name: str = ""
    environment: tuple[str, ...] = ()
    time: str | float | None = attrs.field(default=60, validator=_read_by(parse_duration))
    """Longest time of one evaluation."""


@attrs.frozen(kw_only=True)
class BudgetSection:
    """`[budget]`: limits in any mix; "unlimited" lifts one, and what is left out has its default."""

    attempts: str | int | None = attrs.field(default=None, validator=_read_by(parse_count))
    time: str | float | None = attrs.field(default=None, validator=_read_by(parse_duration))
    """Active time: a number of seconds, or a text such as `10m`."""
    tokens: str | int | None = attrs.field(default=None, validator=_read_by(parse_count))
    input_tokens: str | int | None = attrs.field(default=None, validator=_read_by(parse_count))
    output_tokens: str | int | None = attrs.field(default=None, validator=_read_by(parse_count))
    money: str | float | None = attrs.field(default=None, validator=_read_by(parse_money))
    """In units of the currency that the generator reports."""
    repeats: str | int | None = attrs.field(default=None, validator=_read_by(parse_count))

    def budget(self) -> Budget:
        """The limits as the engine takes them; ValueError when none is left that could stop a run."""
        limits: dict[str, Any] = {
            name: parse_count(value)
            for name, value in attrs.asdict(self).items()
            if value is not None and name not in ("time", "money")
        }
        if self.time is not None:
            limits["seconds"] = parse_duration(self.time)
        if self.money is not None:
            limits["money_micro"] = parse_money(self.money)
        return Budget(**limits)


@attrs.frozen(kw_only=True)
class StrategySection:
    """`[strategy]`, or one of several `[[strategy]]` that are combined."""

    kind: Literal["failure-feedback", "naive-retry", "parameter-variation", "seed-mixing"] = "failure-feedback"
    values: dict[str, tuple[Any, ...]] = attrs.field(factory=dict[str, tuple[Any, ...]])
    """Of parameter-variation: each parameter with the values it takes in turn."""
    labels: tuple[str, ...] = attrs.field(default=())
    """Of seed-mixing: the code seeds to take in turn; by default all."""

    @values.validator
    def _belongs_to_variation(self, _attribute: object, values: Mapping[str, Any]) -> None:
        if self.kind == "parameter-variation" and not (values and all(values.values())):
            raise ValueError("parameter-variation needs parameters, each with at least one value")
        if self.kind != "parameter-variation" and values:
            raise ValueError(f"{self.kind} takes no values: they belong to parameter-variation")

    @labels.validator
    def _belongs_to_mixing(self, _attribute: object, labels: tuple[str, ...]) -> None:
        if self.kind != "seed-mixing" and labels:
            raise ValueError(f"{self.kind} takes no labels: they belong to seed-mixing")


@attrs.frozen(kw_only=True)
class AugmentationsSection:
    """`[augmentations]`: context beside the spec, as files."""

    examples: tuple[Path, ...] = ()
    """One example a file, called by the file's name without its suffix."""
    style: tuple[Path, ...] = ()
    """Style preferences, one a line; a leading `- ` is left out."""
    seeds: tuple[Path, ...] = ()
    """One code seed a file, labelled by the file's name without its suffix."""

    def augmentations(self) -> Augmentations:
        """The files' texts; raises DocumentError for one that cannot be read."""
        lines = [line.strip() for path in self.style for line in read_text(path).splitlines()]
        examples = [Example(path.stem, read_text(path)) for path in self.examples]
        seeds = [CodeSeed(path.stem, read_text(path)) for path in self.seeds]
        style = [line.removeprefix("- ") for line in lines if line]
        return Augmentations(examples=tuple(examples), style=tuple(style), seeds=tuple(seeds))


@attrs.frozen(kw_only=True)
class Configuration:
    """Everything a run is configured with."""

    language: str = "python"
    journal: Path | None = None
    """SQLite file that runs are recorded in; by default `journal.sqlite` beside the runs."""
    generator: GeneratorSection = GeneratorSection()
    evaluator: EvaluatorSection = EvaluatorSection()
    budget: BudgetSection = BudgetSection()
    strategy: StrategySection | tuple[StrategySection, ...] = StrategySection()
    augmentations: AugmentationsSection = AugmentationsSection()

    @property
    def strategies(self) -> tuple[StrategySection, ...]:
        """The strategies to combine, one or more."""
        return (self.strategy,) if isinstance(self.strategy, StrategySection) else self.strategy


def load_configuration(path: str | os.PathLike[str]) -> Configuration:
    """The configuration in a .toml, .json, .yaml or .yml file, its paths made absolute.

    Raises DocumentError with every fault at once, each with its place.
    """
    source = os.fspath(path)
    configuration = structure(read_document(path), Configuration, source)
    if not configuration.strategies:
        raise DocumentError(source, (Fault("$.strategy", "an empty list: name a strategy, or leave the key out"),))
    return located(configuration, Path(source).absolute().parent)


def settled(configuration: Configuration, directory: Path, generator: str, evaluator: str) -> Configuration:
    """The configuration as it holds from anywhere: paths below `directory` made absolute, identities given by name."""
    whole = located(configuration, directory)
    program = whole.generator.command
    kept = attrs.evolve(
        whole.generator,
        name="" if whole.generator.entry_point else generator,
        command=program_below(whole.generator.directory or directory, program) if program else (),
    )
    return attrs.evolve(
        whole,
        generator=kept,
        evaluator=attrs.evolve(whole.evaluator, name=evaluator),
    )


def configuration_json(configuration: Configuration) -> dict[str, Any]:
    """The configuration as the plain data of a .json file that `load_configuration` reads; defaults are left out."""
    return json_of(configuration)


def json_of(section: attrs.AttrsInstance) -> dict[str, Any]:
    """One table, with the keys that were set; paths as absolute text."""
    told: dict[str, Any] = {}
    for field in attrs.fields(type(section)):
        value = getattr(section, field.name)
        default = field.default.factory() if hasattr(field.default, "factory") else field.default
        if value != default:
            told[field.name] = plain(value)
    return told


def plain(value: Any) -> Any:
    """A value of a configuration as JSON data."""
    if isinstance(value, Path):
        return str(value.absolute())
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return json_of(value) if attrs.has(type(value)) else value


def located(configuration: Configuration, directory: Path) -> Configuration:
    """The configuration with its relative paths below `directory`."""
    generator, evaluator, extra = (
        configuration.generator,
        configuration.evaluator,
        configuration.augmentations,
    )
    return attrs.evolve(
        configuration,
        journal=below(directory, configuration.journal),
        generator=attrs.evolve(generator, directory=below(directory, generator.directory) or directory),
        evaluator=attrs.evolve(
            evaluator,
            suite=below(directory, evaluator.suite),
            command=program_below(directory, evaluator.command),
        ),
        augmentations=attrs.evolve(
            extra,
            examples=tuple(directory / path for path in extra.examples),
            style=tuple(directory / path for path in extra.style),
            seeds=tuple(directory / path for path in extra.seeds),
        ),
    )


def below(directory: Path, path: Path | None) -> Path | None:
    """The path, a relative one below the directory."""
    return None if path is None else directory / path


def program_below(directory: Path, command: str | tuple[str, ...]) -> tuple[str, ...]:
    """The command with a program given by a relative path found below the directory."""
    program, *arguments = split_command(command)
    return (str(directory / program) if "/" in program else program, *arguments)
