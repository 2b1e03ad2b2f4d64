"""The options of `plan` and its commands; what they do is loaded when one is called."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.choices import ColorChoice, DisplayChoice, PlanGraphFormat
from orchestrator.cli.options import AsJson, Color, Display, Runs, Verbose

if TYPE_CHECKING:
    from orchestrator.cli.plans.running import PlanCommand

__all__ = ["plan_application"]

RUNS = Path("runs")

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan: a .json, .yaml or .toml file.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", metavar="FILE", help="Models, checks and studio.  [default: studio.toml]"),
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who does it; it is recorded.")]

plan_application = typer.Typer(
    help="Plans: reviewed, locked and executed step by step, with a routing policy and a correction loop.",
    epilog=(
        "Exit status: 0 done, 1 an internal error, 2 usage, plan, studio or configuration not valid, 3 a limit is "
        "reached, 4 a model is unavailable, 5 a review cannot be read or a check cannot be run, 7 the plan is in use, "
        "changed, or in another state than the command needs, 8 blocked until the plan is amended, or not approved, "
        "9 too little isolation, 130 or 143 interrupted with its history saved."
    ),
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@plan_application.command("check")
def check_command(
    plan: PlanFile, *, config: ConfigFile = None, as_json: AsJson = False, verbose: Verbose = False
) -> None:
    """Say everything that is wrong with a plan and its configuration."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.plans.running import check_plan

        raise typer.Exit(check_plan(plan, config, as_json=as_json))


@plan_application.command("review")
def review_command(
    plan: PlanFile,
    *,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who reviewed it.")] = "",
    approve: Annotated[bool, typer.Option("--approve", help="Approve it.")] = False,
    change: Annotated[list[str] | None, typer.Option("--change", metavar="TEXT", help="A change to ask for.")] = None,
    config: ConfigFile = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Record a review of the plan; without --approve and --change the configured model reviews it."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        command = command_of(plan, config, runs, as_json=as_json)
        raise typer.Exit(command.review(by, tuple(change or ()), is_approved=approve))


@plan_application.command("lock")
def lock_command(
    plan: PlanFile,
    *,
    by: By = "",
    config: ConfigFile = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Lock the reviewed plan: it cannot change unseen from then on."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        raise typer.Exit(command_of(plan, config, runs, as_json=as_json).lock(by))


@plan_application.command("run")
def run_command(
    plan: PlanFile,
    *,
    config: ConfigFile = None,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Execute a locked plan."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        command = command_of(plan, config, runs, display, color, as_json=as_json)
        raise typer.Exit(command.execute(is_resumed=False))


@plan_application.command("resume")
def resume_command(
    plan: PlanFile,
    *,
    retry: Annotated[
        list[str] | None, typer.Option("--retry", metavar="STEP", help="A blocked or failed step to begin anew.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="What was mended; it is recorded.")] = "",
    by: By = "",
    config: ConfigFile = None,
    runs: Runs = RUNS,
    display: Display = DisplayChoice.AUTO,
    color: Color = ColorChoice.AUTO,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Go on with a plan where it was left; finished steps are never done again.

    With --retry and --reason a step begins anew that was blocked, or failed, by something that is mended since.
    """
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        command = command_of(plan, config, runs, display, color, as_json=as_json)
        raise typer.Exit(command.execute(is_resumed=True, retry=tuple(retry or ()), reason=reason, by=by))


@plan_application.command("amend")
def amend_command(
    plan: PlanFile,
    *,
    reason: Reason,
    by: By = "",
    config: ConfigFile = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Record that the plan's file changed; the plan is reviewed and locked again before it goes on."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        raise typer.Exit(command_of(plan, config, runs, as_json=as_json).amend(reason, by))


@plan_application.command("abandon")
def abandon_command(
    plan: PlanFile,
    *,
    reason: Reason,
    by: By = "",
    config: ConfigFile = None,
    runs: Runs = RUNS,
    as_json: AsJson = False,
    verbose: Verbose = False,
) -> None:
    """Give a plan up for good."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        raise typer.Exit(command_of(plan, config, runs, as_json=as_json).abandon(reason, by))


@plan_application.command("status")
def status_command(
    plan: PlanFile, *, config: ConfigFile = None, runs: Runs = RUNS, as_json: AsJson = False, verbose: Verbose = False
) -> None:
    """Show where a plan and its steps are, and what comes next."""
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        raise typer.Exit(command_of(plan, config, runs, as_json=as_json).status())


@plan_application.command("graph")
def graph_command(
    plan: PlanFile,
    *,
    form: Annotated[PlanGraphFormat, typer.Option("--format", "-f", help="How it is drawn.")] = PlanGraphFormat.TEXT,
    runs: Runs = RUNS,
    verbose: Verbose = False,
) -> None:
    """Draw a plan's steps and what they depend on.

    The lifecycles are drawn by `orchestrator graph plan` and `orchestrator graph step`.
    """
    from orchestrator.cli.failures import reported_errors

    with reported_errors(verbose=verbose):
        from orchestrator.cli.plans.drawing import draw_plan

        draw_plan(plan, form, runs)


def command_of(
    plan: Path,
    config: Path | None,
    runs: Path,
    display: DisplayChoice = DisplayChoice.AUTO,
    color: ColorChoice = ColorChoice.AUTO,
    *,
    as_json: bool,
) -> PlanCommand:
    """The command on a plan."""
    from orchestrator.cli.conducting import Manner
    from orchestrator.cli.plans.running import PlanCommand

    return PlanCommand(
        plan_file=plan, config=config, runs=runs, manner=Manner(display=display, color=color, as_json=as_json)
    )
