"""How a verb presents itself: a paragraph, its options, the common options, and examples that can be copied.

Click would wrap Chinese by characters instead of columns and prints its headings in English; the pages are
therefore laid out here, the same way for every verb and for the command itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from oarsman.cli import text
from oarsman.cli.session import Session, pass_session
from oarsman.cli.text import t
from oarsman.errors import UsageError

Rows = Sequence[tuple[str, str]]
Example = str | tuple[str, str]  # a command line, and what it does
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value:
        setattr(ctx.ensure_object(Session), param.name or "", value)


class Common(click.Option):
    """An option that means the same for every verb: the session has it, and it is shown in a section of its own."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{"callback": remember, **settings}, expose_value=False, is_eager=True)


class PlainVerb(NamedTuple):
    """A verb that does one thing to jobs, the operation of its name, and says so."""

    said: str  # has a place for {name}
    help: str
    examples: Sequence[Example]


_EVERYWHERE = {"help", "_click_default_help", "version"}  # the second is click's own name for it since 8.5


def section(formatter: click.HelpFormatter, heading: str, rows: Rows) -> None:
    """Two columns; the second is wrapped under itself."""
    if not rows:
        return
    formatter.write(f"\n{t('{name}:', name=heading)}\n")
    column = min(max(text.width(first) for first, _ in rows), 28) + 4
    for first, second in rows:
        head = text.pad(f"  {first}", column)
        if text.width(first) > column - 4:
            formatter.write(f"{head}\n")
            head = " " * column
        for line in text.wrap(second, formatter.width - column) or [""]:
            formatter.write(f"{head}{line}".rstrip() + "\n")
            head = " " * column


class Verb(click.Command):
    def __init__(self, *args: Any, examples: Sequence[Example], of_place: bool = False, **kwargs: Any) -> None:
        """`of_place`: about a place itself, which a server does not let others at."""
        super().__init__(*args, **{"options_metavar": t("[OPTIONS]"), **kwargs})
        self.examples = [(example, "") if isinstance(example, str) else example for example in examples]
        self._of_place = of_place
        self.params.extend(everywhere())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Click's own words for what is left over are English."""
        takes_more, ctx.allow_extra_args = ctx.allow_extra_args, True
        rest = super().parse_args(ctx, args)
        ctx.allow_extra_args = takes_more
        if rest and not takes_more and not ctx.resilient_parsing:
            ctx.fail(t("unexpected argument: {words}", words=" ".join(map(str, rest))))
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        if self._of_place:
            ctx.ensure_object(Session).refuse_server(ctx.command_path)
        return super().invoke(ctx)

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first clause: what the list of verbs shows."""
        return re.split(r"[.:]\s|[。：；]", " ".join((self.help or "").split()), maxsplit=1)[0].rstrip(".")

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
        option = super().get_help_option(ctx)
        if option is not None:
            option.help = t("Show this page.")
        return option

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\n{t('{name}:', name=t('Examples'))}\n")
        for line, meaning in self.examples:
            formatter.write(f"  {line}\n")
            formatter.write("".join(f"      {part}\n" for part in text.wrap(meaning, formatter.width - 6)))


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
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise self.no_such_verb(ctx, args[0])
        return super().resolve_command(ctx, args)

    def no_such_verb(self, ctx: click.Context, name: str) -> UsageError:
        hint = t("`{command} --help` shows how it is used", command=ctx.command_path)
        return UsageError(t("there is no verb '{name}'", name=f"{self.name} {name}"), hint=hint)

    def verb(self, *declared: Any, **settings: Any) -> Callable[[Callable[..., Any]], None]:
        return lambda function: self.add_command(verb(*declared, **settings)(function))


def family(
    name: str,
    help: str,
    *examples: Example,
    options: Sequence[Decorator] = (),
    cls: type[VerbFamily] = VerbFamily,
    **settings: Any,
) -> VerbFamily:
    @click.pass_context
    def page(ctx: click.Context) -> None:
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())

    return click.command(name, cls, help=help, examples=examples, **settings)(together(*options)(page))


def verb(
    name: str, help: str, *examples: Example, cls: type[Verb] = Verb, **settings: Any
) -> Callable[[Callable[..., Any]], Verb]:
    """Declare a verb: a function of the session and its options. The list of verbs shows how `help` begins."""
    declare = click.command(name, cls, help=help, examples=examples, **settings)
    return lambda function: declare(pass_session(function))


def option(shown: str, help: str, *name: str, **settings: Any) -> Decorator:
    """An option as its page shows it: "-f, --follow", "--tail N". What has neither a metavar nor a type is a flag."""
    words = shown.split()
    flags = [word.rstrip(",") for word in words if word.startswith("-")]
    if len(words) > len(flags):
        settings["metavar"] = words[-1]
    elif "type" not in settings and "/" not in shown:
        settings["is_flag"] = True
    return click.option(*flags, *name, help=help, **settings)


def together(*decorators: Decorator) -> Decorator:
    """Several options as one, in this order."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return add


def _no_colour(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.color = False
        if ctx.parent is not None:
            ctx.parent.color = False


def everywhere() -> list[click.Parameter]:
    """The options that every verb and the command itself take."""
    return [
        Common(["-q", "--quiet"], is_flag=True, help=t("Print only what was asked for.")),
        Common(["--no-color"], is_flag=True, callback=_no_colour, help=t("No colours (also: NO_COLOR=1).")),
        Common(["--debug"], is_flag=True, help=t("Show the whole traceback of an unexpected error.")),
    ]
