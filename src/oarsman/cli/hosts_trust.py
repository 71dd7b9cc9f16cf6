"""`oarsman hosts trust`: every host of an inventory may log in to every other, set up from here and taken back."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oarsman.cli import documents, hosts_clean, options, render
from oarsman.cli.failures import INTERRUPTED
from oarsman.cli.session import Session
from oarsman.cli.text import note, of, t, why
from oarsman.cli.verbs import option, verb
from oarsman.errors import UsageError, UserError
from oarsman.text.sentence import sentences

if TYPE_CHECKING:
    from oarsman.engines.hosts.ssh.inventory import Inventory
    from oarsman.engines.hosts.ssh.trouble import Trouble
    from oarsman.engines.hosts.ssh.trust.changes import TrustChange
    from oarsman.engines.hosts.ssh.trust.trust import Pair, Trust, TrustPlan

_typed = partial(click.prompt, hide_input=True, err=True)
_TRIES = 3  # for a password that somebody types
_FILES = ("id_oarsman", "authorized_keys", "known_hosts", "config")
_WIDE = 12  # hosts; a table of more is no help to the eye


@dataclass(frozen=True, slots=True)
class TrustArguments:
    """How the command was called."""

    yes: bool
    dry_run: bool
    undo: bool
    password: str | None
    same_password: bool
    output: str | None
    quiet: bool

    def say(self, text: str = "") -> None:
        """For people; where a program reads standard output they are told beside it."""
        if not self.quiet:
            click.echo(text, err=self.output is not None)

    def table(self, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        if not self.quiet and self.output is None:
            render.table(headers, rows, indent="  ")
        elif not self.quiet:
            for row in rows:
                note("  " + "  ".join(row))


@verb(
    "trust",
    t(
        "Set up ssh logins from here to all hosts of an inventory, and between them. Lists the changes "
        "first, and asks. Each host gets its own key pair; host keys are pinned; a password is asked for "
        "only if no key is accepted. Run it again to add what is missing. At the end every login is tested.\n\n"
        "Only the folder ~/.ssh is changed: lines and blocks marked oarsman-trust, and the key pair "
        "id_oarsman. If the inventory names an sshConfig, that file and its known_hosts are changed here "
        "instead of your own. --undo removes exactly these changes."
    ),
    ("oarsman hosts trust --hosts hosts.txt --dry-run", t("only say what would be changed")),
    ("oarsman hosts trust --hosts hosts.txt --same-password", t("one password opens all hosts")),
    ("oarsman hosts trust --hosts hosts.txt --key ~/.ssh/id_ed25519.pub --yes", t("a key of yours opens them later")),
    ("oarsman hosts trust --hosts hosts.txt --undo", t("as it was before")),
)
@option("-y, --yes", t("Do not ask; accept unknown host keys."))
@option("--dry-run", t("Change nothing, only say what would be changed."))
@option("--undo", t("Remove what was set up, here and on all hosts."))
@option(
    "--key FILE",
    t("The public key to install on all hosts; default: one of yours, or a new one."),
    type=click.Path(path_type=Path),
)
@option(
    "--password-file FILE",
    t("The password of all hosts is the first line of this file; -: of standard input."),
    type=options.SECRET,
)
@option("--same-password", t("Ask once for a password that opens all hosts."))
@options.output("json")
@options.inventory
def command(session: Session, key: Path | None, password_file: str | None, **given: Any) -> int:
    from oarsman.control import host_state
    from oarsman.engines.hosts.ssh.trust.login import public_key
    from oarsman.engines.hosts.ssh.trust.trust import Trust

    if given["undo"] and key is not None:
        raise UsageError(t("--undo removes every key that was installed; --key makes no sense with it"))
    inventory = options.inventory_of(session)
    if key is not None:
        key = key.expanduser().absolute()
        public_key(key)  # a mistake is told before anything is asked
    password = _from_file(password_file) if password_file else None
    asked = TrustArguments(password=password, quiet=session.quiet, **given)
    with Trust(inventory, home=Path.home(), key=key) as trust:
        try:
            if asked.undo:
                _say_what_stays(session, inventory, asked)
            return _go(trust, asked)
        except (KeyboardInterrupt, click.Abort):
            _interrupted(trust)
            return INTERRUPTED
        finally:
            if not asked.dry_run:  # whoever could not be logged in to perhaps can be now, and the other way round
                host_state.forget(inventory)


def _go(trust: Trust, asked: TrustArguments) -> int:
    if not asked.yes and not asked.dry_run and not sys.stdin.isatty():
        raise UsageError(t("there is no terminal to ask on"), hint=t("use --yes, or --dry-run to look first"))
    asyncio.run(trust.look())
    _show_keys(trust, asked)
    _open_locked(trust, asked)
    plan = asyncio.run(trust.plan_undo() if asked.undo else trust.plan())
    _show_left_out(trust, asked)
    _show_plan(trust, plan, asked)
    if asked.dry_run:
        if asked.output:
            documents.emit(_data(trust, plan, None), asked.output)
        return 1 if len(trust.troubles) > len(trust.locked) else 0
    if plan.changes:
        _confirm(t("Change this?"), asked)
        asyncio.run(trust.carry_out_undo(plan) if asked.undo else trust.carry_out(plan))
    return _undone(trust, plan, asked) if asked.undo else _tried(trust, plan, asked)


def _confirm(question: str, asked: TrustArguments) -> None:
    if not asked.yes and not click.confirm(question, err=True):
        asked.say(t("nothing was changed"))
        raise click.exceptions.Exit(1)


# -- who lets us in --------------------------------------------------------------------------------------
def _show_keys(trust: Trust, asked: TrustArguments) -> None:
    """Before a password is typed: whoever is not the host that it seems to be would get it."""
    if trust.learned:
        asked.say(t("Host keys that are not known here yet:"))
        rows = [[name, key.kind, key.fingerprint] for name, key in trust.learned.items()]
        asked.table([t("HOST"), t("KIND"), t("FINGERPRINT")], rows)
        if not asked.dry_run:
            _confirm(t("Are these the keys of these hosts?"), asked)


def _open_locked(trust: Trust, asked: TrustArguments) -> None:
    """Passwords, where they are needed. A wrong one ends it all, as long as nothing is changed."""
    if not trust.locked or (asked.dry_run and asked.password is None):
        return
    wrong: list[str] = []
    for _ in range(_TRIES if asked.password is None else 1):
        wrong = asyncio.run(trust.try_passwords(_passwords(trust, asked)))
        if not wrong:
            return
        note(t("wrong password for {names}", names=", ".join(wrong)))
    raise UserError(
        t("{names} cannot be logged in to with this password; nothing was changed", names=", ".join(wrong)),
        hint=t("correct the password or the user, or leave the host out of the inventory"),
    )


def _passwords(trust: Trust, asked: TrustArguments) -> dict[str, str]:
    hosts = trust.locked
    if asked.password is not None:
        return {host.name: asked.password for host in hosts}
    if not sys.stdin.isatty():
        names = ", ".join(host.name for host in hosts)
        raise UsageError(
            t("{names} want a password, and there is no terminal to ask for it", names=names),
            hint=t("use --password-file"),
        )
    if asked.same_password:
        password = _typed(t("Password of {count} hosts", count=len(hosts)))
        return {host.name: password for host in hosts}
    return {host.name: _typed(t("Password of {login}", login=trust.login_name(host))) for host in hosts}


def _from_file(name: str) -> str:
    try:
        with click.open_file(name, encoding="utf-8") as file:
            line = str(file.readline()).removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(t("{file} cannot be read: {reason}", file=name, reason=why(error))) from None
    if not line:
        raise UsageError(t("there is no password in {file}", file=name))
    return line


def _show_left_out(trust: Trust, asked: TrustArguments) -> None:
    closed = [host.name for host in trust.locked] if asked.dry_run else []
    if closed:
        said = t("These hosts would ask for a password before their changes can be listed: {names}")
        asked.say(said.format(names=", ".join(closed)))
    if left_out := [found for name, found in trust.troubles.items() if name not in closed]:
        asked.say(t("Left out:"))
        for found in left_out:
            asked.say(f"  {_sentence(found)}")
    said = t("{host}: others may write to {files}, so its sshd may ignore the keys; chmod go-w there")
    for name, files in trust.warnings.items():
        asked.say(said.format(host=name, files=", ".join(f"~/{file}" if file != "." else "~" for file in files)))


def _sentence(found: Trouble) -> str:
    return render.shown(of(sentences(filter(None, (found.message, found.hint)))))


# -- what is changed -------------------------------------------------------------------------------------
def _show_plan(trust: Trust, plan: TrustPlan, asked: TrustArguments) -> None:
    refused = t(
        "{place}: its known_hosts has another key for {host}, which is left as it is; "
        "if {host} was installed anew, run 'ssh-keygen -R {host}' there"
    )
    for place, work in plan.work.items():
        for name in work.refused:
            asked.say(refused.format(place=place, host=name))
    if asked.undo:
        stays = t("{host}: what other inventories set up stays: {marks}")
        for name, marks in trust.left_by_others().items():
            asked.say(stays.format(host=name, marks=", ".join(sorted(marks))))
    if plan.changes:
        asked.say(t("Will be changed in ~/.ssh:"))
        _show_changes(trust, plan.changes, asked)
    elif not trust.locked:
        asked.say(t("nothing to do"))


def _show_changes(trust: Trust, changes: Sequence[TrustChange], asked: TrustArguments) -> None:
    """A row for each place, in the order of the inventory; files here that are elsewhere than there are named below."""
    files = [file for file in _FILES if any(_kind(change) == file for change in changes)]
    cells: dict[str, dict[str, list[str]]] = {place: {} for place in ("", *(h.name for h in trust.inventory.hosts))}
    for change in changes:
        cells[change.place].setdefault(_kind(change), []).append(_what(change))
    rows = [
        [place or t("here"), *(t(", ").join(found.get(file, [])) for file in files)]
        for place, found in cells.items()
        if found
    ]
    asked.table([t("HOST"), *files], rows)
    for change in changes:
        if not change.place and Path(_file(trust, change)) != trust.home / ".ssh" / change.file:
            asked.say(t("  here, {name} is {file}", name=change.file, file=_file(trust, change)))


def _kind(change: TrustChange) -> str:
    """Someone may have several lists of known hosts."""
    return "known_hosts" if change.file.startswith("known_hosts") else change.file


def _file(trust: Trust, change: TrustChange) -> str:
    return f"~/.ssh/{change.file}" if change.place else trust.file_here(change.file)


def _what(change: TrustChange) -> str:
    config = change.file == "config"
    words = {
        "make": t("made, without a passphrase"),
        "delete": t("deleted"),
        "add": t("a block of ours: {count} hosts") if config else t("{count} lines added"),
        "replace": t("{count} lines of ours replaced"),
        "remove": t("our block removed") if config else t("{count} lines removed"),
    }
    return words[change.action].format(count=change.count)


def _undone(trust: Trust, plan: TrustPlan, asked: TrustArguments) -> int:
    if trust.done:
        asked.say(t("Removed from ~/.ssh:"))
        _show_changes(trust, trust.done, asked)
    if trust.troubles:
        said = t(
            "not done: {names}; run it again with --undo when they can be reached. "
            "What is set up here is kept until then"
        )
        asked.say(said.format(names=", ".join(trust.troubles)))
    if asked.output:
        documents.emit(_data(trust, plan, None), asked.output)
    return 1 if trust.troubles else 0


def _say_what_stays(session: Session, inventory: Inventory, asked: TrustArguments) -> None:
    """While the hosts can still be logged in to."""
    there = {host: copies for host, copies in hosts_clean.look(session, inventory).items() if copies}
    if there:
        said = t("Copies of jobs' folders stay on {hosts}; to remove them, run `oarsman hosts clean` first")
        asked.say(said.format(hosts=", ".join(there)))


def _interrupted(trust: Trust) -> None:
    note("")
    if not trust.done:
        note(t("interrupted; nothing was changed"))
        return
    note(t("interrupted. Changed until then:"))
    for change in trust.done:
        note(f"  {change.place or t('here')}  {_file(trust, change)}  {_what(change)}")
    note(t("run it again to continue, or with --undo to revert"))


# -- does it work? ---------------------------------------------------------------------------------------
def _tried(trust: Trust, plan: TrustPlan, asked: TrustArguments) -> int:
    pairs = asyncio.run(trust.verify())
    failed = [pair for pair in pairs if pair.trouble is not None]
    if asked.output:
        documents.emit(_data(trust, plan, pairs), asked.output)
    else:
        _show_pairs(trust, pairs, asked)
    for pair in failed:
        if pair.trouble is not None and pair.trouble not in trust.troubles.values():
            where = pair.source or t("here")
            note(t("{source} -> {target} fails: {why}", source=where, target=pair.target, why=_sentence(pair.trouble)))
    if failed:
        good = len(pairs) - len(failed)
        note(t("{good} of {count} logins work", good=good, count=len(pairs)))
        for found in trust.troubles.values():
            note(t("left out: {why}", why=_sentence(found)))
        note(t("run it again when this is repaired: only what is missing is done"))
    else:
        asked.say(t("every login works: {count} of {count}", count=len(pairs)))
    return 1 if failed else 0


def _show_pairs(trust: Trust, pairs: Sequence[Pair], asked: TrustArguments) -> None:
    names = [host.name for host in trust.inventory.hosts]
    if len(names) > _WIDE:
        return
    state = {(pair.source, pair.target): "ok" if pair.trouble is None else t("no") for pair in pairs}
    rows = [[source or t("here"), *(state.get((source, to), "") for to in names)] for source in ("", *names)]
    asked.table([t("FROM"), *names], rows)


def _data(trust: Trust, plan: TrustPlan, pairs: Sequence[Pair] | None) -> dict[str, Any]:
    data: dict[str, Any] = {
        "inventory": str(trust.inventory.file),
        "mark": trust.mark,
        "newHostKeys": [
            {"host": name, "kind": key.kind, "fingerprint": key.fingerprint} for name, key in trust.learned.items()
        ],
        "plan": [_change(trust, change) for change in plan.changes],
        "done": [_change(trust, change) for change in trust.done],
        "refused": [{"on": place, "host": name} for place, work in plan.work.items() for name in work.refused],
        "leftOut": [
            {"host": name, "reason": found.kind, "message": found.message, "hint": found.hint}
            for name, found in trust.troubles.items()
        ],
    }
    if pairs is not None:
        data["logins"] = [
            {
                "from": p.source,
                "to": p.target,
                "works": p.trouble is None,
                "why": p.trouble.message if p.trouble else "",
            }
            for p in pairs
        ]
    return data


def _change(trust: Trust, change: TrustChange) -> dict[str, Any]:
    return {"host": change.place, "file": _file(trust, change), "action": change.action, "count": change.count}
