"""`oarsman serve`: the console and its REST API, on this machine or, with accounts, for others too.

`oarsman server`: the server whose jobs verbs are about when nothing else is said.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from oarsman.cli import options, render
from oarsman.cli.session import SavedServer, Session, token_in
from oarsman.cli.text import note, of, t
from oarsman.cli.verbs import family, option, verb
from oarsman.errors import UsageError

_EXTRA = {"fastapi", "starlette", "uvicorn", "nicegui", "argon2"}  # what the extra `console` brings
_KEY = options.SecretFile(path_type=Path)
_FILE = click.Path(path_type=Path)  # whether it can be read is said where it is read


@verb(
    "serve",
    t(
        "Serve the console and its REST API. By default only this machine can reach it; a link that works "
        "once opens it. On a network address it needs TLS and accounts. Ctrl-C ends it; jobs keep running."
    ),
    "oarsman serve",
    ("oarsman serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem", t("for others, who log in")),
    ("oarsman serve --on ssh --hosts hostfile", t("the jobs on SSH hosts")),
    ("oarsman serve --on kube", t("the jobs of a cluster")),
    of_place=True,
)
@option("--host ADDRESS", t("The address to listen on; default 127.0.0.1."), default="127.0.0.1")
@option("--port PORT", t("The port to listen on; default 8470, 0: any that is free."), type=options.PORT, default=8470)
@option("--tls-cert, --cert FILE", t("The certificate for TLS, in PEM."), "cert", type=_FILE)
@option("--tls-key, --key FILE", t("The certificate's key, if it is in a separate file."), "key", type=_KEY)
@option("--insecure", t("Allow others to reach it without TLS, because something else has it."))
@option(
    "--public-name NAME",
    t("A name by which browsers reach it, through a proxy or DNS; with TLS there: https://NAME. Can be repeated."),
    "public_names",
    multiple=True,
)
@option(
    "--trusted-proxy ADDRESS",
    t("A proxy, or a network of proxies, to trust with X-Forwarded-For and X-Forwarded-Proto; can be repeated."),
    "trusted_proxies",
    multiple=True,
)
@option(
    "--folder FOLDER",
    t("Where jobs run that mention no folder; default: here."),
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@option(
    "--run-as WHOM",
    t(
        "If the server is root, the users of this machine that jobs of accounts run as: same-name, or "
        "ACCOUNT=USER; can be repeated. Without it they run as the server's user, who must not be root, and "
        "can write only below --folder."
    ),
    "run_as",
    multiple=True,
)
@option("--verbose", t("Log every request."))
@options.place
def serve_verb(session: Session, folder: Path | None, verbose: bool, **settings: Any) -> None:
    import logging

    try:
        from oarsman.console.server import serve
        from oarsman.console.settings import ConsoleSettings, remarks
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise UsageError(
            t("the console needs {name}, which is not installed", name=error.name),
            hint=t("install it with: pip install 'oarsman[console]'"),
        ) from error
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    wanted = ConsoleSettings(
        **settings,
        engine=session.engine,
        folder=(folder or Path.cwd()).absolute(),
        verbose=verbose,
        context=session.context,
        kubeconfig=session.kubeconfig,
        hosts=session.hosts,
        namespaces=tuple(filter(None, (session.namespace or "").split(","))),
    )
    for remark in remarks(wanted):
        note(of(remark))
    serve(wanted, _announce)
    note(t("the console has ended; jobs go on"))


def _announce(address: str, link: str | None) -> None:
    click.echo(t("the console answers at {address}", address=address))
    if link is not None:
        click.echo(t("this link opens it once, within ten minutes: {link}", link=link))
    sys.stdout.flush()


server_verb = family(
    "server",
    t(
        "Set a default server: all verbs then use its jobs, as with --server. --server and --on on the "
        "command line, and OARSMAN_SERVER and OARSMAN_ON, override it."
    ),
    ("oarsman server set https://host:8470 --token-file token.txt", t("what `oarsman tokens add` printed there")),
    "oarsman server show",
    ("oarsman server unset", t("back to this machine")),
)


@server_verb.verb(
    "set",
    t(
        "Make a server the default, after checking that it answers. The token is stored in a file that only "
        "you can read."
    ),
    "oarsman server set https://host:8470 --token-file token.txt",
    ("oarsman server set https://host:8470 --token-file - --ca-file ca.pem", t("the token from standard input")),
)
@click.argument("url", metavar="URL")
@option("--token-file FILE", t("The file with the API token; default: OARSMAN_TOKEN."), type=options.SECRET)
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

    from oarsman.store.paths import note_secret

    path = server.file()
    note_secret(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        json.dump({name: value for name, value in asdict(server).items() if value is not None}, stream)
    fresh.replace(path)


@server_verb.verb("show", t("Show the server that is remembered; its token is not shown."), "oarsman server show")
def show(_: Session) -> None:
    found = SavedServer.load()
    click.echo(render.shown(found.url) if found is not None else t("no server is remembered"))


@server_verb.verb(
    "unset",
    t("Forget the server that is remembered, with its token."),
    ("oarsman server unset", t("back to this machine")),
)
def unset(session: Session) -> None:
    SavedServer.file().unlink(missing_ok=True)
    session.say(t("no server is remembered"))
