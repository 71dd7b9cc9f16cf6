"""`oarsman users` and `tokens`: who may log in to the console of this machine, and what programs show to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, options, render
from oarsman.cli.session import Session
from oarsman.cli.text import local, t
from oarsman.cli.verbs import family, option
from oarsman.errors import UsageError

if TYPE_CHECKING:
    from oarsman.console.security.store import ConsoleStore

ROLES = click.Choice(("viewer", "user", "admin"))
account = click.argument("name", metavar="NAME")
from_stdin = option("--password-stdin", t("Read the password from the first line of standard input."))


@contextmanager
def opened(session: Session) -> Iterator[ConsoleStore]:
    """The console's file. A running server sees at once what is changed here."""
    from oarsman.console.security.store import ConsoleStore
    from oarsman.store.paths import Paths

    paths = Paths.default()
    paths.make()
    store = ConsoleStore(paths.console_database, now=session.now)
    try:
        yield store
    except ModuleNotFoundError as error:
        if error.name != "argon2":
            raise
        raise UsageError(
            t("passwords need {name}, which is not installed", name="argon2"),
            hint=t("install it with: pip install 'oarsman[console]'"),
        ) from error
    finally:
        store.close()


def audited(store: ConsoleStore, what: str, about: str) -> None:
    """In the log, the command stands where a request's address would."""
    from oarsman.backends.base import current_user

    store.audit.note(current_user(), "command", what, about)


users_verb = family(
    "users",
    t(
        "Manage the accounts of this machine's console. Without accounts, you open the console with a link "
        "printed on the terminal. A running server sees changes at once.\n\n"
        "A viewer sees all jobs and changes nothing; a user sees and changes only their own; an admin may do "
        "everything."
    ),
    ("oarsman users add ann --role admin", t("asks for the password twice")),
    ("oarsman users add ben --password-stdin < secret.txt", t("a user, in a script")),
    "oarsman users list",
    "oarsman users role ben viewer",
    ("oarsman users disable ben", t("until `oarsman users enable ben`")),
    of_place=True,
)


@users_verb.verb(
    "add",
    t("Make an account. The password is asked for twice, and not shown."),
    ("oarsman users add ann --role admin", t("asks for the password twice")),
    ("oarsman users add ben --password-stdin < secret.txt", t("a user, in a script")),
)
@account
@option("--role ROLE", t("What they may do: viewer, user (default), admin."), type=ROLES, default="user")
@from_stdin
def add(session: Session, name: str, role: str, password_stdin: bool) -> None:
    from oarsman.service.models import Role

    with opened(session) as store:
        password = store.accounts.hash(_password(password_stdin))
        with store.together():
            made = store.accounts.add(name, Role(role), password)
            audited(store, "add account", f"{made.name} as {role}")
    session.say(t("{name} can log in, as {role}", name=made.name, role=role))


@users_verb.verb(
    "list",
    t("List the accounts with their roles."),
    "oarsman users list",
    ("oarsman users list -o json", t("for programs")),
)
@options.output("json", "yaml")
def list_(session: Session, output: str | None) -> None:
    with opened(session) as store:
        found = store.accounts.all()
    headers = [t("NAME"), t("ROLE"), t("CREATED"), t("STATE")]
    rows = [[a.name, a.role.value, local(a.created), t("disabled") if a.disabled else t("enabled")] for a in found]
    none = t("no accounts: the console is opened by a link, which `oarsman tokens link` prints")
    render.listing(session, output, found, headers, rows, none)


@users_verb.verb(
    "remove",
    t("Remove an account with its sessions and tokens. Its jobs stay; the last admin cannot be removed."),
    "oarsman users remove ben",
)
@account
def remove(session: Session, name: str) -> None:
    with opened(session) as store, store.together():
        store.accounts.remove(name)
        audited(store, "remove account", name)
    session.say(t("{name} is removed", name=name))


@users_verb.verb(
    "passwd",
    t("Set a new password for an account. Its sessions end; its tokens stay."),
    ("oarsman users passwd ben", t("asks for the password twice")),
    ("oarsman users passwd ben --password-stdin < secret.txt", t("in a script")),
)
@account
@from_stdin
def passwd(session: Session, name: str, password_stdin: bool) -> None:
    with opened(session) as store:
        name = store.accounts.get(name).name  # before anything is asked
        password = store.accounts.hash(_password(password_stdin))
    _change(session, name, "new password", t("{name} has a new password"), hashed_password=password)


@users_verb.verb(
    "role",
    t("Give an account another role, from its next request on."),
    ("oarsman users role ben viewer", t("sees all jobs, changes nothing")),
)
@account
@click.argument("role", type=ROLES, metavar="ROLE")
def role_(session: Session, name: str, role: str) -> None:
    from oarsman.service.models import Role

    _change(session, name, f"role {role}", t("{name} has the role {role}"), role=Role(role))


@users_verb.verb(
    "disable",
    t("Disable an account. Its sessions end; its tokens do not work until it is enabled again."),
    ("oarsman users disable ben", t("until `oarsman users enable ben`")),
)
@account
def disable(session: Session, name: str) -> None:
    _change(session, name, "disabled", t("{name} is disabled"), disabled=True)


@users_verb.verb(
    "enable", t("Enable a disabled account again, with its old password and tokens."), "oarsman users enable ben"
)
@account
def enable(session: Session, name: str) -> None:
    _change(session, name, "enabled", t("{name} is enabled"), disabled=False)


def _change(session: Session, name: str, audit: str, said: str, **change: Any) -> None:
    with opened(session) as store, store.together():
        changed = store.accounts.change(name, **change)
        audited(store, "change account", f"{changed.name}: {audit}")
    session.say(said.format(name=name, role=changed.role.value))


def _password(from_stdin: bool) -> str:
    """Never from the command line, where every user of the machine could read it."""
    if from_stdin:
        return sys.stdin.readline().removesuffix("\n").removesuffix("\r")
    if not sys.stdin.isatty():
        raise UsageError(t("there is no terminal to ask for a password"), hint=t("use --password-stdin"))
    password: str = click.prompt(t("Password"), hide_input=True, err=True)
    if click.prompt(t("Once more"), hide_input=True, err=True) != password:
        raise UsageError(t("the two passwords are not the same"), field="password")
    return password


tokens_verb = family(
    "tokens",
    t(
        "Manage API tokens for this machine's console, and print one-time links that open it. A token has "
        "the rights of its owner; without --user it has all rights, as the owner of the machine has."
    ),
    ("oarsman tokens add --note nightly --days 90", t("for a program; the secret is printed once")),
    "oarsman tokens list",
    ("oarsman tokens revoke oar_AbCd1234", t("from now on it is refused")),
    ("oarsman tokens link", t("to open in a browser within ten minutes")),
    of_place=True,
)


@tokens_verb.verb(
    "add",
    t("Create a token and print it. It is not stored: if you lose it, create another."),
    ("oarsman tokens add --note nightly --days 90", t("for a program; the secret is printed once")),
    ("oarsman tokens add --user ben", t("that may do what ben may")),
)
@option("--note TEXT", t("What it is for, to recognise it in the list."), "remark", default="")
@option("--days N", t("Valid for so many days; default: for ever."), type=click.IntRange(1, 3650))
@option("--user NAME", t("Whose it is: an account; default: you, as the owner of this machine."))
@options.output("json")
def add_token(session: Session, remark: str, days: int | None, user: str | None, output: str | None) -> None:
    from oarsman.backends.base import current_user
    from oarsman.service.models import MadeToken

    if len(remark) > 200:
        raise UsageError(t("a note has at most {n} characters", n=200), field="--note")
    with opened(session) as store, store.together():
        account = store.accounts.get(user).name if user is not None else None
        token, secret = store.tokens.make(account or current_user(), account, note=remark, days=days)
        audited(store, "make token", f"{token.id} of {token.owner}")
    if output:
        documents.emit(MadeToken(token=token, secret=secret), output)
        return
    click.echo(secret)
    session.note(t("It is shown only now. Programs send it as: Authorization: Bearer {begin}...", begin=token.id))


@tokens_verb.verb(
    "list",
    t("List the tokens; their secrets are not known any more."),
    "oarsman tokens list",
    ("oarsman tokens list -o json", t("for programs")),
)
@options.output("json", "yaml")
def list_tokens(session: Session, output: str | None) -> None:
    with opened(session) as store:
        found = store.tokens.all()
    headers = ["ID", t("OWNER"), t("NOTE"), t("CREATED"), t("EXPIRES"), t("LAST USED")]
    rows = [[x.id, x.owner, x.note, local(x.created), local(x.expires), local(x.last_used)] for x in found]
    render.listing(session, output, found, headers, rows, t("no tokens"))


@tokens_verb.verb(
    "revoke", t("Revoke tokens: from their next request on they are refused."), "oarsman tokens revoke oar_AbCd1234"
)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
def revoke(session: Session, ids: tuple[str, ...]) -> None:
    with opened(session) as store:
        for id in ids:
            with store.together():
                token = store.tokens.revoke(id)
                audited(store, "revoke token", f"{token.id} of {token.owner}")
            session.say(t("{id} is revoked", id=token.id))


@tokens_verb.verb(
    "link",
    t("Print a link that opens the console as the owner of this machine. It works once, for ten minutes."),
    ("oarsman tokens link", t("to open in a browser within ten minutes")),
)
def link_(session: Session) -> None:
    from oarsman.backends.base import current_user
    from oarsman.console.security.store import link

    with opened(session) as store:
        address = store.links.address
        if address is None:
            raise UsageError(t("no console was ever started here"), hint=t("start it with: oarsman serve"))
        with store.together():
            key = store.links.make(current_user())
            audited(store, "make link", "")
    click.echo(link(address, key))
