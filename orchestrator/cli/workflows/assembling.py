"""From a domain and a configuration to a workflow that can be run."""

from __future__ import annotations

from typing import Any

from orchestrator.assembly import ConfigurationError, made_secrets
from orchestrator.cli.streams import printing_aside
from orchestrator.cli.workflows.places import FoundDomain, modules_found_beside
from orchestrator.configuration import BudgetSection, Configuration
from orchestrator.configuredgenerator import made_generator
from orchestrator.ports import Generator
from orchestrator.workflow.components.learningstore import LearningStore
from orchestrator.workflow.engine import Workflow
from orchestrator_events.journal import Journal

__all__ = ["made_workflow"]


def made_workflow(
    found: FoundDomain,
    configuration: Configuration,
    journal: Journal | None = None,
    learnings: LearningStore | None = None,
) -> Workflow:
    """The workflow; where nothing limits it, the engine's own limits hold.

    Raises ConfigurationError when something does not fit together, DomainError where nothing executes a phase.
    """
    modules_found_beside(found.path)
    options: dict[str, Any] = {} if journal is None else {"journal": journal}
    if configuration.budget != BudgetSection():
        try:
            options["budget"] = configuration.budget.budget()
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
    with printing_aside():  # the modules of the domain are imported
        return Workflow(
            found.domain,
            generator=generator_of(found, configuration),
            require_isolation=configuration.require_isolation,
            retries=configuration.retries.policy(),
            secrets=made_secrets(configuration.secrets),
            learnings=learnings,
            **options,
        )


def generator_of(found: FoundDomain, configuration: Configuration) -> Generator | None:
    """The configured generator; that of an example is its script, unless another one is named."""
    if configuration.generator.kind:
        return made_generator(configuration.generator, configuration.sandbox)
    if found.example:
        from orchestrator.workflow.examples.software_epic.script import EpicScript

        return EpicScript()
    return None
