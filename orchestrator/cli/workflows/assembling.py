"""From a domain and a configuration to a workflow that can be run."""

from __future__ import annotations

import sys
from typing import Any

from orchestrator.assembly import ConfigurationError, made_secrets
from orchestrator.cli.workflows.places import FoundDomain
from orchestrator.configuration import BudgetSection, Configuration
from orchestrator.configuredgenerator import made_generator
from orchestrator.ports import Generator
from orchestrator.workflow.engine import Workflow
from orchestrator_events.journal import Journal

__all__ = ["made_workflow", "modules_found_beside"]


def made_workflow(found: FoundDomain, configuration: Configuration, journal: Journal | None = None) -> Workflow:
    """The workflow; where nothing limits it, the engine's own limits hold.

    Raises ConfigurationError when something does not fit together, DomainError where nothing executes a phase.
    """
    modules_found_beside(found)
    options: dict[str, Any] = {} if journal is None else {"journal": journal}
    if configuration.budget != BudgetSection():
        try:
            options["budget"] = configuration.budget.budget()
        except ValueError as error:
            raise ConfigurationError(str(error)) from None
    return Workflow(
        found.domain,
        generator=generator_of(found, configuration),
        require_isolation=configuration.require_isolation,
        retries=configuration.retries.policy(),
        secrets=made_secrets(configuration.secrets),
        **options,
    )


def modules_found_beside(found: FoundDomain) -> None:
    """Have the modules that a domain names looked for beside its file first, as those of a script are."""
    if str(found.path.parent) not in sys.path:
        sys.path.insert(0, str(found.path.parent))


def generator_of(found: FoundDomain, configuration: Configuration) -> Generator | None:
    """The configured generator; that of an example is its script, unless another one is named."""
    if configuration.generator.kind:
        return made_generator(configuration.generator, configuration.sandbox)
    if found.example:
        from orchestrator.workflow.examples.software_epic.script import EpicScript

        return EpicScript()
    return None
