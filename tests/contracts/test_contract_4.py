"""Contract 4, phased workflows: every checkable sentence of it, quoted and proved through the real loop."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ManualClock, ScriptedGenerator
from orchestrator.workflow import (
    ChoiceError,
    Domain,
    Phase,
    PhaseOutcome,
    Policy,
    Workflow,
    WorkflowPaused,
    load_domain,
)
from orchestrator.workflow.domainfiles import phase_warnings
from orchestrator.workflow.todos import read_todos
from orchestrator_events.event import Event

DONE = PhaseOutcome("done", {}, "Finished.")


@attrs.define(eq=False)
class Host:
    """A domain of two phases, and what its phases do."""

    directory: Path
    calls: dict[str, Callable[..., Any]]
    journal: MemoryJournal = attrs.Factory(MemoryJournal)
    clock: ManualClock = attrs.Factory(ManualClock)
    options: dict[str, Any] = attrs.Factory(dict)

    @property
    def domain(self) -> Domain:
        """The domain."""
        phases = ("00-init", "01-work", "done")
        return Domain(name="demo", title="Demo", phases=phases, state_directory=self.directory / "state")

    def workflow(self) -> Workflow:
        """An engine for it."""
        given = {"phases": self.calls, "journal": self.journal, "clock": self.clock}
        return Workflow(**{"domain": self.domain, **given, **self.options})

    def file(self, name: str) -> Path:
        """A state file."""
        return self.directory / "state" / f"{name}-state.json"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A domain whose phases succeed."""
    return Host(
        tmp_path,
        {
            "00-init": lambda *_: PhaseOutcome("01-work", {"workflow_id": "epic-1"}, "Parsed."),
            "01-work": lambda *_: PhaseOutcome("done", {"files": ["a.py"]}, "Worked."),
        },
    )


def failing(*_: object) -> PhaseOutcome:
    """A phase that fails."""
    raise ValueError("no network")


def seeing(seen: list[Any], look: Callable[[dict[str, Any], Any], Any]) -> Callable[..., PhaseOutcome]:
    """A phase that succeeds, and keeps what `look` makes of what it is given."""

    def phase(state: dict[str, Any], components: Any) -> PhaseOutcome:
        seen.append(look(state, components))
        return DONE

    return phase


def events(result: Any, name: str) -> list[Any]:
    """The events of one name."""
    found: list[Event] = [record.event for record in result.records if record.event.name == name]
    return found


class TestLoop:
    """Core loop and loop steps."""

    def test_the_order_of_the_steps(self, host: Host) -> None:
        """`1. Read State -> 2. Todo Update -> 3. Exec Phase -> 4. Merge State -> 5. Write -> 6. Output -> 7. Check`."""
        moves = [
            record.target
            for record in host.workflow().run().records
            if record.lifecycle == "workflow" and record.source != record.target
        ]
        loop = ["planning", "executing", "merging", "writing", "reporting", "checking"]
        assert moves == ["reading", *loop, "reading", *loop, "done"]

    def test_read_state(self, host: Host) -> None:
        """`action: read; state_file: "state/{{workflow_id}}-state.json"; result: state object available for loop`."""
        seen: list[Any] = []
        host.calls["01-work"] = seeing(seen, lambda state, _: state)
        result = host.workflow().run()
        assert seen == [json.loads(events(result, "state:written")[1].state.text)]
        assert host.file("epic-1").exists()

    def test_file_not_found_and_is_resume(self, host: Host) -> None:
        """`file not found AND is_resume: State file not found. Cannot resume. Prompt: start fresh or provide state?`"""
        host.calls["01-work"] = failing
        host.workflow().run()
        host.file("epic-1").unlink()
        result = host.workflow().resume("epic-1", "retry")
        assert result.lines[1:][0] == "State file not found. Cannot resume."
        assert isinstance(result, WorkflowPaused)
        assert result.decision.message == "State file not found. Cannot resume. Start fresh or provide state?"
        assert {"start fresh", "provide state"} <= set(result.decision.options)

    def test_parse_error(self, host: Host) -> None:
        """`parse error: State corrupted. Outputting raw for recovery. Output raw file content`."""
        host.calls["01-work"] = failing
        host.workflow().run()
        host.file("epic-1").write_text("half a fi")
        result = host.workflow().resume("epic-1", "retry")
        assert {"State corrupted. Outputting raw for recovery.", "half a fi"} <= set(result.lines)

    def test_update_todos(self, host: Host) -> None:
        """`Workflow: {{workflow_id}} - {{title}}; [status] Phase: …; [status] Item: …; completed, current, future`."""
        init = PhaseOutcome("01-work", {"workflow_id": "epic-1", "current_item": "login"}, "")
        host.calls["00-init"] = lambda *_: init
        view = read_todos(events(host.workflow().run(), "todos:updated")[1].todos.text)
        assert view.title == "Workflow: epic-1 - Demo"
        assert [(todo.content, todo.status) for todo in view.todos] == [
            ("Phase: 00-init", "completed"),
            ("Phase: 01-work", "in_progress"),
            ("Item: login", "in_progress"),
            ("Phase: done", "pending"),
        ]

    def test_execute_phase(self, tmp_path: Path) -> None:
        """`Determine phase file: {{phase_directory}}/{{state.phase}}.md. Read and execute phase file with state`."""
        (tmp_path / "phases").mkdir()
        (tmp_path / "phases" / "00-init.md").write_text("Parse the epic.")
        generator = ScriptedGenerator(['{"next_phase": "done", "state_updates": {}, "output": "Parsed."}'])
        domain = Domain(
            name="demo",
            phases=("00-init", "done"),
            phase_directory=tmp_path / "phases",
            state_directory=tmp_path / "state",
        )
        result = Workflow(domain, generator=generator).run()
        assert result.lines == ("Parsed.", "Workflow complete!")
        assert "Parse the epic." in generator.prompts[0]
        assert '"phase": "00-init"' in generator.prompts[0]

    def test_components_are_available(self, host: Host) -> None:
        """`components: available component interfaces`."""
        seen: list[Any] = []
        host.calls["01-work"] = seeing(seen, lambda _, components: components)
        host.workflow().run()
        assert all(hasattr(seen[0], name) for name in ("retry", "metrics", "learnings", "subagents"))

    def test_merge_state(self, host: Host) -> None:
        """`updates: phase: {{next_phase}}, ...{{state_updates}}, last_updated: {{current_iso_timestamp}}`."""
        result = host.workflow().run()
        last = events(result, "state:merged")[-1]
        assert last.fields_updated == ("files", "phase")
        merged = json.loads(last.state.text)
        assert (merged["phase"], merged["files"], merged["last_updated"]) == ("done", ["a.py"], "2026-01-01T00:00:00Z")

    def test_write_state(self, host: Host) -> None:
        """`action: write; state: {{merged_state}}`."""
        result = host.workflow().run()
        merged = [event.state.text for event in events(result, "state:merged")]
        assert [event.state.text for event in events(result, "state:written")][1:] == merged
        assert host.file("epic-1").read_text() == merged[-1]

    def test_write_failed(self, host: Host) -> None:
        """`write failed: Failed to persist state. Output full state JSON for manual recovery`."""

        def block(*_: object) -> PhaseOutcome:
            host.file("epic-1").unlink()
            host.file("epic-1").mkdir()
            return PhaseOutcome("done", {"files": ["a.py"]}, "")

        host.calls["01-work"] = block
        result = host.workflow().run()
        start = result.lines.index("Failed to persist state") + 2
        shown = "\n".join(result.lines[start : result.lines.index("}") + 1])
        assert json.loads(shown)["files"] == ["a.py"]

    def test_output_summary(self, host: Host) -> None:
        """`Output {{phase_output.output}} to user`."""
        assert host.workflow().run().lines[:2] == ("Parsed.", "Worked.")

    def test_done(self, host: Host) -> None:
        """`state.phase == 'done': Workflow complete! Exit loop`."""
        result = host.workflow().run()
        assert (result.status, result.lines[-1], result.phase) == ("done", "Workflow complete!", "done")

    def test_error_is_set(self, host: Host) -> None:
        """`state.error is set: Error: {{state.error}}. Prompt: retry, skip, or abort?`"""
        host.calls["01-work"] = failing
        result = host.workflow().run()
        assert result.lines[-2:] == ("Error: ValueError: no network", "retry, skip, or abort?")


class TestInitialization:
    """New and resumed workflows."""

    def test_receive_workflow_parameters(self, host: Host) -> None:
        """`Receive workflow parameters (e.g., epic_id)`."""
        result = host.workflow().run({"epic_id": "7"})
        assert result.state["parameters"] == {"epic_id": "7"}

    def test_initial_state(self, host: Host) -> None:
        """`Create initial state: phase, workflow_id: null, metrics. Write to state/workflow-new-state.json`."""
        seen: list[Any] = []

        def look(state: dict[str, Any], _: object) -> PhaseOutcome:
            seen.append((state, json.loads(host.file("workflow-new").read_text())))
            return DONE

        host.calls["00-init"] = look
        host.workflow().run()
        initial = {
            "phase": "00-init",
            "workflow_id": None,
            "metrics": {"workflow_version": "1.0", "start_time": "2026-01-01T00:00:00Z"},
        }
        assert seen == [(initial, initial)]

    def test_the_file_gets_its_id(self, host: Host) -> None:
        """`state/{{workflow_id}}-state.json`, once there is an id; the first name is gone."""
        host.workflow().run()
        assert (host.file("epic-1").exists(), host.file("workflow-new").exists()) == (True, False)

    def test_resume(self, host: Host) -> None:
        """`Receive workflow_id. Read state. Output: "Resuming from phase: {{phase}}". Enter main loop`."""
        host.calls["01-work"] = failing
        host.workflow().run()
        host.calls["01-work"] = lambda *_: DONE
        result = host.workflow().resume("epic-1", "retry")
        assert result.lines == ("Resuming from phase: 01-work", "Finished.", "Workflow complete!")

    def test_validate_state_has_valid_phase(self, host: Host) -> None:
        """`Validate state has valid phase`: an unknown one is refused and the choices are named."""
        host.calls["01-work"] = failing
        host.workflow().run()
        state = json.loads(host.file("epic-1").read_text())
        host.file("epic-1").write_text(json.dumps(state | {"phase": "07-epic-qa"}))
        result = host.workflow().resume("epic-1", "retry")
        assert any("'07-epic-qa' is unknown: there are 00-init, 01-work, done" in line for line in result.lines)
        with pytest.raises(ChoiceError, match="there are 00-init, 01-work, done"):
            host.workflow().resume("epic-1", "use file")


class TestPhaseContract:
    """`Each phase file MUST`."""

    def test_receive_state(self, host: Host) -> None:
        """`Receive state as input context`."""
        seen: list[Any] = []
        host.calls["01-work"] = seeing(seen, lambda state, _: state["workflow_id"])
        host.workflow().run()
        assert seen == ["epic-1"]

    def test_bounded_work(self, tmp_path: Path) -> None:
        """`Perform bounded work (~100 lines of instruction)`: a longer file warns."""
        (tmp_path / "phases").mkdir()
        (tmp_path / "phases" / "00-init.md").write_text("Do more.\n" * 101)
        (tmp_path / "domain.yaml").write_text("domain: demo\nphases: [00-init, done]\n")
        assert len(phase_warnings(load_domain(tmp_path / "domain.yaml"))) == 1

    @pytest.mark.parametrize(
        "returned",
        [
            {"next_phase": "done", "output": ""},
            {"next_phase": "done", "state_updates": [], "output": ""},
            {"next_phase": None, "state_updates": {}, "output": ""},
            {"next_phase": "done", "state_updates": {}, "output": 1},
            {"next_phase": "done", "state_updates": {"phase": "done"}, "output": ""},
            "done",
        ],
    )
    def test_structured_output(self, host: Host, returned: object) -> None:
        """`Return structured output: next_phase, state_updates, output`; anything else is the phase's error."""
        host.calls["01-work"] = lambda *_: returned
        result = host.workflow().run()
        assert (result.status, result.phase) == ("paused", "01-work")

    def test_an_unknown_next_phase(self, host: Host) -> None:
        """An unknown `next_phase` is an error that names the choices."""
        host.calls["01-work"] = lambda *_: PhaseOutcome("02-nowhere")
        error = host.workflow().run().state["error"]
        expected = "next_phase '02-nowhere' is unknown after 01-work: choose one of 00-init, 01-work, done"
        assert error == expected

    def test_a_next_phase_that_may_not_follow(self, host: Host) -> None:
        """A domain may declare what follows a phase; nothing else may."""
        phases = ("00-init", Phase(id="01-work", next=("01-work", "02-check")), Phase(id="02-check"), "done")
        domain = Domain(name="demo", phases=phases, state_directory=host.directory / "state")
        host.options["domain"] = domain
        host.calls["02-check"] = lambda *_: DONE
        error = host.workflow().run().state["error"]
        assert error == "next_phase 'done' may not follow 01-work: choose one of 01-work, 02-check"


class TestErrors:
    """Error handling."""

    def test_phase_error(self, host: Host) -> None:
        """`next_phase: current phase; state_updates: error, retry_count: 1; output: "Error encountered: ..."`."""
        host.calls["01-work"] = failing
        result = host.workflow().run()
        assert (result.state["phase"], result.state["retry_count"]) == ("01-work", 1)
        assert result.state["error"] == "ValueError: no network"
        assert "Error encountered: ValueError: no network" in result.lines

    def test_a_phase_that_says_so_itself(self, host: Host) -> None:
        """The same, returned by the phase."""
        says = PhaseOutcome("01-work", {"error": "no plan", "retry_count": 1}, "Error encountered: no plan")
        host.calls["01-work"] = lambda *_: says
        result = host.workflow().run()
        assert (result.state["error"], result.state["retry_count"]) == ("no plan", 1)
        assert "Error encountered: no plan" in result.lines

    def test_cascade(self, host: Host) -> None:
        """`failures_in_window >= cascade_threshold: Set state.cascade_detected = true; Pause execution;

        Generate diagnosis from learning records; Alert user with options: fix root cause, skip, abort`.
        """

        async def learn(_: object, components: Any) -> PhaseOutcome:
            await components.learnings.record_failure("test", "ValueError: no network")
            raise ValueError("no network")

        host.calls["01-work"] = learn
        host.options["policy"] = Policy(phase_error="retry")
        result = host.workflow().run()
        assert isinstance(result, WorkflowPaused)
        (found,) = events(result, "cascade:detected")
        assert (found.failures_in_window, found.threshold) == (3, 3)
        assert "lr-2026-01-01-001" in found.diagnosis or "learning records like it" in found.diagnosis
        assert result.state["cascade_detected"] is True
        assert json.loads(host.file("epic-1").read_text())["cascade_detected"] is True
        assert result.decision.options == ("fix", "skip", "abort")
        assert found.diagnosis in "\n".join(result.lines)


TEMPLATE = """\
# Software Epic Orchestrator

extends: sage/core/components/orchestrator-base.md

## Domain: software

## Phases

| Phase | File | Purpose |
|-------|------|---------|
| 00-init | 00-init.md | Parse epic, build queue |
| 01-item-start | 01-item-start.md | Load item, create branch |
| done | - | Workflow complete |

## Domain-Specific State

```json
{
  // Base state fields (from orchestrator-base)
  "phase": "...",
  "workflow_id": "...",

  // Domain-specific fields
  "epic_id": "...",
  "story_queue": [],
  "current_story": null,
  // ...
}
```

## Domain-Specific Components

- Additional subagent types
- Custom retry policies
- Domain metrics

## Phase Directory

./phases/
├── 00-init.md
├── 01-item-start.md
└── 08-finalize.md
"""


class TestDomains:
    """Base structure, domain extension template, usage."""

    def test_the_template(self, tmp_path: Path) -> None:
        """`Domain Extension Template`: loaded as it stands, its rows filled in."""
        (tmp_path / "phases").mkdir()
        for name in ("00-init", "01-item-start"):
            (tmp_path / "phases" / f"{name}.md").write_text("Do it.")
        (tmp_path / "orchestrator.md").write_text(TEMPLATE)
        domain = load_domain(tmp_path / "orchestrator.md")
        assert (domain.name, domain.ids) == ("software", ("00-init", "01-item-start", "done"))
        assert domain.phase("00-init").purpose == "Parse epic, build queue"
        assert set(domain.state["properties"]) == {"epic_id", "story_queue", "current_story"}
        assert (domain.phase_directory, domain.state_directory) == (tmp_path / "phases", tmp_path / "state")

    def test_done_is_terminal(self, host: Host) -> None:
        """`done | - | Workflow complete`: it has no file, and nothing follows it."""
        domain = host.domain
        assert (domain.path_of(domain.phase("done")), domain.choices_after("done")) == (None, ())
        assert domain.lifecycle.resting == ("done",)

    def test_verify_phase_transitions(self, host: Host) -> None:
        """`Test loop: Verify phase transitions work correctly`: they are a lifecycle of their own, in the journal."""
        moves = [(each.source, each.target) for each in host.workflow().run().records if each.lifecycle == "demo"]
        assert moves == [("begun", "00-init"), ("00-init", "01-work"), ("01-work", "done")]
