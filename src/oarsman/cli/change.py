"""The verbs that change jobs: each does one thing to some of them and says so."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, options
from oarsman.cli.messages import t
from oarsman.cli.plain_verbs import PLAIN
from oarsman.cli.render import shown
from oarsman.cli.session import Session, pass_session, short
from oarsman.cli.verbs import Verb, verb

if TYPE_CHECKING:
    from oarsman.service.contract import Service
    from oarsman.service.models import JobView


def plain_verb(name: str) -> Verb:
    plain = PLAIN[name]

    @verb(name, help=plain.help, examples=plain.examples)
    @options.jobs
    @options.output("json", "yaml", "name")
    @options.place
    @pass_session
    def command(session: Session, names: tuple[str, ...], output: str | None) -> None:
        each(session, names, plain.act, said=t.of(plain.said), output=output)

    return command


def each(
    session: Session,
    names: Iterable[str],
    act: Callable[[Service, str], Coroutine[Any, Any, JobView]],
    *,
    said: str,
    output: str | None,
) -> None:
    """Act on every name in turn; say what was done (`said` has a place for {name}), or print the job as it is now."""
    documents.emit_views([_one(session, name, act, said=None if output else said) for name in names], output)


def _one(
    session: Session, name: str, act: Callable[[Service, str], Coroutine[Any, Any, JobView]], *, said: str | None
) -> JobView:
    key = session.key(name)
    view = session.run(act(session.service, key))
    if said is not None and not session.quiet:
        click.echo(said.format(name=shown(short(key))))
    return view
