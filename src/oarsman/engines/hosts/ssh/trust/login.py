"""How ssh logs in to a host: settings, host key, password prompt; and which of the user's keys to use from now on."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from oarsman.engines.hosts.ssh.client import Answer, Ssh, outcome
from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.engines.hosts.ssh.trouble import NOT_STARTED, Trouble
from oarsman.engines.hosts.ssh.trust.files import PublicKey, best, known, with_port
from oarsman.engines.hosts.ssh.trust.folders import KEY
from oarsman.errors import UsageError
from oarsman.text.sentence import Text

CONNECT_SECONDS = 10
_ASKED_AT_MOST = 4  # one login may ask by more than one method
# ssh closes what it inherits but standard streams: the password comes through a pipe with a name, in a folder of ours.
# Where nobody holds the pipe any more, because oarsman was killed, reading from it would never end.
_PROGRAM = """\
#!/bin/sh
case $1 in
    *yes/no* | *assphrase* | *PIN*) exit 1 ;;
    {wanted}) kill -0 {asker} && IFS= read -r answer <"${{0%/*}}/answer" && printf '%s\\n' "$answer" ;;
    *) exit 1 ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Way:
    """What `ssh -G` says."""

    hostname: str
    user: str
    known_as: str  # the name under which known_hosts is asked
    known_files: tuple[Path, ...]  # the first is written to
    identities: tuple[Path, ...]
    indirect: bool  # through another machine

    @property
    def own_file(self) -> Path | None:
        """None: the user keeps no list of hosts."""
        first = self.known_files[0] if self.known_files else Path("none")
        return None if str(first) in ("none", "/dev/null") else first


async def way_to(ssh: Ssh, host: SshHost) -> Way | Trouble:
    program, *words = ssh.argv(host)
    try:
        code, out, err = await outcome(program, "-G", *words, patience=None)
    except (FileNotFoundError, PermissionError) as error:
        return ssh.trouble(host, NOT_STARTED, str(error))
    return ssh.trouble(host, code, err) if code else _read(out)


def _read(text: str) -> Way:
    said: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        said.setdefault(name.lower(), []).append(value)

    def one(name: str) -> str:
        return said.get(name, [""])[0]

    def files(name: str) -> tuple[Path, ...]:
        return tuple(Path(word).expanduser() for word in one(name).split())

    hostname = one("hostname")
    passed = (one("proxyjump"), one("proxycommand"))
    return Way(
        hostname=hostname,
        user=one("user"),
        known_as=one("hostkeyalias") or with_port(hostname, int(one("port") or 22)),
        known_files=files("userknownhostsfile") + files("globalknownhostsfile"),
        identities=tuple(Path(value).expanduser() for value in said.get("identityfile", [])),
        indirect=any(word not in ("", "none") for word in passed),
    )


def known_key(way: Way, *files: Path) -> PublicKey | None:
    """The key by which ssh knows the host; None where it trusts for another reason, such as an authority."""
    found: list[PublicKey] = []
    for file in files or way.known_files:
        with suppress(OSError):
            found += [entry.key for entry in known(file.read_bytes(), way.known_as) if not entry.revoked]
    return best(found)


async def learn_key(ssh: Ssh, host: SshHost, way: Way, folder: Path) -> PublicKey | Trouble:
    """The key that the host shows, without logging in; by ssh itself, which knows the way through other machines.

    It is believed only as far as an empty file of ours is concerned, from which it is then shown to the user.
    """
    file = folder / f"{host.name}.learned"
    options = [
        *pinned_by(file),
        "StrictHostKeyChecking=no",
        "HashKnownHosts=no",
        "PreferredAuthentications=none",
        "ControlPath=none",
        f"ConnectTimeout={CONNECT_SECONDS}",
    ]
    answer = await ssh.run(host, "exit 0\n", timeout=3 * CONNECT_SECONDS, options=options)
    if found := known_key(way, file):
        return found
    return answer.trouble or Trouble("other", Text("{host}: it did not show a host key", host=host.name))


def pinned_by(file: Path) -> list[str]:
    """Options by which ssh believes this file alone."""
    return [f'UserKnownHostsFile="{file}"', "GlobalKnownHostsFile=/dev/null"]


async def log_in(
    ssh: Ssh, host: SshHost, script: str, patience: float, *, way: Way, pins: Path | None, password: str | None
) -> Answer:
    """Nothing is learned on the way: neither new host keys nor further ones of a known host."""
    options = ["StrictHostKeyChecking=yes", "UpdateHostKeys=no", f"ConnectTimeout={CONNECT_SECONDS}"]
    options += pinned_by(pins) if pins else []
    if password is None:
        return await ssh.run(host, script, timeout=patience, options=options)
    options += ["PreferredAuthentications=password,keyboard-interactive", "NumberOfPasswordPrompts=1"]
    # Words of a question that may be answered: a machine on the way must not be given the password of another.
    names = dict.fromkeys((host.target, way.hostname)) if way.indirect else ()
    questions = [f"{way.user}@{name}{end}" for name in names for end in ("'s ", ")")]
    with answering(password, questions) as environment:
        return await ssh.run(host, script, timeout=patience, options=options, answering=environment)


@contextmanager
def answering(password: str, questions: Sequence[str]) -> Iterator[dict[str, str]]:
    """An environment in which ssh is told the password. It is in no file, no argument and no variable."""
    wanted = " | ".join(f"*{shlex.quote(question)}*" for question in questions) or "*"
    with tempfile.TemporaryDirectory(prefix="oarsman-", ignore_cleanup_errors=True) as folder:
        program, answer = Path(folder, "ask"), Path(folder, "answer")
        program.write_text(_PROGRAM.format(wanted=wanted, asker=os.getpid()))
        program.chmod(0o700)
        os.mkfifo(answer, 0o600)
        # Open both ways, the pipe holds what is written until somebody reads it.
        with open(os.open(answer, os.O_RDWR | os.O_NONBLOCK), "wb", buffering=0) as pipe:
            pipe.write(f"{password}\n".encode() * _ASKED_AT_MOST)
            forced = {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force"}
            yield {"DISPLAY": ":0", **os.environ, **forced}  # before OpenSSH 8.4 only who has a display is helped


_PATIENCE = 15.0  # seconds


@dataclass(slots=True)
class StartKey:
    public: str  # the line of its .pub file; empty: it has to be made first
    private: Path
    unused: bool  # ssh would not try it by itself


def public_key(file: Path) -> tuple[str, Path]:
    """The line and the private key that belongs to it, whichever of the two files was named."""
    public = file if file.suffix == ".pub" else file.with_name(f"{file.name}.pub")
    try:
        line = public.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or Text("it is not text")
        raise UsageError(Text("the public key {file} cannot be read: {why}", file=public, why=reason)) from None
    if PublicKey.read(line) is None or "\n" in line:
        hint = Text("it is one line that begins with its kind")
        raise UsageError(Text("{file} is no public key of OpenSSH", file=public), hint=hint)
    return line, public.with_suffix("")


async def opening_key(way: Way, home: Path, named: Path | None) -> StartKey:
    if named is not None:
        line, private = public_key(named)
        return StartKey(line, private, private not in way.identities and named not in way.identities)
    for private in way.identities:
        if private.name != KEY and (line := await _usable(private)):
            return StartKey(line, private, unused=False)
    ours = home / ".ssh" / KEY
    return StartKey(await _usable(ours), ours, ours not in way.identities)


async def _usable(private: Path) -> str:
    """The public half of a key that ssh can use without asking anybody; otherwise empty."""
    try:
        line = private.with_name(f"{private.name}.pub").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
    if (key := PublicKey.read(line)) is None:
        return ""
    opened = await _output("ssh-keygen", "-y", "-P", "", "-f", str(private))
    return line if opened or key.blob in await _output("ssh-add", "-L") else ""


async def _output(*words: str) -> str:
    try:
        code, out, _ = await outcome(*words, patience=_PATIENCE)
    except OSError:  # also TimeoutError: an agent on the other side of a connection that hangs, for one
        return ""
    return out if code == 0 else ""
