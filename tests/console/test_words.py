"""The words of the pages: what is shown by name has its text, and engines are heard in the reader's language."""

from __future__ import annotations

from oarsman import names
from oarsman.console.pages.create import controls
from oarsman.console.parts import charts
from oarsman.console.parts.widgets import STATES
from oarsman.console.parts.words import HOST_STATES, OUTCOMES, ROLES, Words
from oarsman.errors import ConflictError
from oarsman.manifest import form
from oarsman.service.documents import all_templates
from oarsman.service.models import Role
from oarsman.text.catalogue import catalogue
from oarsman.text.sentence import Text


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
