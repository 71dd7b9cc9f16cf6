"""`oarsman serve`: the console and its REST API, on this machine or, with accounts, for others too."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from oarsman.cli import options
from oarsman.cli.session import Session
from oarsman.cli.text import note, t
from oarsman.cli.verbs import option, verb
from oarsman.errors import UsageError

_EXTRA = {"fastapi", "starlette", "uvicorn", "nicegui", "argon2"}  # what the extra `console` brings
_FILE = click.Path(path_type=Path)  # whether it can be read is said where it is read


@verb(
    "serve",
    t(
        "Serve the console and its REST API. By default only this machine can reach it, and a link is printed that "
        "opens it once. Where others can reach it, it needs TLS and accounts. Ctrl-C ends it; jobs go on."
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
@option("--tls-key, --key FILE", t("Its key, if it is in a file of its own."), "key", type=_FILE)
@option("--insecure", t("Allow others to reach it without TLS, because something else has it."))
@option(
    "--public-name NAME",
    t("A name by which browsers reach it, through a proxy or DNS; can be repeated."),
    "names",
    multiple=True,
)
@option(
    "--folder FOLDER",
    t("Where jobs run that mention no folder; default: here."),
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@option("--verbose", t("Log every request."))
@options.place
def command(
    session: Session,
    host: str,
    port: int,
    cert: Path | None,
    key: Path | None,
    insecure: bool,
    names: tuple[str, ...],
    folder: Path | None,
    verbose: bool,
) -> None:
    import logging

    try:
        from oarsman.console.server import serve
        from oarsman.console.settings import ConsoleSettings
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        raise UsageError(
            t("the console needs {name}, which is not installed", name=error.name),
            hint=t("install it with: pip install 'oarsman[console]'"),
        ) from error
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = ConsoleSettings(
        host=host,
        port=port,
        engine=session.engine,
        cert=cert,
        key=key,
        insecure=insecure,
        public_names=names,
        folder=(folder or Path.cwd()).absolute(),
        verbose=verbose,
        context=session.context,
        kubeconfig=session.kubeconfig,
        hosts=session.hosts,
        namespaces=tuple(filter(None, (session.namespace or "").split(","))),
    )
    serve(settings, _announce)
    note(t("the console has ended; jobs go on"))


def _announce(address: str, link: str | None) -> None:
    click.echo(t("the console answers at {address}", address=address))
    if link is not None:
        click.echo(t("this link opens it once, within ten minutes: {link}", link=link))
    sys.stdout.flush()
