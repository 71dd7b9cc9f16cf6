"""How a verb presents itself: a paragraph, its options, the common options, and examples that can be copied.

Click would wrap Chinese by characters instead of columns and prints its headings in English; the pages are
therefore laid out here, the same way for every verb and for the command itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from oarsman.cli import text
from oarsman.cli.session import Session
from oarsman.cli.text import t
from oarsman.errors import UsageError

if TYPE_CHECKING:
    from oarsman.service.contract import Service
    from oarsman.service.models import JobView

Rows = Sequence[tuple[str, str]]


class Common(click.Option):
    """An option that means the same for every verb; shown in a section of its own."""


class PlainVerb(NamedTuple):
    """A verb that does one thing to jobs and says so."""

    act: Callable[[Service, str], Coroutine[Any, Any, JobView]]
    said: str  # has a place for {name}
    help: str
    examples: Rows


class HelpPage:
    """The help page. Mixed into the verbs and into the group."""

    examples: Rows = ()  # (command line, what it does)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        pieces = ctx.command.collect_usage_pieces(ctx)
        formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=t("Usage: "))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for paragraph in (ctx.command.help or "").split("\n\n"):
            formatter.write("\n")
            for line in text.wrap(" ".join(paragraph.split()), formatter.width - 2):
                formatter.write(f"  {line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        common: list[tuple[str, str]] = []
        for param in ctx.command.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None and isinstance(param, click.Option):
                where = common if isinstance(param, Common) or param.name in _EVERYWHERE else own
                where.append((row[0], row[1].partition("  [")[0]))  # without click's remarks on ranges
        section(formatter, t("Options"), own)
        section(formatter, t("Common options"), common)

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.help = t("Show this page.")
        return option  # type: ignore[no-any-return]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\n{t('Examples')}:\n")
        for line, meaning in self.examples:
            formatter.write(f"  {line}\n")
            formatter.write("".join(f"      {part}\n" for part in text.wrap(meaning, formatter.width - 6)))


_EVERYWHERE = {"help", "_click_default_help", "version"}  # the second is click's own name for it since 8.5


def section(formatter: click.HelpFormatter, heading: str, rows: Rows) -> None:
    """Two columns; the second is wrapped under itself."""
    if not rows:
        return
    formatter.write(f"\n{heading}:\n")
    column = min(max(text.width(first) for first, _ in rows), 28) + 4
    for first, second in rows:
        head = text.pad(f"  {first}", column)
        if text.width(first) > column - 4:
            formatter.write(f"{head}\n")
            head = " " * column
        for line in text.wrap(second, formatter.width - column) or [""]:
            formatter.write(f"{head}{line}".rstrip() + "\n")
            head = " " * column


class Verb(HelpPage, click.Command):
    def __init__(self, *args: Any, examples: Rows = (), of_place: bool = False, **kwargs: Any) -> None:
        """`of_place`: about a place itself, which a server does not let others at."""
        super().__init__(*args, **kwargs)
        self.examples = examples
        self._of_place = of_place
        self.params.extend(everywhere())

    def invoke(self, ctx: click.Context) -> Any:
        if self._of_place:
            ctx.ensure_object(Session).refuse_server(ctx.command_path)
        return super().invoke(ctx)

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first clause: what the list of verbs shows."""
        return re.split(r"[.:]\s|[。：；]", " ".join((self.help or "").split()), maxsplit=1)[0].rstrip(".")


class VerbFamily(Verb, click.Group):
    """A verb with verbs of its own: `oarsman users add`. Without one of them it shows its page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, invoke_without_command=True, subcommand_metavar=t("VERB ..."), **kwargs)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        section(formatter, t("Verbs"), [(name, c.get_short_help_str()) for name, c in self.commands.items()])
        super().format_options(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which they are explained

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise UsageError(
                t("there is no verb '{name}'", name=f"{self.name} {args[0]}"),
                hint=t("`{command} --help` shows how it is used", command=ctx.command_path),
            )
        return super().resolve_command(ctx, args)

    def verb(self, name: str, *, help: str, examples: Rows) -> Callable[[Callable[..., Any]], Verb]:
        def add(function: Callable[..., Any]) -> Verb:
            made = verb(name, help=help, examples=examples)(function)
            self.add_command(made)
            return made

        return add


def family(name: str, *, help: str, examples: Rows, of_place: bool = False) -> VerbFamily:
    def page(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())

    return VerbFamily(name, callback=click.pass_context(page), help=help, examples=examples, of_place=of_place)


def verb(name: str, *, help: str, examples: Rows, **settings: Any) -> Callable[[Callable[..., Any]], Verb]:
    """Declare a verb. `help` begins with the sentence that the list of verbs shows."""
    settings.setdefault("cls", Verb)
    return click.command(name, help=help, examples=examples, **settings)


def remember(attribute: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """A callback that keeps a common option's value in the session, unless it was not given."""

    def keep(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value:
            setattr(ctx.ensure_object(Session), attribute, value)

    return keep


def _no_colour(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.color = False
        if ctx.parent is not None:
            ctx.parent.color = False


def everywhere() -> list[click.Parameter]:
    """The options that every verb and the command itself take."""
    return [
        Common(
            ["-q", "--quiet"],
            is_flag=True,
            expose_value=False,
            callback=remember("quiet"),
            help=t("Say only what was asked for."),
        ),
        Common(
            ["--no-color"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_no_colour,
            help=t("No colours (also: NO_COLOR=1)."),
        ),
        Common(
            ["--debug"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=remember("debug"),
            help=t("Show the whole traceback of an unexpected error."),
        ),
    ]
