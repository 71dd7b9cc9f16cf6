"""What can be in the way to a host, said in one plain sentence: read from what OpenSSH prints, 7.x to 10.x."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.text.sentence import Text, sentences

NOT_STARTED = -1000  # in place of an exit code: there is no ssh to run
TIMED_OUT = -1001  # in place of an exit code: ssh was ended because it took too long
SSH_FAILED = 255  # ssh's own failures; every other code is the remote command's


@dataclass(frozen=True, slots=True)
class Trouble:
    kind: str  # for programs
    message: str  # for people
    hint: str = ""  # what to do about it

    def __str__(self) -> str:
        return sentences([self.message, self.hint]) if self.hint else self.message


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
        return user

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


def _at(place: _Endpoint, why: str) -> str:
    return Text("{host}: {why}", host=place.name, why=why)


def _of_ours(line: str) -> str:
    """What our scripts on hosts print."""
    found = re.fullmatch(r"(\S+) belongs to somebody else", line)
    return Text("{folder} belongs to somebody else", folder=found[1]) if found else line


def without_name(message: str) -> str:
    """Why, of a sentence that begins with the name of the host."""
    name, colon, rest = message.partition(": ")
    why = message.arguments.get("why") if isinstance(message, Text) and colon else None
    return why if isinstance(why, str) and message == f"{name}: {why}" else rest or message


_Sentence = Callable[[_Endpoint], tuple[str, str]]


def _unresolvable(place: _Endpoint) -> tuple[str, str]:
    said = re.search(r"Could not resolve hostname (\S+?):", place.text)
    name = said[1] if said else place.host.target
    return (
        _at(place, Text("the name {name} is not known", name=name)),
        Text(
            "correct it, or give the host an address in the inventory or in {config}",
            config=place.config or "~/.ssh/config",
        ),
    )


def _refused(place: _Endpoint) -> tuple[str, str]:
    why = Text("nothing listens on port {port}", port=place.port)
    return _at(place, why), Text("start sshd there, or correct the port")


def _timeout(place: _Endpoint) -> tuple[str, str]:
    why = Text("no answer on port {port}", port=place.port)
    return _at(place, why), Text("it is switched off, or a firewall drops the connection")


def _unreachable(place: _Endpoint) -> tuple[str, str]:
    why = Text("there is no way to it in the network")
    return _at(place, why), Text("check its address, routes and firewalls")


def _key_unknown(place: _Endpoint) -> tuple[str, str]:
    return (
        _at(place, Text("its host key is not known yet")),
        Text("accept it with 'oarsman hosts trust', or by '{words}' once", words=place.words),
    )


def _key_changed(place: _Endpoint) -> tuple[str, str]:
    said = re.search(r"Offending (?:\S+ )?key in (\S+)", place.text)
    stated = re.search(r"ssh-keygen -f .* -R .*", place.text)
    forget = stated[0] if stated else shlex.join(["ssh-keygen", *place.known_in, "-R", place.known_as])
    why = Text("its host key is not the one in known_hosts")
    return (
        _at(place, Text("{what} ({why})", what=why, why=said[1]) if said else why),
        Text("if it was installed anew: {words}; then 'oarsman hosts trust'. If not, stay away from it", words=forget),
    )


def _key_revoked(place: _Endpoint) -> tuple[str, str]:
    why = Text("its host key is marked as revoked")
    return _at(place, why), Text("do not connect before its owner has given it a new one")


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
    user = place.user
    why = Text("it does not let us log in as {user}", user=user) if user else Text("it does not let us log in")
    return _at(place, Text("{what} ({why})", what=why, why=key) if key else why), hint


_JUMP_ENDED = r"(?:kex|ssh)_exchange_identification: (?:Connection closed|read: Connection reset)"
_JUMP_REASON = r"^(?:ssh: .*|.*Permission denied.*|.*verification failed.*|.*administratively prohibited.*)$"


def _jump(place: _Endpoint) -> tuple[str, str]:
    said = re.search(_JUMP_REASON, place.text, re.MULTILINE)
    why = (
        Text("the jump host {jump} on the way to it failed", jump=place.host.jump)
        if place.host.jump
        else Text("the jump host on the way to it failed")
    )
    why = Text("{what}: {why}", what=why, why=said[0].removeprefix("ssh: ")) if said else why
    return _at(place, why), Text("try '{words}'", words=place.words)


def _lost(place: _Endpoint) -> tuple[str, str]:
    return (
        _at(place, Text("the connection was closed")),
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
        return Trouble("timeout", _at(place, Text("no answer in time")), Text("try '{words}'", words=place.words))
    if code == SSH_FAILED:
        for kind, form, sentence in _FORMS:
            if re.search(form, stderr, re.MULTILINE):
                return Trouble(kind, *sentence(place))
        if not stderr.strip():  # a server that stopped answering is no error to ssh's LogLevel=ERROR
            return Trouble("lost", *_lost(place))
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    last: str = _of_ours(lines[-1]) if lines else Text("ended with code {code}", code=code)
    if isinstance(stderr, Text):  # it was not ssh that said it
        last = stderr
    if code == 127:
        return Trouble("command-not-found", _at(place, Text("a command is not there: {what}", what=last)))
    return Trouble("other", _at(place, last), Text("try '{words}'", words=place.words) if code == SSH_FAILED else "")
