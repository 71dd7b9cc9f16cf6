from __future__ import annotations

import os
import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarsman.engines.hosts.ssh.code.tree import _Pattern, deciding, read_patterns


def is_ignored(path: str, is_folder: bool, patterns: list[_Pattern]) -> bool:
    found = deciding(path, is_folder, patterns)
    return found is not None and not found.takes_back


@pytest.mark.parametrize(
    ("lines", "path", "ignored"),
    [
        (["*.ckpt"], "a/b/x.ckpt", True),
        (["*.ckpt"], "x.ckpt2", False),
        (["data"], "a/data", True),
        (["data/"], "data", False),  # a file
        (["data/"], "data/", True),
        (["/data"], "data", True),
        (["/data"], "a/data", False),
        (["a/data"], "a/data", True),
        (["a/data"], "b/a/data", False),
        (["a/*"], "a/b", True),
        (["a/*"], "a/b/c", False),
        (["a/**"], "a/b/c", True),
        (["a/**"], "a/", False),
        (["**/x"], "x", True),
        (["**/x"], "a/b/x", True),
        (["a/**/x"], "a/x", True),
        (["a/**/x"], "a/b/c/x", True),
        (["a/**/x"], "ax", False),
        (["a**b"], "axxb", True),
        (["a**b"], "ax/b", False),
        (["?.py"], "a.py", True),
        (["?.py"], ".py", False),
        (["a?b"], "a/b", False),
        (["# x"], "# x", False),
        (["\\# x"], "# x", True),
        (["\\!x"], "!x", True),
        (["\\*"], "*", True),
        (["\\*"], "x", False),
        (["[ab]"], "a", True),
        (["[ab]"], "[ab]", False),
        (["[]a]"], "]", True),
        (["[^a-c]"], "d", True),
        (["[!a-c]"], "b", False),
        (["a[!b]c"], "a/c", False),
        (["[c-a]"], "b", False),
        (["[[:digit:]x]"], "7", True),
        (["[[:nothing:]]"], "n", False),
        (["[\\]]"], "]", True),
        (["[a"], "[a", False),  # not closed
        (["a\\"], "a\\", False),  # nothing behind it
        (["a//"], "a/", False),
        (["x  "], "x", True),
        (["x\\ "], "x ", True),
        (["x\\\\ "], "x\\", True),
        (["x\r"], "x", True),
        (["", "  ", "/", "!"], "x", False),
        (["*.py", "!main.py"], "a/main.py", False),
        (["!main.py", "*.py"], "main.py", True),
    ],
)
def test_patterns_mean_what_git_makes_of_them(lines: list[str], path: str, ignored: bool) -> None:
    assert is_ignored(path.rstrip("/"), path.endswith("/"), read_patterns(lines)) is ignored


@pytest.mark.timeout(30)
def test_no_line_of_an_ignore_file_takes_for_ever() -> None:
    patterns = read_patterns(["*a" * 20 + "b", "**/a*/**/a*/**/a*/**/b"])
    assert not is_ignored("a" * 250, False, patterns)
    assert not is_ignored("/".join(["a" * 50] * 60), False, patterns)


def test_a_name_that_is_no_text_is_matched_like_any_other() -> None:
    odd = os.fsdecode(b"caf\xe9")
    assert is_ignored(odd, False, read_patterns(["caf?"]))
    assert is_ignored(odd, False, read_patterns([odd]))
    assert not is_ignored(odd, False, read_patterns([os.fsdecode(b"caf\xe8")]))


@pytest.mark.parametrize("members", ["--0", "!-~", "[:punct:]", "[:graph:]", "[:print:]", "!x", "^x", "/", "x/"])
def test_no_set_of_letters_has_the_one_between_folders(members: str) -> None:
    assert not is_ignored("a/b", False, read_patterns([f"/a[{members}]b"]))


NAMES = ["a", "b", "c", "a/a", "a/b", "a/b/a", "a/b/c", "b/a.c", "b/[a]", "b/c ", "ab", "aab", "ab/c"]
NAMES += [".c", "#c", "!c", "b*"]
words = st.sampled_from(
    ["a", "b", "c", ".c", "*", "**", "?", "/", "!", "#", "\\", " ", "[ab]", "[!a]", "[b-c]", "[", "]"]
)
# Without `a**/b` and `**\/b`, which git takes for more than it documents: it compares what has no wildcards on its own.
lines_of = st.lists(st.lists(words, max_size=5).map("".join), max_size=4).filter(
    lambda lines: not any(re.search(r"[^/]\*\*/|\*\*\\/", line) for line in lines)
)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    folders = {above for name in NAMES if (above := os.path.dirname(name))}
    for name in NAMES:
        (folder / name).mkdir() if name in folders else (folder / name).touch()
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


@settings(max_examples=100, deadline=None)
@given(lines=lines_of)
def test_git_leaves_out_the_same(repository: Path, lines: list[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(lines))
    question = [
        "git",
        "-C",
        repository,
        "-c",
        f"core.excludesFile={os.devnull}",
        "check-ignore",
        "--no-index",
        "-z",
        "--stdin",
    ]
    answer = subprocess.run(question, input="\0".join(NAMES), stdout=subprocess.PIPE, text=True, check=False)
    assert answer.returncode in (0, 1)
    patterns = read_patterns(lines)
    left_out: set[str] = set()
    for name in NAMES:  # a folder before what is in it
        if os.path.dirname(name) in left_out or is_ignored(name, (repository / name).is_dir(), patterns):
            left_out.add(name)
    assert left_out == {name for name in answer.stdout.split("\0") if name}


part = st.text("ab.*?", min_size=1, max_size=4).filter(lambda text: "**" not in text)
name = st.text("ab.*?\n", min_size=1, max_size=4)
path_of = st.lists(name, min_size=1, max_size=4)


@given(part, path_of)
def test_a_pattern_without_a_slash_is_about_the_last_name(pattern: str, parts: list[str]) -> None:
    assert is_ignored("/".join(parts), False, read_patterns([pattern])) == fnmatchcase(parts[-1], pattern)


def matches(patterns: list[str], parts: list[str]) -> bool:
    """Part by part."""
    if not patterns:
        return not parts
    if patterns[0] == "**":
        if len(patterns) == 1:
            return bool(parts)
        return any(matches(patterns[1:], parts[start:]) for start in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and matches(patterns[1:], parts[1:])


@given(st.lists(part | st.just("**"), min_size=1, max_size=4), path_of)
def test_a_pattern_with_slashes_is_about_the_whole_path(patterns: list[str], parts: list[str]) -> None:
    expected = matches(patterns, parts)
    assert is_ignored("/".join(parts), False, read_patterns(["/" + "/".join(patterns)])) == expected


@given(st.lists(st.text("ab/*?!#\\ ", max_size=6), max_size=5), path_of)
def test_any_line_is_a_pattern_or_nothing_and_takes_back_what_it_left_out(lines: list[str], parts: list[str]) -> None:
    ignored = is_ignored("/".join(parts), True, read_patterns(lines))
    assert ignored in (True, False)
    assert not is_ignored("/".join(parts), True, read_patterns([*lines, "!*"]))
