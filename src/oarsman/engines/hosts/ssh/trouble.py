"""What can be in the way to a host, said in one plain sentence: read from what OpenSSH prints, 7.x to 10.x."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from oarsman.engines.hosts.ssh.inventory import SshHost
from oarsman.text.sentence import Text, sentences, visible

NOT_STARTED = -1000  # in place of an exit code: there is no ssh to run
TIMED_OUT = -1001  # in place of an exit code: ssh was ended because it took too long
_CLOSED = frozenset({"host-key-unknown", "host-key-changed", "denied"})
SSH_FAILED = 255  # ssh's own failures; every other code is the remote command's


@dataclass(frozen=True, slots=True)
class Trouble:
    kind: str  # for programs
    message: str  # for people
    hint: str = ""  # what to do about it

    @property
    def closed(self) -> bool:
        """Whether it stays so until somebody acts; everything else may pass by itself."""
        return self.kind in _CLOSED

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
    def words(self) -> str:
        """What to type to see it for oneself."""
        if self.typed:
            return self.typed
        port = f"-p {self.host.port} " if self.host.port else ""
        jump = f"-J {self.host.jump} " if self.host.jump else ""
        user = f"{self.host.user}@" if self.host.user else ""
        return f"ssh {port}{jump}{user}{self.host.target}"


def last_line(text: str) -> str:
    """Of what a host said, for people: nothing in it moves their cursor."""
    return next((visible(line.strip()) for line in reversed(text.splitlines()) if line.strip()), "")


def without_name(message: str) -> str:
    """Why, of a sentence that begins with the name of the host."""
    name, colon, rest = message.partition(": ")
    why = message.arguments.get("why") if isinstance(message, Text) and colon else None
    return why if isinstance(why, str) and message == f"{name}: {why}" else rest or message


_KEY_PROBLEMS = (
    r"no such identity: .*",
    r"Identity file .* not accessible.*",
    r"Permissions \S+ for .* are too open\.",
    r"Load key .*",
    r"sign_and_send_pubkey: .*",
    r".*Too many authentication failures.*",
)
_JUMP_ENDED = r"(?:kex|ssh)_exchange_identification: (?:Connection closed|read: Connection reset)"
_JUMP_REASON = r"^(?:ssh: .*|.*Permission denied.*|.*verification failed.*|.*administratively prohibited.*)$"


def _sentence(kind: str, place: _Endpoint) -> tuple[str, str]:
    """What is in the way, and what to do about it."""
    host, text = place.host, place.text
    match kind:
        case "unresolvable":
            said = re.search(r"Could not resolve hostname (\S+?):", text)
            config = place.config or "~/.ssh/config"
            return (
                Text("the name {name} is not known", name=said[1] if said else host.target),
                Text("correct it, or give the host an address in the inventory or in {config}", config=config),
            )
        case "refused":
            why = Text("nothing listens on port {port}", port=place.port)
            return why, Text("start sshd there, or correct the port")
        case "timeout":
            why = Text("no answer on port {port}", port=place.port)
            return why, Text("it is switched off, or a firewall drops the connection")
        case "unreachable":
            hint = Text("it is switched off, or its address, a route or a firewall is in the way")
            return Text("there is no way to it in the network"), hint
        case "host-key-unknown":
            why = Text("its host key is not known yet")
            return why, Text("accept it with 'oarsman hosts trust', or by '{words}' once", words=place.words)
        case "host-key-changed" if "REVOKED HOST KEY DETECTED" in text:
            why = Text("its host key is marked as revoked")
            return why, Text("do not connect until its owner has given it a new key")
        case "host-key-changed":
            return _key_changed(place)
        case "denied":
            refused = re.search(r"^([^\s@]+)@\S+: Permission denied", text, re.MULTILINE)
            user = host.user or (refused[1] if refused else "")
            why = Text("it does not let us log in as {user}", user=user) if user else Text("it does not let us log in")
            key = next((found[0] for form in _KEY_PROBLEMS if (found := re.search(form, text))), "")
            hint = Text("check the user and the key, or let 'oarsman hosts trust' put a key there")
            return Text("{what} ({why})", what=why, why=key) if key else why, hint
        case "jump":
            said = re.search(_JUMP_REASON, text, re.MULTILINE)
            why = Text("the jump host on the way to it failed")
            why = Text("the jump host {jump} on the way to it failed", jump=host.jump) if host.jump else why
            why = Text("{what}: {why}", what=why, why=said[0].removeprefix("ssh: ")) if said else why
            return why, Text("try '{words}'", words=place.words)
        case _:
            hint = Text("it was switched off or cut off, or its sshd has too many connections")
            return Text("the connection was closed"), hint


def _key_changed(place: _Endpoint) -> tuple[str, str]:
    file = re.search(r"Offending (?:\S+ )?key in ((\S+):\d+|\S+)", place.text)  # if ssh says none, it is the user's own
    if stated := re.search(r"""ssh-keygen -f (["']?)(.+?)\1 -R (["']?)(\S+?)\3\s*$""", place.text, re.MULTILINE):
        # Put together anew: a host that told us what its own ssh said could have written more behind it.
        forget = shlex.join(["ssh-keygen", "-f", stated[2], "-R", stated[4]])
    else:
        named = f"[{place.host.target}]:{place.port}" if place.port != "22" else place.host.target
        said = re.search(r"[Hh]ost key for (\S+) has changed", place.text)
        known_in = ["-f", file[2]] if file and file[2] else []
        forget = shlex.join(["ssh-keygen", *known_in, "-R", said[1] if said else named])
    why = Text("its host key is not the one in known_hosts")
    return (
        Text("{what} ({why})", what=why, why=file[1]) if file else why,
        Text("if it was reinstalled: {words}; then 'oarsman hosts trust'. If not, do not connect to it", words=forget),
    )


# The first form that is found decides. An ssh to a jump host says its reason, and then ours only that it is gone; the
# jump host's sshd says why it could not go on.
_FORMS = (
    ("refused", r"open failed: connect failed: Connection refused"),
    ("timeout", r"open failed: connect failed: .*timed out"),
    ("unreachable", r"open failed: connect failed: .*(No route|unreachable)"),
    ("unresolvable", r"open failed: connect failed: .*([Nn]ame|resol|No address)"),
    ("jump", rf"{_JUMP_REASON}\n(?:.*\n)*{_JUMP_ENDED}|UNKNOWN port 65535|stdio forwarding failed"),
    ("host-key-changed", r"REVOKED HOST KEY DETECTED"),
    ("host-key-changed", r"REMOTE HOST IDENTIFICATION HAS CHANGED|[Hh]ost key .*has changed"),
    ("unresolvable", r"Could not resolve hostname|hostname contains invalid characters"),
    ("refused", r"connect to .*: Connection refused"),
    ("timeout", r"connect to .*: (Connection|Operation) timed out"),
    ("timeout", r"timed out during banner exchange|banner exchange: .*timed out"),
    ("timeout", r"^Connection to \S+ (port \d+ )?timed out"),
    ("unreachable", r"connect to .*: (No route to host|Network is (unreachable|down)|Host is (down|unreachable))"),
    ("unreachable", r"connect to .*: (Permission denied|Operation not permitted)"),
    ("host-key-unknown", r"Host key verification failed|No \S+ host key is known for"),
    ("denied", r"Permission denied|Too many authentication failures|Authentication failed|not permitted to log in"),
    ("lost", r"closed by|Connection (to \S+ )?closed|onnection reset|Broken pipe|not responding|onnection aborted"),
    ("lost", r"\A\s*\Z"),  # a server that stopped answering is no error to ssh's LogLevel=ERROR
)


def trouble(host: SshHost, code: int, stderr: str, *, typed: str = "", config: str = "") -> Trouble:
    """Why ssh, or the command it was to run, ended with this code.

    `typed`: the command line that would go the same way; `config`: the ssh configuration that is used.
    """
    if not isinstance(stderr, Text):
        stderr = "\n".join(map(visible, stderr.splitlines()))
    place = _Endpoint(host, stderr, typed, config)
    try_it = Text("try '{words}'", words=place.words)

    def at(kind: str, why: str, hint: str = "") -> Trouble:
        return Trouble(kind, Text("{host}: {why}", host=place.name, why=why), hint)

    if code == NOT_STARTED:
        return Trouble("no-ssh", Text("there is no ssh on this machine"), Text("install OpenSSH's client"))
    if code == TIMED_OUT:
        return at("timeout", Text("no answer in time"), try_it)
    if code == SSH_FAILED:
        for kind, form in _FORMS:
            if re.search(form, stderr, re.MULTILINE):
                return at(kind, *_sentence(kind, place))
    last = last_line(stderr)
    if isinstance(stderr, Text):  # it was not ssh that said it
        last = stderr
    elif found := re.fullmatch(r"(\S+) belongs to somebody else", last):  # which our scripts on hosts print
        last = Text("{folder} belongs to somebody else", folder=found[1])
    last = last or Text("ended with code {code}", code=code)
    if code == 127:
        return at("command-not-found", Text("a command is not there: {what}", what=last))
    return at("other", last, try_it if code == SSH_FAILED else "")
