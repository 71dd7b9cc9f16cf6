"""Help pages, examples, languages, completion, and a quick start."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from for_every import for_every

from oarsman.cli import main
from oarsman.cli.session import Session
from oarsman.cli.text import t, width
from oarsman.cli.verbs import Verb

from .fakes import FAILED, FakeJobs, oarsman


def a_verb(name: str) -> Verb:
    command = main.cli.get_command(click.Context(main.cli), name)
    assert isinstance(command, Verb)
    return command


def python(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "OARSMAN"))}
    return subprocess.run(
        [sys.executable, *words], env={**kept, **env}, capture_output=True, text=True, encoding="utf-8", check=True
    )


@pytest.mark.parametrize("name", main.VERBS)
def test_every_verb_has_a_paragraph_and_examples(jobs: FakeJobs, name: str) -> None:
    result = oarsman(jobs, name, "--help")
    assert result.exit_code == 0
    assert f"Usage: oarsman {name}" in result.stdout
    assert "\nExamples:\n" in result.stdout
    assert len(" ".join((a_verb(name).help or "").split())) > 40


def examples() -> Iterator[tuple[str, list[str]]]:
    """Each call of oarsman in an example, without the shell around it."""
    for name in main.VERBS:
        for line, _ in a_verb(name).examples:
            words = shlex.split(line.replace('"$(', "").replace(')"', ""))
            begin = words.index("oarsman") + 1
            ends = [i for i, word in enumerate(words) if i > begin and word in ("|", ">", "&&")]
            yield line, words[begin : min(ends, default=len(words))]


@for_every(words for _, words in examples())
def test_every_example_can_be_typed(words: list[str]) -> None:
    verb = a_verb(words[0])
    with verb.make_context(words[0], words[1:], obj=Session()):
        pass


def test_the_first_page_lists_every_verb_in_a_section(jobs: FakeJobs) -> None:
    for words in ([], ["--help"], ["-h"]):
        text = oarsman(jobs, *words).stdout
        assert [line for line in text.splitlines() if line.rstrip(":") in ("Run", "Look", "Change", "Check")] == [
            "Run:",
            "Look:",
            "Change:",
            "Check:",
        ]
        assert all(f"\n  {name} " in text for name in main.VERBS)


def test_a_mistyped_verb_or_option_brings_the_right_one(jobs: FakeJobs) -> None:
    verb = oarsman(jobs, "lsit")
    assert (verb.exit_code, verb.stderr) == (2, "error: there is no verb 'lsit'\n  hint: did you mean list?\n")
    option = oarsman(jobs, "logs", "pi", "--folow")
    assert option.exit_code == 2
    assert option.stderr == "error: there is no option --folow\n  hint: did you mean --follow?\n"
    missing = oarsman(jobs, "logs")
    assert missing.stderr == "error: NAME is missing\n  hint: `oarsman logs --help` shows how it is used\n"


# -- languages ---------------------------------------------------------------------------------------


def test_results_and_errors_are_chinese_for_chinese_readers(jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t, "language", "zh")
    jobs.add("pi")
    lines = oarsman(jobs, "list").stdout.splitlines()
    assert lines[0].split() == ["名称", "状态", "WORKER", "距今", "用时", "消息"]
    assert width(lines[0].partition("状态")[0]) == lines[1].index("Running")
    assert oarsman(jobs, "stop", "pi").stdout == "正在停止 pi\n"
    assert oarsman(jobs, "get", "pii").stderr.endswith("提示：是不是想写 pi？\n")
    assert oarsman(jobs, "run", "hostname").stderr.startswith("错误：无法读取 hostname：没有这个文件或目录\n")


def test_what_engines_say_is_chinese_for_chinese_readers(jobs: FakeJobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t, "language", "zh")
    jobs.add("pi", FAILED)
    shown = oarsman(jobs, "describe", "pi").stdout
    assert "原因：pi-worker-0 上的 rank 1 以退出码 3 结束" in shown
    assert "| ValueError: no" in shown
    assert "exited" in oarsman(jobs, "get", "pi", "-o", "json").stdout
    assert "提示：请去掉引号：2" in oarsman(jobs, "validate", "-", stdin=WRONG).stdout


WRONG = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: x}\nspec: {slotsPerWorker: '2'}\n"


def test_help_pages_are_chinese_for_chinese_readers() -> None:
    page = python("-m", "oarsman.cli", "run", "--help", LANG="zh_CN.UTF-8").stdout
    assert "在前台运行一个作业" in page
    assert "\n选项：\n" in page
    assert "[OPTIONS]" not in page
    assert all(width(line) <= 80 for line in page.splitlines())


# -- completion and start ----------------------------------------------------------------------------


def completed(jobs: FakeJobs, *words: str, typed: str = "") -> list[str]:
    complete = ShellComplete(main.cli, {"obj": Session(factory=lambda engine: jobs)}, "oarsman", "_OARSMAN_COMPLETE")
    return [item.value for item in complete.get_completions(list(words), typed)]


def test_verbs_options_and_names_of_jobs_are_completed(jobs: FakeJobs) -> None:
    jobs.add("pi")
    jobs.add("tau", namespace="other")
    assert completed(jobs, typed="sus") == ["suspend"]
    assert completed(jobs, "logs", typed="") == ["pi", "other/tau"]
    assert completed(jobs, "delete", "pi", typed="o") == ["other/tau"]
    assert "--follow" in completed(jobs, "logs", typed="--f")
    assert completed(jobs, "wait", "pi", "--for", typed="su") == ["succeeded", "suspended"]


def test_a_completion_that_cannot_look_is_empty() -> None:
    def broken(engine: str) -> FakeJobs:
        raise OSError("no")

    complete = ShellComplete(main.cli, {"obj": Session(factory=broken)}, "oarsman", "_OARSMAN_COMPLETE")
    assert complete.get_completions(["logs"], "") == []


def test_starting_the_command_imports_nothing_heavy() -> None:
    script = "import sys, oarsman.cli.main; print(*sys.modules)"
    loaded = set(python("-c", script).stdout.split())
    heavy = {"pydantic", "rich", "yaml", "asyncio", "psutil", "sqlite3", "json", "subprocess"}
    assert loaded & heavy == set()
    assert not {name for name in loaded if name.startswith(("oarsman.backends", "oarsman.manifest", "oarsman.job"))}
    assert not {f"oarsman.cli.{verb}" for verb in main.VERBS} & loaded
