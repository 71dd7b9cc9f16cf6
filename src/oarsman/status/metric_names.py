"""The names of numbers in logs that mean how far or how well a program is, each in one spelling."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

STEP: Final = "step"
EPOCH: Final = "epoch"
LOSS: Final = "loss"
ITERATION_RATE: Final = "iterations/sec"

# The part of the work that a number is about, as it is written first.
_PARTS: Final = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "eval": "eval",
    "evaluation": "eval",
    "test": "test",
    "lm": "lm",
    "total": "total",
    "avg": "avg",
    "average": "avg",
    "mean": "mean",
    "running": "running",
}
_COUNTERS: Final = {
    "step": (STEP, 0),
    "global_step": (STEP, 0),
    "train_step": (STEP, 0),
    "training_step": (STEP, 0),
    "iter": (STEP, 1),
    "iteration": (STEP, 1),
    "batch": (STEP, 2),
    "batch_idx": (STEP, 2),
    "micro_step": (STEP, 3),
    "epoch": (EPOCH, 0),
}
# What these words are before is a setting or something else: max step, packet loss.
_LIMITS: Final = frozenset(
    (
        "max",
        "maximum",
        "min",
        "minimum",
        "num",
        "number",
        "warmup",
        "per",
        "every",
        "each",
        "save",
        "log",
        "resume",
        "/",
        "packet",
        "data",
        "precision",
        "weight",
        "hearing",
        "initial",
        "no",
        "next",
    )
)
_NOT_COUNTING: Final = frozenset(("total", "eval", "val", "test", "avg", "average", "mean"))
_PAIRS: Final = {("learning", "rate"): "lr", ("grad", "norm"): "grad_norm", ("gradient", "norm"): "grad_norm"}
_LOSS: Final = re.compile(r"(?:[a-z0-9]+_){0,3}loss(?:_(?!scale|weight|coef|fn|func|type|rate)[a-z0-9]+){0,2}")
_QUALITY: Final = re.compile(r"top_?\d{1,2}_acc(?:uracy)?|acc(?:uracy)?(?:@\d{1,3}|_top\d{1,2})?")
_SAME: Final = {
    "acc": "accuracy",
    "lr": "lr",
    "learning_rate": "lr",
    "ppl": "perplexity",
    "perplexity": "perplexity",
    "grad_norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "throughput": "throughput",
}
_CHINESE: Final = re.compile(r".*?(训练|验证|测试)?集?的?(损失|准确率|精度|学习率|吞吐)(?:值|量|率)?")
_CHINESE_PARTS: Final = {"训练": "train_", "验证": "val_", "测试": "test_", None: ""}
_CHINESE_NAMES: Final = {"损失": LOSS, "准确率": "accuracy", "精度": "accuracy", "学习率": "lr", "吞吐": "throughput"}
_THINGS: Final = {
    "ima": "images",
    "img": "images",
    "sam": "samples",
    "tok": "tokens",
    "exa": "examples",
    "seq": "sequences",
    "wor": "words",
    "ste": "steps",
    "ite": "iterations",
    "it": "iterations",
    "its": "iterations",
}


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
    chinese = None if name.isascii() else _CHINESE.fullmatch(name)
    return _CHINESE_PARTS[chinese[1]] + _CHINESE_NAMES[chinese[2]] if chinese is not None else None
