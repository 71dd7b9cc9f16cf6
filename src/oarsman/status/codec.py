"""The status as Kubernetes keeps it: camelCase, RFC 3339, what is empty by default left out.

Its names and types are those of `job/state.py`: what there is to do for each class is worked out once. What
upstream tools read is where they expect it. Where ranks ran is written as ranges per host, since a status with a
line per rank would not fit into an object for a large job. Reading forgives: a status written by another
operator, or an older one of ours, may lack anything.

A sentence is written in English, where others look for it. What it was made of, so that it can be said in another
language, stands under `texts`, by the sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_origin

from oarsman import names
from oarsman.job.state import Described, Status, described
from oarsman.text.sentence import Text, dump, load
from oarsman.text.units import ranges

Document = dict[str, Any]
Convert = Callable[..., Any]
_plain: Final = str.__str__  # a text as the string it is
_LONG_AGO: Final = datetime.fromtimestamp(0, UTC)


# The fields of a status that are ours to leave out.
_TOP: Final = {
    "phase",
    "texts",
    names.WRITTEN_AS,
    names.VALID_SPEC,
    *(one.wire.partition(".")[0] for one in described(Status)),
}


def to_wire(status: Status, *, texts: bool = True) -> Document:
    written: Document = _writer(Status)(status)
    if texts and (made := _made_of(status)):
        written["texts"] = made
    # for those who print one word
    return {"phase": status.phase, **written} if status.conditions else written


def with_others(written: Document, before: Mapping[str, Any]) -> Document:
    """A status of ours with what others have written into it: fields we do not know, conditions of other types."""
    ours = {*_TOP, *written}
    kept = {name: value for name, value in before.items() if name not in ours}
    theirs = {c["type"]: c for c in before.get("conditions") or () if c.get("type") not in names.CONDITIONS}
    conditions = [theirs.get(condition["type"], condition) for condition in written.get("conditions", ())]
    return {**written, **kept, **({"conditions": conditions} if conditions else {})}


def from_wire(document: Mapping[str, Any] | None) -> Status:
    document = document or {}
    texts = {said: _text(said, made) for said, made in (document.get("texts") or {}).items()}
    found: Status = _reader(Status)(document, texts)
    return found


# Sentence -> its text and what that is made of. A status is read and written on every turn, and says the same.
_MOST_TEXTS: Final = 4096
_known: dict[str, tuple[str, Any]] = {}


def _text(said: str, made: Any) -> str:
    known = _known.get(said)
    if known is not None and known[1] == made:
        return known[0]
    text = load(made)
    return _remembered(text, made)[0] if text == said else said  # somebody changed one of the two


def _made(text: Text) -> Any:
    known = _known.get(text)
    return known[1] if known is not None and known[0] is text else _remembered(text, dump(text))[1]


def _remembered(text: str, made: Any) -> tuple[str, Any]:
    if len(_known) >= _MOST_TEXTS:
        _known.clear()
    _known[_plain(text)] = (text, made)
    return text, made


def _made_of(status: Status) -> Document:
    said: list[str | None] = [condition.message for condition in status.conditions]
    for cause in (status.cause, *[attempt.cause for attempt in status.attempts]):
        if cause is not None:
            said += cause.summary, cause.hint
    if status.queue is not None:
        said.append(status.queue.reason)
    return {_plain(text): _made(text) for text in said if isinstance(text, Text) and text.arguments}


class _Converters(NamedTuple):
    """How a value is written, and how it is read; None: as it is."""

    write: Convert | None = None
    read: Convert | None = None


def _converters(type_: Any, words: tuple[str, ...] = ()) -> _Converters:
    if type_ is bool:
        return _Converters(str, lambda word: word == "True") if words else _Converters(None, bool)
    if type_ is datetime:
        return _Converters(_time, _read_time)
    if is_dataclass(type_):
        return _Converters(_writer(type_), _reader(type_))  # type: ignore[arg-type]
    if get_origin(type_) is tuple:
        write, read = _converters(get_args(type_)[0])
        return _Converters(
            list if write is None else lambda items: [write(item) for item in items],
            tuple if read is None else lambda items, texts: tuple([read(item, texts) for item in items]),
        )
    if get_args(type_) == (int, str):
        return _Converters(_ranks_per_host, _host_of_each_rank)
    if get_args(type_) == (str, datetime):
        return _Converters(
            lambda times: {name: _time(at) for name, at in times.items()},
            lambda times: {name: at for name, text in times.items() if (at := _read_time(text))},
        )
    return _Converters(dict, dict) if get_args(type_) else _Converters()


# -- writing ------------------------------------------------------------------------------------
@cache
def _writer(cls: type) -> Convert:
    lines, known = ["written = {}"], {}
    for one in described(cls):
        convert = _plain if one.says.sentence else _converters(one.type, one.says.words).write
        known[f"convert_{one.name}"] = convert
        group, _, name = one.wire.rpartition(".")
        into = f"written.setdefault({group!r}, {{}})" if group else "written"
        value = f"convert_{one.name}(value)" if convert else "value"
        zero_counts = one.says.always or not one.has_default or one.optional
        lines.append(
            f"if (value := found.{one.name}){' is not None' if zero_counts else ''}: {into}[{name!r}] = {value}"
        )
    return _function("found", [*lines, "return written"], known)


def _function(argument: str, lines: Sequence[str], known: Document) -> Convert:
    """Made of source, as dataclasses make theirs: a loop over fields takes half as long again, on every turn."""
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def made({argument}):\n{body}", known)
    made: Convert = known["made"]
    return made


def _time(at: datetime) -> str:
    return (at if at.tzinfo is UTC else at.astimezone(UTC)).isoformat().removesuffix("+00:00") + "Z"


def _ranks_per_host(hosts: Mapping[int, str]) -> dict[str, str]:
    """{0: a, 1: a, 2: a, 5: a} -> {a: "0-2,5"}."""
    ranks: dict[str, list[int]] = {}
    for rank, host in sorted(hosts.items()):
        ranks.setdefault(host, []).append(rank)
    return {host: _ranges(found) for host, found in ranks.items()}


def _ranges(numbers: Sequence[int]) -> str:
    """[0, 1, 2, 5] -> "0-2,5"."""
    if numbers[-1] - numbers[0] == len(numbers) - 1 > 0:  # as a rule there is no gap
        return f"{numbers[0]}-{numbers[-1]}"
    return ranges(numbers).replace(" ", "")


# -- reading ------------------------------------------------------------------------------------
@cache
def _reader(cls: type) -> Convert:
    found = described(cls)
    groups = dict.fromkeys(one.wire.rpartition(".")[0] for one in found)
    lines = [f"get_{group} = {f'(document.get({group!r}) or {{}})' if group else 'document'}.get" for group in groups]
    known: Document = {"cls": cls}
    values = []
    for one in found:
        group, _, wire = one.wire.rpartition(".")
        known[f"convert_{one.name}"] = convert = _converters(one.type, one.says.words).read
        if not one.has_default:
            known[f"other_{one.name}"], other = _stand_in(one), f"other_{one.name}(document)"
        elif one.field.default is not MISSING:
            known[f"other_{one.name}"], other = one.field.default, f"other_{one.name}"
        else:
            known[f"other_{one.name}"], other = one.field.default_factory, f"other_{one.name}()"
        given = "" if convert and not _may_be_empty(one) else " is not None"
        value = f"convert_{one.name}(value)" if convert else "value"
        if one.says.sentence:
            value = "texts.get(value, value)"
        elif _dataclass_in(one.type):
            value = f"convert_{one.name}(value, texts)"
        values.append(f"{one.name}={value} if (value := get_{group}({wire!r})){given} else {other}")
    return _function("document, texts", [*lines, f"return cls({', '.join(values)})"], known)


def _dataclass_in(type_: Any) -> bool:
    return is_dataclass(get_args(type_)[0] if get_origin(type_) is tuple else type_)


def _may_be_empty(one: Described) -> bool:
    """Whether an empty mapping is one, too: a cause of which nothing is known is a cause."""
    return is_dataclass(one.type) and not any(_must_be_there(part) for part in described(one.type))  # type: ignore[arg-type]


def _must_be_there(one: Described) -> bool:
    return not one.has_default and (one.says.required or one.type is int)


def _stand_in(one: Described) -> Convert:
    """What is taken for a field that is missing and has no default."""
    if _must_be_there(one) and one.type is not bool:
        return lambda document: document[one.wire]  # an error: without it there is none
    if one.type is datetime:
        return lambda document: _read_time(document.get(one.says.otherwise) or "") or _LONG_AGO
    if one.type is bool:
        return lambda document: False
    return lambda document: ""


def _read_time(text: str | None) -> datetime | None:
    if not text:
        return None
    at = datetime.fromisoformat(text)
    if at.tzinfo is UTC:
        return at
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def _host_of_each_rank(ranges: Mapping[str, str]) -> dict[int, str]:
    hosts: dict[int, str] = {}
    for host, text in ranges.items():
        for run in text.split(","):
            first, _, last = run.partition("-")
            for rank in range(int(first), int(last or first) + 1):
                hosts[rank] = host
    return dict(sorted(hosts.items()))
