"""What trust writes into the files of an ssh folder, and that nothing else is touched."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.engines.hosts.ssh.trust.files import (
    PublicKey,
    admit,
    best,
    known,
    marks,
    pin,
    stanzas,
    with_block,
    with_lines,
    with_port,
    without_block,
    without_lines,
)
from oarsman.engines.hosts.ssh.trust.folders import printing
from oarsman.engines.hosts.ssh.trust.login import answering

OLD = PublicKey("ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ")
NEW = PublicKey("ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIBzg0dZzeQK0Kp2c3TTFJvO6Z4jxu8Dt6m7sHxnmXlgF")
RSA = PublicKey("ssh-rsa", "AAAAB3NzaC1yc2EAAAADAQABAAAAgQC1")
FILES = st.none() | st.binary(max_size=60) | st.text("ab \n#@", max_size=40).map(str.encode)
LINES = st.lists(st.text("abc =", min_size=1), max_size=3)


@given(FILES, LINES, LINES)
def test_lines_are_taken_out_as_if_they_had_never_been_there(
    text: bytes | None, first: list[str], more: list[str]
) -> None:
    once = with_lines(text, first, "one")
    both = with_lines(once, more, "two")
    twice = with_lines(both, first, "one")
    assert without_lines(without_lines(twice, "two")[0], "one")[0] == text
    assert without_lines(both, "two") == (once, len(more))


@given(FILES, st.binary(min_size=1, max_size=20).filter(lambda text: b"\n" not in text and b"\r" not in text))
def test_what_somebody_wrote_behind_us_stays(text: bytes | None, later: bytes) -> None:
    left, _ = without_lines((with_lines(text, ["key"], "one") or b"") + later, "one")
    assert left is not None
    assert left.endswith(later)
    assert left.removesuffix(later).removesuffix(b"\n") == (text or b"").removesuffix(b"\n")


@given(FILES.filter(lambda text: b"oarsman-trust" not in (text or b"")))
def test_a_block_is_taken_out_as_if_it_had_never_been_there(text: bytes | None) -> None:
    block = with_block(text, {"node1": "Host node1\n    Port 7\n"}, "one")
    assert marks(block) == {"one"}
    assert without_block(block, "one") == (text, 1)
    assert without_block(block, "two") == (block, 0)


def test_a_block_keeps_hosts_that_are_not_wanted_now() -> None:
    one, two, other = "Host node1\n    Port 1\n", "Host node2 10.0.0.2\n    Port 2\n", "Host node2 10.0.0.3\n"
    text = with_block(b"Port 9\n", {"node1": one, "node2": two}, "id")
    changed = with_block(text, {"node2": other}, "id")
    assert stanzas(changed, "id") == {"node1": one, "node2": other}
    assert without_block(changed, "id")[0] == b"Port 9\n"


def test_pinning_twice_adds_nothing() -> None:
    first = pin(None, [(OLD, ["node1", "10.0.0.1"])], "id")
    assert first.text == f"node1,10.0.0.1 {OLD} oarsman-trust:id:created\n".encode()
    again = pin(first.text, [(OLD, ["node1", "10.0.0.1"])], "id")
    assert (again.text, again.added, again.replaced, again.refused) == (first.text, 0, 0, ())


def test_a_line_of_ours_is_exchanged_for_a_new_key_and_can_still_be_undone() -> None:
    first = pin(None, [(OLD, ["node1"]), (RSA, ["node2"])], "id")
    changed = pin(first.text, [(NEW, ["node1"])], "id")
    assert (changed.added, changed.replaced, changed.refused) == (0, 1, ())
    assert changed.text is not None
    assert str(OLD).encode() not in changed.text
    assert without_lines(changed.text, "id") == (None, 2)


@pytest.mark.parametrize(
    "line", [f"node1 {OLD}", f"node1 {OLD} oarsman-trust:other", f"@revoked node1 {NEW}", f"node* {OLD}"]
)
def test_a_line_of_others_with_another_key_is_left_and_no_other_name_passes_it_by(line: str) -> None:
    text = f"{line}\n".encode()
    done = pin(text, [(NEW, ["node1", "10.0.0.1"])], "id")
    assert (done.text, done.refused) == (text, ("node1", "10.0.0.1"))


@pytest.mark.parametrize(
    ("names", "name", "fits"),
    [
        ("node1", "node1", True),
        ("node1", "NODE1", True),
        ("node1,node2", "node2", True),
        ("node*,!node2", "node2", False),
        ("node?", "node3", True),
        ("[node1]:2222", with_port("node1", 2222), True),
        ("[node1]:2222", "node1", False),
        ("node1", "node10", False),
    ],
)
def test_names_are_matched_as_ssh_does(names: str, name: str, fits: bool) -> None:
    assert bool(known(f"{names} {OLD}\n".encode(), name)) is fits


def test_hashed_names_are_found_as_ssh_keygen_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text(f"node1,[node1]:2222 {OLD}\n")
    subprocess.run(["ssh-keygen", "-H", "-f", str(file)], check=True, capture_output=True)
    text = file.read_bytes()
    assert b"node1" not in text
    assert [known(text, name)[0].key for name in ("node1", "[node1]:2222")] == [OLD, OLD]
    assert known(text, "node2") == []


def test_fingerprints_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    file = tmp_path / "key.pub"
    file.write_text(f"{OLD}\n")
    shown = subprocess.run(["ssh-keygen", "-l", "-f", str(file)], check=True, capture_output=True, text=True).stdout
    assert shown.split()[1] == OLD.fingerprint


BOUND = f'restrict,from="10.0.0.1" {OLD} node1'


def test_a_key_that_is_commented_out_does_not_count() -> None:
    assert admit(f'from="10.0.0.1" {OLD} me\n'.encode(), [], [BOUND], "id")[1] == 0
    assert admit(f"# {OLD}\n".encode(), [], [BOUND], "id")[1] == 1
    assert admit(None, [], [BOUND], "id") == (f"{BOUND} oarsman-trust:id:created\n".encode(), 1, 0)


def test_a_line_of_ours_says_the_addresses_that_the_host_has_now() -> None:
    first, _, _ = admit(None, [], [BOUND], "id")
    assert admit(first, [], [BOUND], "id") == (first, 0, 0)
    moved = BOUND.replace("10.0.0.1", "10.0.0.2")
    changed = admit(first, [], [moved], "id")
    assert changed == (f"{moved} oarsman-trust:id:created\n".encode(), 0, 1)
    assert without_lines(changed[0], "id") == (None, 1)


def test_each_trust_has_lines_of_its_own_for_the_same_key() -> None:
    both, added, _ = admit(admit(None, [], [BOUND], "one")[0], [], [BOUND], "two")
    assert added == 1
    assert without_lines(both, "one")[0] == f"{BOUND} oarsman-trust:two\n".encode()


def test_a_key_that_opens_the_host_from_here_is_not_bound_even_if_it_is_that_of_a_host() -> None:
    free = f"{OLD} me"
    text, added, _ = admit(None, [free], [BOUND], "id")
    assert (text, added) == (f"{free} oarsman-trust:id:created\n".encode(), 1)
    assert admit(text, [], [BOUND], "id") == (text, 0, 0)


@pytest.mark.parametrize(
    "line",
    [
        f'environment="x AAAAC3",cert-authority {OLD}',
        f'command="x AAAA {OLD.blob}" {OLD}',
        f"cert-authority {OLD}",
        f"@cert-authority * {OLD}",
        f"ssh-rsa {OLD.blob}",
        f"ssh-ed25519 {OLD.blob[:-4]}*,x=",
        "ssh-ed25519 AAAA",
        "ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29t",
        "",
    ],
)
def test_what_only_looks_like_a_key_is_none(line: str) -> None:
    assert PublicKey.read(line) is None


def test_kinds_of_keys_that_nobody_here_has_heard_of_are_keys() -> None:
    kind = b"sk-ssh-ed25519@openssh.com"
    blob = base64.b64encode(len(kind).to_bytes(4) + kind + b"rest").decode()
    assert PublicKey.read(f"{kind.decode()} {blob} a comment") == PublicKey(kind.decode(), blob)


def test_the_best_kind_of_key_is_pinned() -> None:
    assert best([RSA, OLD]) == OLD
    assert best([]) is None


@given(st.binary(max_size=5000))
def test_a_shell_prints_every_byte_of_a_file(content: bytes) -> None:
    done = subprocess.run(["/bin/sh"], input=printing(content).encode(), capture_output=True, check=True)
    assert done.stdout == content


SECRET = "s3cret 'with' \"all\" $kinds\\of"


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("rower@node1's password: ", True),
        ("(rower@node1) Password: ", True),
        ("rower@front's password: ", False),
        ("Are you sure you want to continue connecting to rower@node1's (yes/no)? ", False),
        ("Enter passphrase for key '/home/rower@node1's key': ", False),
    ],
)
def test_only_the_host_that_is_meant_is_told_the_password(question: str, told: bool) -> None:
    with answering(SECRET, ["rower@node1's ", "rower@node1)"]) as environment:
        asked = subprocess.run([environment["SSH_ASKPASS"], question], capture_output=True, text=True, check=False)
    assert (asked.returncode == 0, asked.stdout) == (told, f"{SECRET}\n" if told else "")


def test_a_password_is_in_no_variable_and_no_file_and_leaves_no_folder() -> None:
    with answering(SECRET, []) as environment:
        folder = Path(environment["SSH_ASKPASS"]).parent
        assert os.stat(folder).st_mode & 0o077 == 0
        assert not [value for value in environment.values() if SECRET in value]
        assert [file.name for file in folder.iterdir() if file.is_file() and SECRET in file.read_text()] == []
    assert not folder.exists()


def test_who_asks_for_the_password_of_somebody_who_was_killed_does_not_wait_for_ever(tmp_path: Path) -> None:
    program = tmp_path / "asks.py"
    program.write_text(
        "import os, signal\n"
        "from oarsman.engines.hosts.ssh.trust.login import answering\n"
        "with answering('secret', []) as environment:\n"
        "    print(environment['SSH_ASKPASS'], flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    asks = Path(killed.stdout.strip())
    try:
        assert subprocess.run([asks, "password: "], capture_output=True, check=False, timeout=60).returncode != 0
    finally:
        shutil.rmtree(asks.parent)
