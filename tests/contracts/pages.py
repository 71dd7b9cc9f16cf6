"""Prints the help page of the command and of every verb, one after another. Run by `pinned.help_pages`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout

import click

from oarsman.cli.main import cli


def every_command(command: click.Command, *words: str) -> Iterator[tuple[str, ...]]:
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from every_command(found, *words, name)


def page(*words: str) -> str:
    written = io.StringIO()
    try:
        with redirect_stdout(written):
            cli.main([*words, "--help"])
    except SystemExit as end:
        if end.code != 0:
            raise
    return written.getvalue()


if __name__ == "__main__":
    pages = [f"==== {' '.join(('oarsman', *words))}\n\n{page(*words)}" for words in every_command(cli)]
    print("\n".join(pages), end="")
