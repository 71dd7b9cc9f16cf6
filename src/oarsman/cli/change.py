"""What the verbs that change jobs have in common: each does one thing to some jobs and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from oarsman.cli import documents
from oarsman.cli.render import shown
from oarsman.cli.session import Session, short

if TYPE_CHECKING:
    from oarsman.backends.base import JobRecord


def each(
    session: Session,
    names: Iterable[str],
    act: Callable[[str], JobRecord],
    *,
    said: str,
    output: str | None,
) -> None:
    """Act on every name in turn; say what was done (`said` has a place for {name}), or print the job as it is now."""
    records = [_one(session, name, act, said=None if output else said) for name in names]
    if output and len(records) == 1:
        documents.emit_record(records[0], output)
    elif output:
        documents.emit_records(records, output)


def _one(session: Session, name: str, act: Callable[[str], JobRecord], *, said: str | None) -> JobRecord:
    key = session.key(name)
    record = act(key)
    if said is not None and not session.quiet:
        click.echo(said.format(name=shown(short(key))))
    return record
