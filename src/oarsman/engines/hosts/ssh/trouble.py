"""What can be in the way to a host, said in one plain sentence: read from what OpenSSH prints, 7.x to 10.x."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.text.sentence import Text

NOT_STARTED = -1000  # in place of an exit code: there is no ssh to run
TIMED_OUT = -1001  # in place of an exit code: ssh was ended because it took too long
SSH_FAILED = 255  # ssh's own failures; every other code is the remote command's


@dataclass(frozen=True, slots=True)
class Trouble:
    kind: str  # for programs
    message: str  # for people
    hint: str = ""  # what to do about it

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """How a host is called in messages, with what the inventory and ssh itself say about the way to it."""

    host: SshHost
    text: str
    typed: str = ""  # what to type to go the same way, where somebody knows better than the inventory's line
    config: str = ""  # where ssh was told to look for it

    @property
    def name(self) -> str:
        address = self.host.address
        return f"{self.host.name} ({address})" if address and address != self.host.name else self.host.name

    @property
    def port(self) -> str:
        said = re.search(r"\bport (\d+)", self.text)
        number = said[1] if said and said[1] != "65535" else self.host.port
        return str(number) if number else "22"

    @property
    def user(self) -> str:
        said = re.search(r"^([^\s@]+)@\S+: Permission denied", self.text, re.MULTILINE)
        user = self.host.user or (said[1] if said else "")
        return f" as {user}" if user else ""

    @property
    def known_as(self) -> str:
        """In known_hosts."""
        said = re.search(r"[Hh]ost key for (\S+) has changed", self.text)
        named = f"[{self.host.target}]:{self.port}" if self.port != "22" else self.host.target
        return said[1] if said else named

    @property
    def known_in(self) -> list[str]:
        """Which known_hosts, in the words of ssh-keygen; none where ssh did not say it: it is the user's own."""
        said = re.search(r"Offending (?:\S+ )?key in (\S+):\d+", self.text)
        return ["-f", said[1]] if said else []

    @property
    def words(self) -> str:
        """What to type to see it for oneself."""
        if self.typed:
            return self.typed
        port = f"-p {self.host.port} " if self.host.port else ""
        jump = f"-J {self.host.jump} " if self.host.jump else ""
        user = f"{self.host.user}@" if self.host.user else ""
        return f"ssh {port}{jump}{user}{self.host.target}"


_Sentence = Callable[[_Endpoint], tuple[str, str]]


def _unresolvable(place: _Endpoint) -> tuple[str, str]:
    said = re.search(r"Could not resolve hostname (\S+?):", place.text)
    name = said[1] if said else place.host.target
    return (
        f"{place.name}: the name {name} is not known",
        Text(
            "correct it, or give the host an address in the inventory or in {config}",
            config=place.config or "~/.ssh/config",
        ),
    )


def _refused(place: _Endpoint) -> tuple[str, str]:
    return f"{place.name}: nothing listens on port {place.port}", Text("start sshd there, or correct the port")


def _timeout(place: _Endpoint) -> tuple[str, str]:
    return f"{place.name}: no answer on port {place.port}", Text(
        "it is switched off, or a firewall drops the connection"
    )


def _unreachable(place: _Endpoint) -> tuple[str, str]:
    return f"{place.name}: there is no way to it in the network", Text("check its address, routes and firewalls")


def _key_unknown(place: _Endpoint) -> tuple[str, str]:
    return (
        f"{place.name}: its host key is not known yet",
        Text("accept it with 'oarsman hosts trust', or by '{words}' once", words=place.words),
    )


def _key_changed(place: _Endpoint) -> tuple[str, str]:
    said = re.search(r"Offending (?:\S+ )?key in (\S+)", place.text)
    where = f" ({said[1]})" if said else ""
    stated = re.search(r"ssh-keygen -f .* -R .*", place.text)
    forget = stated[0] if stated else shlex.join(["ssh-keygen", *place.known_in, "-R", place.known_as])
    return (
        f"{place.name}: its host key is not the one in known_hosts{where}",
        Text("if it was installed anew: {words}; then 'oarsman hosts trust'. If not, stay away from it", words=forget),
    )


def _key_revoked(place: _Endpoint) -> tuple[str, str]:
    return f"{place.name}: its host key is marked as revoked", Text(
        "do not connect before its owner has given it a new one"
    )


_KEY_PROBLEMS = (
    r"no such identity: .*",
    r"Identity file .* not accessible.*",
    r"Permissions \S+ for .* are too open\.",
    r"Load key .*",
    r"sign_and_send_pubkey: .*",
    r".*Too many authentication failures.*",
)


def _denied(place: _Endpoint) -> tuple[str, str]:
    key = next((found[0] for form in _KEY_PROBLEMS if (found := re.search(form, place.text))), "")
    hint = Text("check the user and the key, or let 'oarsman hosts trust' put a key there")
    return f"{place.name}: it does not let us log in{place.user}{f' ({key})' if key else ''}", hint


_JUMP_ENDED = r"(?:kex|ssh)_exchange_identification: (?:Connection closed|read: Connection reset)"
_JUMP_REASON = r"^(?:ssh: .*|.*Permission denied.*|.*verification failed.*|.*administratively prohibited.*)$"


def _jump(place: _Endpoint) -> tuple[str, str]:
    said = re.search(_JUMP_REASON, place.text, re.MULTILINE)
    reason = f": {said[0].removeprefix('ssh: ')}" if said else ""
    through = f" {place.host.jump}" if place.host.jump else ""
    return f"{place.name}: the jump host{through} on the way to it failed{reason}", Text(
        "try '{words}'", words=place.words
    )


def _lost(place: _Endpoint) -> tuple[str, str]:
    return (
        f"{place.name}: the connection was closed",
        Text("it was switched off or cut off, or its sshd has too many connections"),
    )


# The first form that is found decides. An ssh to a jump host says its reason, and then ours only that it is gone; the
# jump host's sshd says why it could not go on.
_FORMS: tuple[tuple[str, str, _Sentence], ...] = (
    ("refused", r"open failed: connect failed: Connection refused", _refused),
    ("timeout", r"open failed: connect failed: .*timed out", _timeout),
    ("unreachable", r"open failed: connect failed: .*(No route|unreachable)", _unreachable),
    ("unresolvable", r"open failed: connect failed: .*([Nn]ame|resol|No address)", _unresolvable),
    ("jump", rf"{_JUMP_REASON}\n(?:.*\n)*{_JUMP_ENDED}|UNKNOWN port 65535|stdio forwarding failed", _jump),
    ("host-key-changed", r"REVOKED HOST KEY DETECTED", _key_revoked),
    ("host-key-changed", r"REMOTE HOST IDENTIFICATION HAS CHANGED|[Hh]ost key .*has changed", _key_changed),
    ("unresolvable", r"Could not resolve hostname|hostname contains invalid characters", _unresolvable),
    ("refused", r"connect to .*: Connection refused", _refused),
    ("timeout", r"connect to .*: (Connection|Operation) timed out", _timeout),
    ("timeout", r"timed out during banner exchange|banner exchange: .*timed out", _timeout),
    ("timeout", r"^Connection to \S+ (port \d+ )?timed out", _timeout),
    (
        "unreachable",
        r"connect to .*: (No route to host|Network is (unreachable|down)|Host is (down|unreachable))",
        _unreachable,
    ),
    ("unreachable", r"connect to .*: (Permission denied|Operation not permitted)", _unreachable),
    ("host-key-unknown", r"Host key verification failed|No \S+ host key is known for", _key_unknown),
    (
        "denied",
        r"Permission denied|Too many authentication failures|Authentication failed|not permitted to log in",
        _denied,
    ),
    (
        "lost",
        r"closed by|Connection (to \S+ )?closed|onnection reset|Broken pipe|not responding|onnection aborted",
        _lost,
    ),
)


def trouble(host: SshHost, code: int, stderr: str, *, typed: str = "", config: str = "") -> Trouble:
    """Why ssh, or the command it was to run, ended with this code.

    `typed`: the command line that would go the same way; `config`: the ssh configuration that is used.
    """
    place = _Endpoint(host, stderr, typed, config)
    if code == NOT_STARTED:
        return Trouble("no-ssh", Text("there is no ssh on this machine"), Text("install OpenSSH's client"))
    if code == TIMED_OUT:
        return Trouble("timeout", f"{place.name}: no answer in time", Text("try '{words}'", words=place.words))
    if code == SSH_FAILED:
        for kind, form, sentence in _FORMS:
            if re.search(form, stderr, re.MULTILINE):
                return Trouble(kind, *sentence(place))
        if not stderr.strip():  # a server that stopped answering is no error to ssh's LogLevel=ERROR
            return Trouble("lost", *_lost(place))
    last = next(
        (line.strip() for line in reversed(stderr.splitlines()) if line.strip()),
        Text("ended with code {code}", code=code),
    )
    if code == 127:
        return Trouble("command-not-found", f"{place.name}: a command is not there: {last}")
    return Trouble(
        "other", f"{place.name}: {last}", Text("try '{words}'", words=place.words) if code == SSH_FAILED else ""
    )
