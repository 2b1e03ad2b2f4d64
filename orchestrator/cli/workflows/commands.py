"""The options of `workflow` and its commands; what they do is loaded when one is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.choices import ColorChoice, DisplayChoice, GraphFormat, NetworkChoice, SandboxBackend
from orchestrator.cli.options import (
    AsJson,
    Attempts,
    Color,
    Display,
    InputTokens,
    Money,
    OutputTokens,
    RequireIsolation,
    Runs,
    Time,
    Tokens,
    Verbose,
)

__all__ = ["workflow_application"]

RUNS = Path("runs")
HERE = Path()

DomainName = Annotated[
    str, typer.Argument(metavar="DOMAIN", help="A domain file, the directory it lies in, or `software-epic`.")
]
WorkflowName = Annotated[
    str, typer.Argument(metavar="ID", help="A workflow's id, its run's id or the beginning of it, or `last`.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration: generator and limits.")
]
GeneratorCommand = Annotated[
    str | None, typer.Option("--generator", metavar="COMMAND", help="Program and arguments, or an entry point's name.")
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="A model behind an OpenAI-compatible server.")
]
BaseUrl = Annotated[
    str | None, typer.Option("--base-url", metavar="URL", help="That server, such as http://localhost:11434/v1.")
]
Network = Annotated[
    NetworkChoice | None, typer.Option("--network", help="Whether the generator's program may use the network.")
]
Sandbox = Annotated[
    SandboxBackend | None, typer.Option("--sandbox", help="What holds programs in; auto is the best that works.")
]
StateDirectory = Annotated[
    Path | None,
    typer.Option("--state-directory", metavar="DIRECTORY", help="Where the state lies.  [default: as the domain says]"),
]
StateFile = Annotated[
    Path | None, typer.Option("--state", metavar="FILE", help="A state to go on with, for `provide state`.")
]
LearningsFile = Annotated[
    Path | None,
    typer.Option("--learnings", metavar="FILE", help="Learning records of another workflow, to learn from."),
]

workflow_application = typer.Typer(
    help="Phased workflows: a domain's phases one after another, with a state that survives.",
    epilog=(
        "Exit status: 0 done, 1 aborted or an internal error, 2 usage or domain not valid, 4 generator unavailable, "
        "7 in use or cannot be resumed as asked, 8 paused until somebody decides, 130 or 143 interrupted with its "
        "history saved."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@workflow_application.command("run")
def run_command(
    domain: DomainName,
    *,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", "-p", metavar="KEY=VALUE", help="A parameter; JSON where it is not a text."),
    ] = None,
    config: ConfigFile = None,
    generator: GeneratorCommand = None,
    model: Model = None,
    base_url: BaseUrl = None,
    network: Network = None,
    sandbox: Sandbox = None,
    require_isolation: RequireIsolation = None,
    attempts: Attempts = None,
    time: Time = None,
    tokens: Tokens = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    money: Money = None,
    state_directory: StateDirectory = None,
    learnings: LearningsFile = None,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a new workflow. An attempt is one execution of a phase; a phase that fails asks, or pauses: status 8."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.overrides import Limits, Overrides
        from orchestrator.cli.workflows.running import run_workflow

        limits = Limits(
            attempts=attempts,
            time=time,
            tokens=tokens,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            money=money,
        )
        over = Overrides(
            generator=generator,
            model=model,
            base_url=base_url,
            network=None if network is None else network.value,
            sandbox=None if sandbox is None else sandbox.value,
            require_isolation=None if require_isolation is None else require_isolation.value,
            limits=limits,
        )
        manner = Manner(display=display, color=color, as_json=as_json)
        code = run_workflow(
            domain,
            param or [],
            config,
            over,
            runs=runs,
            state_directory=state_directory,
            manner=manner,
            learnings=learnings,
        )
        raise typer.Exit(code)


@workflow_application.command("resume")
def resume_command(
    name: WorkflowName,
    *,
    config: ConfigFile = None,
    learnings: LearningsFile = None,
    require_isolation: RequireIsolation = None,
    attempts: Attempts = None,
    time: Time = None,
    tokens: Tokens = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    money: Money = None,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Go on with a workflow where it was left; one that waits for a decision asks for it. Limits: as for the run."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.overrides import Limits, Overrides
        from orchestrator.cli.workflows.running import resume_workflow

        limits = Limits(
            attempts=attempts,
            time=time,
            tokens=tokens,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            money=money,
        )
        manner = Manner(display=display, color=color, as_json=as_json)
        over = Overrides(
            require_isolation=None if require_isolation is None else require_isolation.value, limits=limits
        )
        raise typer.Exit(resume_workflow(name, config, over, runs=runs, manner=manner, learnings=learnings))


@workflow_application.command("decide")
def decide_command(
    name: WorkflowName,
    choice: Annotated[
        str, typer.Argument(metavar="CHOICE", help="One of the options; without it, they are shown.")
    ] = "",
    *,
    state: StateFile = None,
    config: ConfigFile = None,
    require_isolation: RequireIsolation = None,
    attempts: Attempts = None,
    time: Time = None,
    tokens: Tokens = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    money: Money = None,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Decide what a paused workflow waits for, and go on with it. Limits: as for the run."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.overrides import Limits, Overrides
        from orchestrator.cli.workflows.running import resume_workflow
        from orchestrator.cli.workflows.standing import show_decision

        manner = Manner(display=display, color=color, as_json=as_json)
        if not choice:
            raise typer.Exit(show_decision(name, runs, manner))
        limits = Limits(
            attempts=attempts,
            time=time,
            tokens=tokens,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            money=money,
        )
        over = Overrides(
            require_isolation=None if require_isolation is None else require_isolation.value, limits=limits
        )
        code = resume_workflow(name, config, over, runs=runs, manner=manner, choice=choice, state=state)
        raise typer.Exit(code)


@workflow_application.command("status")
def status_command(
    name: WorkflowName = "last",
    *,
    runs: Runs = RUNS,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show where a workflow is: its checklist, what it waits for, what it counted and learned, and its state."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.workflows.standing import show_status

        show_status(name, runs, Manner(color=color, as_json=as_json))


@workflow_application.command("learnings")
def learnings_command(name: WorkflowName = "last", *, runs: Runs = RUNS, verbose: Verbose = False) -> None:
    """Print what was learned from failures, as a file that `run --learnings` gives to another workflow."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.workflows.standing import export_learnings

        export_learnings(name, runs)


@workflow_application.command("graph")
def graph_command(
    name: Annotated[str, typer.Argument(metavar="DOMAIN|ID", help="A domain as for `run`, or a workflow.")],
    *,
    form: Annotated[GraphFormat, typer.Option("--format", help="How to draw it.")] = GraphFormat.TEXT,
    runs: Runs = RUNS,
    verbose: Verbose = False,
) -> None:
    """Draw the phases of a domain; for a workflow also the way it took, with visits and times."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.inspecting import place_of
        from orchestrator.cli.workflows.drawing import draw_domain

        draw_domain(name, form, place_of(runs))


@workflow_application.command("check")
def check_command(domain: DomainName, *, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Load a domain with every fault at once, and take each of its transitions with scripted phases."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.workflows.checking import check_domain

        raise typer.Exit(check_domain(domain, as_json=as_json))


@workflow_application.command("new")
def new_command(
    name: Annotated[str, typer.Argument(metavar="DOMAIN", help="Name of the domain, such as release-notes.")],
    *,
    directory: Annotated[
        Path, typer.Option("--directory", metavar="DIRECTORY", help="Where its directory is made.")
    ] = HERE,
    verbose: Verbose = False,
) -> None:
    """Write a domain that works as it is: its file, its phases, a phase file, and a test."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.workflows.skeleton import write_skeleton

        write_skeleton(name, directory)
