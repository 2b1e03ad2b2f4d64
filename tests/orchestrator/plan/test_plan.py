"""Plans: everything wrong with a file is said at once, and a plan that was locked cannot change unseen."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import attrs
import pytest
from jsonschema import Draft202012Validator

from orchestrator.plan.checking import MOST_STEPS
from orchestrator.plan.dumping import dumped
from orchestrator.plan.ordering import ordered, parallel_sets, ready
from orchestrator.plan.plan import Plan, PlanError, Step, load_plan, read_plan
from orchestrator.plan.vocabulary import Executor, Risk, TaskType
from orchestrator.schemas import schema

TOML = """
plan_id = "2f1e7c1e-9a3b-4f0e-8a61-0f3d2f6f2b11"
goal = "Users can sign in."
context_requirements = ["CONTEXT/context.json"]

[[steps]]
id = "design"
role = "Architect"
task = "Design the interface."
task_type = "architecture"
risk_level = "medium"
acceptance-criteria = ["Every call has an error."]
inputs = ["CONTEXT/context.json"]
outputs = ["CONTRACTS/sign-in.yaml"]

[[steps]]
id = "build"
role = "Implementer"
task = "Build it."
task_type = "implementation"
risk_level = "high"
depends_on = ["design"]
acceptance_criteria = ["All tests pass."]
inputs = ["CONTRACTS/sign-in.yaml"]
outputs = ["src/sign_in.py"]
test_plan = ["pytest tests/sign_in"]
rollback_plan = "Switch the flag off."
review_gates = { must_run_integration = true }
executor = "conformance"
model = "GLM"

[[steps]]
id = "page"
role = "Designer"
task = "Draw the page."
task_type = "ux"
risk_level = "low"
depends_on = ["design"]
acceptance_criteria = ["It works without a mouse."]
ambiguity = true
"""


def step(name: str, *depends_on: str, **fields: Any) -> Step:
    """A step of low risk."""
    defaults: dict[str, Any] = {"role": "Implementer", "task": f"Do {name}.", "acceptance_criteria": ("It is done.",)}
    return Step(**{"id": name, "depends_on": depends_on, "risk_level": Risk.LOW, **defaults, **fields})


def plan(*steps: Step, **fields: Any) -> Plan:
    """A plan of these steps."""
    return Plan(**{"plan_id": "p", "goal": "It works.", "steps": steps, **fields})


def faults(**changes: Any) -> list[str]:
    """What is said of a small plan with these changes."""
    first = {"id": "a", "role": "r", "task": "t", "risk_level": "low", "acceptance_criteria": ["c"]}
    data: dict[str, Any] = {"plan_id": "p", "goal": "g", "steps": [first, {**first, "id": "b", **changes}]}
    with pytest.raises(PlanError) as caught:
        read_plan(data, "plan.json")
    return [str(fault) for fault in caught.value.faults]


def test_formats_agree(tmp_path: Path) -> None:
    """The same plan in TOML, JSON and YAML is the same plan, with the same digest."""
    import yaml

    (tmp_path / "plan.toml").write_text(TOML)
    loaded = load_plan(tmp_path / "plan.toml")
    (tmp_path / "plan.json").write_text(json.dumps(dumped(loaded)))
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(dumped(loaded)))
    others = [load_plan(tmp_path / "plan.json"), load_plan(tmp_path / "plan.yaml")]
    assert others == [loaded, loaded]
    assert {each.digest for each in (loaded, *others)} == {loaded.digest}
    assert loaded.step("build").task_type is TaskType.IMPLEMENTATION


def test_published_schema(tmp_path: Path) -> None:
    """A plan that loads keeps to the published schema; one without criteria or with another risk does not."""
    (tmp_path / "plan.toml").write_text(TOML)
    data = dumped(load_plan(tmp_path / "plan.toml"))
    check = Draft202012Validator(schema("plan"))
    assert [error.message for error in check.iter_errors(data)] == []
    changes: list[dict[str, Any]] = [{"acceptance_criteria": []}, {"risk_level": "severe"}, {"rol": "r"}]
    for change in changes:
        broken = {**data, "steps": [{**data["steps"][0], **change}]}
        assert not check.is_valid(broken)


WRONG: list[tuple[str, Any]] = [
    ("id", "a b"),
    ("role", ""),
    ("task", " "),
    ("acceptance_criteria", [" "]),
    ("outputs", ["a/"]),
    ("depends_on", ["b", "b"]),
    ("depends_on", ["../b"]),
]


def test_the_published_schema_knows_the_rules_of_each_key() -> None:
    """It has no default for what is required, and refuses ids, paths and empty texts that the reader refuses."""
    assert '"default": 1' not in json.dumps([schema(kind) for kind in ("plan", "review", "spec")])
    good = dumped(plan(step("a", outputs=("docs/a.md",)), step("b", "a"), context_requirements=("c.md",)))
    check = Draft202012Validator(schema("plan"))
    assert check.is_valid(good)
    first = good["steps"][0]
    wrong: list[dict[str, Any]] = [
        *({"plan_id": "a/b"}, {"goal": " "}, {"steps": []}, {"context_requirements": ["../c"]}),
        *({"steps": [{**first, key: value}]} for key, value in WRONG),
    ]
    for broken in wrong:
        assert not check.is_valid({**good, **broken}), broken
        with pytest.raises(PlanError):
            read_plan({**good, **broken}, "plan.json")


def test_every_fault_at_once(tmp_path: Path) -> None:
    """Types and rules between steps are complained of together, each at its place, near names named."""
    data = {
        "plan_id": "a plan",
        "steps": [
            {"id": "one", "role": "r", "task": "t", "risk_level": "hgh", "acceptance_criteria": []},
            {"id": "One", "role": "r", "risk_level": "low", "acceptance_criteria": ["c"], "depend_on": []},
            {"id": "two", "role": "r", "task": "t", "risk_level": "low", "acceptance_criteria": ["c"],
             "depends_on": ["three", "onee"]},
            {"id": "three", "role": "r", "task": "t", "risk_level": "low", "acceptance_criteria": ["c"],
             "depends_on": ["two"], "outputs": ["../etc/passwd"]},
        ],
    }  # fmt: skip
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(data))
    with pytest.raises(PlanError) as caught:
        load_plan(file)
    assert [str(fault) for fault in caught.value.faults] == [
        (
            "$.steps[0].risk_level: expected one of 'low', 'medium', 'high', 'critical', found a string 'hgh' "
            "(did you mean 'high'?)"
        ),
        "$.steps[1].depend_on: unknown key (did you mean 'depends_on'?)",
        "$.steps[1].task: required key is missing",
        "$.goal: required key is missing",
        (
            "$.plan_id: 'a plan' is no plan id: use at most 100 of the letters A-Z and a-z, digits, '.', '_' and '-', "
            "beginning with a letter or digit"
        ),
        "$.steps[0].acceptance_criteria: is empty: say at least one thing that tells it is done",
        "$.steps[1].id: 'One' is the same file name as 'one': rename one",
        (
            "$.steps[3].outputs[0]: '../etc/passwd' is no artifact: use a relative path such as docs/design.md, of "
            "letters, digits, '.', '_' and '-'"
        ),
        "$.steps[2].depends_on[1]: there is no step 'onee' (did you mean 'one'?)",
        "$.steps[2].depends_on: depends on itself: two -> three -> two; remove one of these dependencies",
    ]


def test_rules_are_told_beside_types() -> None:
    """Wrong types and broken dependencies hide no rule: an empty role, goal or task, a bad id, an unknown input."""
    changes = {"role": "", "task": " ", "depends_on": ["c"], "inputs": ["nope"], "outputs": "a.md", "risk_level": 3}
    first = {"id": "a", "role": "r", "task": "t", "risk_level": "low", "acceptance_criteria": ["c"], "inputs": ["a.md"]}
    with pytest.raises(PlanError) as caught:
        read_plan({"plan_id": "b/ad", "goal": " ", "steps": [first, {**first, "id": "b", **changes}]}, "plan.json")
    assert [fault.path for fault in caught.value.faults] == [
        "$.steps[1].risk_level",
        "$.steps[1].outputs",
        "$.plan_id",
        "$.goal",
        "$.steps[1].role",
        "$.steps[1].task",
        "$.steps[1].depends_on[0]",
        "$.steps[1].inputs[0]",
    ]


def test_made_in_python() -> None:
    """A plan made in Python is held to the types as well, all faults at once; words and lists are taken as meant."""
    meant = step("a", risk_level="high", task_type="ux", executor="agent", acceptance_criteria=["It is done."])
    assert plan(meant).steps == (
        step("a", risk_level=Risk.HIGH, task_type=TaskType.UX, executor=Executor.AGENT),
    )  # fmt: skip
    wrong = step("a", risk_level="hgh", task_type="nonsense", acceptance_criteria="abc", inputs=("nope", 5))
    with pytest.raises(PlanError) as caught:
        plan(wrong, {"id": "b"}, goal=" ", lifecycle="idle")  # type: ignore[arg-type]  # that is what is refused
    assert [str(fault) for fault in caught.value.faults] == [
        "$.steps[0].acceptance_criteria: expected an array, found a string 'abc'",
        (
            "$.steps[0].risk_level: expected one of 'low', 'medium', 'high', 'critical', found a string 'hgh' "
            "(did you mean 'high'?)"
        ),
        (
            "$.steps[0].task_type: expected one of 'planning', 'architecture', 'implementation', 'review', 'test', "
            "'ux', 'security', found a string 'nonsense'"
        ),
        "$.steps[0].inputs[1]: expected a string, found an integer 5",
        "$.steps[1].role: required key is missing",
        "$.steps[1].task: required key is missing",
        "$.steps[1].acceptance_criteria: required key is missing",
        "$.steps[1].risk_level: required key is missing",
        (
            "$.lifecycle: expected one of 'draft', 'reviewed', 'locked', 'executing', 'amended', 'completed', found a "
            "string 'idle'"
        ),
        "$.goal: is empty: say what the plan is to reach",
        "$.steps[0].inputs[0]: 'nope' is no step's output and no context artifact: make it, or require it",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": "a"}, "$.steps[1].id: 'a' is the id of two steps: rename one"),
        ({"depends_on": ["b"]}, "$.steps[1].depends_on: depends on itself: b -> b; remove one of these dependencies"),
        ({"depends_on": ["a", "a"]}, "$.steps[1].depends_on: names a step twice: keep one"),
        ({"role": " "}, "$.steps[1].role: is empty: every step needs one"),
        ({"acceptance_criteria": [" "]}, "$.steps[1].acceptance_criteria[0]: is empty: say something or remove it"),
        ({"id": 2}, "$.steps[1].id: expected a string, found an integer 2"),
        (
            {"inputs": ["x.md"]},
            "$.steps[1].inputs[0]: 'x.md' is no step's output and no context artifact: make it, or require it",
        ),
    ],
)
def test_each_rule(changes: dict[str, Any], said: str) -> None:
    """Each rule has a sentence of its own."""
    assert faults(**changes) == [said]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"plan_id": "a/b"}, "$.plan_id: 'a/b' is no plan id"),
        ({"goal": " "}, "$.goal: is empty: say what the plan is to reach"),
        ({"steps": ()}, "$.steps: there is no step: a plan needs at least one"),
        ({"context_requirements": ("../a",)}, "$.context_requirements[0]: '../a' is no artifact"),
        ({"goal": "a\ud800"}, "$.goal: holds a lone surrogate"),
    ],
)
def test_rules_of_the_plan_itself(changes: dict[str, Any], said: str) -> None:
    """What is wrong beside the steps has its place as well."""
    with pytest.raises(PlanError) as caught:
        plan(step("a"), **changes)
    assert str(caught.value.faults[0]).startswith(said)


def test_no_file(tmp_path: Path) -> None:
    """A plan that is not there is said to be missing, and a file of another kind to be of another kind."""
    for name in ("plan.json", "plan.md"):
        with pytest.raises(PlanError):
            load_plan(tmp_path / name)


@pytest.mark.parametrize("name", ["../a", "con", "a/b", "", "a b", "a\n", "é", "-a", "x" * 101])
def test_ids_that_are_no_file_names(name: str) -> None:
    """An id becomes a file name, so one that could lead elsewhere is refused."""
    with pytest.raises(PlanError, match="is no step id"):
        plan(step(name))


def test_inputs_are_made_before() -> None:
    """An input must come from a step that is done before, not from one that may run at the same time."""
    first, second = step("a", outputs=("a.md",)), step("b", inputs=("a.md",))
    with pytest.raises(PlanError) as caught:
        plan(first, second)
    assert [fault.message for fault in caught.value.faults] == [
        "'a.md' is made by 'a', on which this step does not depend: add it to depends_on"
    ]
    middle = step("m", "a")
    plan(first, middle, attrs.evolve(second, depends_on=("m",)))


def test_outputs_of_two_steps() -> None:
    """A later step may make an artifact anew; two that may run at once may not."""
    first, second = step("a", outputs=("a.md",)), step("b", outputs=("a.md",))
    plan(first, attrs.evolve(second, depends_on=("a",)))
    with pytest.raises(PlanError, match="is also made by 'a', which may run at that time"):
        plan(first, second)


def test_order() -> None:
    """Steps come after all they depend on, otherwise in the plan's order; groups may run side by side."""
    made = plan(step("d", "b", "c"), step("b", "a"), step("c", "a"), step("a"))
    assert [[each.id for each in group] for group in parallel_sets(made)] == [["a"], ["b", "c"], ["d"]]
    assert [each.id for each in ordered(made)] == ["a", "b", "c", "d"]
    assert [each.id for each in ready(made, {"a", "c"})] == ["b"]


def test_digest() -> None:
    """The digest changes with every word, and not with the lifecycle or with what is left at its default."""
    made = plan(step("a"))
    assert made.digest == attrs.evolve(made, lifecycle="locked").digest
    assert made.digest == read_plan(dumped(made), "again").digest
    other = plan(step("a", task="Do a!"))
    assert made.digest != other.digest
    assert made.canonical == (
        '{"goal":"It works.","plan_id":"p","steps":[{"acceptance_criteria":["It is done."],"id":"a",'
        '"risk_level":"low","role":"Implementer","task":"Do a."}]}'
    )


def test_lifecycle_is_known() -> None:
    """A plan in a state that no lifecycle has is refused."""
    with pytest.raises(PlanError, match=r"\$\.lifecycle: expected one of 'draft'"):
        read_plan({**dumped(plan(step("a"))), "lifecycle": "idle"}, "p")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
        "steps: " + "[" * 500,
        "plan_id: p\nplan_id: q\n",
        "steps: !!python/object/apply:os.system [true]\n",
    ],
)
def test_hostile_yaml(tmp_path: Path, text: str) -> None:
    """Bombs, depth, repeated keys and tags are faults of the file."""
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(PlanError):
        load_plan(tmp_path / "plan.yaml")


def chain(length: int, last: str = "") -> list[Step]:
    """Steps in one long row; the first may depend on the last."""
    first = step("s0", *([last] if last else []))
    return [first, *(step(f"s{index}", f"s{index - 1}") for index in range(1, length))]


def test_ten_thousand_steps() -> None:
    """A plan of the most steps is read in seconds, one with more is refused, and a cycle through all is told."""
    begun = time.process_time()
    assert len(parallel_sets(plan(*chain(MOST_STEPS)))) == MOST_STEPS
    with pytest.raises(PlanError, match="at most 10000, so split it"):
        plan(*chain(MOST_STEPS + 1))
    with pytest.raises(PlanError, match=r"depends on itself: s0 -> s9999 -> .* -> … -> s0"):
        plan(*chain(MOST_STEPS, f"s{MOST_STEPS - 1}"))
    assert time.process_time() - begun < 20


def test_thousands_of_faults() -> None:
    """A plan that is wrong everywhere is answered with the first faults, and soon."""
    begun = time.process_time()
    with pytest.raises(PlanError) as caught:
        plan(*(step(f"s{index}", f"t{index}") for index in range(5_000)))
    assert len(caught.value.faults) == 201
    assert caught.value.faults[-1].message == "more than 200 faults: these are the first"
    assert time.process_time() - begun < 20
