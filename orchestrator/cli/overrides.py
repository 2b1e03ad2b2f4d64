"""What the command line says over what the configuration file says."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal

import attrs

from orchestrator.cli.exitcodes import RequestError
from orchestrator.commandline import split_command
from orchestrator.configuration import (
    PYTEST,
    BudgetSection,
    Configuration,
    EvaluatorSection,
    GeneratorSection,
    SandboxSection,
    load_configuration,
)
from orchestrator.errors import DocumentError
from orchestrator.generators.entry_points import GROUP
from orchestrator.quantities import parse_count, parse_duration, parse_money
from orchestrator.sections.generator import KINDS

__all__ = ["Limits", "Overrides", "budget_section", "configured"]


@attrs.frozen(kw_only=True)
class Limits:
    """Limits as they were written; None for those that were not."""

    attempts: str | None = None
    time: str | None = None
    tokens: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    money: str | None = None
    repeats: str | None = None


@attrs.frozen(kw_only=True)
class Overrides:
    """Everything else; None for what was not given."""

    generator: str | None = None
    model: str | None = None
    base_url: str | None = None
    network: Literal["host", "none"] | None = None
    sandbox: Literal["auto", "bubblewrap", "containment"] | None = None
    require_isolation: Literal["none", "basic", "strong"] | None = None
    evaluator: str | None = None
    suite: Path | None = None
    candidate_file: str | None = None
    report: Literal["junit", "ctrf", "json"] | None = None
    language: str | None = None
    limits: Limits = Limits()


def configured(path: Path | None, over: Overrides) -> Configuration:
    """The configuration of the file, if there is one, with everything that was given in its place."""
    configuration = Configuration() if path is None else load_configuration(path)
    return attrs.evolve(
        configuration,
        language=over.language or configuration.language,
        require_isolation=over.require_isolation or configuration.require_isolation,
        sandbox=sandbox_section(configuration.sandbox, over.sandbox),
        generator=generator_section(configuration.generator, over),
        evaluator=evaluator_section(configuration.evaluator, over),
        budget=budget_section(configuration.budget, over.limits),
    )


def generator_section(section: GeneratorSection, over: Overrides) -> GeneratorSection:
    """The generator that is named; what another kind of generator does not take is left out with the old one."""
    if over.generator is not None and over.model is not None:
        raise RequestError("--generator and --model name two generators: keep one of them")
    changes: dict[str, Any] = {}
    if over.model is not None:
        changes = {"model": over.model}
    elif over.generator is not None:
        words = words_of(over.generator, "--generator")
        is_entry = len(words) == 1 and is_entry_point(words[0])
        changes = {"entry_point": words[0]} if is_entry else {"command": words, "directory": None}
    if changes:
        section = renamed(section, changes)
    wanted = {"base_url": over.base_url, "network": over.network}
    given = {name: value for name, value in wanted.items() if value is not None}
    return evolved(section, given if over.sandbox is None else {**given, "sandbox": None})


def renamed(section: GeneratorSection, changes: dict[str, Any]) -> GeneratorSection:
    """The section for another generator: its parameters and the like stay, as far as its kind takes them."""
    (kind,) = (name for name in changes if name in KINDS)
    strays = {field.name for field in attrs.fields(GeneratorSection)} - {*KINDS[kind]}
    usual = GeneratorSection()
    dropped = {name: getattr(usual, name) for name in strays}
    return evolved(section, {**dropped, "name": "", **changes})


def evolved(section: GeneratorSection, changes: dict[str, Any]) -> GeneratorSection:
    """The section changed; RequestError for what does not fit together."""
    try:
        return attrs.evolve(section, **changes)
    except DocumentError as error:
        raise RequestError("; ".join(str(fault) for fault in error.faults)) from None


def evaluator_section(section: EvaluatorSection, over: Overrides) -> EvaluatorSection:
    """The runner, where `pytest` alone stands for the usual call of it, and the suite."""
    changes: dict[str, Any] = {
        "suite": over.suite,
        "candidate_file": over.candidate_file,
        "report": over.report,
    }
    if over.evaluator is not None:
        words = words_of(over.evaluator, "--evaluator")
        changes |= {"command": PYTEST if words == ("pytest",) else words, "name": ""}
    return attrs.evolve(section, **{name: value for name, value in changes.items() if value is not None})


def sandbox_section(
    section: SandboxSection, backend: Literal["auto", "bubblewrap", "containment"] | None
) -> SandboxSection:
    """The limits stay; a container's engine and image go with it."""
    return section if backend is None else attrs.evolve(section, backend=backend, engine="", image="")


def budget_section(section: BudgetSection, limits: Limits) -> BudgetSection:
    """The limits, those that were given in the place of the configured ones."""
    given = {name: text for name, text in attrs.asdict(limits).items() if text is not None}
    readers: dict[str, Callable[[str], object]] = {"time": parse_duration, "money": parse_money}
    for name, text in given.items():
        try:
            readers.get(name, parse_count)(text)
        except ValueError as error:
            raise RequestError(f"--{name.replace('_', '-')}: {error}") from None
    return attrs.evolve(section, **given)


def words_of(command: str, option: str) -> tuple[str, ...]:
    """Program and arguments; RequestError for a text that a POSIX shell could not split either."""
    try:
        return split_command(command)
    except ValueError as error:
        raise RequestError(f"{option}: {error}") from None


def is_entry_point(name: str) -> bool:
    """Whether an installed distribution offers a generator of this name."""
    return bool(entry_points(group=GROUP, name=name))
