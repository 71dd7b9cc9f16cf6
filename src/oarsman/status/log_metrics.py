r"""Numbers that programs name in their output: loss, images/sec, step. Only known names count.

    10      images/sec: 12.3 +/- 0.1 (jitter = 0.4)  7.9      step 10, images/sec 12.3, loss 7.9
    Train Epoch: 1 [640/60000 (1%)]  Loss: 2.13               step 640, epoch 1, loss 2.13
    {"step": 100, "train/loss": 2.5e-3}                       step 100, train_loss 0.0025

A log is full of numbers that mean nothing of the kind, so whatever could be read in two ways is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import isfinite
from typing import Final, NamedTuple

STEP: Final = "step"
EPOCH: Final = "epoch"
LOSS: Final = "loss"
ITERATION_RATE: Final = "iterations/sec"
_LONGEST: Final = 2000  # what a line says further behind is not looked at
_MOST_OTHER_WORDS: Final = 4


class Told(NamedTuple):
    """What one line names. The step is among the values too."""

    values: dict[str, float]
    step: float | None


def told(text: str) -> Told | None:
    """None for nearly every line, and quickly."""
    if not promising(text):
        return None
    return _read(_last_shown(text))


def promising(text: str) -> bool:
    """Whether a known name may be in it. Written out, because it is asked of every line of every log."""
    low = text.lower()
    return (
        "loss" in low or "step" in low or "epoch" in low or "iter" in low or "acc" in low or "lr" in low
        or "/s" in low or "per" in low or "throughput" in low or "learning" in low or "batch" in low
        or (not text.isascii() and _CHINESE_HINT.search(text) is not None)
    )  # fmt: skip


# -- what numbers and names look like -----------------------------------------------------------------
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,20})?|\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:e[-+]?\d{1,3})?"
_VALUE = rf"(?P<number>{_NUMBER}|[-+]?(?:nan|inf(?:inity)?))(?P<percent>\s?%)?"
_ENDS = r"(?![\w%]|[.,]\w|[:/]\d|-\w)"  # not in the middle of a version, an address, a time, a date or a file's name
_BEGINS = r"(?<![\w/.\-\\])"
_SAYS = r"[\"']?(?:(?P<said>\s{0,12}[:=：＝]\s{0,12})|\s{1,12})"
_WRAPPED = r"[\"'\[(]?(?:tensor\()?"
_PART = r"(?:train(?:ing)?|val(?:id(?:ation)?)?|eval(?:uation)?|test|lm|total|avg|average|mean|running)"
_LOSS = r"(?:[a-z0-9]{1,20}_){0,3}loss(?:_[a-z0-9]{1,20}){0,2}"
_QUALITY = (
    r"(?:top[_-]?\d_)?acc(?:uracy)?(?:@\d{1,3}|_top\d)?|lr|learning[ _]rate|perplexity|ppl|grad(?:ient)?[ _]norm"
    r"|throughput(?:\s?\([^)]{1,30}\))?"
)
_MEASURE: Final = re.compile(
    rf"{_BEGINS}(?P<name>(?:{_PART}[ _\-/.])?(?:{_LOSS}|{_QUALITY})){_SAYS}{_WRAPPED}{_VALUE}{_ENDS}", re.I
)
_THING = r"images?|imgs?|samples?|tokens?|toks?|examples?|sequences?|seqs?|words?|steps?|iterations?|iters?|its?"
_PER_SECOND = r"(?:/|[ _]per[ _]|per)s(?:ec(?:ond)?)?"
_RATE: Final = re.compile(rf"{_BEGINS}(?P<number>{_NUMBER})\s?(?P<thing>{_THING}){_PER_SECOND}(?![\w/])", re.I)
_NAMED_RATE: Final = re.compile(
    rf"(?<![/.\-\\])(?P<total>\btotal[ _])?(?:(?:running)?avg|curr)?(?P<thing>{_THING}){_PER_SECOND}"
    rf"(?P<about>\s(?:on|per)\s[\w ]{{1,20}}(?:\(s\))?)?[\"']?\s{{0,8}}[:=]\s{{0,12}}(?P<number>{_NUMBER}){_ENDS}", re.I
)  # fmt: skip
_COUNT = r"(?P<number>\d{1,3}(?:,\d{3}){1,4}|\d{1,15}(?:\.\d{1,20})?)"
_COUNTER: Final = re.compile(
    r"(?<![\w.\-\\])(?<!\D/)(?<!^/)"
    r"(?P<name>(?:global[ _]|micro[ _]|train[ _])?step|iter(?:ation)?|batch(?:_idx)?|epoch)[\"']?"
    rf"(?:\s{{0,12}}[:=#]\s{{0,12}}|\s{{1,12}}#?)[\"'\[]?{_COUNT}"
    r"(?:\s{0,3}(?:/|of)\s{0,12}\d[\d,]{0,20})?(?![\w%]|[.,]\w|:\d|-\w|/\d)", re.I
)  # fmt: skip
_OUT_OF: Final = re.compile(r"(?:[\[|]\s{0,8}|^\s{0,8})(\d{1,15})\s{0,3}/\s{0,8}(\d{1,15})(?=[\s\])(]|$)")
_BENCHMARK: Final = re.compile(
    rf"^(?P<step>\d{{1,12}})\s+images/sec: (?P<rate>{_NUMBER}) \+/- \S+ "
    rf"\(jitter = \S+\)\s+(?P<loss>{_NUMBER}|nan)(?:\s|$)"
)
_CHINESE_HINT: Final = re.compile("损失|准确率|精度|学习率|吞吐|步|轮")
_CHINESE: Final = re.compile(
    rf"(?P<part>训练|验证|测试)?(?:集)?(?P<name>损失|准确率|精度|学习率|吞吐)(?:值|量|率)?{_SAYS}{_WRAPPED}{_VALUE}{_ENDS}",
    re.I,
)
_CHINESE_COUNTER: Final = re.compile(
    r"第\s{0,4}(?P<nth>\d{1,15})\s{0,4}(?:个\s{0,4})?(?P<th>步|轮|epoch)"
    r"|(?P<name>步|轮)(?:数|次)\s{0,8}[:：=]\s{0,8}(?P<number>\d{1,15})"
)
_CONTROLS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_WORDS: Final = re.compile(r"[^\W\d_]{2,}")
_WORD_BEFORE: Final = re.compile(r"([^\W\d_]{2,})[ _-]$")

# A number of these is a limit or a setting, not where the program is.
_LIMITS: Final = frozenset(
    ("max", "total", "warmup", "num", "per", "every", "save", "eval", "log", "packet", "data", "precision", "size")
)


def _last_shown(text: str) -> str:
    """What a terminal would show in the end of a line that was written over and over, without its colours."""
    if "\r" in text or "\b" in text:
        text = re.split(r"[\r\b]+", text.rstrip("\r\b"))[-1]
    if "\x1b" in text:
        text = _CONTROLS.sub("", text)
    return text[:_LONGEST]


# -- reading a line -----------------------------------------------------------------------------------
def _read(text: str) -> Told | None:
    table = _BENCHMARK.match(text)
    if table is not None:
        named = ((STEP, table["step"]), ("images/sec", table["rate"]), (LOSS, table["loss"]))
        return _told({name: value for name, number in named if (value := _float(number)) is not None})
    values: dict[str, float] = {}
    taken: set[int] = set()  # where the numbers begin that have a name already
    for name, start, value in _measured(text):
        if start not in taken:
            taken.add(start)
            values.setdefault(name, value)
    companions = values.keys() - {ITERATION_RATE}  # progress bars of all kinds have a rate, also downloads
    counted = _counted(text, alone=not companions)
    if not companions:
        return _told(counted) if counted else None
    if STEP not in counted and (found := _OUT_OF.search(text)) is not None and int(found[1]) <= int(found[2]):
        counted[STEP] = float(found[1])
    return _told(counted | values)


def _told(values: dict[str, float]) -> Told | None:
    return Told(values, values.get(STEP)) if values else None


def _measured(text: str) -> Iterator[tuple[str, int, float]]:
    for found in _NAMED_RATE.finditer(text):
        if (value := _float(found["number"])) is not None:
            yield ("total " if found["total"] else "") + _rate(found["thing"]), found.start("number"), value
    for found in _RATE.finditer(text):
        if (value := _float(found["number"])) is not None:
            yield _rate(found["thing"]), found.start("number"), value
    for found in _MEASURE.finditer(text):
        value = _value(found)
        if value is not None and not _is_limit(text, found.start()):
            yield _normal(found["name"]), found.start("number"), value
    for found in () if text.isascii() else _CHINESE.finditer(text):
        if (value := _value(found)) is not None:
            yield _CHINESE_PARTS.get(found["part"], "") + _CHINESE_NAMES[found["name"]], found.start("number"), value


def _value(found: re.Match[str]) -> float | None:
    number = found["number"]
    if found["said"] is None and number.isdecimal():
        return None  # "loss 3" may be anything, "loss 3.0" and "loss: 3" hardly
    value = _float(number)
    return value / 100 if value is not None and found["percent"] else value


def _float(number: str) -> float | None:
    """None for what no chart and no JSON can show."""
    value = float(number.replace(",", ""))
    return value if isfinite(value) else None


def _counted(text: str, *, alone: bool) -> dict[str, float]:
    """Step and epoch. `alone`: nothing else was measured, and then only lines that say little else count."""
    found: dict[str, tuple[int, float]] = {}
    for match in _COUNTER.finditer(text):
        name = match["name"].lower()
        value = float(match["number"].replace(",", ""))
        if (name != EPOCH and not value.is_integer()) or _is_limit(text, match.start()):
            continue
        if alone and _is_prose(text, match):
            continue
        _prefer(found, *_COUNTERS.get(name, (STEP, 0)), value)
    for match in () if text.isascii() else _CHINESE_COUNTER.finditer(text):
        _prefer(found, STEP if "步" in match[0] else EPOCH, 0, float(match["nth"] or match["number"]))
    return {name: value for name, (_, value) in found.items()}


def _prefer(found: dict[str, tuple[int, float]], name: str, order: int, value: float) -> None:
    if name not in found or order < found[name][0]:
        found[name] = order, value


def _is_limit(text: str, start: int) -> bool:
    """Whether the word before makes a setting of it: "max step 100", "packet loss: 3"."""
    before = _WORD_BEFORE.search(text, max(0, start - 20), start)
    return before is not None and before[1].lower() in _LIMITS


def _is_prose(text: str, match: re.Match[str]) -> bool:
    """Instructions count steps too: "Step 2/5 : RUN make", "Step 1: download the data"."""
    behind = text[match.end() :].lstrip("]) \t")
    if behind.startswith(":") and _WORDS.match(behind[1:].lstrip()):
        return True
    return len(_WORDS.findall(text)) > _MOST_OTHER_WORDS + 1


# -- one name for each thing --------------------------------------------------------------------------
_COUNTERS: Final = {
    "iter": (STEP, 1), "iteration": (STEP, 1), "batch": (STEP, 2), "batch_idx": (STEP, 2), "epoch": (EPOCH, 0),
    "micro_step": (STEP, 3), "micro step": (STEP, 3),
}  # fmt: skip
_THINGS: Final = {
    "ima": "images", "img": "images", "sam": "samples", "tok": "tokens", "exa": "examples", "seq": "sequences",
    "wor": "words", "ste": "steps", "ite": "iterations", "it": "iterations", "its": "iterations",
}  # fmt: skip
_CHINESE_PARTS: Final = {"训练": "train_", "验证": "val_", "测试": "test_"}
_CHINESE_NAMES: Final = {"损失": LOSS, "准确率": "accuracy", "精度": "accuracy", "学习率": "lr", "吞吐": "throughput"}
_SAME: Final = {
    "acc": "accuracy", "learning_rate": "lr", "ppl": "perplexity", "gradient_norm": "grad_norm", "training": "train",
    "validation": "val", "valid": "val", "evaluation": "eval", "average": "avg",
}  # fmt: skip
_FIRST_WORD: Final = re.compile(rf"({_PART})[ _\-/.](.+)", re.I)


def _rate(thing: str) -> str:
    return f"{_THINGS[thing[:3].lower()]}/sec"


@lru_cache(maxsize=512)
def _normal(name: str) -> str:
    name = name.lower().partition("(")[0].strip()
    part = _FIRST_WORD.fullmatch(name)
    if part is not None:
        return f"{_SAME.get(part[1], part[1])}_{_normal(part[2])}"
    name = name.replace(" ", "_")
    return _SAME.get(name, name)
