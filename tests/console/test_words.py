"""The words of the pages: what is shown by name has its text, and engines are heard in the reader's language."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

import oarsman
from oarsman import errors, names
from oarsman.console.pages.create import controls
from oarsman.console.parts import charts, mistakes
from oarsman.console.parts.widgets import STATES, at_the_door
from oarsman.console.parts.words import (
    ABOUT,
    DEEDS,
    HOST_STATES,
    OUTCOMES,
    REFUSALS,
    ROLES,
    UNITS,
    Words,
    about,
    duration,
)
from oarsman.errors import ConflictError, OarsmanError
from oarsman.manifest import form
from oarsman.service.contract import operations
from oarsman.service.documents import all_templates
from oarsman.service.models import EnvironmentSpec, NewAccount, PasswordChange, Role, SweepSpec
from oarsman.text.catalogue import catalogue
from oarsman.text.sentence import Text

SOURCES = Path(oarsman.__file__).parent


@pytest.mark.parametrize(
    ("deed", "told", "read"),
    [
        ("scale", "default/pi to 3", "default/pi 改为 3 个 Worker"),
        ("clone", "default/pi as pi-2", "default/pi 克隆为 pi-2"),
        ("trust hosts", "/etc/hosts.yaml, undo: True", "/etc/hosts.yaml：已撤销"),
        ("trust hosts", "/etc/hosts.yaml, undo: False", "/etc/hosts.yaml"),
        ("check hosts", "all", "所有主机"),
        ("check hosts", "node1, node2", "node1, node2"),
        ("login", "by link", "通过链接"),
        ("delete", "default/all", "default/all"),
    ],
)
def test_what_the_audit_log_tells_is_about_is_read_in_the_reader_s_language(deed: str, told: str, read: str) -> None:
    assert about(Words("zh"), deed, told) == read


def test_what_is_shown_by_name_has_its_text() -> None:
    """Extraction sees only literals: none of these may be without its mark."""
    steps = [value for name, value in vars(controls).items() if name.isupper() and isinstance(value, tuple)]
    questions = [question for step in steps for question in step if isinstance(question, controls.Question)]
    asked = [words for q in questions for words in (q.label, q.note, *(label for _, label in q.choices)) if words]
    titles = [one.title for one in all_templates()]
    shown = [*asked, *titles, *STATES, *OUTCOMES, *HOST_STATES, *ROLES, *charts.STEPS.values()]
    assert [words for words in shown if words not in catalogue("zh")] == []
    assert {question.field for question in questions} == set(form.FIELDS)


def test_every_role_and_every_step_of_a_job_has_words() -> None:
    assert set(ROLES) == {role.value for role in Role}
    assert set(names.STEPS) <= set(charts.STEPS)


def test_the_audit_log_has_words_for_all_that_is_noted_in_it() -> None:
    noted = {one.noted for one in operations().values() if one.noted}
    sources = [file.read_text("utf-8") for folder in ("console", "cli") for file in (SOURCES / folder).rglob("*.py")]
    for source in sources:
        noted |= {*re.findall(r"""(?:note|audited|refused)\((?:[^"()]|\(\))*"([a-z]+(?: [a-z]+)?)\"""", source)}
    assert noted - {"command", "refused", "ok"} == {*DEEDS}
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OarsmanError)}
    assert codes - {*REFUSALS} <= {"place-lost", "job-failed"}  # which nobody is refused with
    assert [words for words in (*DEEDS, *ABOUT, *REFUSALS, *UNITS) if words not in catalogue("zh")] == []


def test_durations_are_in_the_readers_language() -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    spans = [timedelta(seconds=0.4), timedelta(minutes=3, seconds=5), timedelta(days=4, hours=3)]
    assert [duration(Words("en"), began, began + span) for span in spans] == ["0.4s", "3m5s", "4d3h"]
    assert [duration(Words("zh"), began, began + span) for span in spans] == ["0.4 秒", "3 分 5 秒", "4 天 3 小时"]


def test_what_pydantic_finds_wrong_is_said_in_the_readers_language() -> None:
    for model, wrong, field in (
        (NewAccount, {"name": "a b", "password": "long enough"}, "name"),
        (NewAccount, {"name": "ann", "password": "short"}, "password"),
        (EnvironmentSpec, {"name": "Not A Name"}, "name"),
        (EnvironmentSpec, {"name": "x", "python": "four"}, "python"),
        (SweepSpec, {"name": "s", "manifest": "", "retries": 101}, "retries"),
        (SweepSpec, {"name": "s"}, "manifest"),
    ):
        with pytest.raises(ValidationError) as caught:
            model(**wrong)
        told = mistakes.by_field(Words("zh"), caught.value)
        assert list(told) == [field]
        assert re.search("[一-鿿]", told[field]), told


def test_a_new_password_that_is_too_short_is_told_in_the_readers_language() -> None:
    with pytest.raises(ValidationError) as caught:
        PasswordChange(current="correct horse", new="short")
    (found,) = caught.value.errors()
    assert found["msg"] == mistakes.TOO_SHORT
    assert json.loads(at_the_door(Words("zh")).strip("()"))[found["msg"]] == "至少 8 个字符"


def test_engines_have_names_that_people_know() -> None:
    engines = ("local", "ssh", "kube", "new")
    assert [Words("en").engine(name) for name in engines] == ["this machine", "SSH hosts", "Kubernetes", "new"]
    assert [Words("zh").engine(name) for name in engines] == ["本机", "SSH 主机", "Kubernetes", "new"]


def test_what_an_engine_said_is_said_in_the_readers_language() -> None:
    message = Text("{key} has not ended; it cannot be run again", key="a/b")
    error = ConflictError(message, hint=Text("stop it first, or clone it"))
    assert Words("en").refusal(error) == "a/b has not ended; it cannot be run again (stop it first, or clone it)"
    assert Words("zh").refusal(error) == "a/b 尚未结束，不能重新运行 (请先停止它，或克隆它)"
    running = Text("MPIJob {key} is running.", key="a/b")
    assert Words("en").of(running) == "MPIJob a/b is running."
    assert Words("zh").of(running) == "MPIJob a/b 正在运行。"


@pytest.mark.parametrize(
    ("deed", "told", "chinese"),
    [
        ("add account", "vera as viewer", "vera，角色为查看者"),
        ("make token", "oar_12ab of ben", "ben 的 oar_12ab"),
        ("revoke token", "oar_12ab of ben", "ben 的 oar_12ab"),
        ("scale", "default/pi to 4", "default/pi"),
    ],
)
def test_whom_an_entry_of_the_audit_log_is_about_is_said_in_chinese(deed: str, told: str, chinese: str) -> None:
    assert about(Words("zh"), deed, told).startswith(chinese)
