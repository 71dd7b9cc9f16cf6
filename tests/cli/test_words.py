"""Times and durations as they are typed, and the documents made from commands."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.cli.documents import emit
from oarsman.cli.text import pad, parse_duration, parse_moment, rfc3339, safe, width, wrap
from oarsman.errors import UsageError
from oarsman.manifest import job_from_document
from oarsman.manifest.builder import JobSettings, Shape, document
from oarsman.text.units import duration

from .fakes import NOW


def test_json_for_a_terminal_says_what_would_move_its_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    said = {"host": "\x1b[2J\x7f\x9b31m\u202eabc 主机"}
    emit(said, "json")
    shown = capsys.readouterr().out
    assert json.loads(shown) == said
    assert (safe(shown.replace("\n", "")), "主机" in shown) == (shown.replace("\n", ""), True)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("30s", 30), ("5m", 300), ("1m30s", 90), ("2H", 7200), ("1d", 86400), ("500ms", 0.5)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5", "5 m", "5y", "m", "9" * 400 + "d", "1e9", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("5m", NOW - timedelta(minutes=5)),
        ("2026-01-31T08:00:00Z", datetime(2026, 1, 31, 8, tzinfo=UTC)),
        ("2026-01-31T08:00:00+02:00", datetime(2026, 1, 31, 6, tzinfo=UTC)),
    ],
)
def test_moments_are_read(text: str, moment: datetime) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "2026-01-31T99:00:00Z"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_moment(text, NOW)


@given(st.floats(min_value=0, max_value=1e9))
def test_what_is_written_can_be_read_again(seconds: float) -> None:
    assert abs(parse_duration(duration(seconds)) - seconds) <= max(0.06, seconds / 12)


def test_moments_are_written_for_programs_in_utc() -> None:
    zone = datetime.fromisoformat("2026-01-31T08:00:00+02:00")
    assert rfc3339(zone) == "2026-01-31T06:00:00.000000Z"


@given(st.text())
def test_safe_text_has_no_control_characters(text: str) -> None:
    shown = safe(text)
    assert all(c == "\t" or (c >= " " and not "\x7f" <= c <= "\x9f") for c in shown)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=200), st.integers(10, 80))
def test_wrapping_loses_nothing(text: str, columns: int) -> None:
    assert "".join("".join(wrap(text, columns)).split()) == "".join(text.split())


def test_chinese_counts_double() -> None:
    assert width("状态 ok") == 7
    assert pad("状态", 6) == "状态  "
    assert all(width(line) <= 20 for line in wrap("在前台运行一个作业，输出逐行实时显示。" * 5, 20))


WORD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1)


@given(command=st.lists(WORD, min_size=1, max_size=4), processes=st.integers(1, 300))
def test_every_command_makes_a_valid_job(command: list[str], processes: int) -> None:
    made = document(command, Shape(processes=processes), JobSettings(), suffix="x7k2p")
    job = job_from_document(made)
    literal = [word.replace("$$", "$$$$") for word in command]  # a manifest writes $$ where it means $
    assert job.launcher.container.argv == ("mpirun", "-n", str(processes), *literal)
    assert job.slots >= processes


def test_limits_and_variables_reach_the_workers() -> None:
    shape = Shape(processes=2, cpus="500m", memory="1Gi", gpus=1, env={"A": "1"}, keep=True)
    job = job_from_document(document(["./x"], shape, JobSettings(deadline=1.2)))
    assert job.worker is not None
    resources = job.worker.container.resources
    assert (resources.gpus, int(resources.effective("memory"))) == (1, 1 << 30)
    assert [(e.name, e.value) for e in job.worker.container.env] == [("A", "1")]
    assert job.launcher.container.env == job.worker.container.env
    assert (job.run_policy.clean_pod_policy.value, job.run_policy.active_deadline_seconds) == ("None", 2)
