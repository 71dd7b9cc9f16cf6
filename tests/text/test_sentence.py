"""Sentences that know how they were made."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.text import catalogue
from oarsman.text.catalogue import Translator
from oarsman.text.sentence import Text, all_of, any_of, cut, dump, listed, load, one_line, plain, sentences

CHINESE = {
    "{who} exited with code {code}": "{who} 以退出码 {code} 结束。",
    "rank {rank}": "进程 {rank}",
    "the launcher": "启动器",
    "{first}; {rest}": "{first}；{rest}",
    "{first}, {rest}": "{first}、{rest}",
    "{others} and {last}": "{others} 和 {last}",
    "{others} or {last}": "{others} 或 {last}",
}


@pytest.fixture(autouse=True)
def chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "catalogue", {"zh": CHINESE, "en": {}}.get)


def test_a_sentence_is_its_own_english() -> None:
    said = Text("{who} exited with code {code}", who="rank 1", code=3)
    assert said == "rank 1 exited with code 3" == f"{said}"
    assert {said: 1}["rank 1 exited with code 3"] == 1
    assert json.loads(json.dumps(said)) == said


def test_without_arguments_braces_stay_as_they_are() -> None:
    assert Text("a {brace}") == "a {brace}"


def test_it_is_said_in_another_language_with_all_that_stands_in_it() -> None:
    zh = Translator("zh")
    said = Text("{who} exited with code {code}", who=Text("rank {rank}", rank=1), code=3)
    assert zh.of(said) == "进程 1 以退出码 3 结束。"
    assert Translator("en").of(said) == said


def test_between_two_chinese_words_there_is_no_space() -> None:
    assert Translator("zh").of(Text("{who} exited with code {code}", who=Text("the launcher"), code=3)) == (
        "启动器以退出码 3 结束。"
    )


def test_a_sentence_within_a_sentence_has_no_full_stop() -> None:
    ended = Text("{who} exited with code {code}", who="a", code=1)
    assert Translator("zh").of(sentences([ended, ended])) == "a 以退出码 1 结束；a 以退出码 1 结束"


def test_what_stands_in_a_gap_and_is_no_text_is_nobodys_to_translate() -> None:
    assert Translator("zh").of(Text("rank {rank}", rank="the launcher")) == "进程 the launcher"


def test_a_string_that_is_a_whole_sentence_of_ours_is_looked_up() -> None:
    assert Translator("zh").of("the launcher") == "启动器"
    assert Translator("zh").of("somebody else's words {x}") == "somebody else's words {x}"


def test_lists() -> None:
    zh = Translator("zh")
    assert [listed([]), listed("a"), listed("abc")] == ["", "a", "a, b, c"]
    assert [all_of(""), all_of("a"), all_of("ab"), all_of("abc")] == ["", "a", "a and b", "a, b and c"]
    assert [any_of("a"), any_of("abc")] == ["a", "a, b or c"]
    assert zh.of(all_of(["a", "b", Text("the launcher")])) == "a、b 和启动器"
    assert zh.of(any_of("ab")) == "a 或 b"


def test_a_sentence_comes_out_of_an_error_whole() -> None:
    error = ValueError(Text("rank {rank}", rank=1))
    assert Translator("zh").of(str(error)) == "进程 1"
    assert Translator("zh").of(Text("{first}; {rest}", first=error, rest=Exception("plain"))) == "进程 1；plain"
    assert type(plain(str(error))) is str


def test_what_is_too_long_is_cut_in_what_somebody_else_said() -> None:
    said = Text("{who} exited with code {code}", who=Text("the launcher"), code=3)
    assert cut(said, 31) is said
    assert (cut(said, 20), type(cut(said, 20))) == ("the launcher exit...", str)
    told = sentences([said, "x" * 50])
    assert cut(told, 40) == f"{told}"[:37] + "..."
    assert Translator("zh").of(cut(told, 40)) == "启动器以退出码 3 结束；xxxx..."


def test_lines_become_one() -> None:
    told = Text("{first}; {rest}", first=Text("the launcher"), rest="a\n  b")
    assert one_line(told) == "the launcher; a b" == one_line("the  launcher;\ta\nb ")
    assert Translator("zh").of(one_line(told)) == "启动器；a b"


ARGUMENTS = st.dictionaries(
    st.sampled_from("abc"), st.integers() | st.floats(allow_nan=False) | st.text() | st.builds(Text, st.just("x"))
)


@given(ARGUMENTS)
def test_what_was_written_is_read_again(arguments: dict[str, str | int | float]) -> None:
    inner = Text(" ".join(f"{{{name}}}" for name in arguments), **arguments)
    said = Text("see: {inner}", inner=inner)
    for again in (load(json.loads(json.dumps(dump(said)))), pickle.loads(pickle.dumps(said)), copy.deepcopy(said)):
        assert isinstance(again, Text)
        assert (again, again.template, dict(again.arguments)) == (said, said.template, dict(said.arguments))
        inner_again = again.arguments["inner"]
        assert isinstance(inner_again, Text)
        assert [type(value) for value in inner_again.arguments.values()] == [type(v) for v in arguments.values()]


@pytest.mark.parametrize(
    "written",
    [
        None,
        7,
        [],
        {"template": "{a}", "arguments": {}},
        {"template": "{a.b}", "arguments": {"a": 1}},
        {"template": "{", "arguments": {"a": 1}},
        {"template": "{a:%Q}", "arguments": {"a": 1}},
        {"template": "{a}", "arguments": {"a": None}},
        {"template": "{a}"},
    ],
)
def test_what_somebody_else_wrote_is_a_string(written: object) -> None:
    assert isinstance(load(written), str)


@pytest.mark.parametrize("template", ["{a.__class__}", "{a[0]}", "{a!r}", "{a:>9}", "{a:{a}}"])
def test_what_is_read_is_filled_in_with_names_alone(template: str) -> None:
    """Whoever can have it read would else be told what this process knows, or have it fill its memory."""
    assert load({"template": template, "arguments": {"a": "x"}}) == template
