"""Finds the launcher among words: behind prefixes such as `env A=B` or `timeout 10`, and inside `sh -c`.

Shell text is cut into words with their places, so that one word can be changed and every other byte
stays as the user wrote it. The shell is not imitated: a word that is one known variable is replaced,
and any other `$` stays as it stands.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from oarsman.job.launch_options import LAUNCHERS, PREFIXES, SHELLS

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))\Z")
_KEYWORDS = frozenset(("if", "then", "else", "elif", "do", "while", "until", "!", "{", "("))
_OPERATORS = ("&&", "||", ";;", "|&", "&>>", "&>", "\n", ";", "|", "&", "(", ")")
_REDIRECT = re.compile(r"[0-9]*(?:>>|>\||>&|<<<|<<-|<<|<&|<>|>|<)|&>>|&>")
_DEEPEST_SHELL = 3
_LONGEST_SHELL = 1 << 16  # letters of a script that is looked through
_MOST_WORDS = 10_000  # that variables are replaced by


@dataclass(frozen=True, slots=True)
class Word:
    """A word of shell text: what the shell hands on, and where it stands."""

    text: str
    start: int = -1  # -1: it is not in the text itself
    end: int = -1
    operator: bool = False


@dataclass(frozen=True, slots=True)
class FoundLauncher:
    """A launcher and the words after it."""

    words: tuple[str, ...]  # the launcher first
    index: int  # which word of argv: the launcher, or the shell text that holds it
    shell: tuple[Word, ...] | None = None  # the same words with their places, when in shell text
    nested: bool = False  # inside shell text inside shell text: its place is not known


def find(argv: Sequence[str], variables: Mapping[str, str] | None = None) -> FoundLauncher | None:
    """The first launcher that these words would start. `variables` are those a shell would see."""
    start = skip_prefixes(argv)
    if start >= len(argv):
        return None
    if base_name(argv[start]) in LAUNCHERS:
        return FoundLauncher(tuple(argv[start:]), start)
    text = _shell_text(argv, start)
    if text is None:
        return None
    words = _find_in_shell(argv[text], _DEEPEST_SHELL, dict(variables or {}))
    if words is None:
        return None
    found, nested = words
    return FoundLauncher(tuple(w.text for w in found), text, found, nested)


def base_name(word: str) -> str:
    return word.rsplit("/", 1)[-1]


def skip_prefixes(words: Sequence[str]) -> int:
    """Where the program proper begins, behind env, nohup, timeout and the like."""
    at = 0
    while at < len(words):
        name = base_name(words[at])
        if name not in PREFIXES:
            # An image's own entry script usually ends in `exec "$@"`.
            if name.endswith(".sh") and at + 1 < len(words) and base_name(words[at + 1]) in LAUNCHERS:
                return at + 1
            return at
        own, valued = PREFIXES[name]
        at += 1
        while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
            word = words[at]
            at += 1
            if word == "--":
                break
            at += word in valued
        while name == "env" and at < len(words) and _ASSIGNMENT.match(words[at]):
            at += 1
        at += own
    return at


def _shell_text(argv: Sequence[str], at: int) -> int | None:
    """The index of the text in `sh -c text`, whatever options stand between."""
    name = base_name(argv[at])
    if name not in SHELLS:
        return None
    at += 2 if name == "busybox" else 1
    command = False
    while at < len(argv) and argv[at][:1] in ("-", "+") and len(argv[at]) > 1:
        word = argv[at]
        at += 1
        if word == "--":
            break
        if word.startswith("--"):
            at += word in ("--rcfile", "--init-file")
            continue
        command = command or (word[0] == "-" and "c" in word)
        at += word[-1] in "oO"
    return at if command and at < len(argv) else None


def _find_in_shell(text: str, depth: int, variables: dict[str, str]) -> tuple[tuple[Word, ...], bool] | None:
    if len(text) > _LONGEST_SHELL:
        return None
    try:
        words = list(cut(text))
    except ValueError:
        return None
    for command in _commands(words):
        rest = _without_assignments(command, variables)
        if not rest:
            continue
        rest = _expanded(rest, variables)
        texts = [w.text for w in rest]
        start = skip_prefixes(texts)
        if start >= len(texts):
            continue
        if base_name(texts[start]) in LAUNCHERS:
            return tuple(rest[start:]), False
        inner = _shell_text(texts, start) if depth > 1 else None
        found = _find_in_shell(texts[inner], depth - 1, dict(variables)) if inner is not None else None
        if found is not None:
            return tuple(Word(w.text) for w in found[0]), True
    return None


def _without_assignments(command: list[Word], variables: dict[str, str]) -> list[Word]:
    at = 0
    while at < len(command) and (command[at].text in _KEYWORDS or _ASSIGNMENT.match(command[at].text)):
        if command[at].text not in _KEYWORDS:
            name, _, value = command[at].text.partition("=")
            variables[name] = value
        at += 1
    rest = command[at:]
    if rest and rest[0].text in ("export", "readonly", "declare", "local"):
        return []
    return rest


def _expanded(command: list[Word], variables: Mapping[str, str]) -> list[Word]:
    """`mpirun="orterun -x PATH"; $mpirun python x`: words that are one known variable become its words."""
    result: list[Word] = []
    for word in command:
        match = _VARIABLE.match(word.text)
        value = variables.get(match[1] or match[2]) if match is not None else None
        if value is not None and (len(result) > _MOST_WORDS or len(value) > _LONGEST_SHELL):
            value = None
        try:
            result += [word] if value is None else [Word(text) for text in shlex.split(value)]
        except ValueError:
            result.append(word)
    return result


def _commands(words: Sequence[Word]) -> Iterator[list[Word]]:
    """The simple commands, without their redirections."""
    command: list[Word] = []
    skip = False
    for word in words:
        if skip and not word.operator:
            skip = False
        elif word.operator and _REDIRECT.match(word.text):
            skip = True
        elif word.operator:
            skip = False
            if command:
                yield command
            command = []
        else:
            command.append(word)
    if command:
        yield command


def cut(text: str) -> Iterator[Word]:
    """Shell text as words and operators. Raises ValueError where a quote is not closed."""
    at, size = 0, len(text)
    while at < size:
        c = text[at]
        if c in " \t\r" or text.startswith("\\\n", at):
            at += 2 if c == "\\" else 1
        elif c == "#":
            end = text.find("\n", at)
            at = end if end >= 0 else size
        elif (redirect := _REDIRECT.match(text, at)) is not None:
            yield Word(redirect.group(), at, redirect.end(), operator=True)
            at = redirect.end()
        elif (operator := next((o for o in _OPERATORS if text.startswith(o, at)), None)) is not None:
            yield Word(operator, at, at + len(operator), operator=True)
            at += len(operator)
        else:
            end, value = _word(text, at)
            yield Word(value, at, end)
            at = end


def _word(text: str, at: int) -> tuple[int, str]:
    parts: list[str] = []
    quoted = False  # within double quotes
    while at < len(text):
        c = text[at]
        if not quoted and c in " \t\r\n;|&()<>":
            break
        if c == '"':
            quoted = not quoted
            at += 1
        elif c == "'" and not quoted:
            end = text.index("'", at + 1)
            parts.append(text[at + 1 : end])
            at = end + 1
        elif c == "\\" and (not quoted or text[at + 1 : at + 2] in ("$", "`", '"', "\\", "\n")):
            parts.append("" if text.startswith("\\\n", at) else text[at + 1 : at + 2])
            at += 2
        elif text.startswith(("$(", "${"), at) or c == "`":
            end = _substitution_end(text, at)
            parts.append(text[at:end])
            at = end
        else:
            parts.append(c)
            at += 1
    if quoted:
        raise ValueError("a double quote is not closed")
    return at, "".join(parts)


def _substitution_end(text: str, at: int) -> int:
    """Behind the end of $(...), ${...} or `...` that starts here. Quotes inside are not looked at."""
    if text[at] == "`":
        return text.index("`", at + 1) + 1
    opening = text[at + 1]
    closing = {"(": ")", "{": "}"}[opening]
    depth = 0
    for index in range(at + 1, len(text)):
        if text[index] == opening:
            depth += 1
        elif text[index] == closing:
            depth -= 1
            if depth == 0:
                return index + 1
    raise ValueError("a substitution is not closed")
