"""What travels to a host arrives as it was, through any shell."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarsman.engines.hosts.ssh import scripts

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r"), max_size=200)


def sh(*words: str, stdin: bytes = b"") -> str:
    return subprocess.run([*words], input=stdin, capture_output=True, check=True).stdout.decode()


@settings(deadline=None, max_examples=60)
@given(TEXT)
def test_a_packed_text_is_one_word_on_one_line_and_becomes_the_text_again(text: str) -> None:
    packed = scripts.packed(text)
    assert len(packed.splitlines() or [""]) == 1 or any(mark in text for mark in "\v\f\x1c\x1d\x1e\x85\u2028\u2029")
    assert " " not in packed
    assert "\n" not in packed
    assert sh("sh", "-c", f"printf %b {shlex.quote(packed)}; printf .") == text + "."


@pytest.mark.parametrize("shell", ["sh", "bash"])
@settings(deadline=None, max_examples=30)
@given(text=TEXT)
def test_a_script_comes_through_a_login_shell_and_leaves_the_rest_of_the_input_alone(shell: str, text: str) -> None:
    script = f"printf '%s|' {shlex.quote(text)}\ncat\n"
    said = sh(shell, "-c", scripts.RECEIVER, stdin=scripts.line(script) + b"the rest")
    assert said == f"{text}|the rest"


def test_variables_are_quoted_and_names_that_no_shell_can_have_are_left_out() -> None:
    exports = scripts.exports({"A": "it's $HOME `x`\nb", "not-a-name": "x", "B": ""})
    assert sh("sh", "-c", f'{exports} printf "%s|%s" "$A" "$B"') == "it's $HOME `x`\nb|"
    assert "not-a-name" not in exports


def test_a_command_tells_how_it_ended_also_when_a_signal_ended_it(tmp_path: str) -> None:
    run = f"{tmp_path}"
    subprocess.run(["sh", "-c", f"mkdir {run}/p; : >{run}/env"], check=True)

    def ends(*argv: str) -> int:
        script = scripts.command(argv, run=run, number=1, folder="/", variables={"A": "1"})
        return subprocess.run(
            ["sh", "-c", scripts.RECEIVER], input=scripts.line(script), capture_output=True
        ).returncode

    assert ends("sh", "-c", "exit $((A + 2))") == 3
    assert ends("sh", "-c", "kill -9 $$") == 137
    assert ends("no-such-program") == 127


def test_what_another_host_of_the_machine_tries_to_start_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    early = 'chmod() { [ ! -e "$BASE/ssh" ] || echo "it cannot be started yet"; command chmod "$@"; }'
    write = 'write_file() { printf %b "$3" >"$RUN/$1"; }'
    script = "\n".join([early, write, scripts.writing({}, seats="slots=1\n"), "write_files"])
    (tmp_path / "0").mkdir()
    environment = {"BASE": str(tmp_path), "RUN": str(tmp_path / "0"), "PATH": os.defpath}
    done = subprocess.run(["/bin/sh", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert os.access(tmp_path / "ssh", os.X_OK)
    assert not (tmp_path / "ssh.new").exists()
