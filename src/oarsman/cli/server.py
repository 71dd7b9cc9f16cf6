"""`oarsman server`: the server whose jobs verbs are about when nothing else is said."""

from __future__ import annotations

import os

import click

from oarsman.cli import render, saved_server
from oarsman.cli.session import Session, pass_session
from oarsman.cli.text import t
from oarsman.cli.verbs import family

command = family(
    "server",
    help=t(
        "Remember a server: verbs are then about its jobs, as if --server were given each time. What is said on the "
        "command line (--server, --on) or with OARSMAN_SERVER or OARSMAN_ON goes before."
    ),
    examples=[
        ("oarsman server set https://host:8470 --token-file token.txt", t("what `oarsman tokens add` printed there")),
        ("oarsman server show", ""),
        ("oarsman server unset", t("back to this machine")),
    ],
)


@command.verb(
    "set",
    help=t("Ask a server who it is, and remember it. Its token is kept in a file that only you can read."),
    examples=[
        ("oarsman server set https://host:8470 --token-file token.txt", ""),
        ("oarsman server set https://host:8470 --token-file - --ca-file ca.pem", t("the token from standard input")),
    ],
)
@click.argument("url", metavar="URL")
@click.option("--token-file", metavar="FILE", help=t("The file with the API token; default: OARSMAN_TOKEN."))
@click.option("--ca-file", metavar="FILE", help=t("The certificate of its issuer, in PEM."))
@pass_session
def set_(session: Session, url: str, token_file: str | None, ca_file: str | None) -> None:
    token = saved_server.token_in(token_file) if token_file else os.environ.get("OARSMAN_TOKEN") or None
    wanted = saved_server.SavedServer(url=url, token=token, ca_file=os.path.abspath(ca_file) if ca_file else None)
    info = session.run(session.reached(wanted).info())
    saved_server.save(wanted)
    if not session.quiet:
        said = t("{url} is remembered: {engine}, as {name}", url=url, engine=info.engine, name=info.me.name)
        click.echo(render.shown(said))


@command.verb(
    "show",
    help=t("Show the server that is remembered; its token is not shown."),
    examples=[("oarsman server show", "")],
)
def show() -> None:
    found = saved_server.load()
    click.echo(render.shown(found.url) if found is not None else t("no server is remembered"))


@command.verb(
    "unset",
    help=t("Forget the server that is remembered, with its token."),
    examples=[("oarsman server unset", t("back to this machine"))],
)
@pass_session
def unset(session: Session) -> None:
    saved_server.forget()
    if not session.quiet:
        click.echo(t("no server is remembered"))
