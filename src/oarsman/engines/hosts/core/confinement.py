"""What a job of others than the machine's owner sees of this machine.

With a Unix user of its own (`oarsman serve --run-as`), that one's rights are the boundary. Without, it has the server's
user, who could change what the owner runs next: so it sees nothing of that one's home, of temporary folders and of
sockets, and writes below the folder that the server was given, and nowhere else.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Mapping

from oarsman.engines.hosts.core import confine
from oarsman.engines.hosts.core.job_spec import Confinement, Separation
from oarsman.errors import UserError
from oarsman.job.confined import Confined, confined_by
from oarsman.text.sentence import Text

_OF_OTHERS = ("/tmp", "/var/tmp", "/run", "/dev/mqueue", "/dev/shm")  # where users have sockets and memory in common


def confinement(wanted: Confined, *, shown: Iterable[str] = ()) -> Confinement:
    """`shown`: what it needs of what is hidden. Raises UserError if its user is not there."""
    sees = [*_our_own(), *shown]
    hidden = [*wanted.hidden, *_homes()]
    if not wanted.user:
        return _real(hidden=[*hidden, *_OF_OTHERS], shown=[*sees, *_names_of_hosts()], writable=[wanted.folder])
    try:
        user = pwd.getpwnam(wanted.user)
    except KeyError:
        raise UserError(Text("there is no user {name} on this machine", name=wanted.user)) from None
    if user.pw_uid == 0 or os.getuid() != 0:
        raise UserError(Text("jobs cannot run as {name} here", name=wanted.user))
    return _real(hidden=hidden, shown=sees, writable=[wanted.folder])._replace(
        sealed=False, uid=user.pw_uid, gid=user.pw_gid, groups=os.getgrouplist(user.pw_name, user.pw_gid)
    )


def _real(*, hidden: Iterable[str], shown: Iterable[str], writable: Iterable[str]) -> Confinement:
    """With paths that lead through no link."""
    kinds = [list(dict.fromkeys(map(os.path.realpath, paths))) for paths in (hidden, shown, writable)]
    return Confinement(kinds[0], kinds[1], kinds[2])


def _our_own() -> list[str]:
    """The Python that shims run in, and Oarsman."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__)))))
    return [sys.prefix, sys.base_prefix, package]


def _homes() -> set[str]:
    """Of our user, as it is said here and as the machine has it."""
    said = os.path.expanduser("~")
    try:
        return {said, pwd.getpwuid(os.getuid()).pw_dir} - {"/"}
    except KeyError:  # a user without a name, as containers have them
        return {said} - {"/"}


def _names_of_hosts() -> list[str]:
    """Many machines keep /etc/resolv.conf below /run."""
    return [os.path.dirname(os.path.realpath("/etc/resolv.conf"))]


def before(environment: Mapping[str, str], *shown: str) -> tuple[str, ...]:
    """What stands before a command that is run for a job before it has hosts: it may be one of its owner's."""
    wanted = confined_by(environment)
    return tuple(confine.words(confinement(wanted, shown=shown))) if wanted is not None else ()


def refusal(environment: Mapping[str, str], separation: Separation) -> str | None:
    """Why such a job cannot be had here."""
    wanted = confined_by(environment)
    if wanted is None:
        return None
    if not separation.confines:
        why = separation.trouble or Text("it takes Linux 5.12")
        template = Text("this machine cannot confine jobs of accounts, so it runs none: {why}")
        return Text(template, why=why)
    try:
        confinement(wanted)
    except UserError as error:
        return error.message
    return None
