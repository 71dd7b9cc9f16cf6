"""How a call that went wrong ends: what is said on stderr, and the exit code.

Errors that Oarsman raises on purpose know their message, field, hint and code, and are shown in that
form. Anything else is a fault of ours: one line, and the traceback in a file that can be attached to a report.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import replace

import click

from oarsman.cli.session import Session
from oarsman.cli.text import note, of, safe, t
from oarsman.errors import ManifestError, NotFoundError, OarsmanError, Problem, UnauthenticatedError
from oarsman.text.sentence import Text, listed

INTERRUPTED = 130
BROKEN_PIPE = 141
UNEXPECTED = 70


def report(error: BaseException, session: Session) -> int:
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case SystemExit():
            return error.code if isinstance(error.code, int) else int(error.code is not None)
        case click.Abort() | KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError():
            return hang_up()
        case click.ClickException():
            return _misused(error)
        case ManifestError():
            for problem in error.problems:
                note(explained(problem))
            note(t("problems: {count}", count=sum(not problem.warning for problem in error.problems)))
            return error.exit_code
        case OarsmanError():
            if isinstance(error, NotFoundError) and error.hint is None:
                error.hint = session.nearest()
            if isinstance(error, UnauthenticatedError) and error.hint and session.asks_server:
                template = Text("give the command a token, with --token-file FILE or in OARSMAN_TOKEN: {hint}")
                error.hint = Text(template, hint=error.hint)
            say(of(error.message), field=error.field, hint=of(error.hint) if error.hint else None)
            if session.debug:
                _traceback(error)
            return error.exit_code
        case _:
            return _unexpected(error, session)


def say(message: str, *, field: str | None = None, hint: str | None = None) -> None:
    note(f"{click.style(t('error: '), fg='red', bold=True)}{safe(message)}")
    if field:
        note(f"  {t('field: ')}{safe(field)}")
    if hint:
        note(f"  {click.style(t('hint: '), fg='cyan')}{safe(hint)}")


def _misused(error: click.ClickException) -> int:
    ctx = getattr(error, "ctx", None)
    hint = t("`{command} --help` shows how it is used", command=ctx.command_path) if ctx is not None else None
    match error:
        case click.MissingParameter() if error.param is not None:
            message = t("{what} is missing", what=_called(error.param))
        case click.NoSuchOption():
            message = t("there is no option {name}", name=error.option_name)
            if error.possibilities:
                hint = t("did you mean {names}?", names=t(" or ").join(sorted(error.possibilities)))
            elif ctx is not None and _of_a_verb(ctx, error.option_name):
                hint = t("write it after the verb: oarsman VERB {name} ...", name=error.option_name)
        case click.BadOptionUsage():  # of click's own two messages
            none = "does not take a value" in error.message
            text = t("{name} takes no value") if none else t("{name} needs a value")
            message = text.format(name=error.option_name)
        case click.BadParameter() if error.param is not None:
            message = _refused(error, error.param)
        case _:
            message = error.format_message()
    say(message.rstrip("."), hint=hint)
    return error.exit_code


def _of_a_verb(ctx: click.Context, option: str) -> bool:
    """Whether an option that the command itself does not know is one of a verb's."""
    if not isinstance(ctx.command, click.Group):
        return False
    verbs = (ctx.command.get_command(ctx, name) for name in ctx.command.list_commands(ctx))
    return any(option in param.opts for verb in verbs if verb is not None for param in verb.params)


def _refused(error: click.BadParameter, param: click.Parameter) -> str:
    match param.type:
        case click.Choice():
            choices = of(listed(map(str, param.type.choices)))
            return t("{what} takes one of: {choices}", what=_called(param), choices=choices)
        case click.types.IntParamType():
            least = getattr(param.type, "min", None)
            if least is None:
                return t("{what} takes a whole number", what=_called(param))
            return t("{what} takes a whole number, {least} or more", what=_called(param), least=least)
        case _:
            return t("{what}: {why}", what=_called(param), why=error.message)


def _called(param: click.Parameter) -> str:
    """A parameter as the help page names it."""
    return (param.metavar or param.human_readable_name) if isinstance(param, click.Argument) else param.opts[-1]


def explained(problem: Problem) -> str:
    """What is wrong with a manifest, at its line."""
    from oarsman.manifest.problems import render

    hint = of(problem.hint) if problem.hint else None
    shown = replace(problem, message=of(problem.message), hint=hint)
    return render(shown, error=t("error: "), warning=t("warning: "), hint=t("hint: "))


def _unexpected(error: BaseException, session: Session) -> int:
    import tempfile
    import traceback

    what = f"{type(error).__name__}: {error}"
    if session.debug:
        _traceback(error)
        say(what)
        return UNEXPECTED
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="oarsman-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write("".join(traceback.format_exception(error)))
        say(what, hint=t("this is a bug in oarsman; the traceback is in {path}", path=file.name))
    except OSError:
        say(what, hint=t("this is a bug in oarsman; --debug shows the traceback"))
    return UNEXPECTED


def _traceback(error: BaseException) -> None:
    import traceback

    note("\n".join(map(safe, "".join(traceback.format_exception(error)).split("\n"))).rstrip("\n"))


def hang_up() -> int:
    """Nobody reads any more: end without a word, and without a second error when Python closes stdout."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
