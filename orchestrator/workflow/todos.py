"""What is done, under way and to come: the state as the to-do list of contract 4, as data."""

from __future__ import annotations

import json
from typing import Literal

import attrs

from orchestrator.jsondata import JSON
from orchestrator.workflow.domain import DONE, Domain
from orchestrator.workflow.statetext import NEW, State

__all__ = ["Todo", "TodoStatus", "TodoView", "read_todos", "todos_of", "written_todos"]

TodoStatus = Literal["pending", "in_progress", "completed"]


@attrs.frozen
class Todo:
    """One line of the list."""

    content: str
    status: TodoStatus


@attrs.frozen
class TodoView:
    """The list: its title line, and what belongs to it."""

    title: str
    """`Workflow: {id} - {title}`."""
    todos: tuple[Todo, ...]


def todos_of(domain: Domain, state: State) -> TodoView:
    """The list for a state: completed phases, the current one in progress, those to come pending."""
    phase = state.get("phase")
    current = domain.ids.index(phase) if phase in domain.ids else 0
    is_done = phase == DONE
    todos: list[Todo] = []
    for index, each in enumerate(domain.phases):
        todos.append(Todo(f"Phase: {each.id}", status_of(index, current, is_done=is_done)))
        item = item_in(domain, state)
        if index == current and item and not is_done:
            todos.append(Todo(f"Item: {item}", "in_progress"))
    name = state.get("workflow_id") or NEW
    return TodoView(f"Workflow: {name} - {state_title(domain, state)}", tuple(todos))


def written_todos(view: TodoView) -> str:
    """The list as JSON: {content, status} each, the title line first."""
    is_done = all(todo.status == "completed" for todo in view.todos)
    title = Todo(view.title, "completed" if is_done else "in_progress")
    return json.dumps([attrs.asdict(todo) for todo in (title, *view.todos)], ensure_ascii=False)


def read_todos(text: str) -> TodoView:
    """The list that `written_todos` wrote."""
    title, *todos = (Todo(**each) for each in json.loads(text))
    return TodoView(title.content, tuple(todos))


def status_of(index: int, current: int, *, is_done: bool) -> TodoStatus:
    """completed, current, future: completed, in_progress, pending (contract 4)."""
    if is_done or index < current:
        return "completed"
    return "in_progress" if index == current else "pending"


def item_in(domain: Domain, state: State) -> str:
    """What the workflow is working on; empty where nothing is."""
    item: JSON = state.get(domain.item)
    if isinstance(item, dict):
        item = item.get("title") or item.get("name") or item.get("id")
    return str(item) if isinstance(item, str | int) and not isinstance(item, bool) else ""


def state_title(domain: Domain, state: State) -> str:
    """The title of the workflow: its own, else the domain's."""
    title = state.get("title")
    return title if isinstance(title, str) and title else domain.title or domain.name
