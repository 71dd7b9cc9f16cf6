"""The command itself. A verb's module is imported when the verb is used, so `oarsman --version` stays quick."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from oarsman.cli import failures, options
from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.cli.verbs import PlainVerb, Verb, VerbFamily, family, section
from oarsman.errors import UsageError
from oarsman.text.catalogue import N_

# Verbs that do one thing to jobs and say so: a row here is all that one needs in the command.
PLAIN: dict[str, PlainVerb] = {
    "suspend": PlainVerb(
        said=N_("{name} is being suspended"),
        help=t(
            "Suspend jobs: their processes end, their records and logs stay. `oarsman resume` starts them "
            "again from the beginning."
        ),
        examples=[("oarsman suspend pi", t("make room without losing the job"))],
    ),
    "resume": PlainVerb(
        said=N_("{name} is resumed"),
        help=t("Resume suspended jobs. They queue again and start as a new attempt."),
        examples=["oarsman resume pi"],
    ),
    "stop": PlainVerb(
        said=N_("{name} is being stopped"),
        help=t(
            "Stop jobs for good: their processes end, their records and logs stay. "
            "A stopped job counts as failed, with the reason StoppedByUser."
        ),
        examples=[
            "oarsman stop pi",
            ("oarsman stop pi && oarsman wait pi --for finished", t("until nothing of it runs")),
        ],
    ),
}

SECTIONS: dict[str, tuple[str, ...]] = {
    t("Run"): ("run", "submit", "wait", "sweep"),
    t("Look"): ("list", "get", "describe", "logs", "history", "events", "top"),
    t("Change"): ("scale", *PLAIN, "delete"),
    t("Check"): ("validate", "plan", "convert", "doctor"),
    t("Packages"): ("env",),
    t("Hosts"): ("hosts",),
    t("Console"): ("serve", "users", "tokens", "server"),
    t("Other"): ("install", "uninstall", "supervisor", "operator", "completion", "version"),
}
VERBS = tuple(name for names in SECTIONS.values() for name in names)
# Verbs that share a module, in which each is called NAME_verb; any other is the `command` of its own module.
_TOGETHER = {
    "about": "version completion supervisor",
    "change": "scale delete",
    "look": "list get events top",
    "run": "run submit wait",
    "serve": "serve server",
    "users": "users tokens",
    "validate": "validate convert",
}
_MODULES = {name: module for module, names in _TOGETHER.items() for name in names.split()} | {"uninstall": "install"}


class Oarsman(VerbFamily):
    """The family whose verbs are in modules of this package."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        if cmd_name in PLAIN:
            return import_module("oarsman.cli.change").plain_verb(cmd_name, PLAIN[cmd_name])  # type: ignore[no-any-return]
        if cmd_name in _MODULES:
            command = getattr(import_module(f"oarsman.cli.{_MODULES[cmd_name]}"), f"{cmd_name}_verb")
        else:
            command = import_module(f"oarsman.cli.{cmd_name}").command
        assert isinstance(command, Verb)
        return command

    def no_such_verb(self, ctx: click.Context, name: str) -> UsageError:
        from difflib import get_close_matches

        near = get_close_matches(name, VERBS, n=1)
        hint = t("did you mean {names}?", names=near[0]) if near else t("`oarsman --help` lists the verbs")
        return UsageError(t("there is no verb '{name}'", name=name), hint=hint)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, verbs in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in verbs]
            section(formatter, heading, [(name, c.get_short_help_str()) for name, c in commands if c is not None])
        super().format_options(ctx, formatter)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run one call and exit. Every way to end goes through `failures.report`."""
        session = extra.setdefault("obj", Session())
        extra.pop("standalone_mode", None)
        if os.environ.get("NO_COLOR"):
            extra["color"] = False
        _faithful_streams()
        try:
            outcome = super().main(args, prog_name or "oarsman", standalone_mode=False, **extra)
            code = outcome if isinstance(outcome, int) else 0
        except BaseException as error:  # what went wrong before a verb was found
            code = failures.report(error, session)
        finally:
            session.close()
        sys.exit(code)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except BrokenPipeError as error:  # --help and --version write here; click would make it exit code 1
            raise click.exceptions.Exit(failures.hang_up()) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Errors of verbs are shown while the context lives, which knows whether colours are wanted."""
        try:
            outcome = super().invoke(ctx)
            sys.stdout.flush()
            return outcome
        except BaseException as error:
            raise click.exceptions.Exit(failures.report(error, ctx.ensure_object(Session))) from error


def _faithful(error: UnicodeError) -> tuple[str | bytes, int]:
    """Bytes that were not UTF-8 leave as they came; anything else that cannot be encoded is spelled out."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def _faithful_streams() -> None:
    codecs.register_error("oarsman", _faithful)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="oarsman")


cli = family(
    "oarsman",
    t("Run MPI jobs: one MPIJob manifest on this machine, on SSH hosts or on Kubernetes."),
    ("oarsman doctor", t("what this machine can do")),
    ("oarsman run -n 4 -- python3 -m mpi4py train.py", t("four ranks of a program, no manifest")),
    ("oarsman run job.yaml", t("a job as its manifest says")),
    options=[options.place_long, options.version],
    cls=Oarsman,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
