"""What trust is made of in the files of an ssh folder: texts in, texts out. A line of ours can be told from all others.

A line ends in `oarsman-trust:ID`, a block stands between `# >>> oarsman-trust ID` and `# <<< oarsman-trust ID`. What
taking them out again has to know follows the mark of the first: `created` if there was no file before, and `joined` if
the last line before had no end.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

PREFIX = "oarsman-trust:"
_LINE = re.compile(rb"(?:^|\s)oarsman-trust:([\w-]+)(?::(created|joined))?\s*$")
_BLOCK = re.compile(
    rb"^# >>> oarsman-trust ([\w-]+)(?: (created|joined))?\n(.*?)^# <<< oarsman-trust \1\n?", re.MULTILINE | re.DOTALL
)
_KIND = re.compile(r"[a-z][a-z0-9-]*(?:@[a-z][a-z0-9.-]*)?")
_KINDS = ("ssh-ed25519", "ecdsa-sha2-", "rsa-", "ssh-rsa")  # the best first


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Of a host or of a user: what known_hosts and authorized_keys have in common."""

    kind: str
    blob: str

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(base64.b64decode(self.blob)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.kind} {self.blob}"

    @staticmethod
    def read(line: str) -> PublicKey | None:
        """From a .pub file, whose comment may be anything. None: it is no key, or one that vouches for others; what
        would mean something else in a line of authorized_keys or known_hosts is neither."""
        kind, blob, *_ = [*line.split(), "", ""]
        with suppress(ValueError):
            data = base64.b64decode(blob, validate=True)
            named = data[4 : 4 + int.from_bytes(data[:4])].decode("ascii")  # it says its kind once more
            if named == kind and _KIND.fullmatch(kind) and "-cert-" not in kind:
                return PublicKey(kind, blob)
        return None


def best(keys: Sequence[PublicKey]) -> PublicKey | None:
    def rank(key: PublicKey) -> int:
        return next((place for place, kind in enumerate(_KINDS) if key.kind.startswith(kind)), len(_KINDS))

    return min(keys, key=rank, default=None)


def with_lines(text: bytes | None, lines: Sequence[str], mark: str) -> bytes | None:
    """None is a file that is not there; without lines nothing changes."""
    if not lines:
        return text
    before, note = _opened(text, ":")
    first, *others = (f"{line} {PREFIX}{mark}" for line in lines)
    return before + "".join(f"{line}\n" for line in (first + note, *others)).encode()


def without_lines(text: bytes | None, mark: str) -> tuple[bytes | None, int]:
    """And how many were taken out."""
    if text is None:
        return None, 0
    kept, notes, joined_at, count = b"", set(), -1, 0
    for line in text.splitlines(keepends=True):
        if not (found := _ours(line, mark)):
            kept += line
            continue
        count += 1
        notes.add(found[2])
        if found[2] == b"joined":
            joined_at = len(kept)
    return (_closed(kept, notes, joined_at), count) if count else (text, 0)


def _ours(line: bytes, mark: str) -> re.Match[bytes] | None:
    found = _LINE.search(line)
    return found if found and found[1].decode() == mark else None


def marks(text: bytes | None) -> set[str]:
    """Of every trust that has something in a file."""
    lines = map(_LINE.search, (text or b"").splitlines())
    return {match[1].decode() for match in (*lines, *_BLOCK.finditer(text or b"")) if match}


def _opened(text: bytes | None, sign: str) -> tuple[bytes, str]:
    if text is None:
        return b"", f"{sign}created"
    if text and not text.endswith(b"\n"):
        return text + b"\n", f"{sign}joined"
    return text, ""


def _closed(kept: bytes, notes: set[bytes | None], joined_at: int) -> bytes | None:
    if joined_at == len(kept):  # nobody has written anything behind us
        kept = kept.removesuffix(b"\n")
    return None if b"created" in notes and not kept else kept


def stanzas(text: bytes | None, mark: str) -> dict[str, str]:
    """Those of our block, by the first name after Host."""
    found = _block(text, mark)
    parts = re.split(r"(?m)^(?=Host )", found[3].decode("utf-8", "surrogateescape")) if found else []
    return {part.split()[1]: part for part in parts if part.startswith("Host ")}


def with_block(text: bytes | None, wanted: Mapping[str, str], mark: str) -> bytes | None:
    """Stanzas that are there already stay, unless they are wanted otherwise."""
    had = stanzas(text, mark)
    body = "".join({**had, **wanted}.values()).encode("utf-8", "surrogateescape")
    found = _block(text, mark)
    if found and text is not None:
        return text[: found.start(3)] + body + text[found.end(3) :]
    if not wanted:
        return text
    before, note = _opened(text, " ")
    return before + f"# >>> oarsman-trust {mark}{note}\n".encode() + body + f"# <<< oarsman-trust {mark}\n".encode()


def without_block(text: bytes | None, mark: str) -> tuple[bytes | None, int]:
    found = _block(text, mark)
    if not found or text is None:
        return text, 0
    kept = text[: found.start()] + text[found.end() :]
    return _closed(kept, {found[2]}, found.start() if found[2] == b"joined" else -1), 1


def _block(text: bytes | None, mark: str) -> re.Match[bytes] | None:
    return next((found for found in _BLOCK.finditer(text or b"") if found[1].decode() == mark), None)


def admits(line: bytes, key: PublicKey) -> bool:
    return key.blob.encode() in line.split() and not line.lstrip().startswith(b"#")


def admit(text: bytes | None, free: Iterable[str], bound: Iterable[str], mark: str) -> tuple[bytes | None, int, int]:
    """Lines that let keys in, and how many of them are new, and how many say something else than before.

    free: as they are; bound: with options, which a free one of the same key makes useless. What somebody else let in
    stays as it is. That another trust did so does not count: it may be taken back by itself.
    """
    wanted: dict[PublicKey, str] = {}
    for line in (*free, *bound):
        key = PublicKey.read(line) or PublicKey.read(line.partition(" ")[2])
        if key is not None:
            wanted.setdefault(key, line)
    lines, replaced = [], 0
    for key, line in wanted.items():
        there = [each for each in (text or b"").splitlines() if admits(each, key)]
        ours = [each for each in there if _ours(each, mark)]
        said = {each[: found.start()].decode(errors="replace") for each in ours if (found := _LINE.search(each))}
        if line in said or any(PublicKey.read(each) for each in said) or any(not _LINE.search(e) for e in there):
            continue
        if ours and text is not None:
            text = _exchanged(text, ours, line, mark)
            replaced += 1
        else:
            lines.append(line)
    return with_lines(text, lines, mark), len(lines), replaced


@dataclass(frozen=True, slots=True)
class KnownHostKey:
    key: PublicKey
    revoked: bool
    line: bytes


def with_port(name: str, port: int) -> str:
    return name if port == 22 else f"[{name}]:{port}"


def known(text: bytes | None, name: str) -> list[KnownHostKey]:
    """What a file knows under a name. Keys of authorities are left out: they are nobody's own."""
    found = []
    for line in (text or b"").splitlines():
        words = line.decode("utf-8", "replace").split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) < 3 or words[0].startswith("#") or marker == "@cert-authority" or not _is_named(words[0], name):
            continue
        if key := PublicKey.read(" ".join(words[1:])):
            found.append(KnownHostKey(key, marker == "@revoked", line))
    return found


def _is_named(names: str, name: str) -> bool:
    if names.startswith("|1|"):
        try:
            _, _, salt, digest = names.split("|")
            wanted = hmac.new(base64.b64decode(salt), name.lower().encode(), "sha1").digest()
            return hmac.compare_digest(wanted, base64.b64decode(digest))
        except ValueError:
            return False
    patterns = names.lower().split(",")
    refused = any(_fits(name, pattern[1:]) for pattern in patterns if pattern.startswith("!"))
    return not refused and any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    """Only * and ? mean something; brackets are those around a name with a port."""
    return fnmatchcase(name.lower(), pattern.replace("[", "[[]"))


@dataclass(frozen=True, slots=True)
class Pinning:
    """What has to happen to a known_hosts for keys to be known under their names."""

    text: bytes | None
    added: int
    replaced: int  # lines of ours with another key
    refused: tuple[str, ...]  # names of hosts for which a line that is not ours has another key


def pin(text: bytes | None, wanted: Iterable[tuple[PublicKey, Sequence[str]]], mark: str) -> Pinning:
    """A key that somebody else wrote down is never overruled, nor passed by under another name of the same host.

    One of ours is, as the user accepted the new one.
    """
    lines: list[str] = []
    refused: list[str] = []
    replaced = 0
    for key, names in wanted:
        found = {name: known(text, name) for name in names}
        others = {name: [e for e in found[name] if _contradicts(e, key)] for name in names}
        stale = [entry.line for entries in others.values() for entry in entries]
        if not all(_ours(line, mark) for line in stale):
            refused += names
            continue
        missing = [name for name in names if others[name] or all(entry.key != key for entry in found[name])]
        line = f"{','.join(missing)} {key}"
        if stale and text is not None:
            text = _exchanged(text, stale, line, mark)
            replaced += 1
        elif missing:
            lines.append(line)
    return Pinning(with_lines(text, lines, mark), len(lines), replaced, tuple(refused))


def _contradicts(entry: KnownHostKey, key: PublicKey) -> bool:
    return entry.revoked or (entry.key.kind == key.kind and entry.key != key)


def _exchanged(text: bytes, stale: Sequence[bytes], line: str, mark: str) -> bytes:
    """One line for others of ours; what the mark of one of them knows about the file is kept."""
    notes = [found[2] for old in stale if (found := _LINE.search(old)) and found[2]]
    new = f"{line} {PREFIX}{mark}".encode() + (b":" + notes[0] if notes else b"") + b"\n"
    place = next(old for old in stale if not notes or old.rstrip().endswith(b":" + notes[0]))
    kept = b""
    for old in text.splitlines(keepends=True):
        bare = old.rstrip(b"\r\n")
        kept += new if bare == place else b"" if bare in stale else old
    return kept
