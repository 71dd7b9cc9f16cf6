from __future__ import annotations

import pytest

from oarsman.manifest import source
from oarsman.manifest.source import MAX_BYTES, read


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("True", True),
        ("TRUE", True),
        ("false", False),
        ("FALSE", False),
        ("Null", None),
        ("NULL", None),
        ("~", None),
        ("", None),
        ("null", None),
        ("1", 1),
        ("-7", -7),
        ("+3", 3),
        ("0", 0),
        ("0x1f", 31),
        ("0o17", 15),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2019-07-09", "2019-07-09"),
        ("1.2.3", "1.2.3"),
        ("-", "-"),
        ("-np", "-np"),
        ("^openib", "^openib"),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("!!int 5", 5),
        ("0b1", "0b1"),
        ("!!float 1", 1.0),
        ("!!float 1.5", 1.5),
        ("!!bool true", True),
        ("!!null ~", None),
        ("! 1", "1"),
        ("-9223372036854775808", -(2**63)),
        ("09x", "09x"),
        ("+.5e-1", 0.05),
        ("1.", 1.0),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_a_word_means_what_kubernetes_users_mean(word: str, value: object) -> None:
    text = f"a: {word}\n" if word != "-" else 'a: "-"\n'
    (document,), problems = read(text, "f")
    assert not problems
    assert document.value["a"] == value
    assert type(document.value["a"]) is type(value)


def test_file_modes_alone_are_octal_with_a_leading_zero() -> None:
    (document,), problems = read("items: [{mode: 0400}]\ndefaultMode: 0644\n", "f")
    assert not problems
    assert document.value == {"items": [{"mode": 0o400}], "defaultMode": 0o644}


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (b"a: b\xff", (1, 5), "byte 0xff is not UTF-8; save the file as UTF-8"),
        ("名: b\n".encode() + b"c: \xe4\xbd", (2, 4), "byte 0xe4 is not UTF-8; save the file as UTF-8"),
        (b"\xff\xfea", (1, 1), "the text is not valid UTF-16; save the file as UTF-8"),
        ("a: b\nc: \0d", (2, 4), "a NUL character is not allowed in YAML"),
        ("a: \x1b[31m", (1, 4), "the control character U+001B is not allowed in YAML"),
        ("a: \udcff", (1, 4), "the control character U+DCFF is not allowed in YAML"),
        ("a:\n\tb: 1", (2, 1), "a tab cannot indent YAML"),
        ("- a\n-\t\tb: c", (2, 2), "a tab cannot indent YAML"),
        ("[" * 100_000, (1, 101), "nested more than 100 levels deep"),
        ("- " * 5_000, (1, 201), "nested more than 100 levels deep"),
        ("a: " + "9" * 5000, (1, 4), "the number is too large; quote it if it is text"),
        (
            "a: 18446744073709551616",
            (1, 4),
            "18446744073709551616 is too large for a 64-bit number; quote it if it is text",
        ),
        ("a: 1e999", (1, 4), "1e999 is too large a number; quote it if it is text"),
        ("a: .nan", (1, 4), ".nan is not a number JSON can hold; quote it if it is text"),
        (
            "a: 017",
            (1, 4),
            "017 starts with a zero, which some readers take as octal; leave it out, or quote it if it is text",
        ),
        (
            "a: -9223372036854775809",
            (1, 4),
            "-9223372036854775809 is too large for a 64-bit number; quote it if it is text",
        ),
        ("a: " + "1" * 65, (1, 4), "the number is too large; quote it if it is text"),
        ("a: -.inf", (1, 4), "-.inf is not a number JSON can hold; quote it if it is text"),
        (
            "mode: 0800",
            (1, 7),
            "0800 starts with a zero, which some readers take as octal; leave it out, or quote it if it is text",
        ),
        (
            "mode: 077777777777",
            (1, 7),
            "077777777777 starts with a zero, which some readers take as octal; "
            "leave it out, or quote it if it is text",
        ),
        ("a: !!int x", (1, 4), "'x' is not a int"),
        ("a: !!int 1.5", (1, 4), "'1.5' is not a int"),
        ("a: !!bool 1", (1, 4), "'1' is not a bool"),
        ("a: !x {b: c}", (1, 4), "a tag has no meaning here; leave it out"),
        ("{? : a}", (1, 4), "a field name must be text, not nothing"),
        ("017: a", (1, 1), "a field name must be text, not 017"),
        (".nan: a", (1, 1), "a field name must be text, not .nan"),
        ("a: &x [1]\n? *x\n: b", (2, 3), "a field name must be text"),
        ("<<: [{a: 1}, 2]", (1, 5), "<< merges mappings; this is not one"),
        ("1: a", (1, 1), "a field name must be text, not 1"),
        ("true: a", (1, 1), "a field name must be text, not true"),
        ("? [a]\n: b", (1, 3), "a field name must be text, not a list"),
        ("? {a: b}\n: c", (1, 3), "a field name must be text, not a mapping"),
        ("a:\n  ? [b]\n  : c", (2, 5), "a field name must be text, not a list"),
        ("a: 1\nb: 2\na: 3", (3, 1), "the field 'a' is given twice; the first is on line 1"),
        ("a: *b", (1, 4), "the alias *b names no anchor before it"),
        ("&a [*a]", (1, 5), "the alias *a stands inside the value it repeats"),
        ("<<: 5", (1, 5), "<< merges mappings; this is not one"),
        ("a: !!binary aGk=", (1, 4), "the tag '!!binary' has no meaning in a manifest; leave it out"),
        ("a: !!python/object/apply:os.system [ls]", (1, 4), "a tag has no meaning here; leave it out"),
        ("x" * (MAX_BYTES + 1), (1, 1), "the text is larger than 3 MiB, the most a manifest may have"),
    ],
    ids=lambda value: None if isinstance(value, str | bytes) and len(value) > 90 else repr(value),
)
def test_what_cannot_be_read_is_a_problem_with_a_place(text: str | bytes, place: tuple[int, int], message: str) -> None:
    _, problems = read(text, "f")
    assert [(problem.line, problem.column, problem.message) for problem in problems] == [(*place, message)]


def test_aliases_cannot_multiply_without_bound_nor_deepen() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
    _, problems = read(bomb, "f")
    assert [problem.message for problem in problems] == ["more than 200000 values once every alias is written out"]
    deep = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200))
    _, problems = read(deep, "f")
    assert [problem.message for problem in problems] == ["nested more than 100 levels deep"]


def nested(levels: int, inside: str = "x") -> str:
    return "[" * levels + inside + "]" * levels


def test_a_hundred_levels_are_read_and_no_more_with_or_without_aliases() -> None:
    for text, fine in (
        (nested(100), True),
        (nested(101), False),
        (f"- &a {nested(49)}\n- {nested(50, '*a')}\n", True),
        (f"- &a {nested(49)}\n- {nested(51, '*a')}\n", False),
        ("- &a {x: 1}\n- " + nested(97, "{<<: *a}") + "\n", True),
    ):
        documents, problems = read(text, "f")
        assert [problem.message for problem in problems] == ([] if fine else ["nested more than 100 levels deep"])
        assert bool(documents) == fine


def test_reading_ends_at_the_first_level_that_is_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_DEPTH", 3)
    for text in ("[[[[[[", "[[[[x]]]]", "[[[{"):
        _, (problem,) = read(text, "f")
        assert (problem.column, problem.message) == (4, "nested more than 3 levels deep")


def test_as_many_values_as_may_be_are_read_and_not_one_more() -> None:
    lists = f"- &list [{'x, ' * 399}]\n" + "- *list\n" * 498  # 499 times 400 values, a list counts as one itself
    for words, fine in ((399, True), (400, False)):
        documents, problems = read(lists + "- x\n" * words, "f")
        assert bool(documents) == fine
        told = ["more than 200000 values once every alias is written out"]
        assert [problem.message for problem in problems] == ([] if fine else told)


def test_problems_show_their_line() -> None:
    for text, snippet in (
        ("a: 1\nb: 017\n", "b: 017"),
        ("a: 1\nb: \0x\nc", "b: \0x"),
        (b"a: 1\r\nb: \xff\r\nc", "b: "),
        ("a: 1\nb:\n\tc: 1", "\tc: 1"),
        ("a: [1\nb: 2\n", "b: 2"),
    ):
        _, (problem,) = read(text, "f")
        assert problem.snippet == snippet


def test_problems_name_the_field_that_holds_them() -> None:
    for text, field in (("a: {b: [x, 017]}", "a.b[1]"), ("017", ""), ("- [017]", "[0][0]"), ("a: 1\na: 2", "a")):
        _, (problem,) = read(text, "f")
        assert problem.field == field


def test_an_alias_may_be_a_field_name_and_a_word_may_be_repeated() -> None:
    (document,), problems = read("- &a b\n- *a : 1\n- {<<: [{x: 1}, {x: 2, y: 3}], z: *a}\n", "f")
    assert not problems
    assert document.value == ["b", {"b": 1}, {"x": 1, "y": 3, "z": "b"}]


def test_the_anchors_of_a_document_end_with_it() -> None:
    _, (problem,) = read("a: &x 1\n---\nb: *x\n", "f")
    assert (problem.line, problem.message) == (3, "the alias *x names no anchor before it")


def test_a_quoted_merge_key_is_a_field_like_any_other() -> None:
    (document,), problems = read('a: {"<<": {b: 1}, c: 2}\n', "f")
    assert not problems
    assert document.value == {"a": {"<<": {"b": 1}, "c": 2}}
    (document,), problems = read('a: {"<<": 1, <<: {b: 2}}\n', "f")  # and no second one beside it
    assert not problems
    assert document.value == {"a": {"<<": 1, "b": 2}}


def test_a_text_as_large_as_can_be_is_read() -> None:
    (document,), problems = read(b"#" + b"x" * (MAX_BYTES - 6) + b"\na: 1", "f")
    assert (document.value, problems) == ({"a": 1}, [])


def test_several_bad_words_are_all_reported() -> None:
    _, problems = read("a: .inf\nb: 017\na: 2\n", "f")
    assert [problem.line for problem in problems] == [1, 2, 3]


def test_positions_count_characters_after_any_line_break() -> None:
    (document,), _ = read("a: 一\r\nb:\r  c: [x, 二, {d: e}]\n", "f")
    problem = document.problem(("b", "c", 2, "d"), "m")
    assert (problem.line, problem.column, problem.snippet) == (3, 17, "  c: [x, 二, {d: e}]")
    assert document.problem(("b", "c", 2, "d"), "m", on_key=True).column == 14
    assert document.problem(("b", "nothing", "here"), "m").line == 2


def test_merged_fields_are_shown_where_they_were_written() -> None:
    (document,), problems = read("base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n", "f")
    assert not problems
    assert document.value["use"] == {"y": 3, "x": 1}
    assert document.problem(("use", "x"), "m").line == 1
    assert document.problem(("use", "y"), "m").line == 4


def test_a_byte_order_mark_and_empty_documents_do_not_count() -> None:
    documents, problems = read("\ufeff---\n---\na: 1\n---\n# nothing\n".encode(), "f")
    assert not problems
    assert [document.value for document in documents] == [{"a": 1}]
