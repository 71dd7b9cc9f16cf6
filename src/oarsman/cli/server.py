"""`oarsman server`: the server whose jobs verbs are about when nothing else is said."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from oarsman.cli import render
from oarsman.cli.session import SavedServer, Session, token_in
from oarsman.cli.text import t
from oarsman.cli.verbs import family, option

command = family(
    "server",
    t(
        "Remember a server: verbs are then about its jobs, as if --server were given each time. What is said on the "
        "command line (--server, --on) or with OARSMAN_SERVER or OARSMAN_ON goes before."
    ),
    ("oarsman server set https://host:8470 --token-file token.txt", t("what `oarsman tokens add` printed there")),
    "oarsman server show",
    ("oarsman server unset", t("back to this machine")),
)


@command.verb(
    "set",
    t("Ask a server who it is, and remember it. Its token is kept in a file that only you can read."),
    "oarsman server set https://host:8470 --token-file token.txt",
    ("oarsman server set https://host:8470 --token-file - --ca-file ca.pem", t("the token from standard input")),
)
@click.argument("url", metavar="URL")
@option("--token-file FILE", t("The file with the API token; default: OARSMAN_TOKEN."))
@option("--ca-file FILE", t("The certificate of its issuer, in PEM."))
def set_(session: Session, url: str, token_file: str | None, ca_file: str | None) -> None:
    token = token_in(token_file) if token_file else os.environ.get("OARSMAN_TOKEN") or None
    wanted = SavedServer(url=url, token=token, ca_file=os.path.abspath(ca_file) if ca_file else None)
    info = session.run(session.reached(wanted).info())
    _save(wanted)
    said = t("{url} is remembered: {engine}, as {name}", url=url, engine=info.engine, name=info.me.name)
    session.say(render.shown(said))


def _save(server: SavedServer) -> None:
    """Nobody else may read it, at no moment; and it is there whole or not at all."""
    import json

    path = server.file()
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({name: value for name, value in asdict(server).items() if value is not None}, stream)
    fresh.replace(path)


@command.verb("show", t("Show the server that is remembered; its token is not shown."), "oarsman server show")
def show(_: Session) -> None:
    found = SavedServer.load()
    click.echo(render.shown(found.url) if found is not None else t("no server is remembered"))


@command.verb(
    "unset",
    t("Forget the server that is remembered, with its token."),
    ("oarsman server unset", t("back to this machine")),
)
def unset(session: Session) -> None:
    SavedServer.file().unlink(missing_ok=True)
    session.say(t("no server is remembered"))
