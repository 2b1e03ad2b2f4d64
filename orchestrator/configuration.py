"""The configuration file of a run: which generator, which eval suite, which limits, which strategy.

    language = "python"

    require-isolation = "strong"

    [generator]                       # or one of: function, entry-point, model
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from orchestrator.commandline import split_command
from orchestrator.documents import read_document
from orchestrator.errors import DocumentError, OrchestratorError
from orchestrator.faults import Fault
from orchestrator.sections.checking import default_of, names_variables
from orchestrator.sections.evaluator import PYTEST, EvaluatorSection
from orchestrator.sections.generator import GeneratorSection
from orchestrator.sections.limits import BudgetSection, RetriesSection
from orchestrator.sections.sandbox import SandboxSection
from orchestrator.sections.strategy import AugmentationsSection, StrategySection
from orchestrator.structuring import structure

__all__ = [
    "PYTEST",
    "AugmentationsSection",
    "BudgetSection",
    "Configuration",
    "ConfigurationError",
    "EvaluatorSection",
    "GeneratorSection",
    "RetriesSection",
    "SandboxSection",
    "StrategySection",
    "configuration_json",
    "load_configuration",
    "settled",
]


class ConfigurationError(OrchestratorError):
    """A run cannot be started as it is configured; nothing was spent."""


@attrs.frozen(kw_only=True)
class Configuration:
    """Everything a run is configured with."""

    language: str = "python"
    journal: Path | None = None
    """SQLite file that runs are recorded in; by default `journal.sqlite` beside the runs."""
    require_isolation: Literal["none", "basic", "strong"] = "none"
    """Least isolation that generator and evaluator must have; with less, nothing is run."""
    secrets: tuple[str, ...] = attrs.field(default=(), validator=names_variables)
    """Names of variables whose values are redacted wherever they would be stored or shown."""
    refuse_secrets: bool = False
    """Whether a candidate that holds one of them fails its attempt."""
    generator: GeneratorSection = attrs.field(factory=GeneratorSection)
    evaluator: EvaluatorSection = attrs.field(factory=EvaluatorSection)
    sandbox: SandboxSection = attrs.field(factory=SandboxSection)
    budget: BudgetSection = attrs.field(factory=BudgetSection)
    retries: RetriesSection = attrs.field(factory=RetriesSection)
    strategy: StrategySection | tuple[StrategySection, ...] = attrs.field(factory=StrategySection)
    augmentations: AugmentationsSection = attrs.field(factory=AugmentationsSection)

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
        if value != default_of(field):
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
        generator=attrs.evolve(
            generator,
            directory=below(directory, generator.directory) or directory,
            readable=all_below(directory, generator.readable),
            path=all_below(directory, generator.path),
            prices=below(directory, generator.prices),
        ),
        evaluator=attrs.evolve(
            evaluator,
            suite=below(directory, evaluator.suite),
            pins=below(directory, evaluator.pins),
            readable=all_below(directory, evaluator.readable),
            command=program_below(directory, evaluator.command),
        ),
        augmentations=attrs.evolve(
            extra,
            examples=all_below(directory, extra.examples),
            style=all_below(directory, extra.style),
            seeds=all_below(directory, extra.seeds),
        ),
    )


def below(directory: Path, path: Path | None) -> Path | None:
    """The path, a relative one below the directory."""
    return None if path is None else directory / path


def all_below(directory: Path, paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """The paths, relative ones below the directory; `~` is the user's home."""
    return tuple(directory / path.expanduser() for path in paths)


def program_below(directory: Path, command: str | tuple[str, ...]) -> tuple[str, ...]:
    """The command with a program given by a relative path found below the directory."""
    program, *arguments = split_command(command)
    return (str(directory / program) if "/" in program else program, *arguments)
