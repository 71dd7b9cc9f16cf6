"""What a server gives jobs of people who have an account there: they are not the owner of the machine it runs on."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from oarsman.errors import ForbiddenError, UsageError
from oarsman.job.confined import Confined
from oarsman.text.sentence import Text

SAME_NAME = "same-name"
_FIRST_OF_PEOPLE = 1000  # below it are the users of services


@dataclass(frozen=True, slots=True)
class RunAs:
    """Which Unix user the jobs of an account run as: its own, or one that has a name of its own."""

    users: Mapping[str, str] = field(default_factory=dict)
    same_name: bool = False

    @classmethod
    def of(cls, given: Sequence[str]) -> RunAs | None:
        """As it is given to --run-as: same-name, and ACCOUNT=USER. Raises UsageError."""
        if not given:
            return None
        users: dict[str, str] = {}
        for text in (text for text in given if text != SAME_NAME):
            account, equals, user = text.partition("=")
            if not (account and equals and user):
                raise UsageError(
                    Text("{text} does not say who runs as whom", text=f"'{text}'"),
                    field="--run-as",
                    hint=Text("write same-name or ACCOUNT=USER"),
                )
            _checked(user)
            users[account] = user
        if os.geteuid() != 0:
            raise UsageError(
                Text("only root can run jobs as other users"),
                field="--run-as",
                hint=Text("without it jobs of accounts run as the user of the server, and write below --folder alone"),
            )
        return cls(users, SAME_NAME in given)

    def user_of(self, account: str) -> pwd.struct_passwd:
        if account in self.users:
            return _checked(self.users[account])
        if not self.same_name:
            raise ForbiddenError(
                Text("{account} has no user of this machine that jobs could run as", account=account),
                hint=Text("ask the owner of the server to add --run-as {account}=USER", account=account),
            )
        user = _checked(account)
        if user.pw_uid < _FIRST_OF_PEOPLE:  # whoever makes accounts is not to choose among them
            raise ForbiddenError(
                Text("{user} is a user of the system", user=account),
                hint=Text("name it, if it is meant: --run-as {account}={account}", account=account),
            )
        return user


def _checked(user: str) -> pwd.struct_passwd:
    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise UsageError(Text("there is no user {name} on this machine", name=user), field="--run-as") from None
    if found.pw_uid == 0:
        raise UsageError(Text("{name} is root, and its jobs could read everything", name=user), field="--run-as")
    return found


def _open_to_all(folder: Path) -> bool:
    """Whether every user of this machine can reach what lies there. One that is not there is reached by nobody."""
    with suppress(OSError):
        return all(path.stat().st_mode & stat.S_IXOTH for path in (folder.resolve(), *folder.resolve().parents))
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    folder: Path  # of jobs that mention none
    hidden: tuple[str, ...]  # folders of ours
    here: bool = True  # jobs run on this machine
    run_as: RunAs | None = None

    def surroundings(self, owner: str, servers: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
        """The variables of a job of `owner`. Raises ForbiddenError where it cannot be kept from what is not its own."""
        user = self.run_as.user_of(owner) if self.run_as is not None else None
        if user is None and self.here and (why := self.refusal()):
            raise ForbiddenError(why, hint=Text("ask the owner of the server to change that"))
        name, own = "", {}
        if user is not None:
            name = user.pw_name
            own = {"HOME": user.pw_dir, "SHELL": user.pw_shell, "USER": name, "LOGNAME": name}
        return Confined(str(self.folder), self.hidden, name).kept({**servers, **own}, asked)

    def refusal(self) -> str | None:
        """Why no jobs of accounts can run as the server's own user; None if they can."""
        if self.run_as is not None or not self.here:
            return None
        if os.geteuid() == 0:
            return Text(
                "the server runs as root, and its jobs could read everything: start it as another user, or "
                "with --run-as"
            )
        if Path(os.path.expanduser("~")).resolve().is_relative_to(self.folder.resolve()):
            return Text(
                "jobs of accounts write where they run, and {folder} contains the home of the server's user: "
                "set another folder with --folder",
                folder=self.folder,
            )
        if _open_to_all(self.folder):
            return Text(
                "jobs of accounts could leave programs in {folder} that run as the server's user, whoever starts them: "
                "close it to the other users of this machine, with chmod o-x",
                folder=self.folder,
            )
        return None

    def check_folder(self, folder: Path) -> None:
        """Without a user of its own a job runs where the server has its jobs, and nowhere else."""
        if self.run_as is None and not Path(os.path.realpath(folder)).is_relative_to(self.folder.resolve()):
            raise UsageError(
                Text("{path} is not below {folder}, where this server has its jobs", path=folder, folder=self.folder),
                field="folder",
            )
