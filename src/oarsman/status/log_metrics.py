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

# -- the names, each in one spelling --------------------------------------------------------------------
STEP: Final = "step"
EPOCH: Final = "epoch"
LOSS: Final = "loss"
ITERATION_RATE: Final = "iterations/sec"

# The part of the work that a number is about, as it is written first.
_PARTS: Final = {part: part for part in ("train", "val", "eval", "test", "lm", "total", "avg", "mean", "running")} | {
    "training": "train",
    "valid": "val",
    "validation": "val",
    "evaluation": "eval",
    "average": "avg",
}
_COUNTERS: Final = {
    **dict.fromkeys(("step", "global_step", "train_step", "training_step"), (STEP, 0)),
    **dict.fromkeys(("iter", "iteration"), (STEP, 1)),
    **dict.fromkeys(("batch", "batch_idx"), (STEP, 2)),
    "micro_step": (STEP, 3),
    "epoch": (EPOCH, 0),
}
# What these words are before is a setting or something else: max step, packet loss.
_LIMITS: Final = frozenset(
    {
        *("max", "maximum", "min", "minimum", "num", "number", "warmup", "per", "every", "each", "save", "log", "/"),
        *("resume", "packet", "data", "precision", "weight", "hearing", "initial", "no", "next"),
    }
)
_NOT_COUNTING: Final = frozenset(("total", "eval", "val", "test", "avg", "average", "mean"))
_PAIRS: Final = {("learning", "rate"): "lr", ("grad", "norm"): "grad_norm", ("gradient", "norm"): "grad_norm"}
_LOSS: Final = re.compile(r"(?:[a-z0-9]+_){0,3}loss(?:_(?!scale|weight|coef|fn|func|type|rate)[a-z0-9]+){0,2}")
_QUALITY: Final = re.compile(r"top_?\d{1,2}_acc(?:uracy)?|acc(?:uracy)?(?:@\d{1,3}|_top\d{1,2})?")
_SAME: Final = {name: name for name in ("lr", "perplexity", "grad_norm", "throughput")} | {
    "acc": "accuracy",
    "learning_rate": "lr",
    "ppl": "perplexity",
    "gradient_norm": "grad_norm",
}
_CHINESE_MEASURE: Final = re.compile(r".*?(训练|验证|测试)?集?的?(损失|准确率|精度|学习率|吞吐)(?:值|量|率)?")
_CHINESE_PARTS: Final = {"训练": "train_", "验证": "val_", "测试": "test_", None: ""}
_CHINESE_NAMES: Final = {"损失": LOSS, "准确率": "accuracy", "精度": "accuracy", "学习率": "lr", "吞吐": "throughput"}
_COUNTED: Final = ("images", "samples", "tokens", "examples", "sequences", "words", "steps", "iterations")
_THINGS: Final = {name[:3]: name for name in _COUNTED} | {"img": "images", "it": "iterations", "its": "iterations"}


class KnownMetric(NamedTuple):
    name: str
    order: int | None = None  # of a counter, the lower the better; None: a measure


def rate(thing: str) -> str:
    """img and Images are the same."""
    return f"{_THINGS[thing[:3].lower()]}/sec"


@lru_cache(maxsize=4096)
def known(before: str, name: str, *, with_unit: bool = False) -> KnownMetric | None:
    """What `name` means, in small letters, behind the word `before`; None: nothing that is known."""
    if before in _LIMITS or (with_unit and name != "throughput"):
        return None
    if (joined := _PAIRS.get((before, name))) is not None:
        return KnownMetric(joined)
    head, slash, tail = name.replace("-", "/").replace(".", "/").rpartition("/")
    if slash:
        return known(head, tail) if head in _PARTS else None
    if name in _COUNTERS:
        counted, order = _COUNTERS[name]
        return KnownMetric(counted, 3 if before == "micro" else order) if before not in _NOT_COUNTING else None
    found = _measure(name)
    if found is None:
        return None
    return KnownMetric(f"{_PARTS[before]}_{found}" if before in _PARTS else found)


def _measure(name: str) -> str | None:
    if name in _SAME:
        return _SAME[name]
    part, _, rest = name.partition("_")
    if part in _PARTS and rest and (found := _measure(rest)) is not None:
        return f"{_PARTS[part]}_{found}"
    if _LOSS.fullmatch(name) is not None or _QUALITY.fullmatch(name) is not None:
        return name
    chinese = None if name.isascii() else _CHINESE_MEASURE.fullmatch(name)
    return _CHINESE_PARTS[chinese[1]] + _CHINESE_NAMES[chinese[2]] if chinese is not None else None


# -- lines ------------------------------------------------------------------------------------------------
_LONGEST: Final = 2000  # what a line says further behind is not looked at
_MOST_WORDS: Final = 5  # of a line that only counts


class NamedNumbers(NamedTuple):
    """What one line names. The step is among the values too."""

    values: dict[str, float]
    step: float | None


def told(text: str) -> NamedNumbers | None:
    """None for nearly every line, and quickly."""
    if len(text) > _LONGEST:
        text = _last_shown(text)
    low = text.lower()
    rates = ("/s" in low or "per" in low) and _PER_SECOND.search(low) is not None
    # Written out, because this is asked of every line of every log.
    if not (
        rates
        or "loss" in low
        or "step" in low
        or "epoch" in low
        or "iter" in low
        or "acc" in low
        or "lr" in low
        or "learning" in low
        or "throughput" in low
        or "batch" in low
        or "perplex" in low
        or "ppl" in low
        or "norm" in low
        or (not low.isascii() and _CHINESE.search(low) is not None)
    ):
        return None
    return _read(_last_shown(text), rates=rates)


def _last_shown(text: str) -> str:
    """What a terminal shows in the end of a line that was written over and over, without its colours."""
    if "\r" in text or "\b" in text:
        text = _OVER_AGAIN.split(text.rstrip("\r\b"))[-1]
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rstrip("+-.,0123456789")  # half a number is another number
    return text


# -- what a named number looks like -------------------------------------------------------------------
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,20})?|\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][-+]?\d{1,3})?"
_NO_NUMBER = r"[-+]?(?:[nN][aA][nN]|[iI][nN][fF](?:inity)?)"
_ENDS = r"(?![\w%$]|\.[\w$]|,\d|[:/]\d|-\w)"  # not inside a version, an address, a time, a date or the name of a file
_PAIR: Final = re.compile(
    r"(?<![\w.\-\\])(?P<name>[^\W\d_]\w{0,40}+(?:[@/.\-]\w{1,20}+){0,2}+)(?=[^\w.,;])"
    r"(?P<unit>\s?\([^()]{1,30}\))?[\"']?(?:(?P<said>\s{0,12}[:=：＝]\s{0,12})|\s{1,12})#?"
    rf"[\"'\[(]?(?:tensor\()?(?P<number>{_NUMBER}|{_NO_NUMBER})(?P<percent>\s?%)?"
    rf"(?P<total>\s{{0,3}}(?:/|of)\s{{0,12}}\d[\d,]{{0,20}})?{_ENDS}"
)
_RATE: Final = re.compile(
    r"(?<![^\W\d])(?<![/.\-\\])(?:global_|(?:running)?avg|curr)?"
    r"(?P<thing>images?|imgs?|samples?|tokens?|toks?|examples?|sequences?|seqs?|words?|steps?|iterations?|iters?|its?)"
    r"(?:/|[ _]per[ _]|per)s(?:ec(?:ond)?)?(?![\w/])",
    re.IGNORECASE,
)
_PER_SECOND: Final = re.compile(r"(?:/|per[ _]?)s(?:ec(?:ond)?)?(?![a-z0-9/])")
_RATE_BEHIND: Final = re.compile(
    rf"(?:\s(?:on|per)\s[\w ]{{1,20}}(?:\(s\))?)?[\"']?\s{{0,8}}[:=]\s{{0,12}}(?P<number>{_NUMBER}){_ENDS}"
)
_RATE_BEFORE: Final = re.compile(rf"(?:^|(?<=[\s:=(\[,|]))(?P<number>{_NUMBER})\s?$")
_OUT_OF: Final = re.compile(r"(?:[\[|]\s{0,8}|^\s{0,8})(\d{1,15})\s{0,3}/\s{0,8}(\d{1,15})(?=[\s\])(]|$)")
_BENCHMARK: Final = re.compile(
    rf"(?P<step>\d{{1,12}})\s+images/sec: (?P<rate>{_NUMBER}) \+/- \S+ "
    rf"\(jitter = \S+\)\s+(?P<loss>{_NUMBER}|{_NO_NUMBER})(?:\s|$)"
)
_CHINESE: Final = re.compile("损失|准确率|精度|学习率|吞吐|步|轮")
_CHINESE_COUNTER: Final = re.compile(
    r"第\s{0,4}(?P<nth>\d{1,15})\s{0,4}(?:个\s{0,4})?(?:步|轮)|(?:步|轮)(?:数|次)\s{0,8}[:：=]\s{0,8}(?P<number>\d{1,15})"
)
_OVER_AGAIN: Final = re.compile(r"[\r\b]+")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_LAST_WORD: Final = re.compile(r"([^\W\d_]{2,15})[ \t]{1,3}$")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


# -- reading a line -----------------------------------------------------------------------------------
class _Found(NamedTuple):
    name: str
    value: float
    start: int  # where the number begins
    order: int | None = None  # of a counter: which one is meant where there are several; None: a measure


def _read(text: str, *, rates: bool) -> NamedNumbers | None:
    if rates and (row := _BENCHMARK.match(text)) is not None:
        named = ((STEP, row["step"]), ("images/sec", row["rate"]), (LOSS, row["loss"]))
        return _told({name: value for name, number in named if (value := _finite(number)) is not None})
    found = list(_rates(text)) if rates else []
    taken = {one.start for one in found}
    found += [one for one in _pairs(text) if one.start not in taken]
    measures: dict[str, float] = {}
    for one in found:
        if one.order is None:
            measures.setdefault(one.name, one.value)
    companions = measures.keys() - {ITERATION_RATE}  # progress bars of all kinds have that, also those of downloads
    if not companions:
        return _told(_counters(found)) if len(_WORD.findall(text)) <= _MOST_WORDS else None
    counters = _counters(found)
    if STEP not in counters and (part := _OUT_OF.search(text)) is not None and int(part[1]) <= int(part[2]):
        counters[STEP] = float(part[1])
    return _told(counters | measures)


def _told(values: dict[str, float]) -> NamedNumbers | None:
    return NamedNumbers(values, values.get(STEP)) if values else None


def _rates(text: str) -> Iterator[_Found]:
    """images/sec: 12.3, or 12.3 images/sec."""
    for unit in _RATE.finditer(text):
        behind = _RATE_BEHIND.match(text, unit.end())
        begin = max(0, unit.start() - 32)
        before = None if behind is not None else _RATE_BEFORE.search(text[begin : unit.start()])
        name = rate(unit["thing"])
        if behind is not None:
            whole = "total " if text[begin : unit.start()].rstrip(" _").lower().endswith("total") else ""
            value, name, start = _finite(behind["number"]), whole + name, behind.start("number")
        elif before is not None:
            value, start = _finite(before["number"]), begin + before.start("number")
        else:
            continue
        if value is not None:
            yield _Found(name, value, start)


def _pairs(text: str) -> Iterator[_Found]:
    """loss: 0.5, step 100."""
    for pair in _PAIR.finditer(text):
        meant = known(_word_before(text, pair.start()), pair["name"].lower(), with_unit=pair["unit"] is not None)
        value = _finite(pair["number"]) if meant is not None else None
        if meant is None or value is None:
            continue
        if meant.order is not None:
            whole = value >= 0 and (meant.name == EPOCH or value.is_integer())
            if whole and not pair["percent"] and not _is_heading(text, pair):
                yield _Found(meant.name, value, pair.start("number"), meant.order)
        elif not pair["total"] and (pair["said"] is not None or not pair["number"].isdecimal()):
            # "loss 3" may be anything; "loss 3.0" and "loss: 3" hardly
            yield _Found(meant.name, value / 100 if pair["percent"] else value, pair.start("number"))
    for count in () if text.isascii() else _CHINESE_COUNTER.finditer(text):
        yield _Found(STEP if "步" in count[0] else EPOCH, float(count["nth"] or count["number"]), count.start(), 0)


def _word_before(text: str, start: int) -> str:
    """In small letters. A slash makes it a path, unless it parts numbers: epoch=0/step=10."""
    before = text[max(0, start - 18) : start]
    if before.endswith("/"):
        return "" if before[-2:-1].isdigit() else "/"
    found = _LAST_WORD.search(before)
    return found[1].lower() if found is not None else ""


def _is_heading(text: str, pair: re.Match[str]) -> bool:
    """Instructions have steps too: "Step 1: download the data", "Step 2/5 : RUN make". Programs measure something."""
    behind = text[pair.end() :].lstrip("]) \t")
    return behind.startswith(":") and _WORD.match(behind[1:].lstrip()) is not None and not any(map(str.isdigit, behind))


def _counters(found: list[_Found]) -> dict[str, float]:
    """One of each name: a step rather than an iteration, an iteration rather than a batch."""
    chosen: dict[str, _Found] = {}
    for one in found:
        if one.order is not None and (one.name not in chosen or one.order < (chosen[one.name].order or 0)):
            chosen[one.name] = one
    return {name: one.value for name, one in chosen.items()}


def _finite(number: str) -> float | None:
    """None for what no chart and no JSON can show."""
    value = float(number.replace(",", ""))
    return value if isfinite(value) else None
