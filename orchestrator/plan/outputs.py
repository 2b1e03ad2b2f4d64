"""Which files a step's output makes: what the step says it makes, taken from the answer by a rule, never repaired."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

import attrs

from orchestrator.adapter_errors import GenerationError
from orchestrator.candidate import FILES
from orchestrator.extraction import extract
from orchestrator.plan.plan import Step
from orchestrator.plan.steprun import StepRun

__all__ = ["artifacts_of", "made_by", "shown", "told"]

PROSE: Final = (".md", ".txt", ".rst")
ASKED_FOR: Final = (
    "Give each file whole, in a fenced code block of its own whose first line names the file behind the language, as "
    "in ```python package/module.py. The files to give are: "
)
ONE: Final = "Answer with the whole content of {}, in one fenced code block, and nothing else."


def told(step: Step) -> Step:
    """The step with an output format that says how its files are to be given, unless it says so itself."""
    if step.output_format or not step.outputs or step.executor != "generator":
        return step
    if len(step.outputs) > 1:
        return attrs.evolve(step, output_format=ASKED_FOR + ", ".join(step.outputs) + ".")
    name = step.outputs[0]
    if PurePosixPath(name).suffix in PROSE:
        return step
    return attrs.evolve(step, output_format=ONE.format(name))


def made_by(step: Step, output: str, form: str) -> Mapping[str, str]:
    """The step's files in an output; GenerationError, with what is missing, where they are not all there."""
    if not step.outputs:
        return {}
    if form == FILES:
        found: Mapping[str, str] = read_files(output)
    elif len(step.outputs) == 1:
        return {step.outputs[0]: only_file(step.outputs[0], output)}
    else:
        found = extract(output, "files", "").candidate.files
    missing = [name for name in step.outputs if name not in found]
    if missing:
        raise GenerationError(f"the output lacks {', '.join(missing)}: {ASKED_FOR}{', '.join(step.outputs)}")
    return {name: found[name] for name in step.outputs}


def only_file(name: str, output: str) -> str:
    """The one file of an answer: its one fenced block, or all of it where there is none or prose is asked for."""
    if PurePosixPath(name).suffix in PROSE:
        return output
    try:
        return extract(output, "fenced", PurePosixPath(name).suffix.lstrip(".") or "text").candidate.text
    except GenerationError:
        if "```" in output or "~~~" in output:
            raise
        return output


def artifacts_of(run: StepRun) -> Mapping[str, str]:
    """The files that the step's last output makes."""
    executed = run.executed
    if executed is None:
        return {}
    return made_by(run.step, executed.output.text or executed.output.data.decode(), executed.form)


def read_files(output: str) -> Mapping[str, str]:
    """The files of an output of the form `files`."""
    found = json.loads(output)
    return {str(path): str(text) for path, text in found.items()}


def shown(output: str, form: str) -> str:
    """An output as Markdown."""
    if form != FILES:
        return output
    parts = [f"## {name}\n\n{indented(text)}\n" for name, text in sorted(read_files(output).items())]
    return "\n".join(parts)


def indented(text: str) -> str:
    """Text as a code block that nothing in it can end."""
    return "\n".join(f"    {line}" for line in text.splitlines())
