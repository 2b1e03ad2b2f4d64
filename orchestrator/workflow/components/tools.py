"""The components as tools, for phases that are files: contract 4's names of components, actions and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import attrs

from orchestrator.agent.plainjson import written
from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.errors import DocumentError
from orchestrator.faults import closest_name
from orchestrator.jsondata import JSON, json_faults
from orchestrator.schemas.shapes import Shapes
from orchestrator.structuring import structure
from orchestrator.workflow.components.actions import ACTIONS, DEFAULT_ACTIONS, Action
from orchestrator.workflow.components.context import ContextError
from orchestrator.workflow.components.fileclaims import FileOverlapError
from orchestrator.workflow.components.learnings import UnknownRecordError
from orchestrator.workflow.components.metrics import MetricError
from orchestrator.workflow.components.retry import UnknownOperationError
from orchestrator.workflow.components.subagents import UnknownRoleError
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.subscribers.metrics import TimerError

if TYPE_CHECKING:
    from orchestrator.workflow.components.bundle import Components

__all__ = ["ActionError", "ComponentTool", "act", "call_component", "component_tools"]

DESCRIPTIONS: Final[Mapping[str, str]] = {
    "subagent_spawner": "Gives a bounded task to a subagent (spawn), or several at once (spawn_parallel).",
    "metrics_collector": "Records counts, times and tokens (record_count, start_timer, stop_timer, record_tokens), "
    "and sums them up (get_summary).",
    "retry_handler": "Attempts an operation, at most max_retries times in all (retry). One that only you can attempt "
    "you attempt yourself, and say success, error and fix after each attempt. history lists the attempts.",
    "learning_recorder": "Records a failure (record) and what resolved it (resolve), finds failures like one "
    "(find_similar), sums them up (aggregate).",
}
REFUSALS: Final = (
    ContextError,
    DocumentError,
    FileOverlapError,
    MetricError,
    TimerError,
    UnknownOperationError,
    UnknownRecordError,
    UnknownRoleError,
    ValueError,
)
"""What a caller can put right by calling differently."""


class ActionError(OrchestratorError):
    """A phase asked a component for what it does not do; `component` names it. Asking differently puts it right."""

    def __init__(self, component: str, fault: str) -> None:
        self.component = component
        super().__init__(f"{component[:80]}: {fault}")


async def act(components: Components, value: JSON) -> JSON:
    """What a component answers to `{component: {action, …}}`, one component to an object.

    Raises as `call_component` does.
    """
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ActionError("components", f"ask one of {', '.join(ACTIONS)}: {{name: {{action, …}}}} and nothing else")
    ((component, arguments),) = value.items()
    return await call_component(components, component, arguments)


async def call_component(components: Components, component: str, arguments: JSON) -> JSON:
    """What a component answers to `{action, …}`, as plain data; names may be written with '-' for '_'.

    Raises ActionError for what can be put right by asking differently, and whatever else ends a phase:
    BudgetReachedError, GeneratorUnavailableError, FileConflictError, JournalError.
    """
    name = str(component).replace("-", "_")
    if name not in ACTIONS:
        raise ActionError(name, f"no such component: there are {', '.join(ACTIONS)}")
    try:
        action = action_of(name, arguments)
        return await action.perform(components)
    except REFUSALS as error:
        raise ActionError(name, str(error)) from error


def component_tools(components: Components) -> dict[str, ComponentTool]:
    """The components of a phase as tools of an agent, by name."""
    return {name: ComponentTool(name, components) for name in ACTIONS}


@attrs.frozen(eq=False)
class ComponentTool:
    """One component, as a tool: its schema names the actions and all their arguments."""

    name: str
    components: Components
    is_idempotent: bool = attrs.field(default=False, init=False)

    @property
    def description(self) -> str:
        """What the component does."""
        return DESCRIPTIONS[self.name]

    @property
    def schema(self) -> Mapping[str, JSON]:
        """JSON Schema of the arguments, those of all actions together; each action refuses the others'."""
        shapes, properties = Shapes(), dict[str, JSON]()
        for kind in ACTIONS[self.name].values():
            hints = get_type_hints(kind)
            properties |= {name: shapes.of(hint) for name, hint in hints.items()}
        properties["action"] = {"enum": list(ACTIONS[self.name])}
        required = [] if self.name in DEFAULT_ACTIONS else ["action"]
        definitions = {"$defs": dict(shapes.definitions)} if shapes.definitions else {}
        closed = {"type": "object", "properties": properties, "additionalProperties": False, "required": required}
        return {**closed, **definitions}

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Do it; what can be put right by asking differently is a failed call, whose text says how."""
        try:
            data = await call_component(self.components, self.name, dict(request.arguments))
        except ActionError as error:
            return ToolOutcome(is_success=False, output=str(error))
        return ToolOutcome(is_success=True, output=written(data), data=data)


def action_of(component: str, arguments: JSON) -> Action:
    """The action that the arguments ask for, strictly checked."""
    actions = ACTIONS[component]
    if not isinstance(arguments, Mapping):
        raise ActionError(component, "the arguments are an object: give an action and what it takes")
    faults = tuple(json_faults(dict(arguments)))
    if faults:
        raise DocumentError("arguments", faults)
    given: dict[str, Any] = dict(arguments)
    name = given.pop("action", DEFAULT_ACTIONS.get(component, ""))
    if not isinstance(name, str) or name not in actions:
        hint = closest_name(str(name), actions)
        suggestion = f" (did you mean {hint!r}?)" if hint else ""
        fault = f"no action {str(name)[:80]!r}: there are {', '.join(actions)}{suggestion}"
        raise ActionError(component, fault)
    return structure(given, actions[name], f"{component}.{name}")
