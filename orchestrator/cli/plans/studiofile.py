"""`studio.toml`: which models a plan's roles have, what its gates run, and where its studio lies."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs

from orchestrator.configuredgenerator import made_generator
from orchestrator.documents import read_document
from orchestrator.plan.checks import CommandCheck
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import BOUND, PlanOrchestrator
from orchestrator.plan.models import GeneratorModel
from orchestrator.plan.plan import Plan
from orchestrator.plan.routing import ReviewKind
from orchestrator.ports import Approver
from orchestrator.sections.generator import GeneratorSection
from orchestrator.sections.limits import BudgetSection
from orchestrator.sections.sandbox import SandboxSection
from orchestrator.structuring import structure
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
class StudioFile:
    """The whole file; a model is a `[generator]` section of a configuration under its name in the policy."""

    models: dict[str, GeneratorSection] = attrs.field(factory=dict)
    checks: tuple[CheckSection, ...] = ()
    examiners: dict[ReviewKind, str] = attrs.field(factory=dict)
    plan_reviewer: str = ""
    release_manager: bool = True
    most_at_once: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    policy: Path | None = None
    """By default `POLICIES/routing_policy.yaml` of the studio, where there is one."""
    studio: Path = Path("studio")
    state_page: str = "STATE/STATE.md"
    """The other path that contract 5 gives is `STATE.md`."""
    budget: BudgetSection | None = None
    sandbox: SandboxSection = attrs.field(factory=SandboxSection)

    @property
    def policy_file(self) -> Path | None:
        """The policy to load; None: the one that comes with this."""
        usual = self.studio / "POLICIES" / "routing_policy.yaml"
        return self.policy or (usual if usual.is_file() else None)


def load_studio_file(path: Path | None) -> StudioFile:
    """The file, `studio.toml` by default, or one without models; DocumentError with every fault."""
    if path is None and not STUDIO_FILE.is_file():
        return StudioFile()
    path = path or STUDIO_FILE
    return structure(read_document(path), StudioFile, str(path))


def made_orchestrator(
    file: StudioFile, plan: Plan, journal: Journal, approver: Approver | None = None, run_id: str = ""
) -> PlanOrchestrator:
    """The orchestrator that the file describes."""
    return PlanOrchestrator(
        plan,
        models={name: model_of(section, file.sandbox) for name, section in file.models.items()},
        policy=file.policy_file,
        studio=ContextBus(root=file.studio, page_path=file.state_page),
        journal=journal,
        budget=BOUND if file.budget is None else file.budget.budget(),
        checks=[check_of(section, file.sandbox) for section in file.checks],
        examiners=file.examiners,
        plan_reviewer=file.plan_reviewer,
        has_release_manager=file.release_manager,
        most_at_once=file.most_at_once,
        approver=approver,
        run_id=run_id,
    )


def model_of(section: GeneratorSection, sandbox: SandboxSection) -> GeneratorModel:
    """One model."""
    return GeneratorModel(
        made_generator(section, sandbox), parameters=section.parameters, output_limit=section.output_limit
    )


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
