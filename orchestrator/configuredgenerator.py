"""The generator that a configuration describes, with everything checked that can be before a run."""

from __future__ import annotations

from pathlib import Path
from shutil import which
from typing import Any

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.commandline import split_command, unstartable
from orchestrator.configuration import ConfigurationError, GeneratorSection, SandboxSection
from orchestrator.generators.command import CommandGenerator
from orchestrator.generators.entry_points import load_generator
from orchestrator.generators.process import ProcessGenerator
from orchestrator.ports import Generator
from orchestrator.prices import UnpricedModelError, load_prices

__all__ = ["made_generator"]


def made_generator(section: GeneratorSection, sandbox: SandboxSection) -> Generator:
    """The entry point, the program, the function or the model."""
    try:
        match section.kind:
            case "entry_point":
                return load_generator(section.entry_point)
            case "command":
                return made_program(section, sandbox)
            case "function":
                return made_function(section, sandbox)
            case "model":
                return made_model(section)
    except (ValueError, UnpricedModelError) as error:
        raise ConfigurationError(f"[generator] {error}") from None
    raise ConfigurationError(
        "no generator: name a program with --generator 'PROGRAM ARGUMENTS', a model with --model, "
        "or one of them in [generator] of a configuration"
    )


def made_program(section: GeneratorSection, sandbox: SandboxSection) -> CommandGenerator:
    """A program."""
    words = split_command(section.command)
    if "/" not in words[0] and which(words[0]) is None:
        raise GeneratorUnavailableError(f"no program {words[0]!r} on PATH: install it, or name it with its path")
    directory = None if section.output == "files" else section.directory  # those are written in a fresh one
    if fault := unstartable(words, (directory or Path.cwd()).absolute()):
        raise GeneratorUnavailableError(f"{words[0]!r} cannot be started: {fault}")
    return CommandGenerator(
        words,
        name=section.name,
        input=section.input,
        output=section.output,
        environment=section.environment,
        cwd=section.directory,
        output_limit=section.output_limit,
        max_prompt_characters=section.max_prompt_characters,
        seconds=section.seconds,
        readable=section.readable,
        network=section.network,
        sandbox=sandbox.choice(section.sandbox),
    )


def made_function(section: GeneratorSection, sandbox: SandboxSection) -> ProcessGenerator:
    """A function in a child process."""
    return ProcessGenerator(
        section.function,
        name=section.name,
        environment=section.environment,
        path=section.path,
        cwd=section.directory,
        output_limit=section.output_limit,
        max_prompt_characters=section.max_prompt_characters,
        seconds=section.seconds,
        readable=section.readable,
        network=section.network,
        sandbox=sandbox.choice(section.sandbox),
    )


def made_model(section: GeneratorSection) -> Generator:
    """A model behind an OpenAI-compatible server."""
    from orchestrator.generators.openai import OpenAIGenerator

    # What is left out has the adapter's own default.
    given: dict[str, Any] = {"base_url": section.base_url, "seconds": section.seconds}
    return OpenAIGenerator(
        section.model,
        name=section.name,
        api_key_variable=section.api_key_variable,
        system=section.system,
        stream=section.stream,
        extraction=section.extraction or "fenced",  # models fence what they write, asked to or not
        prices=None if section.prices is None else load_prices(section.prices),
        answer_limit=section.output_limit,
        max_tokens_name=section.max_tokens_name,
        extra_body=section.extra_body,
        trust_env=section.use_proxies,
        max_prompt_characters=section.max_prompt_characters,
        **{name: value for name, value in given.items() if value},
    )
