"""Domain definitions: YAML, TOML and Markdown give the same domain, and a bad one says everything that is wrong."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from orchestrator.workflow import CascadeRule, Domain, DomainError, Phase, Policy, Workflow, load_domain
from orchestrator.workflow.domainfiles import phase_warnings, read_domain
from orchestrator.workflow.executors import lacking

YAML = """\
extends: sage/core/components/orchestrator-base.md
domain: software
title: Software epics
phases:
  - {id: 00-init, purpose: "Parse epic, build queue", next: [01-work]}
  - {id: 01-work, callable: "package.module:work", seconds: 60}
  - done
components:
  retry-handler: {test: 4}
state:
  epic_id: {type: string}
  queue: {type: array, items: {type: string}}
policy: {phase-error: retry}
cascade: {threshold: 2, window: 4}
"""
TOML = """\
extends = "orchestrator-base"
domain = "software"
title = "Software epics"
components.retry-handler.test = 4
policy.phase-error = "retry"
cascade = {threshold = 2, window = 4}
state.epic_id.type = "string"
state.queue = {type = "array", items = {type = "string"}}

[[phases]]
id = "00-init"
purpose = "Parse epic, build queue"
next = ["01-work"]

[[phases]]
id = "01-work"
callable = "package.module:work"
seconds = 60

[[phases]]
id = "done"
"""
MARKDOWN = """\
# Software epics

extends: sage/core/components/orchestrator-base.md

## Domain: software

## Phases

| Phase | File | Purpose | Next |
|-------|:----:|---------|------|
| 00-init | 00-init.md | Parse epic, build queue | 01-work |
| 01-work | package.module:work | | - |
| done | - | Workflow complete | |

## Domain-Specific State

```json
{
  // Base state fields (from orchestrator-base)
  "phase": "...",
  "workflow_id": "...",

  // Domain-specific fields
  "epic_id": "https://example.org/1",
  "story_queue": [],
  "current_story": null,
  // ...
}
```

## Domain-Specific Components

- Custom retry policies

```yaml
retry-handler: {test: 4}
```

## Phase Directory

./phases/
├── 00-init.md
└── 01-work.md
"""


def written(folder: Path, name: str, text: str) -> Path:
    """A file with this text."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def fields(domain: Domain) -> dict[str, object]:
    """A domain as its fields, without where it came from."""
    return {field.name: getattr(domain, field.name) for field in attrs.fields(Domain) if field.name != "source"}


def test_yaml(tmp_path: Path) -> None:
    """A YAML file is read whole, its directories seen from where it lies."""
    domain = load_domain(written(tmp_path, "domain.yaml", YAML))
    assert domain.phases == (
        Phase(id="00-init", purpose="Parse epic, build queue", next=("01-work",)),
        Phase(id="01-work", callable="package.module:work", seconds=60.0),
        Phase(id="done"),
    )
    assert (domain.phase_directory, domain.state_directory) == (tmp_path / "phases", tmp_path / "state")
    assert (domain.policy, domain.cascade) == (Policy(phase_error="retry"), CascadeRule(2, 4))
    assert (domain.components.retry_handler.test, domain.components.retry_handler.review) == (4, 2)


def test_toml(tmp_path: Path) -> None:
    """The same domain as TOML is the same."""
    as_yaml = load_domain(written(tmp_path, "domain.yaml", YAML))
    assert fields(load_domain(written(tmp_path, "domain.toml", TOML))) == fields(as_yaml)


def test_markdown(tmp_path: Path) -> None:
    """The contract's Domain Extension Template is a domain."""
    written(tmp_path, "phases/00-init.md", "Parse.")
    domain = load_domain(written(tmp_path, "domain.md", MARKDOWN))
    assert (domain.name, domain.title, domain.ids) == ("software", "Software epics", ("00-init", "01-work", "done"))
    assert (domain.phase("00-init").following, domain.phase("01-work").call) == (("01-work",), "package.module:work")
    assert domain.components.retry_handler.test == 4
    assert list(domain.state["properties"]) == ["epic_id", "story_queue", "current_story"]
    assert domain.phase_directory == tmp_path / "phases"


def test_markdown_with_a_yaml_head(tmp_path: Path) -> None:
    """The keys may stand in a YAML head instead, or in the fenced block of the contract's Base Structure."""
    as_yaml = fields(load_domain(written(tmp_path, "domain.yaml", YAML)))
    headed = load_domain(written(tmp_path, "headed.md", f"---\n{YAML}---\n\n# Anything\n"))
    fenced = load_domain(written(tmp_path, "fenced.md", f"# Anything\n\n```yaml\n# orchestrator.md\n{YAML}```\n"))
    assert (fields(headed), fields(fenced)) == (as_yaml, as_yaml)


def test_the_contracts_base_structure(tmp_path: Path) -> None:
    """The contract's own example of a domain file, its phases filled in, is a domain."""
    text = """\
extends: sage/core/components/orchestrator-base.md
domain: game
phases:
  - "00-init"
  - "done"
components:
  - state-manager
  - retry-handler
  - metrics-collector
  - learning-recorder
  - subagent-spawner
phase_directory: "./phases/"
state_directory: "./state/"
"""
    assert load_domain(written(tmp_path, "orchestrator.yaml", text)).ids == ("00-init", "done")


def test_extends(tmp_path: Path) -> None:
    """A file adds to what it extends, table by table; directories stay where the file that named them lies."""
    written(tmp_path, "base/base.yaml", YAML)
    child = "extends: base/base.yaml\ndomain: mine\ncascade: {threshold: 3}\nphase_directory: own\n"
    domain = load_domain(written(tmp_path, "domain.yaml", child))
    assert (domain.name, domain.ids, domain.cascade) == ("mine", ("00-init", "01-work", "done"), CascadeRule(3, 4))
    assert (domain.phase_directory, domain.state_directory) == (tmp_path / "own", tmp_path / "base" / "state")


def test_a_circle(tmp_path: Path) -> None:
    """Files that extend each other in a circle are refused, and the circle is named."""
    written(tmp_path, "a.yaml", "extends: b.yaml\ndomain: a\nphases: [x, done]\n")
    written(tmp_path, "b.yaml", "extends: c.yaml\n")
    written(tmp_path, "c.yaml", "extends: b.yaml\n")
    with pytest.raises(DomainError, match=r"in a circle: b.yaml -> c.yaml -> b.yaml"):
        load_domain(tmp_path / "a.yaml")


def test_every_fault_at_once(tmp_path: Path) -> None:
    """A bad file answers with everything that is wrong with it, each with its place."""
    text = """\
domain: workflow
phases:
  - {id: 00-init, next: [01-wrok, done]}
  - {id: 01-work, file: missing.md, callable: "no function"}
  - {id: 01-work}
  - {id: "../x"}
components: {retry-handlr: {}}
state: {x: {type: text}}
"""
    with pytest.raises(DomainError) as caught:
        load_domain(written(tmp_path, "domain.yaml", text))
    assert {fault.path for fault in caught.value.faults} == {
        "$.phases",
        "$.phases[0].next[0]",
        "$.phases[0].next[1]",
        "$.phases[1]",
        "$.phases[1].callable",
        "$.phases[2].id",
        "$.phases[3].id",
        "$.domain",
        "$.state.properties.x.type",
        "$.components.retry-handlr",
    }
    assert "did you mean '01-work'" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("domain: x\nphases: [a, done]\nphase: 1\n", "unknown key"),
        ("domain: x\nphases: [a, done]\ncascade: {threshold: 9}\n", "above the window"),
        ("domain: x\nphases: [a, b]\n", "the last phase must be 'done'"),
        ("domain: x\nphases: [done]\n", "no phase to execute"),
        ("domain: x\nphases: [{id: a, next: [a]}, done]\n", "leads to no resting state"),
        ("domain: x\nphases: [{id: a, next: []}, done]\n", "names no phase"),
        ("extends: nowhere.yaml\ndomain: x\nphases: [a, done]\n", "is no file"),
        ("domain: x\nphases: [{id: a, file: missing.md}, done]\n", "no such file"),
        ("domain: x\nphases: [a, done]\nstate: {phase: {type: string}}\n", "the engine keeps this field"),
        (
            "domain: x\nphases: [a, done]\nstate: {properties: {a: {}}, required: [a]}\n",
            r"state\.required: .*leave it out",
        ),
        ("domain: x\nphases: [a, done]\npolicy: {cascade: retry}\n", "expected one of"),
        ("domain: x\nphases: [a, done]\nstate: {properties: 7}\n", r"state\.properties: expected a table of schemas"),
        ("- a\n", "expected a table"),
    ],
)
def test_faults(tmp_path: Path, text: str, said: str) -> None:
    """Each kind of fault is refused in words that say what to do."""
    with pytest.raises(DomainError, match=said):
        load_domain(written(tmp_path, "domain.yaml", text))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("", "has no table"),
        ("| Name |\n|--|\n| a |\n", "no column Phase"),
        ("| Phase |\n|--|\n| ... |\n", "fill it in"),
    ],
)
def test_markdown_faults(tmp_path: Path, table: str, said: str) -> None:
    """A Markdown domain whose table is none says so, with its heading."""
    with pytest.raises(DomainError, match=rf"## Phases: .*{said}"):
        load_domain(written(tmp_path, "domain.md", f"## Domain: x\n\n## Phases\n\n{table}"))


def test_the_lifecycle() -> None:
    """The phases are a lifecycle: only declared moves where `next` is declared, any otherwise."""
    domain = Domain(name="x", phases=(Phase(id="a", next=("b",)), "b", "done"))
    rows = {row.target: row.sources for row in domain.lifecycle.rows}
    assert rows == {"a": ("begun", "b"), "b": ("a", "b"), "done": ("b",)}


def test_long_phases_warn(tmp_path: Path) -> None:
    """A phase file of more than a hundred lines warns; one of a hundred does not."""
    written(tmp_path, "phases/a.md", "line\n" * 101)
    written(tmp_path, "phases/b.md", "line\n" * 100)
    domain = load_domain(written(tmp_path, "domain.yaml", "domain: x\nphases: [a, b, done]\n"))
    (warning,) = phase_warnings(domain)
    assert "a.md: 101 lines" in warning


def test_phase_faults_with_those_of_the_structure(tmp_path: Path) -> None:
    """What is wrong with phases and their files is told together with keys and values that fit no domain."""
    text = """\
domian: x
title: 7
phases:
  - {id: a, next: [bb], sekonds: 3}
  - {id: b, file: missing.md, callable: 7}
"""
    with pytest.raises(DomainError) as caught:
        load_domain(written(tmp_path, "domain.yaml", text))
    assert sorted(fault.path for fault in caught.value.faults) == [
        "$.domain",
        "$.domian",
        "$.phases",
        "$.phases[0].next[0]",
        "$.phases[0].sekonds",
        "$.phases[1].callable",
        "$.phases[1].file",
        "$.title",
    ]


def test_phase_files_with_faults_of_phases(tmp_path: Path) -> None:
    """A phase file that is missing is told together with a phase that may not come next, each once."""
    text = "domain: x\nphases: [{id: a, next: [c]}, {id: b, file: missing.md}, done]\n"
    with pytest.raises(DomainError) as caught:
        load_domain(written(tmp_path, "domain.yaml", text))
    assert [fault.path for fault in caught.value.faults] == ["$.phases[0].next[0]", "$.phases[1].file"]


@pytest.mark.parametrize("phases", ["7", "[7, done]", "[{title: A, next: [b]}, done]", "{}"])
def test_phases_without_structure(tmp_path: Path, phases: str) -> None:
    """Phases that are none are told as such, and nothing is guessed about what they might have been."""
    with pytest.raises(DomainError) as caught:
        load_domain(written(tmp_path, "domain.yaml", f"domain: x\nphases: {phases}\n"))
    assert all("no phase" not in fault.message and "last phase" not in fault.message for fault in caught.value.faults)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (  # a base that is not there
            "extends: nowhere.yaml\nphases: [{id: a b, next: [c]}, done]\nstate: {x: {type: text}}\ntitle: 7\n",
            ["$.extends", "$.phases[0].id", "$.phases[0].next[0]", "$.state.properties.x.type", "$.title"],
        ),
        (  # a base that is none
            "extends: 7\ndomain: a b\n",
            ["$.domain", "$.extends"],
        ),
        (  # what is extended might have the other half of the rule, and the directory of the file
            "extends: nowhere.yaml\ndomain: x\ncascade: {threshold: 9}\nphases: [{id: a, file: a.md}, done]\n",
            ["$.extends"],
        ),
        (  # phases that are none
            "domain: a b\nphases: 7\nstate: {x: {type: text}}\nparameters: {y: {type: text}}\n",
            ["$.domain", "$.parameters.y.type", "$.phases", "$.state.properties.x.type"],
        ),
        (  # a phase that is none, which may be the one that comes next
            "domain: x\nphases: [{id: a b, next: [c]}, 7, {id: d, callable: e}, done]\n",
            ["$.phases[0].id", "$.phases[1]", "$.phases[2].callable"],
        ),
        (  # a phase without an id, with a file of its own
            "domain: x\nphases: [{id: a b}, {idd: b, file: missing.md}, done]\n",
            ["$.phases[0].id", "$.phases[1].file", "$.phases[1].id", "$.phases[1].idd"],
        ),
        (  # keys that are written in quotes
            "domain: x\nphases: [{id: a b}, done]\n'we ird': 1\npolicy: {phase error: retry}\n",
            ["$.phases[0].id", "$.policy['phase error']", "$['we ird']"],
        ),
        (  # a rule across keys, of which one is misspelt
            "domain: x\nphases: [{id: a b}, done]\ncascade: {threshold: 9, windw: 12}\n",
            ["$.cascade.windw", "$.phases[0].id"],
        ),
    ],
)
def test_faults_of_all_layers(tmp_path: Path, text: str, paths: list[str]) -> None:
    """No fault hides another, whichever layer finds it; nothing is said that another may be the cause of."""
    with pytest.raises(DomainError) as caught:
        load_domain(written(tmp_path, "domain.yaml", text))
    assert sorted(fault.path for fault in caught.value.faults) == paths


def test_faults_of_what_is_extended(tmp_path: Path) -> None:
    """A base that cannot be read, however far away, is named with what is wrong with it."""
    written(tmp_path, "one/domain.yaml", "extends: ../two/domain.yaml\ndomain: x\nphases: [a b, done]\n")
    written(tmp_path, "two/domain.yaml", "extends: base.yaml\n")
    written(tmp_path, "two/base.yaml", "- a\n")
    with pytest.raises(DomainError) as caught:
        load_domain(tmp_path / "one/domain.yaml")
    assert [str(fault) for fault in caught.value.faults] == [
        "$.extends: ../two/domain.yaml: $.extends: base.yaml: $: expected a table: a domain definition",
        "$.phases[0].id: 'a b' is no id: use letters, digits, '.', '_' and '-'",
    ]


def test_a_circle_of_namesakes(tmp_path: Path) -> None:
    """The files of a circle are told apart by their directories."""
    written(tmp_path, "one/domain.yaml", "extends: ../two/domain.yaml\ndomain: a\nphases: [x, done]\n")
    written(tmp_path, "two/domain.yaml", "extends: ../one/domain.yaml\n")
    with pytest.raises(DomainError, match=r"in a circle: domain\.yaml -> \.\./two/domain\.yaml -> domain\.yaml$"):
        load_domain(tmp_path / "one/domain.yaml")


def test_what_executes_phases_is_told_at_once(tmp_path: Path) -> None:
    """Callables that cannot be imported do not hide phase files that are missing, with a loaded domain or a bad one."""
    phases = "[{id: a, callable: 'no_module:f'}, {id: b, callable: 'os:no_function'}, c, {id: d e}, done]"
    good = load_domain(written(tmp_path, "good.yaml", f"domain: x\nphases: {phases.replace('{id: d e}, ', '')}\n"))
    with pytest.raises(DomainError) as unexecuted:
        Workflow(good)
    with pytest.raises(DomainError) as refused:
        read_domain(written(tmp_path, "bad.yaml", f"domain: x\nphases: {phases}\n"), lacking)
    lacked = ["$.phases[0].callable", "$.phases[1].callable", "$.phases[2]"]
    assert [fault.path for fault in unexecuted.value.faults] == lacked
    assert sorted(fault.path for fault in refused.value.faults) == [*lacked, "$.phases[3].id"]


def test_unknown_settings_name_the_known_ones(tmp_path: Path) -> None:
    """A setting that a component does not have is answered with those that it has."""
    text = "domain: x\nphases: [a, done]\ncomponents: {retry-handler: {max_retries: 3}, state-manager: {x: 1}}\n"
    with pytest.raises(DomainError) as caught:
        load_domain(written(tmp_path, "domain.yaml", text))
    assert [str(fault) for fault in caught.value.faults] == [
        "$.components.retry-handler.max_retries: unknown key: there are test, review, build, custom",
        "$.components.state-manager.x: unknown key: there are none here",
    ]
