"""From a configuration to the parts of an orchestrator, with everything checked that can be before a run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from shutil import which

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError, GeneratorUnavailableError
from orchestrator.commandline import split_command
from orchestrator.configuration import (
    PYTEST,
    Configuration,
    EvaluatorSection,
    GeneratorSection,
    StrategySection,
)
from orchestrator.engine import Orchestrator
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.faults import closest_name
from orchestrator.generators.command import CommandGenerator
from orchestrator.generators.entry_points import load_generator
from orchestrator.paths import refuse_unsafe_paths
from orchestrator.ports import Generator, Strategy
from orchestrator.prompt import Augmentations
from orchestrator.quantities import parse_duration
from orchestrator.strategies import Composition, FailureFeedback, NaiveRetry, ParameterVariation, SeedMixing
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.journal import Journal

__all__ = ["ConfigurationError", "assemble"]


class ConfigurationError(OrchestratorError):
    """A run cannot be started as it is configured; nothing was spent."""


def assemble(configuration: Configuration, *, journal: Journal | None = None, bus: Bus | None = None) -> Orchestrator:
    """The orchestrator that a configuration describes.

    Raises ConfigurationError when something is missing or does not fit together, DocumentError for an
    augmentation that cannot be read, GeneratorUnavailableError or EvaluationError when a program is missing.
    """
    augmentations = configuration.augmentations.augmentations()
    return Orchestrator(
        generator=made_generator(configuration.generator),
        evaluator=made_evaluator(configuration.evaluator, may_lack_file=may_answer_with_files(configuration.generator)),
        budget=made_budget(configuration),
        strategy=made_strategy(configuration.strategies, augmentations),
        language=configuration.language,
        parameters=configuration.generator.parameters,
        augmentations=augmentations,
        journal=journal,
        bus=Bus() if bus is None else bus,
    )


def made_budget(configuration: Configuration) -> Budget:
    """The limits."""
    try:
        return configuration.budget.budget()
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def made_generator(section: GeneratorSection) -> Generator:
    """The entry point, or the program."""
    if section.entry_point:
        return load_generator(section.entry_point)
    if not section.command:
        raise ConfigurationError(
            "no generator: name a program with --generator 'PROGRAM ARGUMENTS', or in [generator] of a configuration"
        )
    words = split_command(section.command)
    if "/" not in words[0] and which(words[0]) is None:
        raise GeneratorUnavailableError(f"no program {words[0]!r} on PATH: install it, or name it with its path")
    try:
        return CommandGenerator(
            words,
            name=section.name,
            input=section.input,
            output=section.output,
            environment=section.environment,
            cwd=section.directory,
            output_limit=section.output_limit,
            max_prompt_characters=section.max_prompt_characters,
            seconds=None if section.time is None else parse_duration(section.time),
        )
    except ValueError as error:
        raise ConfigurationError(f"[generator] {error}") from None


def may_answer_with_files(section: GeneratorSection) -> bool:
    """Whether candidates may bring file names of their own."""
    return bool(section.entry_point) or section.output != "text"


def made_evaluator(section: EvaluatorSection, *, may_lack_file: bool = False) -> CommandEvaluator:
    """The program that runs the suite; what it needs is looked for first, before anything is bought."""
    if section.suite is None:
        raise ConfigurationError("no eval suite: name its directory with --suite, or in [evaluator] of a configuration")
    if not section.suite.is_dir():
        raise ConfigurationError(
            f"the eval suite {str(section.suite)!r} is not a directory: name the one that holds it"
        )
    if not section.candidate_file and not may_lack_file:
        raise ConfigurationError(
            "no candidate file: say under which name the suite finds a candidate, with --candidate-file NAME "
            "or as candidate-file in [evaluator] of a configuration"
        )
    check_candidate_file(section.suite, section.candidate_file)
    words = split_command(section.command)
    if "/" not in words[0] and "{" not in words[0] and which(words[0]) is None:
        raise EvaluationError(f"no program {words[0]!r} on PATH to run the eval suite with")
    if words[:3] == PYTEST[:3]:
        require("pytest", "the eval suite is run with pytest")
    if section.report == "junit":
        require("junitparser", "a JUnit report is read with junitparser")
    try:
        return CommandEvaluator(
            words,
            suite=section.suite,
            candidate_file=section.candidate_file,
            report=section.report,
            report_file=section.report_file,
            name=section.name,
            environment=section.environment,
            seconds=None if section.time is None else parse_duration(section.time),
        )
    except ValueError as error:
        raise ConfigurationError(f"[evaluator] {error}") from None


def check_candidate_file(suite: Path, name: str) -> None:
    """Raise ConfigurationError for a name under which no candidate could ever be written beside the suite."""
    try:
        refuse_unsafe_paths([name] if name else [])
    except CandidateRefusedError as error:
        raise ConfigurationError(str(error)) from None
    if name and (suite / name).exists():
        raise ConfigurationError(
            f"the eval suite holds {name!r} itself, where candidates are written: take it out of {str(suite)!r}"
        )


def require(module: str, purpose: str) -> None:
    """Raise ConfigurationError for a module that is not installed beside the orchestrator."""
    if find_spec(module) is None:
        raise ConfigurationError(f"{purpose}, which is not installed here: pip install {module}")


def made_strategy(sections: tuple[StrategySection, ...], augmentations: Augmentations) -> Strategy:
    """One strategy, or the composition of several."""
    parts = tuple(one_strategy(section, augmentations) for section in sections)
    return parts[0] if len(parts) == 1 else Composition(parts)


def one_strategy(section: StrategySection, augmentations: Augmentations) -> Strategy:
    """The strategy that one section describes; the seeds it mixes have to be configured."""
    match section.kind:
        case "naive-retry":
            return NaiveRetry()
        case "failure-feedback":
            return FailureFeedback()
        case "parameter-variation":
            return ParameterVariation(section.values)
        case "seed-mixing":
            return SeedMixing(checked_labels(section.labels, augmentations))


def checked_labels(labels: tuple[str, ...], augmentations: Augmentations) -> tuple[str, ...]:
    """The labels, or those of all configured seeds."""
    known = tuple(seed.label for seed in augmentations.seeds)
    if not known:
        raise ConfigurationError("seed-mixing needs code seeds: list their files in seeds of [augmentations]")
    for label in labels:
        if label not in known:
            near = closest_name(label, known)
            remedy = f"did you mean {near!r}?" if near else f"configured: {', '.join(known)}"
            raise ConfigurationError(f"no code seed is labelled {label!r}: {remedy}")
    return labels or known
