"""`studio.toml`: which models a plan's roles have, what its gates run, and where its studio lies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import attrs

from orchestrator.assembly import made_evaluator, made_secrets, may_answer_with_files
from orchestrator.configuration import ConfigurationError
from orchestrator.configuredgenerator import made_generator
from orchestrator.documents import read_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON
from orchestrator.plan.checks import CommandCheck
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import BOUND, PlanOrchestrator
from orchestrator.plan.models import GeneratorModel
from orchestrator.plan.plan import Plan
from orchestrator.plan.routing import ReviewKind
from orchestrator.plan.studiopaths import STUDIO_PATHS, path_faults
from orchestrator.ports import Approver, Evaluator
from orchestrator.sections.checking import names_variables
from orchestrator.sections.evaluator import EvaluatorSection
from orchestrator.sections.generator import GeneratorSection
from orchestrator.sections.limits import BudgetSection
from orchestrator.sections.sandbox import SandboxSection
from orchestrator.structuring import structure
from orchestrator_events.budget import Budget
from orchestrator_events.journal import Journal

__all__ = ["STUDIO_FILE", "StudioFile", "load_studio_file", "made_orchestrator"]

STUDIO_FILE: Final = Path("studio.toml")


@attrs.frozen(kw_only=True)
class CheckSection:
    """`[[checks]]`: a program that a gate runs; its captured output is the evidence."""

    kind: ReviewKind
    command: str | tuple[str, ...]
    suite: Path | None = None
    """Directory that is laid beside the step's files."""
    steps: tuple[str, ...] = ()
    """Steps it is for; empty: all that ask for its kind."""
    seconds: float = 60


@attrs.frozen(kw_only=True)
class PathsSection:
    """`[paths]`: where things lie, relative to the studio; STUDIO_PATHS says what each one is by default."""

    state: str = STUDIO_PATHS["state"]
    page: str = STUDIO_PATHS["page"]
    """The other path that contract 5 gives is `STATE.md`."""
    policy: str = STUDIO_PATHS["policy"]
    decisions: str = STUDIO_PATHS["decisions"]
    contracts: str = STUDIO_PATHS["contracts"]
    runs: str = STUDIO_PATHS["runs"]
    reviews: str = STUDIO_PATHS["reviews"]
    reports: str = STUDIO_PATHS["reports"]
    workspaces: str = STUDIO_PATHS["workspaces"]


@attrs.frozen(kw_only=True)
class StudioFile:
    """The whole file; a model is a `[generator]` section of a configuration under its name in the policy."""

    models: dict[str, GeneratorSection] = attrs.field(factory=dict)
    checks: tuple[CheckSection, ...] = ()
    suites: dict[str, EvaluatorSection] = attrs.field(factory=dict)
    """The eval suite of each step that is a conformance run, by its id: an `[evaluator]` section of a configuration."""
    examiners: dict[ReviewKind, str] = attrs.field(factory=dict)
    plan_reviewer: str = ""
    release_manager: bool = True
    most_at_once: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    policy: Path | None = None
    """By default the studio's own, where it has one, or else the one that comes with this."""
    studio: Path = Path("studio")
    paths: PathsSection = attrs.field(factory=PathsSection)
    require_isolation: Literal["none", "basic", "strong"] = "none"
    """Least isolation of models' programs, agents' tools and checks; with less, nothing is run."""
    secrets: tuple[str, ...] = attrs.field(default=(), validator=names_variables)
    """Names of variables whose values are redacted wherever they would be stored or shown."""
    refuse_secrets: bool = False
    """Whether an output that holds one of them is a failure of the implementer's."""
    budget: BudgetSection = attrs.field(factory=BudgetSection)
    """Of the whole plan; what is left out has the bound of a plan for which none is given."""
    sandbox: SandboxSection = attrs.field(factory=SandboxSection)


def load_studio_file(path: Path | None) -> StudioFile:
    """The file, `studio.toml` by default, or one without models; DocumentError with every fault."""
    if path is None and not STUDIO_FILE.is_file():
        return StudioFile()
    path = path or STUDIO_FILE
    data = read_document(path)
    misplaced = tuple(placement_faults(data))
    try:
        file = structure(data, StudioFile, str(path))
    except DocumentError as error:
        raise DocumentError(str(path), (*error.faults, *misplaced)) from None
    if misplaced:
        raise DocumentError(str(path), misplaced)
    return file


def placement_faults(data: JSON) -> Iterator[Fault]:
    """What is wrong with the paths of a file, whatever else is wrong with it."""
    table = data.get("paths") if isinstance(data, dict) else None
    given = table if isinstance(table, dict) else {}
    texts = {key: path for key in STUDIO_PATHS if isinstance(path := given.get(key, STUDIO_PATHS[key]), str)}
    for key, message in path_faults(texts):
        yield Fault(f"$.paths.{key}", f"is {message}")


def made_orchestrator(
    file: StudioFile, plan: Plan, journal: Journal, approver: Approver | None = None, run_id: str = ""
) -> PlanOrchestrator:
    """The orchestrator that the file describes."""
    studio = ContextBus(root=file.studio, **{f"{key}_path": path for key, path in attrs.asdict(file.paths).items()})
    return PlanOrchestrator(
        plan,
        models={name: model_of(section, file.sandbox) for name, section in file.models.items()},
        studio=studio,
        policy=studio.policy() if file.policy is None else file.policy,
        journal=journal,
        budget=budget_of(file.budget),
        checks=[check_of(section, file.sandbox) for section in file.checks],
        suites={step_id: suite_of(step_id, section, file) for step_id, section in file.suites.items()},
        examiners=file.examiners,
        plan_reviewer=file.plan_reviewer,
        has_release_manager=file.release_manager,
        most_at_once=file.most_at_once,
        approver=approver,
        secrets=made_secrets(file.secrets),
        refuse_secrets=file.refuse_secrets,
        require_isolation=file.require_isolation,
        run_id=run_id,
    )


def budget_of(section: BudgetSection) -> Budget:
    """The limits of the plan; ConfigurationError when none is left that could stop it."""
    try:
        return section.budget(BOUND)
    except ValueError as error:
        raise ConfigurationError(f"[budget] {error}") from None


def model_of(section: GeneratorSection, sandbox: SandboxSection) -> GeneratorModel:
    """One model."""
    return GeneratorModel(
        made_generator(section, sandbox), parameters=section.parameters, output_limit=section.output_limit
    )


def suite_of(step_id: str, section: EvaluatorSection, file: StudioFile) -> Evaluator:
    """One eval suite; ConfigurationError when it will not do."""
    if section.pins is not None or section.controls:
        raise ConfigurationError(f"[suites.{step_id}] the suite of a step has no pins and no controls: leave them out")
    if section.suite is None:
        raise ConfigurationError(f"[suites.{step_id}] names no directory: give it as suite")
    readable = tuple(path.absolute() for path in section.readable)
    placed = attrs.evolve(section, suite=section.suite.absolute(), readable=readable)
    try:
        may_lack_file = all(may_answer_with_files(model) for model in file.models.values())
        return made_evaluator(placed, file.sandbox, may_lack_file=may_lack_file)
    except ConfigurationError as error:
        raise ConfigurationError(f"[suites.{step_id}] {error}") from None


def check_of(section: CheckSection, sandbox: SandboxSection) -> CommandCheck:
    """One check."""
    return CommandCheck(
        section.kind,
        section.command,
        suite=section.suite.absolute() if section.suite is not None else {},
        steps=section.steps,
        seconds=section.seconds,
        sandbox=sandbox.choice(None),
    )
