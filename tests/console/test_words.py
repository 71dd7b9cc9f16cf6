"""The words of the pages: complete in Chinese, and in the language the reader wants."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarsman import console
from oarsman.console.chinese import CATALOGUE
from oarsman.console.pages.create import fields
from oarsman.console.parts.style import STATES
from oarsman.console.words import Words, chosen
from oarsman.errors import ConflictError
from oarsman.manifest import form
from oarsman.service.documents import all_templates
from oarsman.status import timeline

PAGES = Path(console.__file__).parent
STEPS = [value for name, value in vars(timeline).items() if name.isupper() and isinstance(value, str)]


def said() -> Iterator[tuple[str, str]]:
    """Every text that is handed to `say` as it stands, and where."""
    for path in sorted(PAGES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "say":
                for argument in node.args[:1]:
                    if isinstance(argument, ast.Constant):
                        yield str(argument.value), f"{path.name}:{node.lineno}"


def test_every_text_has_its_chinese() -> None:
    texts = list(said())
    assert len(texts) > 30
    assert [f"{where}: {text}" for text, where in texts if text not in CATALOGUE] == []
    assert [text for text in (*STATES, *STEPS, "queued", "local", "ssh", "kube") if text not in CATALOGUE] == []


def test_every_question_of_the_form_has_its_chinese_and_its_field() -> None:
    steps = [value for name, value in vars(fields).items() if name.isupper() and isinstance(value, tuple)]
    questions = [question for step in steps for question in step if isinstance(question, fields.Question)]
    shown = [words for q in questions for words in (q.label, q.note, *(label for _, label in q.choices)) if words]
    assert [words for words in shown if words not in CATALOGUE] == []
    assert {question.field for question in questions} == set(form.FIELDS)


def test_every_template_has_its_chinese() -> None:
    assert [one.title for one in all_templates() if one.title not in CATALOGUE] == []


@pytest.mark.parametrize("text", CATALOGUE)
def test_a_translation_has_the_blanks_of_its_original(text: str) -> None:
    def blanks(words: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(words) if name is not None}

    assert blanks(CATALOGUE[text]) == blanks(text)


@pytest.mark.parametrize(
    ("cookie", "accepted", "language"),
    [
        pytest.param(None, "", "en", id="nothing is known"),
        pytest.param(None, "zh-CN,zh;q=0.9,en;q=0.8", "zh", id="the browser's first"),
        pytest.param(None, "de,zh;q=0.2,en;q=0.8", "en", id="the first that we know"),
        pytest.param(None, "zh;q=0,en;q=0.1", "en", id="zero means no"),
        pytest.param(None, "zh;q=much", "en", id="nonsense is passed over"),
        pytest.param("zh", "en", "zh", id="a choice made before"),
        pytest.param("xx", "zh", "zh", id="a choice nobody offered"),
    ],
)
def test_the_language_is_the_readers(cookie: str | None, accepted: str, language: str) -> None:
    cookies = {"oarsman-language": cookie} if cookie else {}
    assert chosen(cookies, accepted) == language


def test_words_are_filled_in_and_unknown_ones_stay_english() -> None:
    say = Words("zh")
    assert say("{count} jobs", count=3) == "3 个作业"
    assert say("what nobody has translated") == "what nobody has translated"
    assert Words("fr")("Jobs") == "Jobs"


def test_what_an_engine_said_is_said_in_the_readers_language() -> None:
    error = ConflictError("a/b has not ended; it cannot be run again", hint="stop it first, or clone it")
    assert Words("en").refusal(error) == "a/b has not ended; it cannot be run again (stop it first, or clone it)"
    assert Words("zh").refusal(error) == "a/b 尚未结束，不能重新运行 (请先停止它，或克隆它)"
    assert Words("en").of("MPIJob a/b is running.") == "MPIJob a/b is running."
    assert Words("zh").of("MPIJob a/b is running.") == "MPIJob a/b 正在运行。"
