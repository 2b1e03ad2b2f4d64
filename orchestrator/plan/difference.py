"""What an amendment changes in a plan, as values that can be applied, recorded and told in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import attrs

from orchestrator.plan.errors import AmendmentError
from orchestrator.plan.plan import Plan, Step

__all__ = ["AmendmentError", "Difference", "FieldChange", "StepChange", "apply", "difference"]

LONGEST_SHOWN: Final = 160
PLAN_FIELDS: Final = tuple(field.name for field in attrs.fields(Plan) if field.name not in ("steps", "lifecycle"))
STEP_FIELDS: Final = tuple(field.name for field in attrs.fields(Step) if field.name != "id")


@attrs.frozen
class FieldChange:
    """One field with the value it had and the one it gets."""

    name: str
    before: object
    after: object

    def __str__(self) -> str:
        if isinstance(self.before, tuple) and isinstance(self.after, tuple):
            gone = [f"-{item!r:.{LONGEST_SHOWN}}" for item in self.before if item not in self.after]
            new = [f"+{item!r:.{LONGEST_SHOWN}}" for item in self.after if item not in self.before]
            return f"{self.name}: {', '.join([*gone, *new]) or 'another order'}"
        return f"{self.name}: {quoted(self.before)} -> {quoted(self.after)}"


@attrs.frozen
class StepChange:
    """The fields of one step that change."""

    step_id: str
    fields: tuple[FieldChange, ...]


@attrs.frozen(kw_only=True)
class Difference:
    """From one plan to another; the lifecycle is no part of it."""

    fields: tuple[FieldChange, ...] = ()
    """Of the plan itself."""
    added: tuple[Step, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[StepChange, ...] = ()
    order: tuple[str, ...] = ()
    """The ids of the new plan's steps in order; empty when nothing changes."""
    is_reordered: bool = False
    """Whether steps that stay change places."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not self.order

    def lines(self) -> tuple[str, ...]:
        """The amendment in words, a line for each change."""
        return tuple(told(self)) or ("nothing changes",)

    def require_untouched(self, completed: Collection[str]) -> None:
        """Raise AmendmentError when a completed step is changed or removed: what happened cannot be amended."""
        for name in self.removed:
            if name in completed:
                raise AmendmentError(f"step {name} is completed and cannot be removed: add a step that undoes it", name)
        for change in self.changed:
            if change.step_id in completed:
                names = ", ".join(field.name for field in change.fields)
                message = f"step {change.step_id} is completed, so its {names} cannot change: add a step instead"
                raise AmendmentError(message, change.step_id)


def difference(old: Plan, new: Plan) -> Difference:
    """What makes the new plan of the old one; a step with another id is another step."""
    before, after = old.by_id, new.by_id
    fields = changes(old, new, PLAN_FIELDS)
    added = tuple(step for step in new.steps if step.id not in before)
    removed = tuple(name for name in before if name not in after)
    both = [(before[name], step) for name, step in after.items() if name in before]
    changed = tuple(
        StepChange(step.id, found) for earlier, step in both if (found := changes(earlier, step, STEP_FIELDS))
    )
    is_reordered = [name for name in before if name in after] != [step.id for _, step in both]
    if list(before) == list(after) and not (fields or changed):
        return Difference()
    return Difference(
        fields=fields, added=added, removed=removed, changed=changed, order=tuple(after), is_reordered=is_reordered
    )


def apply(change: Difference, plan: Plan) -> Plan:
    """The amended plan, its lifecycle as it was.

    Raises AmendmentError when the plan is not the one the amendment was made for, PlanError when the outcome
    breaks a rule of plans.
    """
    if change.is_empty:
        return plan
    steps = {name: step for name, step in plan.by_id.items() if name not in change.removed}
    for name in change.removed:
        if name not in plan.by_id:
            raise AmendmentError(f"there is no step {name} to remove: the amendment is for another plan", name)
    for each in change.changed:
        if each.step_id not in steps:
            message = f"there is no step {each.step_id} to change: the amendment is for another plan"
            raise AmendmentError(message, each.step_id)
        step = steps[each.step_id]
        steps[step.id] = attrs.evolve(step, **changed_values(step, each.fields, step.id))
    for step in change.added:
        if step.id in steps:
            raise AmendmentError(f"step {step.id} is there already: the amendment is for another plan", step.id)
        steps[step.id] = step
    if set(steps) != set(change.order):
        raise AmendmentError("the plan has other steps than the amendment knows: it is for another plan")
    steps_in_order = tuple(steps[name] for name in change.order)
    return attrs.evolve(plan, steps=steps_in_order, **changed_values(plan, change.fields, ""))


def changed_values(instance: Plan | Step, fields: Collection[FieldChange], step_id: str) -> dict[str, Any]:
    """The new values of fields, if those there now are the ones the amendment was made for."""
    for each in fields:
        if getattr(instance, each.name, None) != each.before:
            where = f"step {step_id}" if step_id else "the plan"
            raise AmendmentError(f"{each.name} of {where} is not what the amendment changes: make it anew", step_id)
    return {each.name: each.after for each in fields}


def changes(old: Plan | Step, new: Plan | Step, names: Collection[str]) -> tuple[FieldChange, ...]:
    """The fields in which two instances differ."""
    pairs = [(name, getattr(old, name), getattr(new, name)) for name in names]
    return tuple(FieldChange(name, before, after) for name, before, after in pairs if before != after)


def told(change: Difference) -> Iterator[str]:
    """A line for each change."""
    for field in change.fields:
        yield f"plan: {field}"
    for name in change.removed:
        yield f"step {name} removed"
    for step in change.added:
        after = f" after {', '.join(step.depends_on)}" if step.depends_on else ""
        yield f"step {step.id} added{after}: {step.role}, {step.risk_level} risk: {quoted(step.task)}"
    for each in change.changed:
        for field in each.fields:
            yield f"step {each.step_id}: {field}"
    if change.is_reordered:
        yield f"steps reordered: {quoted(', '.join(change.order))}"


def quoted(value: object) -> str:
    """A value in at most 160 characters."""
    if attrs.has(type(value)):
        parts = [f"{field.name} {getattr(value, field.name)}" for field in attrs.fields(type(value))]  # type: ignore[arg-type]
        return ", ".join(parts)
    text = repr(str(value) if isinstance(value, str) else value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
