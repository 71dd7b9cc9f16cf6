"""`oarsman tokens`: what programs and the first browser show to the console of this machine."""

from __future__ import annotations

import click

from oarsman.cli import documents, options, render
from oarsman.cli.failures import note
from oarsman.cli.messages import t
from oarsman.cli.session import Session, pass_session
from oarsman.cli.times import local
from oarsman.cli.users import audited, opened
from oarsman.cli.verbs import family
from oarsman.errors import UsageError

command = family(
    "tokens",
    of_place=True,
    help=t(
        "Make and revoke API tokens of the console of this machine, and print links that open it once. A token may "
        "do what its owner may; without --user that is everything, as this machine is yours."
    ),
    examples=[
        ("oarsman tokens add --note nightly --days 90", t("for a program; the secret is printed once")),
        ("oarsman tokens list", ""),
        ("oarsman tokens revoke oar_AbCd1234", t("from now on it is refused")),
        ("oarsman tokens link", t("to open in a browser within ten minutes")),
    ],
)


@command.verb(
    "add",
    help=t("Make a token and print its secret. It is kept nowhere: what is lost has to be made anew."),
    examples=[
        ("oarsman tokens add --note nightly --days 90", t("for a program; the secret is printed once")),
        ("oarsman tokens add --user ben", t("that may do what ben may")),
    ],
)
@click.option("--note", "remark", default="", metavar="TEXT", help=t("What it is for, to recognise it in the list."))
@click.option("--days", type=click.IntRange(1, 3650), metavar="N", help=t("Valid for so many days; default: for ever."))
@click.option("--user", metavar="NAME", help=t("Whose it is: an account; default: you, as the owner of this machine."))
@options.output("json")
@pass_session
def add(session: Session, remark: str, days: int | None, user: str | None, output: str | None) -> None:
    from oarsman.console.security.store import machine_owner
    from oarsman.service.models import MadeToken

    if len(remark) > 200:
        raise UsageError(t("a note has at most {n} characters", n=200), field="--note")
    with opened(session) as store, store.together():
        account = store.accounts.get(user).name if user is not None else None
        token, secret = store.tokens.make(account or machine_owner(), account, note=remark, days=days)
        audited(store, "make token", f"{token.id} of {token.owner}")
    if output:
        documents.emit(MadeToken(token=token, secret=secret).model_dump(mode="json", by_alias=True), output)
        return
    click.echo(secret)
    if not session.quiet:
        note(t("It is shown only now. Programs send it as: Authorization: Bearer {begin}...", begin=token.id))


@command.verb(
    "list",
    help=t("List the tokens; their secrets are not known any more."),
    examples=[("oarsman tokens list", ""), ("oarsman tokens list -o json", t("for programs"))],
)
@options.output("json", "yaml")
@pass_session
def list_(session: Session, output: str | None) -> None:
    with opened(session) as store:
        found = store.tokens.all()
    if output:
        documents.emit([token.model_dump(mode="json", by_alias=True) for token in found], output)
    elif found:
        render.table(
            ["ID", t("OWNER"), t("NOTE"), t("CREATED"), t("EXPIRES"), t("LAST USED")],
            [[x.id, x.owner, x.note, local(x.created), local(x.expires), local(x.last_used)] for x in found],
        )
    elif not session.quiet:
        note(t("no tokens"))


@command.verb(
    "revoke",
    help=t("Revoke tokens: from their next request on they are refused."),
    examples=[("oarsman tokens revoke oar_AbCd1234", "")],
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@pass_session
def revoke(session: Session, ids: tuple[str, ...]) -> None:
    with opened(session) as store:
        for id in ids:
            with store.together():
                token = store.tokens.revoke(id)
                audited(store, "revoke token", f"{token.id} of {token.owner}")
            if not session.quiet:
                click.echo(t("{id} is revoked", id=token.id))


@command.verb(
    "link",
    help=t("Print a link that opens the console once, as the owner of this machine. It is good for ten minutes."),
    examples=[("oarsman tokens link", t("to open in a browser within ten minutes"))],
)
@pass_session
def link_(session: Session) -> None:
    from oarsman.console.security.store import link, machine_owner

    with opened(session) as store:
        address = store.links.address
        if address is None:
            raise UsageError(t("no console was ever started here"), hint=t("start it with: oarsman serve"))
        with store.together():
            key = store.links.make(machine_owner())
            audited(store, "make link", "")
    click.echo(link(address, key))
