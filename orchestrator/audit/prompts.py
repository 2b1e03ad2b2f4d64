"""Prompts: each holds every section of the spec byte for byte, and a retry what the last attempt failed."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.attempt import Attempt
from orchestrator.run import Run
from orchestrator_events.record import Record
from orchestrator_events.run import GenerationStarted, PromptReady, PromptRefined

__all__ = ["Prompts"]


@attrs.define(eq=False)
class Prompts:
    """Reads every prompt, as rendered and as sent (contract 1: pass-merged-spec, include-failure-context)."""

    name: str = attrs.field(default="prompts", init=False)

    def look(self, run: Run, record: Record) -> Iterator[str]:
        """What a prompt lacks."""
        event = record.event
        if isinstance(event, PromptReady):
            text = event.prompt.data.decode()
            yield from lacking_in_order(run, text)
            if run.last is not None and run.refined is not None:
                yield from untold(run.last, run.refined, text)
        elif isinstance(event, GenerationStarted) and event.prompt is not None:
            text = event.prompt.data.decode()
            for section in run.spec.sections:
                if section.text not in text:
                    yield f"the prompt as sent lacks the section {section.title!r} of the spec"

    def end(self, run: Run) -> Iterator[str]:  # noqa: ARG002 -- every prompt has been read
        """Nothing."""
        yield from ()


def lacking_in_order(run: Run, text: str) -> Iterator[str]:
    """Sections that do not stand in the prompt, each behind the one before it, so that none stands for two."""
    position = 0
    for section in run.spec.sections:
        found = text.find(section.text, position)
        if found < 0:
            yield f"the prompt lacks the section {section.title!r} of the spec, or has it out of order"
        else:
            position = found + len(section.text)


def untold(last: Attempt, refined: PromptRefined, text: str) -> Iterator[str]:
    """Failing cases and notes that the retry does not name: the ids are one list, no more and no fewer."""
    ids = [case.id for case in last.failing]
    listed = "\n\n- " + "\n- ".join(ids) + "\n"
    if ids and not any(text[end : end + 1] in ("", "\n") for end in ends_of(listed, text)):
        yield f"the prompt does not list exactly the cases that attempt {last.number} failed"
    for note in refined.notes:
        if note not in text:
            yield f"the prompt lacks a note of the strategy: {note:.80}"


def ends_of(part: str, text: str) -> Iterator[int]:
    """Where each occurrence of a part ends."""
    found = text.find(part)
    while found >= 0:
        yield found + len(part)
        found = text.find(part, found + 1)
