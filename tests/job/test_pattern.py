from __future__ import annotations

import subprocess
import sys

import pytest

from oarsman.errors import UsageError
from oarsman.job.pattern import compiled


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (r"(a)\1", r"to repeat what a group matched (\1) is not supported"),
        (r"(?P<n>a)(?P=n)", r"to repeat what a group matched (\1) is not supported"),
        (r"(?=a)(b)", "to look ahead or behind, as (?=...) does, is not supported"),
        (r"(?<!a)(b)", "to look ahead or behind, as (?=...) does, is not supported"),
        (r"(?>a)(b)", "to hold on to what was matched, as (?>...) and a++ do, is not supported"),
        (r"(a)*+", "to hold on to what was matched, as (?>...) and a++ do, is not supported"),
        (r"(a)(?(1)b|c)", "to ask whether a group matched, as (?(1)...) does, is not supported"),
        (r"(?x) (a)", "of the flags in (?...) only i, m, s and U are supported"),
        (r"(a)\Z", r"\Z is not supported; write \z"),
        (r"\\\1(a", r"to repeat what a group matched (\1) is not supported"),
        ("(a", "missing ): (a"),
        ("(a){1001}", "invalid repetition size: {1001}"),
    ],
)
def test_what_is_not_supported_is_named_with_its_field(pattern: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        compiled(pattern, field="metric")
    assert refused.value.field == "metric"
    assert refused.value.message == f"not a pattern that can be used here: {says}"


@pytest.mark.parametrize("pattern", ["a" * 501, r"\pL{0,100}(x)", r"\pL{0,999}\pL{0,999}(x)"])
def test_what_would_be_slow_for_every_line_is_too_large(pattern: str) -> None:
    with pytest.raises(UsageError, match=r"longer than|too large"):
        compiled(pattern, field="metric")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("损失[:：] ?(.)", "损失：3 损失: 4", ["3", "4"]),
        ("é(.)", "aéü", ["ü"]),  # a letter, not one of its bytes
        (r"(\d)", "٣3", ["3"]),  # digits of ASCII alone
        (r"(\w+)", "naïve", ["na", "ve"]),
        (r"(?i)(É)", "é", ["é"]),
        ("(a)$", "a\n", []),  # the end is the end
        ("x(a)?", "x xa", [None, "a"]),
        ("(a|b)", "\udcff\ud800a", ["a"]),  # bytes that are no text, as Python keeps them
    ],
)
def test_letters_are_letters_and_classes_those_of_ascii(pattern: str, text: str, found: list[str | None]) -> None:
    assert list(compiled(pattern, field="x").first_groups(text)) == found


def test_a_pattern_may_hold_what_is_no_text() -> None:
    assert compiled("a\udcff", field="x").fits("a\udcff")
    assert not compiled("a\udcff", field="x").fits("a\udcfe")


def test_the_engine_is_loaded_only_for_a_pattern() -> None:
    """It is a library of several megabytes, and the command should be there at once."""
    ask = "import sys, oarsman.job.sweep, oarsman.engines.hosts.ssh.code.tree; print('re2' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "False"
