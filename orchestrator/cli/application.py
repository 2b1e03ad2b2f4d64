"""The commands and their options; what they do is loaded when one is called, so that `--help` is quick."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand

from orchestrator.cli.choices import (
    ColorChoice,
    DisplayChoice,
    ExportFormat,
    GraphFormat,
    NetworkChoice,
    ReportForm,
    SandboxBackend,
)
from orchestrator.cli.options import (
    AsJson,
    Attempts,
    Color,
    Display,
    InputTokens,
    Money,
    OutputTokens,
    Repeats,
    RequireIsolation,
    Runs,
    Time,
    Tokens,
    Verbose,
)
from orchestrator.cli.plans.commands import plan_application
from orchestrator.cli.streams import tolerate_any_character
from orchestrator.cli.workflows.commands import workflow_application

__all__ = ["PlainCommand", "application", "run_application"]

RUNS = Path("runs")
LOCKFILE = Path("conformance.lock.json")
PINS = Path("pins.json")

RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, its beginning, or `last`.")]
ExportName = Annotated[
    str, typer.Argument(metavar="EXPORT_FILE|RUN", help="An export (.json, .jsonl), or a run as for `show`.")
]


class PlainCommand(TyperCommand):
    """A command whose usage names what it takes without braces, which a shell would read as a list."""

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # of this class it is
        """`[OPTIONS] SPEC`."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece[1:-1] if piece[:1] + piece[-1:] == "{}" else piece for piece in pieces]


application = typer.Typer(
    name="orchestrator",
    help="Has a generator write candidates for a spec until an eval suite passes, or a limit is reached.",
    epilog=(
        "Exit status: 0 conforms, 1 internal error, 2 usage, configuration or spec not valid, 3 a limit is "
        "reached (the closest candidate is written), 4 generator unavailable, 5 no verdict on a candidate, "
        "6 an audit found a difference, 7 a run is in use or cannot be resumed as asked, "
        "8 a workflow waits for a decision, "
        "9 less isolation than is required, "
        "130 or 143 interrupted with its history saved."
    ),
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
command = partial(application.command, cls=PlainCommand)
application.add_typer(workflow_application, name="workflow", short_help="Run a domain's phases, one after another.")
application.add_typer(plan_application, name="plan", short_help="Review, lock and execute a plan, step by step.")


def print_version(is_asked: bool) -> None:  # noqa: FBT001 -- the shape of an option's callback
    """Print name and version, and end."""
    if is_asked:
        from orchestrator import __version__

        typer.echo(f"orchestrator {__version__}")
        raise typer.Exit


@application.callback()
def options(
    *,
    version: Annotated[  # its callback has done all there is to do
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Has a generator write candidates for a spec until an eval suite passes, or a limit is reached."""


def run_application(arguments: list[str]) -> int:
    """Run one command; its exit status."""
    tolerate_any_character()
    try:
        application(args=arguments, prog_name="orchestrator")
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(left.code is not None)
    return 0


@command(short_help="Run a spec until a candidate passes, or to a limit.")
def run(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="A merged spec file, or a module directory.")],
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Configuration; options win over it."),
    ] = None,
    generator: Annotated[
        str | None,
        typer.Option("--generator", metavar="COMMAND", help="Program and arguments, or an entry point's name."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="A model behind an OpenAI-compatible server.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="That server, such as http://localhost:11434/v1.")
    ] = None,
    network: Annotated[
        NetworkChoice | None, typer.Option("--network", help="Whether the generator's program may use the network.")
    ] = None,
    sandbox: Annotated[
        SandboxBackend | None, typer.Option("--sandbox", help="What holds programs in; auto is the best that works.")
    ] = None,
    require_isolation: RequireIsolation = None,
    evaluator: Annotated[
        str | None,
        typer.Option("--evaluator", metavar="COMMAND", help="Program that runs the suite.  [default: pytest]"),
    ] = None,
    suite: Annotated[Path | None, typer.Option("--suite", metavar="DIRECTORY", help="The eval suite.")] = None,
    candidate_file: Annotated[
        str | None,
        typer.Option("--candidate-file", metavar="NAME", help="Name of the candidate's file beside the suite."),
    ] = None,
    report: Annotated[ReportForm | None, typer.Option("--report", help="What the suite's runner writes.")] = None,
    language: Annotated[
        str | None, typer.Option("--language", help="Language of the candidate.  [default: python]")
    ] = None,
    attempts: Attempts = None,
    time: Time = None,
    tokens: Tokens = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    money: Money = None,
    repeats: Repeats = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the first prompt, digests and limits; call nothing.")
    ] = False,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a spec: 5 attempts and 3 repeats, unless told otherwise. A limit may be `unlimited`, not all of them."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.overrides import Limits, Overrides
        from orchestrator.cli.running import run_spec

        limits = Limits(
            attempts=attempts,
            time=time,
            tokens=tokens,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            money=money,
            repeats=repeats,
        )
        over = Overrides(
            generator=generator,
            model=model,
            base_url=base_url,
            network=None if network is None else network.value,
            sandbox=None if sandbox is None else sandbox.value,
            require_isolation=None if require_isolation is None else require_isolation.value,
            evaluator=evaluator,
            suite=suite,
            candidate_file=candidate_file,
            report=None if report is None else report.value,
            language=language,
            limits=limits,
        )
        manner = Manner(display=display, color=color, as_json=as_json)
        code = run_spec(spec, config, over, runs=runs, manner=manner, is_dry=dry_run)
        raise typer.Exit(code)


@command(short_help="Go on with a run where it was left.")
def resume(
    run_name: RunName,
    *,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="Configuration.  [default: the one of the run]"),
    ] = None,
    require_isolation: RequireIsolation = None,
    attempts: Attempts = None,
    time: Time = None,
    tokens: Tokens = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    money: Money = None,
    repeats: Repeats = None,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Go on with a run where it was left, also after a limit. Limits are for the run as a whole; default: its own."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.overrides import Limits
        from orchestrator.cli.running import resume_run

        limits = Limits(
            attempts=attempts,
            time=time,
            tokens=tokens,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            money=money,
            repeats=repeats,
        )
        manner = Manner(display=display, color=color, as_json=as_json)
        code = resume_run(
            run_name,
            config,
            limits,
            runs=runs,
            manner=manner,
            require_isolation=None if require_isolation is None else require_isolation.value,
        )
        raise typer.Exit(code)


@command(short_help="Run a spec once with each of several generators.")
def conform(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="A merged spec file, or a module directory.")],
    *,
    config: Annotated[
        list[Path],
        typer.Option("--config", "-c", metavar="FILE", help="A configuration; give it once for each generator."),
    ],
    lockfile: Annotated[Path, typer.Option("--lockfile", metavar="FILE", help="Where the outcomes go.")] = LOCKFILE,
    runs: Runs = RUNS,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a spec once with each of several generators and record their outcomes in a lockfile."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.conforming import conform_spec

        manner = Manner(display=DisplayChoice.PLAIN, color=color, as_json=as_json)
        raise typer.Exit(conform_spec(spec, config, lockfile, runs=runs, manner=manner))


@command()
def show(
    run_name: RunName,
    *,
    attempt: Annotated[
        int | None, typer.Option("--attempt", metavar="N", help="One attempt, with every failing case.")
    ] = None,
    prompt: Annotated[bool, typer.Option("--prompt", help="The prompt, of the last attempt or of N.")] = False,
    candidate: Annotated[bool, typer.Option("--candidate", help="The candidate, the best one or that of N.")] = False,
    runs: Runs = RUNS,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Show a run, one line an attempt with the reason."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.inspecting import place_of, show_run

        show_run(
            place_of(runs),
            run_name,
            attempt=attempt,
            prompt=prompt,
            candidate=candidate,
            color=color,
            as_json=as_json,
        )


@command("runs")
def list_recorded_runs(
    *,
    newest: Annotated[int, typer.Option("--newest", min=1, help="How many to list.")] = 20,
    runs: Runs = RUNS,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """List the runs in a journal, the newest last."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.inspecting import list_runs, place_of

        list_runs(place_of(runs), newest=newest, color=color, as_json=as_json)


@command(short_help="Export a run: everything, or a report for others.")
def export(
    run_name: RunName,
    *,
    form: Annotated[
        ExportFormat,
        typer.Option("--format", help="json and jsonl hold everything; the others are for other programs and people."),
    ] = ExportFormat.JSON,
    runs: Runs = RUNS,
    verbose: Verbose = False,
) -> None:
    """Export a run: table, records with their hash chain and texts, or a report for other programs."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.exporting import export_run
        from orchestrator.cli.inspecting import place_of

        export_run(place_of(runs), run_name, form)


@command(short_help="Draw a lifecycle, or the way that a run took.")
def graph(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A lifecycle, such as `run`, or else a run.")],
    *,
    form: Annotated[GraphFormat, typer.Option("--format", help="How to draw it.")] = GraphFormat.TEXT,
    runs: Runs = RUNS,
    verbose: Verbose = False,
) -> None:
    """Draw a lifecycle; for a run, its id's beginning or `last`, also the way it took, with visits and times."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.drawing import draw
        from orchestrator.cli.inspecting import place_of

        draw(name, form, place_of(runs))


@command()
def events(*, verbose: Verbose = False) -> None:
    """List the events: facts, gates, and what each means."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.drawing import list_events

        list_events()


@command("isolation", short_help="Probe what this machine offers to hold programs in.")
def isolation_command(*, as_json: AsJson = False, verbose: Verbose = False) -> None:
    """Probe what this machine offers to hold generators and suites in, and say how to get what is missing."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.isolating import show_isolation

        show_isolation(as_json=as_json)


@command(short_help="Run a small spec with a script in a model's place.")
def demo(
    *,
    pace: Annotated[
        float | None, typer.Option("--pace", metavar="SECONDS", min=0, help="Time each answer takes.")
    ] = None,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Run a small spec with a scripted generator and a pytest suite: no model, no network."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.conducting import Manner
        from orchestrator.cli.running import run_demo

        manner = Manner(display=display, color=color, as_json=as_json)
        raise typer.Exit(run_demo(runs=runs, manner=manner, pace=pace))


@command(short_help="Pin the cases that a trusted candidate passes.")
def pin(
    spec: Annotated[
        Path | None, typer.Argument(metavar="SPEC", help="A merged spec file, or a module directory.")
    ] = None,
    *,
    candidate: Annotated[
        Path | None,
        typer.Option("--candidate", metavar="FILE_OR_DIR", help="The trusted candidate, which the suite is run on."),
    ] = None,
    run_name: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="A run that passed, in the place of SPEC and candidate.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration; it names the suite.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where the pins go.")] = PINS,
    runs: Runs = RUNS,
    verbose: Verbose = False,
) -> None:
    """Pin the case ids that a trusted candidate passes, so that later runs have to pass exactly these."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.inspecting import place_of
        from orchestrator.cli.pinning import pin_candidate, pin_run

        if run_name is None:
            pin_candidate(spec, candidate, config, output)
        else:
            pin_run(place_of(runs), run_name, spec, candidate, config, output)


@command(short_help="Print the JSON Schema of one of our forms.")
def schema(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="A form; without one, all are listed.")] = "",
    *,
    verbose: Verbose = False,
) -> None:
    """Print the JSON Schema of one of the forms that are read and written here."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.exporting import print_schema

        print_schema(kind)


@command("audit", short_help="Derive what a run says of itself again.")
def audit_command(
    name: ExportName,
    *,
    head: Annotated[
        str | None, typer.Option("--head", metavar="DIGEST", help="The digest of the last record, as it was kept.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", help="How many records there were, as it was kept.")
    ] = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Derive everything a run says of itself from its records again; exit status 6 on a difference."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.auditing import audit_export
        from orchestrator.cli.inspecting import place_of

        raise typer.Exit(audit_export(name, place_of(runs), head=head, count=count, as_json=as_json))


@command("replay", short_help="Walk through a recorded run, decision by decision.")
def replay_command(
    name: ExportName,
    *,
    only: Annotated[
        str, typer.Option("--only", metavar="ID", help="A run inside it, such as a step of a plan, with those inside.")
    ] = "",
    evaluate: Annotated[
        bool, typer.Option("--evaluate", help="Run the suite again on every candidate; needs --config.")
    ] = False,
    config: Annotated[Path | None, typer.Option("--config", "-c", metavar="FILE", help="Names the suite.")] = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Walk through a recorded run, and those inside it, and show each decision; exit status 6 on a difference."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.auditing import replay_export
        from orchestrator.cli.inspecting import place_of

        place = place_of(runs)
        code = replay_export(name, place, only=only, config=config, evaluates=evaluate, as_json=as_json)
        raise typer.Exit(code)
