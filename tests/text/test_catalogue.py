"""The catalogue has what the sources say and nothing else, in one form; readers get the language they want."""

from __future__ import annotations

import ast
import io
import os
import runpy
import string
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po

from oarsman.text.catalogue import Translator, catalogue, entries, of_browser, of_environment

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "catalogue.py"))
(PO,) = SCRIPT["CATALOGUES"]
CHINESE = catalogue("zh")


def test_every_text_of_the_sources_is_translated_and_no_translation_is_left_over() -> None:
    texts = SCRIPT["texts"]()
    assert len(texts) > 1600
    assert sorted(texts - CHINESE.keys()) == [], "translate these; `make fmt` puts them into the catalogue"
    assert sorted(CHINESE.keys() - texts) == [], "nobody says these; `make fmt` removes them"


def test_the_command_says_only_literals() -> None:
    said = [(where, text) for where, name, text in SCRIPT["calls"]() if name == "t"]
    assert [where for where, text in said if not isinstance(text, ast.Constant)] == []


def test_literals_are_found_in_choices_and_fallbacks_too() -> None:
    said = ast.parse('"a" if x else y or "b"', mode="eval").body
    assert list(SCRIPT["literals"](said)) == ["a", "b"]


def test_a_translation_has_the_placeholders_of_its_text() -> None:
    def names(text: str) -> set[str | None]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}

    assert [text for text, chinese in CHINESE.items() if names(text) != names(chinese)] == []


def test_the_catalogue_is_in_its_normal_form() -> None:
    text = PO.read_text("utf-8")
    assert SCRIPT["fresh"](text) == text, "stale: run `make fmt`"
    assert "#, fuzzy" not in text, "a translation that somebody has yet to look at"


def test_a_new_text_comes_without_translation_and_an_unused_one_goes() -> None:
    header = PO.read_text("utf-8").partition("\n\n")[0]
    made = SCRIPT["fresh"](header + '\n\nmsgid "nobody says this"\nmsgstr "没有"\n')
    assert made.startswith(header + "\n\n")
    assert 'msgid "Jobs"\nmsgstr ""\n' in made
    assert "nobody says this" not in made


def test_the_reader_of_catalogues_agrees_with_babel() -> None:
    po = PO.read_text("utf-8")
    assert dict(entries(po)) == {one.id: one.string for one in read_po(io.StringIO(po)) if one.id}
    awkward = {'a "b"\\n': "\\", "two\n\nlines\n": "两\n行", "tab\there": '"\n"', "# none": "x", "msgid": "msgstr"}
    written, file = Catalog(), io.BytesIO()
    for text, chinese in {**awkward, "not translated": ""}.items():
        written.add(text, chinese)
    write_po(file, written, width=0)
    assert dict(entries(file.getvalue().decode())) == awkward


def test_values_are_filled_in_and_unknown_texts_stay_english() -> None:
    say = Translator("zh")
    assert say("{count} jobs", count=3) == "3 个作业"
    assert say("what nobody has translated {x}", x=1) == "what nobody has translated 1"
    assert Translator("fr")("Jobs") == "Jobs"


@pytest.mark.parametrize(("language", "opened"), [("en", 0), ("zh", 1)])
def test_english_readers_open_no_catalogue(language: str, opened: int) -> None:
    script = (
        "import atexit, sys; found = []\n"
        "sys.addaudithook(lambda what, values: what == 'open' and str(values[0]).endswith('.po') and found.append(1))\n"
        "atexit.register(lambda: print(len(found), file=sys.stderr))\n"
        "sys.argv = ['oarsman', '--version']; from oarsman.cli.main import cli; cli.main()"
    )
    environment = {**os.environ, "OARSMAN_LANG": language}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True)
    assert int(done.stderr) == opened


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LC_ALL": "", "LANG": "zh"}, "zh"),
        ({"LC_ALL": "en_US.UTF-8", "OARSMAN_LANG": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "OARSMAN_LANG": "en"}, "en"),
    ],
)
def test_a_terminal_has_the_language_of_its_environment(environment: dict[str, str], language: str) -> None:
    assert of_environment(environment) == language


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
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
def test_a_page_has_the_language_that_its_reader_chose_or_the_browser_prefers(
    chosen: str | None, accepted: str, language: str
) -> None:
    assert of_browser(chosen, accepted) == language
