"""Copies of a job's folder, by the script in a local shell."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cluster.world import PATIENCE

from oarsman.engines.hosts.ssh import scripts
from oarsman.engines.hosts.ssh.client import Ssh
from oarsman.engines.hosts.ssh.code import copy as copy_module
from oarsman.engines.hosts.ssh.code.copy import Copied, copy, is_shared, plan_copy, remote_folder, script
from oarsman.engines.hosts.ssh.inventory import Inventory, SshHost
from oarsman.errors import OarsmanError, RetryableError, UserError

from .copied import LONG_AGO, ODD, change_text, contents, rename, settle

HERE = SshHost(name="here")
TOOLS = ("cat", "find", "head", "mkdir", "mv", "readlink", "rm", "rmdir", "stat", "tar", "touch", "xargs")


# -- where it goes ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("host", "start"),
    [
        (HERE, "~/.oarsman/code/my_code-"),
        (SshHost(name="x", folder="~/jobs/"), "~/jobs/code/my_code-"),
        (SshHost(name="x", folder="/scratch/me"), "/scratch/me/code/my_code-"),
    ],
)
def test_a_copy_lies_in_the_work_folder_of_the_host(host: SshHost, start: str, tmp_path: Path) -> None:
    found = remote_folder(host, tmp_path / "my code", "me")
    assert found.startswith(start)
    assert len(found) == len(start) + 8


def test_no_two_folders_or_users_have_the_same_copy_and_each_has_always_the_same(tmp_path: Path) -> None:
    wanted = [(tmp_path / "a", "me"), (tmp_path / "b" / "a", "me"), (tmp_path / "a", "you"), (Path("/"), "me")]
    found = [remote_folder(HERE, folder, who) for folder, who in wanted]
    assert len(set(found)) == 4
    assert found == [remote_folder(HERE, folder, who) for folder, who in wanted]


def test_a_folder_is_shared_below_a_shared_one_whatever_links_lead_there(tmp_path: Path) -> None:
    (tmp_path / "shared" / "me").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "way").symlink_to("shared")
    (tmp_path / "shared" / "out").symlink_to("../mine")
    host = SshHost(name="x", shared=("/nowhere", str(tmp_path / "way")))
    shared = {
        name: is_shared(tmp_path / name, host) for name in ("shared", "shared/me", "way/me", "mine", "shared/out")
    }
    assert shared == {"shared": True, "shared/me": True, "way/me": True, "mine": False, "shared/out": False}
    assert not is_shared(tmp_path / "shared2", host)
    assert not is_shared(tmp_path, HERE)


# -- by a local shell ------------------------------------------------------------------------------------------------
@dataclass
class Place:
    """A folder to copy to, and a program that runs what ssh would run elsewhere."""

    folder: Path
    ssh: Ssh
    calls: Path

    def copy(self, code: Path, **options: Any) -> Copied:
        return asyncio.run(self.copying(code, **options))

    async def copying(self, code: Path, timeout: float = PATIENCE, target: str = "", job: str = "") -> Copied:  # noqa: ASYNC109
        tree = await asyncio.to_thread(plan_copy, code)
        return await copy(self.ssh, HERE, tree, target or str(self.folder), timeout=timeout, job=job)

    def drop(self, job: str) -> int:
        words = self.ssh.argv(HERE, scripts.RECEIVER)
        return subprocess.run(words, input=script(str(self.folder), job, PATIENCE, drop=True), check=False).returncode

    @property
    def beside(self) -> set[str]:
        return {path.name.removeprefix(self.folder.name) for path in self.folder.parent.iterdir()}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    calls, program = tmp_path / "calls", tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho >>{calls}\nwhile [ "$1" != -- ]; do shift; done\nshift 2\nexec /bin/sh -c "$*"\n'
    )
    program.chmod(0o755)
    inventory = Inventory(file=tmp_path / "hosts", hosts=(HERE,))
    return Place(tmp_path / "host" / "work" / "code-1", Ssh(inventory, program=str(program)), calls)


def test_the_first_copy_brings_everything_and_the_second_nothing_in_one_call(code: Path, place: Place) -> None:
    first = place.copy(code)
    assert contents(place.folder) == contents(code)
    assert (first.files, first.removed) == (6 + len(ODD), 0)
    place.calls.unlink()
    before = {path: path.lstat().st_ino for path in place.folder.rglob("*")}
    assert place.copy(code) == Copied(0, 0, 0)
    assert place.calls.read_text() == "\n"
    assert {path: path.lstat().st_ino for path in place.folder.rglob("*")} == before
    assert place.beside == {"", ".brought"}


def test_a_copy_is_for_the_user_alone(code: Path, place: Place) -> None:
    place.copy(code)
    assert {
        stat.S_IMODE(path.lstat().st_mode) & 0o077 for path in place.folder.rglob("*") if not path.is_symlink()
    } == {0}


def move_folder(code: Path) -> None:
    (code / "pkg").rename(code / "package")


def file_to_folder(code: Path) -> None:
    (code / "train.py").unlink()
    (code / "train.py").mkdir()
    (code / "train.py" / "x").write_text("x")


def folder_to_file(code: Path) -> None:
    shutil.rmtree(code / "pkg")
    (code / "pkg").write_text("x")


def folder_to_link(code: Path) -> None:
    shutil.rmtree(code / "pkg")
    (code / "pkg").symlink_to("empty")


def link_to_folder(code: Path) -> None:
    (code / "inside").unlink()
    (code / "inside").mkdir()
    (code / "inside" / "data").write_text("x")


def other_link(code: Path) -> None:
    (code / "outside").unlink()
    (code / "outside").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    ("change", "files", "removed"),
    [
        (change_text, 1, 0),
        (lambda code: (code / "train.py").chmod(0o755), 1, 0),
        (lambda code: (code / "run.sh").chmod(0o644), 1, 0),
        (lambda code: os.utime(code / "run.sh", (LONG_AGO - 5, LONG_AGO - 5)), 1, 0),
        (lambda code: (code / "train.py").unlink(), 0, 1),
        (rename, 1, 1),
        (move_folder, 1, 1),
        (lambda code: (code / "empty").rmdir(), 0, 0),
        (lambda code: (code / "another").mkdir(), 0, 0),
        (file_to_folder, 1, 0),
        (folder_to_file, 1, 1),
        (folder_to_link, 1, 1),
        (link_to_folder, 1, 0),
        (other_link, 1, 0),
        (lambda code: [shutil.rmtree(code / name) for name in ODD], 0, len(ODD)),
        (lambda code: (code / ".oarsmanignore").write_text("pkg/\n"), 1, 1),
    ],
)
def test_what_changed_here_changes_there_and_nothing_else_is_sent(
    code: Path, place: Place, change: Callable[[Path], object], files: int, removed: int
) -> None:
    place.copy(code)
    change(code)
    settle(code)
    done = place.copy(code)
    assert (done.files, done.removed) == (files, removed)
    kept = {path: facts for path, facts in contents(code).items() if path in {e.path for e in plan_copy(code).entries}}
    assert contents(place.folder) == kept
    assert place.copy(code) == Copied(0, 0, 0)


def test_what_jobs_wrote_stays_also_in_folders_that_are_gone(code: Path, place: Place) -> None:
    place.copy(code)
    for result in ("result", "pkg/result", "pkg/deep/result"):
        (place.folder / result).write_text("precious")
    shutil.rmtree(code / "pkg")
    assert place.copy(code).removed == 1
    assert (place.folder / "result").read_text() == "precious"
    assert sorted(contents(place.folder / "pkg")) == ["deep", "deep/result", "result"]
    assert place.copy(code) == Copied(0, 0, 0)


def test_a_name_that_the_code_no_longer_has_is_free_for_results(code: Path, place: Place) -> None:
    place.copy(code)
    (code / "train.py").unlink()
    place.copy(code)
    (place.folder / "train.py").write_text("precious")
    assert place.copy(code) == Copied(0, 0, 0)
    assert (place.folder / "train.py").read_text() == "precious"


def test_what_a_job_changed_of_the_code_is_brought_back(code: Path, place: Place) -> None:
    place.copy(code)
    (place.folder / "train.py").write_text("changed")
    (place.folder / "run.sh").unlink()
    (place.folder / "inside").unlink()
    (place.folder / "inside").symlink_to("elsewhere")
    assert place.copy(code).files == 3
    assert contents(place.folder) == contents(code)


def test_nothing_is_written_or_removed_through_a_link_that_a_job_made(code: Path, place: Place, tmp_path: Path) -> None:
    (code / "former").mkdir()
    (code / "former" / "data").write_text("x")
    place.copy(code)
    precious = tmp_path / "precious"
    shutil.copytree(place.folder / "pkg", precious)
    (precious / "data").write_text("x")
    for name in ("pkg", "former"):
        shutil.rmtree(place.folder / name)
        (place.folder / name).symlink_to(precious)
    shutil.rmtree(code / "former")
    before = contents(precious)
    place.copy(code)
    assert contents(precious) == before
    assert (place.folder / "pkg" / "deep" / "data").read_bytes() == (code / "pkg" / "deep" / "data").read_bytes()
    assert not (place.folder / "pkg").is_symlink()


def test_a_folder_with_results_does_not_give_way_to_a_file_and_is_named(code: Path, place: Place) -> None:
    place.copy(code)
    (place.folder / "pkg" / "result").write_text("precious")
    folder_to_file(code)
    with pytest.raises(UserError, match=r"here: .*pkg.*Directory not empty") as raised:
        place.copy(code)
    assert "move that folder away" in str(raised.value.hint)
    assert (place.folder / "pkg" / "result").read_text() == "precious"
    assert place.beside == {"", ".brought"}


def test_a_file_that_changes_twice_in_a_second_is_not_missed(code: Path, place: Place) -> None:
    for text in "abcdef":
        (code / "train.py").write_text(text)
        place.copy(code)
        assert (place.folder / "train.py").read_text() == text


def test_the_home_of_the_host_is_found_there(code: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(place.folder.parent))
    place.copy(code, target="~/my code/it's-1")
    assert contents(place.folder.parent / "my code" / "it's-1") == contents(code)


def test_who_reads_while_a_file_is_replaced_sees_a_whole_one(code: Path, place: Place) -> None:
    file, wrong, looks = place.folder / "pkg" / "deep" / "data", list[bytes](), list[int]()
    versions = [bytes([number]) * 2_000_000 for number in range(6)]
    (code / "pkg" / "deep" / "data").write_bytes(versions[0])
    place.copy(code)
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            seen = file.read_bytes()
            looks.append(1)
            if seen not in versions:
                wrong.append(seen)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for version in versions[1:]:
            (code / "pkg" / "deep" / "data").write_bytes(version)
            place.copy(code)
    finally:
        over.set()
        reader.join()
    assert looks
    assert not wrong


def test_copies_at_the_same_time_wait_for_each_other(code: Path, place: Place) -> None:
    async def several() -> list[Copied]:
        return await asyncio.gather(*(place.copying(code) for _ in range(4)))

    done = asyncio.run(several())
    assert sorted(each.files for each in done) == [0, 0, 0, 6 + len(ODD)]
    assert contents(place.folder) == contents(code)
    assert place.beside == {"", ".brought"}


def test_a_lock_that_goes_just_after_it_was_refused_is_taken(
    code: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it was waited for, so that nobody takes a first refusal for a folder that cannot be made."""
    place.copy(code)
    lock = place.folder.with_name(f"{place.folder.name}.lock")
    lock.mkdir()
    tools, tries = place.calls.with_name("tools"), place.calls.with_name("tries")
    tools.mkdir()
    (tools / "mkdir").write_text(f"""#!/bin/sh
{shutil.which("mkdir")} "$@" && exit
echo >>{tries}
[ "$(wc -l <{tries})" -lt 8 ] || rmdir {lock}
exit 1
""")
    (tools / "mkdir").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    assert place.copy(code) == Copied(0, 0, 0)
    assert len(tries.read_text()) == 8


def test_who_waits_too_long_for_another_copy_is_told(code: Path, place: Place) -> None:
    place.copy(code)
    with subprocess.Popen(["sleep", "1000"]) as other:
        lock = place.folder.with_name(f"{place.folder.name}.lock")
        lock.mkdir()
        (lock / mark_of(other.pid)).touch()
        with pytest.raises(RetryableError, match=r"another copy to .* is still under way"):
            place.copy(code, timeout=1)
        other.kill()
        other.wait()
        assert place.copy(code) == Copied(0, 0, 0)  # its owner is dead now
    assert place.beside == {"", ".brought"}


def mark_of(pid: int) -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{pid}.{boot}.{os.readlink('/proc/self/ns/pid')}"


@pytest.mark.parametrize("mark", ["", "1.another-machine.pid:[1]"])
def test_a_lock_that_shows_no_life_is_broken(
    code: Path, place: Place, mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_module, "_LIFELESS", 1)
    lock = place.folder.with_name(f"{place.folder.name}.lock")
    lock.mkdir(parents=True)
    if mark:
        (lock / mark).touch()
    assert place.copy(code).files
    assert place.beside == {"", ".brought"}


@pytest.mark.parametrize("tool", ["tar", "xargs"])
def test_a_tool_that_is_missing_is_named(code: Path, place: Place, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = place.calls.with_name("tools")
    tools.mkdir()
    for name in TOOLS:
        if name != tool:
            (tools / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(UserError, match=f"here: .*{tool} is not installed"):
        place.copy(code)


@pytest.mark.parametrize(
    ("said", "code_of_it", "kind", "message"),
    [
        ("Permission denied (publickey).", 255, UserError, "here: it does not let us log in"),
        ("ssh: connect to host here port 22: Connection refused", 255, RetryableError, "nothing listens on port 22"),
        ("", 255, RetryableError, "here: the connection was closed"),
        ("mkdir: cannot create directory '/x': Read-only file system", 1, UserError, "Read-only file system"),
        ("This account is currently not available.", 1, RetryableError, "here: This account is currently"),
        ("tar: a: Cannot write: Disk quota exceeded\ntar: Exiting with failure", 2, UserError, "Disk quota exceeded"),
    ],
)
def test_what_is_in_the_way_is_said_with_the_host(
    code: Path, place: Place, said: str, code_of_it: int, kind: type[OarsmanError], message: str
) -> None:
    program = place.calls.with_name("bin") / "ssh"
    program.write_text(f'#!/bin/sh\ncat <<"E" >&2\n{said}\nE\nexit {code_of_it}\n')
    with pytest.raises(kind) as raised:
        place.copy(code)
    assert message in raised.value.message


def test_a_host_that_does_not_answer_is_given_up(code: Path, place: Place) -> None:
    (place.calls.with_name("bin") / "ssh").write_text("#!/bin/sh\nexec sleep 1000\n")
    with pytest.raises(RetryableError, match="here: no answer in time"):
        place.copy(code, timeout=0.5)


def test_a_file_that_cannot_be_read_after_all_is_said_and_the_next_copy_is_whole(
    code: Path, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = copy_module.archive

    def failing(*given: Any) -> Iterator[bytes]:
        yield next(real(*given))
        raise UserError("train.py: Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(copy_module, "archive", failing)
        with pytest.raises(UserError, match=r"train.py: Permission denied"):
            place.copy(code)
    place.copy(code)
    assert contents(place.folder) == contents(code)
    assert place.beside == {"", ".brought"}


def test_no_ssh_at_all_is_said(code: Path, place: Place) -> None:
    (place.calls.with_name("bin") / "ssh").unlink()
    with pytest.raises(UserError, match="there is no ssh on this machine"):
        place.copy(code)


def test_what_login_shells_print_is_not_taken_for_an_answer(code: Path, place: Place) -> None:
    program = place.calls.with_name("bin") / "ssh"
    program.write_text(program.read_text().replace("exec", "echo Welcome; echo beware >&2; exec"))
    assert place.copy(code).files
    assert contents(place.folder) == contents(code)


@pytest.mark.parametrize(
    "said", ["head -c 300000 /dev/zero", r"printf '\0begin\0\0end-of-names\0what is this//\n\0\0end\0'; cat >/dev/null"]
)
def test_a_host_that_says_what_makes_no_sense_is_named(
    code: Path, place: Place, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_module, "_LONGEST_ANSWER", 1 << 16)
    (place.calls.with_name("bin") / "ssh").write_text(f"#!/bin/sh\n{said}\nexec cat >/dev/null\n")
    with pytest.raises(RetryableError, match="here: what it says makes no sense"):
        place.copy(code)


# -- jobs that are gone ----------------------------------------------------------------------------------------------
def test_what_was_brought_goes_with_the_last_job_that_needs_it(code: Path, place: Place) -> None:
    place.copy(code, job="one")
    place.copy(code, job="two")
    assert place.drop("one") == 0
    assert contents(place.folder) == contents(code)
    assert place.drop("two") == 0
    assert place.beside == set()


def test_what_jobs_wrote_stays_when_they_are_gone(code: Path, place: Place) -> None:
    place.copy(code, job="one")
    (place.folder / "results").mkdir()
    (place.folder / "results" / "model").write_text("weights")
    assert place.drop("one") == 0
    assert [str(path.relative_to(place.folder)) for path in place.folder.rglob("*")] == ["results", "results/model"]
    assert place.beside == {""}


def test_nothing_is_removed_through_a_folder_that_a_job_made_a_link(place: Place, tmp_path: Path) -> None:
    for folder in ("code/data", "precious"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x").write_text("x")
    place.copy(tmp_path / "code", job="one")
    shutil.rmtree(place.folder / "data")
    (place.folder / "data").symlink_to(tmp_path / "precious")
    place.drop("one")
    assert (tmp_path / "precious" / "x").exists()


def test_a_job_that_had_no_copy_leaves_nothing_behind_either(place: Place) -> None:
    assert place.drop("one") == 0
    assert not place.folder.parent.exists()
