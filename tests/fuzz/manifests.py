"""Manifests: the examples of the tree, changed. A seed and a number stand for one, always the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from oarsman import names

from . import odd

CALLERS = ("nobody", "viewer", "user")
ROOT = Path(__file__).resolve().parents[2]
LARGEST = 900_000  # bytes: a request takes a little more
_PLACES = (names.ANNOTATION_MPI, names.ANNOTATION_INVENTORY, names.ANNOTATION_ENVIRONMENT, names.ANNOTATION_INSTALL)
_PIECE = "ZqPieceZq"  # stands in a document for something that is written into the text as it is
# Fields of Kubernetes and of ours: where they do not belong, and twice where they do.
_FIELDS = odd.words(
    "apiVersion kind metadata spec status name namespace uid labels annotations items slotsPerWorker runPolicy"
)
_FIELDS += odd.words(
    "mpiReplicaSpecs Launcher Worker replicas template containers command args env envFrom valueFrom volumes"
)
_FIELDS += odd.words(
    "resources limits hostPath initContainers securityContext restartPolicy cleanPodPolicy backoffLimit suspend"
)
_FIELDS += odd.words(
    "activeDeadlineSeconds schedulingPolicy managedBy sshAuthMountPath mpiImplementation workingDir image"
)
_FIELDS += odd.words("launcherCreationPolicy nodeSelector << __class__")
_OPTIONS = odd.words("-n -np --hostfile -x --mca --bind-to -H -rf --app -wdir --map-by : -- -tune mpirun sh -c")
_VARIABLES = odd.words("LD_PRELOAD PATH PYTHONPATH OARSMAN_STATE OMPI_MCA_plm_rsh_agent a=b")
_JUNK = (
    *(
        b"\0",
        b"\xff",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\t",
        b"\r",
        b"\x0b",
        b"\xc2\x85",
        b"\xe2\x80\xa8",
    ),
    *(b"\xef\xbb\xbf", b"'", b'"', b"#", b": ", b"- ", b"\n"),
)
_DIRECTIVES = (b"%YAML 1.1\n---\n", b"%YAML 9.9\n---\n", b"%TAG ! tag:x,2000:\n---\n", b"%FOO\n---\n", b"%YAML 1.1\n")
_ENCODINGS = odd.words("utf-16 utf-16-le utf-16-be utf-32 utf-7 latin-1 utf-8-sig cp037 gb18030")
_ANNOTATIONS = sorted(value for name, value in vars(names).items() if name.startswith("ANNOTATION_"))


@dataclass(frozen=True)
class ManifestCase:
    index: int
    caller: str
    text: bytes
    how: tuple[str, ...]  # it was changed


@cache
def sources() -> tuple[tuple[str, Any], ...]:
    """Texts, and what they say."""
    files = [*(ROOT / "examples").rglob("*.yaml"), *(ROOT / "src/oarsman/service/starters").glob("*.yaml")]
    texts = (file.read_text() for file in sorted(files))
    return tuple((text, yaml.load(text, Loader=yaml.CSafeLoader)) for text in texts if names.KIND in text)


def case(seed: int, index: int) -> ManifestCase:
    rng = Random(f"{seed} manifest {index}")
    text, said = rng.choice(sources())
    how: list[str] = []
    if rng.random() < 0.8:
        document = copy.deepcopy(said)
        pieces: list[str] = []
        for _ in range(rng.choice((1, 1, 1, 2, 2, 4))):
            change = rng.choice(_OF_DOCUMENTS)
            how.append(change.__name__)
            change(document, pieces, rng)
        text = _written(document, pieces, rng)
    raw = text.encode("utf-8", "surrogatepass")
    if not how or rng.random() < 0.35:
        for _ in range(rng.choice((1, 1, 2, 3))):
            edit = rng.choice(_OF_BYTES)
            how.append(edit.__name__)
            raw = edit(raw, rng)[:LARGEST]
    return ManifestCase(index, caller_of(seed, index), raw, tuple(how))


def caller_of(seed: int, index: int) -> str:
    return Random(f"{seed} manifest's caller {index}").choice(CALLERS)


# -- changes of the document ---------------------------------------------------------------------------------
def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every (mapping or list, key) there is."""
    return [*_walk(document)]


def _walk(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in [*value] if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _walk(value[key])


def _piece(text: str, pieces: list[str]) -> str:
    pieces.append(text)
    return f"{_PIECE}{len(pieces) - 1}E"


def another_type(document: Any, pieces: list[str], rng: Random) -> None:
    holder, key = rng.choice(_places(document) or [([None], 0)])
    holder[key] = odd.value(rng)


def odd_text(document: Any, pieces: list[str], rng: Random) -> None:
    places = [(holder, key) for holder, key in _places(document) if isinstance(holder[key], str | int)]
    holder, key = rng.choice(places or [([None], 0)])
    holder[key] = odd.text(rng)


def odd_number(document: Any, pieces: list[str], rng: Random) -> None:
    places = [(holder, key) for holder, key in _places(document) if isinstance(holder[key], int)]
    holder, key = rng.choice(places or [([None], 0)])
    holder[key] = rng.choice(odd.NUMBERS)


def odd_yaml(document: Any, pieces: list[str], rng: Random) -> None:
    holder, key = rng.choice(_places(document) or [([None], 0)])
    holder[key] = _piece(rng.choice(odd.PIECES), pieces)


def gone(document: Any, pieces: list[str], rng: Random) -> None:
    if places := _places(document):
        holder, key = rng.choice(places)
        del holder[key]


def stray_field(document: Any, pieces: list[str], rng: Random) -> None:
    mappings = [holder[key] for holder, key in _places(document) if isinstance(holder[key], dict)]
    into = rng.choice([*mappings, document] if isinstance(document, dict) else [{}])
    into[rng.choice((*_FIELDS, odd.text(rng)))] = odd.value(rng)


def renamed(document: Any, pieces: list[str], rng: Random) -> None:
    places = [(holder, key) for holder, key in _places(document) if isinstance(holder, dict)]
    if places:
        holder, key = rng.choice(places)
        new = rng.choice((str(key)[:-1], str(key).upper(), f"{key} ", odd.text(rng), 7, None, True))
        holder[new] = holder.pop(key)


def exchanged(document: Any, pieces: list[str], rng: Random) -> None:
    places = _places(document)
    if places:
        (one, key), (other, its) = rng.choice(places), rng.choice(places)
        one[key], other[its] = copy.deepcopy(other[its]), copy.deepcopy(one[key])


def multiplied(document: Any, pieces: list[str], rng: Random) -> None:
    lists = [holder[key] for holder, key in _places(document) if isinstance(holder[key], list) and holder[key]]
    if lists:
        found = rng.choice(lists)
        found += [copy.deepcopy(found[0]) for _ in range(rng.choice((1, 20, 300)))]


def hostile_annotation(document: Any, pieces: list[str], rng: Random) -> None:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if isinstance(metadata, dict):
        annotations = metadata.setdefault("annotations", {})
        if isinstance(annotations, dict):
            annotations[rng.choice(_ANNOTATIONS)] = rng.choice((odd.text, odd.value))(rng)


def hostile_path(document: Any, pieces: list[str], rng: Random) -> None:
    """Paths where paths belong: an MPI, an inventory, a key, a folder, a volume."""
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        return
    annotations = document["metadata"].setdefault("annotations", {})
    if isinstance(annotations, dict):
        annotations[rng.choice(_PLACES)] = rng.choice(odd.PATHS + odd.SHELL)
    containers = [found for found in _dicts(document) if "command" in found or "image" in found]
    if containers and rng.random() < 0.5:
        field = rng.choice(("workingDir", "command", "image"))
        rng.choice(containers)[field] = rng.choice((odd.PATHS[0], list(odd.PATHS[:2])))


def hostile_variables(document: Any, pieces: list[str], rng: Random) -> None:
    containers = [found for found in _dicts(document) if "command" in found or "image" in found]
    if containers:
        known = (*_VARIABLES, odd.text(rng))
        chosen = [{"name": rng.choice(known), "value": odd.text(rng)} for _ in range(rng.choice((1, 3, 400)))]
        from_elsewhere = [{"name": "S", "valueFrom": odd.value(rng)}]
        rng.choice(containers)["env"] = rng.choice((chosen, from_elsewhere, odd.value(rng)))


def odd_launch_line(document: Any, pieces: list[str], rng: Random) -> None:
    containers = [found for found in _dicts(document) if isinstance(found.get("command"), list)]
    if containers:
        words = [rng.choice((*_OPTIONS, odd.text(rng), str(rng.choice(odd.NUMBERS)))) for _ in range(9)]
        rng.choice(containers)["command"] = ["mpirun", *words]


def _dicts(document: Any) -> list[dict[Any, Any]]:
    return [holder[key] for holder, key in _places(document) if isinstance(holder[key], dict)]


# -- writing it ----------------------------------------------------------------------------------------------
def _written(document: Any, pieces: list[str], rng: Random) -> str:
    style, text = rng.randrange(4), ""
    if style < 2:
        options = {"allow_unicode": rng.random() < 0.5, "width": rng.choice((20, 120, 10**6)), "sort_keys": False}
        with suppress(UnicodeEncodeError):  # half a character: JSON can write that
            text = str(yaml.dump(document, Dumper=_Dumper, default_flow_style=bool(style), **options))
    if not text:
        document = json.loads(json.dumps(document, default=str, skipkeys=True))
        text = json.dumps(document, ensure_ascii=style == 2, indent=rng.choice((None, 2)))
    for number, piece in enumerate(pieces):
        text = text.replace(f'"{_PIECE}{number}E"', piece).replace(f"{_PIECE}{number}E", piece)
    return text


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


# -- changes of the text -------------------------------------------------------------------------------------
def _at(raw: bytes, rng: Random) -> int:
    return rng.randrange(len(raw) + 1)


def cut(raw: bytes, rng: Random) -> bytes:
    return raw[: _at(raw, rng)]


def odd_bytes(raw: bytes, rng: Random) -> bytes:
    for _ in range(rng.choice((1, 1, 5))):
        at = _at(raw, rng)
        raw = raw[:at] + rng.choice((*_JUNK, rng.randbytes(3))) + raw[at:]
    return raw


def flipped(raw: bytes, rng: Random) -> bytes:
    found = bytearray(raw or b" ")
    for _ in range(rng.choice((1, 3, 30))):
        found[rng.randrange(len(found))] ^= 1 << rng.randrange(8)
    return bytes(found)


def another_encoding(raw: bytes, rng: Random) -> bytes:
    return raw.decode("utf-8", "replace").encode(rng.choice(_ENCODINGS), "replace")


def line_twice(raw: bytes, rng: Random) -> bytes:
    lines = raw.split(b"\n")
    at = rng.randrange(len(lines))
    times = min(rng.choice((2, 2, 50, 2000)), LARGEST // (len(lines[at]) + 1) + 1)
    return b"\n".join([*lines[:at], *[lines[at]] * times, *lines[at + 1 :]])


def lines_moved(raw: bytes, rng: Random) -> bytes:
    lines = raw.split(b"\n")
    at = rng.randrange(len(lines))
    line = lines.pop(at)
    indent = rng.choice((b"", b" ", b"  ", b"\t", b"- "))
    lines.insert(rng.randrange(len(lines) + 1), indent + line.lstrip(b" " * rng.randrange(2)))
    return b"\n".join(lines)


def other_line_ends(raw: bytes, rng: Random) -> bytes:
    return raw.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\r", b"\n\n", b"\xc2\x85")))


def several_documents(raw: bytes, rng: Random) -> bytes:
    return rng.choice((b"---\n", b"...\n", b"--- |\n", b"\n---\n")).join([raw] * rng.choice((2, 3, 40)))


def directive(raw: bytes, rng: Random) -> bytes:
    return rng.choice(_DIRECTIVES) + raw


def laughs(raw: bytes, rng: Random) -> bytes:
    """Few lines that stand for a billion."""
    lines = [b"a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, rng.choice((3, 9, 12)))]
    where = rng.choice((b"%s\n", b"metadata:\n  %s\n"))
    return b"".join(where % line for line in lines) + raw


def merges(raw: bytes, rng: Random) -> bytes:
    count = rng.choice((2, 50, 800))
    chain = [b"m0: &m0 {a: 1}", *(b"m%d: &m%d {<<: *m%d, k%d: 1}" % (n, n, n - 1, n) for n in range(1, count))]
    return b"\n".join(chain) + b"\n" + raw


def swollen(raw: bytes, rng: Random) -> bytes:
    size = rng.choice((10_000, 100_000, 700_000))
    at = raw.find(b"\n", _at(raw, rng)) + 1
    pad = rng.choice((b"#", b" ", b"a", b"- a\n", b"a: 1\n", b"'", b"\n", b"? ", b"? a\n", b"[", b"&a ", b"*a "))
    return raw[:at] + (pad * (size // len(pad) + 1))[:size] + raw[at:]


Change = Callable[[Any, list[str], Random], None]
_OF_DOCUMENTS: tuple[Change, ...] = (
    *(another_type, another_type, odd_text, odd_text, odd_number, odd_yaml, gone, stray_field, renamed, exchanged),
    *(multiplied, *[hostile_annotation, hostile_path] * 2, hostile_variables, odd_launch_line),
)
_OF_BYTES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(cut, flipped, another_encoding, *[odd_bytes, line_twice, lines_moved] * 2, other_line_ends),
    *(several_documents, directive, laughs, merges, swollen),
)
