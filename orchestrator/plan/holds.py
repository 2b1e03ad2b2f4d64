"""What holds in what a plan starts: the programs of its models, and those that its gates run on what they made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from orchestrator.evaluators.callable import as_evaluator
from orchestrator.isolating import isolation_of
from orchestrator.plan.checks import Check
from orchestrator.plan.models import GeneratorModel
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import IN_PROCESS, LEVELS, Isolation

if TYPE_CHECKING:
    from orchestrator.plan.workshop import Parts

__all__ = ["Holds", "found_holds"]


@attrs.frozen(kw_only=True)
class Holds:
    """What holds them, as it was found."""

    required: str = "none"
    is_found: bool = False
    models: Isolation = IN_PROCESS
    """Of several, the one that is held least; what holds an agent's tools is in the agent's own records."""
    checks: tuple[tuple[Check, Isolation], ...] = ()

    @property
    def of_all(self) -> IsolationEstablished | None:
        """What holds the models and, of all checks, the one that is held least; None before it was found."""
        if not self.is_found:
            return None
        found = weakest([isolation for _, isolation in self.checks], self.models)
        return IsolationEstablished(required=self.required, generator=self.models, evaluator=found)

    def of_step(self, step_id: str) -> IsolationEstablished:
        """The second record of a step: what holds the models, and the checks that may look at what it makes."""
        found = [isolation for check, isolation in self.checks if not check.steps or step_id in check.steps]
        required = self.required if found or self.models is not IN_PROCESS else "none"
        return IsolationEstablished(required=required, generator=self.models, evaluator=weakest(found, self.models))


async def found_holds(parts: Parts) -> Holds:
    """What holds the models and the checks that are configured; IsolationRefusedError where that is too little.

    The eval suites of conformance runs are held to it as well; what holds one is in the records of its run.
    """
    required = parts.room.require_isolation
    models = [
        await isolation_of(model.generator, f"the model {name}", required)
        for name, model in parts.models.items()
        if isinstance(model, GeneratorModel)
    ]
    for step_id, suite in parts.suites.items():
        await isolation_of(as_evaluator(suite), f"the eval suite of step {step_id}", required)
    checks = [(check, await isolation_of(check, f"the {check.kind} check", required)) for check in parts.checks]
    return Holds(required=required, is_found=True, models=weakest(models, IN_PROCESS), checks=tuple(checks))


def weakest(found: Iterable[Isolation], otherwise: Isolation) -> Isolation:
    """The one that holds least."""
    return min(found, key=lambda each: LEVELS.index(each.level), default=otherwise)
