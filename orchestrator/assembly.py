"""From a configuration to the parts of an orchestrator, with everything checked that can be before a run."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError
from orchestrator.commandline import split_command
from orchestrator.configuration import (
    PYTEST,
    Configuration,
    ConfigurationError,
    EvaluatorSection,
    GeneratorSection,
    SandboxSection,
    StrategySection,
)
from orchestrator.configuredgenerator import made_generator
from orchestrator.engine import Orchestrator
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.faults import closest_name
from orchestrator.paths import refuse_unsafe_paths
from orchestrator.ports import Evaluator, Strategy
from orchestrator.prompt import Augmentations
from orchestrator.redaction import Secrets
from orchestrator.sandbox.port import EVAL
from orchestrator.strategies import Composition, FailureFeedback, NaiveRetry, ParameterVariation, SeedMixing
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus
from orchestrator_events.journal import Journal

if TYPE_CHECKING:
    from orchestrator.pins import Pins

__all__ = ["ConfigurationError", "assemble"]


def assemble(configuration: Configuration, *, journal: Journal | None = None, bus: Bus | None = None) -> Orchestrator:
    """The orchestrator that a configuration describes.

    Raises ConfigurationError when something is missing or does not fit together, DocumentError for a file that
    cannot be read, GeneratorUnavailableError or EvaluationError when a program is missing.
    """
    augmentations = configuration.augmentations.augmentations()
    refuse_uncounted_money(configuration)
    return Orchestrator(
        generator=made_generator(configuration.generator, configuration.sandbox),
        evaluator=made_evaluator(
            configuration.evaluator,
            configuration.sandbox,
            may_lack_file=may_answer_with_files(configuration.generator),
        ),
        budget=made_budget(configuration),
        strategy=made_strategy(configuration.strategies, augmentations),
        language=configuration.language,
        parameters=configuration.generator.parameters,
        augmentations=augmentations,
        require_isolation=configuration.require_isolation,
        retries=configuration.retries.policy(),
        pins=made_pins(configuration.evaluator),
        controls=configuration.evaluator.controls,
        secrets=made_secrets(configuration.secrets),
        refuse_secrets=configuration.refuse_secrets,
        journal=journal,
        bus=Bus() if bus is None else bus,
    )


def made_secrets(variables: tuple[str, ...]) -> Secrets | None:
    """The values of the named variables; ConfigurationError for one that is not set, for nothing would be redacted."""
    if not variables:
        return None
    missing = [name for name in variables if name not in os.environ]
    if missing:
        raise ConfigurationError(f"secrets name {', '.join(missing)}, which is not set here: set it, or leave it out")
    return Secrets({name: os.environ[name] for name in variables})


def made_budget(configuration: Configuration) -> Budget:
    """The limits."""
    try:
        return configuration.budget.budget()
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def refuse_uncounted_money(configuration: Configuration) -> None:
    """Raise ConfigurationError for a limit of money that the first call would use up, whatever it really costs."""
    section, budget = configuration.generator, made_budget(configuration)
    if budget.money_micro is None:
        return
    if section.kind == "model" and section.prices is None:
        remedy = "name a table of prices, `prices` in [generator]"
    elif section.kind == "command" and section.output != "json":
        remedy = 'have the program report it (`output = "json"` in [generator], with `money_micro` in its usage)'
    else:
        return
    raise ConfigurationError(
        "money is limited, but nobody knows what a call costs, so that the first would be charged with all of it: "
        f"{remedy}, or limit tokens, time or attempts"
    )


def may_answer_with_files(section: GeneratorSection) -> bool:
    """Whether candidates may bring file names of their own."""
    if section.kind == "model":
        return section.extraction == "files"
    return section.kind in ("entry_point", "function") or section.output != "text"


def made_evaluator(section: EvaluatorSection, sandbox: SandboxSection, *, may_lack_file: bool = False) -> Evaluator:
    """Who runs the suite; what it needs is looked for first, before anything is bought."""
    suite = checked_suite(section, may_lack_file=may_lack_file)
    try:
        return made_runner(section, sandbox, suite)
    except ValueError as error:
        raise ConfigurationError(f"[evaluator] {error}") from None


def made_runner(section: EvaluatorSection, sandbox: SandboxSection, suite: Path) -> Evaluator:
    """The program that runs the suite, or the judge that keeps it apart from the candidate."""
    if section.runner == "separate":
        return made_judge(section, sandbox, suite)
    words = split_command(section.command)
    if "/" not in words[0] and "{" not in words[0] and which(words[0]) is None:
        raise EvaluationError(f"no program {words[0]!r} on PATH to run the eval suite with")
    if words[:3] == PYTEST[:3]:
        require("pytest", "the eval suite is run with pytest")
    if section.report == "junit":
        require("junitparser", "a JUnit report is read with junitparser")
    return CommandEvaluator(
        words,
        suite=suite,
        candidate_file=section.candidate_file,
        report=section.report,
        report_file=section.report_file,
        name=section.name,
        environment=section.environment,
        seconds=section.seconds,
        work=section.work or "",
        readable=section.readable,
        limits=sandbox.limits(EVAL.limits),
        sandbox=sandbox.choice(),
    )


def made_judge(section: EvaluatorSection, sandbox: SandboxSection, suite: Path) -> Evaluator:
    """The judge in a process that the candidate is not in."""
    from orchestrator.evaluators.separate import SeparateEvaluator

    if section.framework == "pytest":
        require("pytest", "the eval suite is run with pytest")
    return SeparateEvaluator(
        suite=suite,
        candidate_file=section.candidate_file,
        modules=section.modules,
        shared=section.shared,
        framework=section.framework,
        arguments=section.arguments,
        name=section.name,
        seconds=section.seconds,
        call_seconds=section.call_seconds,
        environment=section.environment,
        work=section.work or "read-only",
        readable=section.readable,
        limits=sandbox.limits(EVAL.limits),
        sandbox=sandbox.choice(),
    )


def made_pins(section: EvaluatorSection) -> Pins | None:
    """What a trusted run pinned."""
    if section.pins is None:
        return None
    from orchestrator.pins import load_pins

    return load_pins(section.pins)


def checked_suite(section: EvaluatorSection, *, may_lack_file: bool) -> Path:
    """The suite's directory; ConfigurationError when it, or the name of a candidate in it, will not do."""
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
    return section.suite


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
