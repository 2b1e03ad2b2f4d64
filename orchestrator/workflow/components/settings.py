"""Settings of the components: the `components` section of a domain, checked with every fault at once.

components:                        # or a list of names, with settings where they are not the defaults
  retry-handler: {test: 3, review: 2, build: 1, custom: {deploy: 2}}
  metrics-collector: {counts: [stories_done], categories: [review]}
  learning-recorder: {similar-failures: 3}
  subagent-spawner:
    generator: writer
    roles: {TRANSLATOR: {instructions: "Translate.", output-schema: {type: object}}}
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, closest_name, step
from orchestrator.jsondata import JSON
from orchestrator.sections.limits import RetriesSection
from orchestrator.structuring import structure
from orchestrator.workflow.components.checking import a_count, a_duration, a_share, a_size, counts, names
from orchestrator.workflow.components.roles import RoleSettings, a_role_table

__all__ = [
    "COMPONENTS",
    "ComponentSettings",
    "LearningSettings",
    "MetricsSettings",
    "RetrySettings",
    "SubagentSettings",
    "component_settings",
]

COMPONENTS = ("state-manager", "retry-handler", "metrics-collector", "learning-recorder", "subagent-spawner")
"""The names of contract 4."""


@attrs.frozen(kw_only=True)
class StateManagerSettings:
    """The state manager is the workflow's own and has nothing to set; it may be listed all the same."""


@attrs.frozen(kw_only=True)
class RetrySettings:
    """How many attempts an operation has in all: 3 means three attempts, which is two retries of the first."""

    test: int = attrs.field(default=3, validator=a_count)
    review: int = attrs.field(default=2, validator=a_count)
    build: int = attrs.field(default=1, validator=a_count)
    custom: dict[str, int] = attrs.field(factory=dict, validator=counts)
    """Operations of the domain's own, by name."""

    def limit_of(self, operation: str) -> int | None:
        """Attempts of an operation; None for one that is not named here. `test:chunk-2` has the limit of `test`."""
        known = {"test": self.test, "review": self.review, "build": self.build, **self.custom}
        return known.get(operation, known.get(operation.partition(":")[0]))

    @property
    def operations(self) -> tuple[str, ...]:
        """Names that have a limit."""
        return ("test", "review", "build", *self.custom)


@attrs.frozen(kw_only=True)
class MetricsSettings:
    """Metrics of the domain's own, beside those that every domain has."""

    counts: tuple[str, ...] = attrs.field(default=(), validator=names)
    categories: tuple[str, ...] = attrs.field(default=(), validator=names)
    """Of timers."""


@attrs.frozen(kw_only=True)
class LearningSettings:
    """When failures count as similar, and how many of them ask for a diagnosis."""

    similar_failures: int = attrs.field(default=3, validator=a_count)
    similarity: float = attrs.field(default=0.6, validator=a_share)
    """Share of words that two errors must have in common, from 0 to 1."""


@attrs.frozen(kw_only=True)
class SubagentSettings:
    """What subagents are given and how long they have."""

    generator: str = ""
    """Name of the generator; empty where the workflow has only one."""
    roles: dict[str, RoleSettings] = attrs.field(factory=dict, validator=a_role_table)
    """Roles of the domain's own, and what it changes in PLANNER, IMPLEMENTER, TESTER, REVIEWER and FIXER."""
    context_characters: int = attrs.field(default=4_096, validator=a_size)
    """Longest context, characters of its JSON text; what is cut is said."""
    answer_bytes: int = attrs.field(default=262_144, validator=a_size)
    """Longest answer, bytes."""
    seconds: float = attrs.field(default=300.0, validator=a_duration)
    """Time of one call."""
    max_tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(a_count))
    """Output tokens of one call; None: what the budget leaves."""
    retries: RetriesSection = attrs.field(factory=RetriesSection)
    """When a call that failed in passing is made again: a busy server, a connection that was cut."""
    parallel: int = attrs.field(default=1, validator=a_count)
    """How many of `spawn_parallel` run at once; 1, one after the other, unless the domain approves more."""


@attrs.frozen(kw_only=True)
class ComponentSettings:
    """Settings of all components; every one of them has defaults."""

    state_manager: StateManagerSettings = attrs.field(factory=StateManagerSettings)
    retry_handler: RetrySettings = attrs.field(factory=RetrySettings)
    metrics_collector: MetricsSettings = attrs.field(factory=MetricsSettings)
    learning_recorder: LearningSettings = attrs.field(factory=LearningSettings)
    subagent_spawner: SubagentSettings = attrs.field(factory=SubagentSettings)


def component_settings(section: JSON, source: str, path: str = "$.components") -> ComponentSettings:
    """The settings in a domain's `components` section: a table by component, or a list of names and such tables.

    `path` is where the section stands in the file. Raises DocumentError with every fault.
    """
    faults: list[Fault] = []
    table = _table_of(section, path, faults)
    settings = ComponentSettings()
    try:
        settings = structure(table, ComponentSettings, source)
    except DocumentError as error:
        faults += [attrs.evolve(fault, path=path + fault.path.removeprefix("$")) for fault in error.faults]
    if faults:
        raise DocumentError(source, tuple(faults))
    return settings


def _table_of(section: JSON, path: str, faults: list[Fault]) -> dict[str, JSON]:
    """The section as one table; what is no component is a fault."""
    if section is None:
        return {}
    if isinstance(section, Mapping):
        return {str(name): {} if settings is None else settings for name, settings in section.items()}
    if not isinstance(section, list | tuple):
        faults.append(Fault(path, "expected a list of components, or a table of their settings"))
        return {}
    table: dict[str, JSON] = {}
    for index, entry in enumerate(section):
        place = step(path, index)
        named = {entry: {}} if isinstance(entry, str) else entry
        if not isinstance(named, Mapping) or len(named) != 1:
            faults.append(Fault(place, "expected the name of a component, or a table of one name and its settings"))
            continue
        name, settings = next(iter(named.items()))
        spelled = str(name).replace("_", "-")
        if spelled not in COMPONENTS:
            message = f"no component {str(name)[:80]!r}: name one of {', '.join(COMPONENTS)}"
            faults.append(Fault(place, message, closest_name(spelled, COMPONENTS)))
        elif spelled in table:
            faults.append(Fault(place, f"component {spelled} is listed before: keep one"))
        else:
            table[spelled] = {} if settings is None else settings
    return table
