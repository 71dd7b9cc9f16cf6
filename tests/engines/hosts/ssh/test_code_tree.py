from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarsman.engines.hosts.ssh.code.changes import (
    PIECE,
    TreeChanges,
    archive,
    changes,
    gone,
    named,
    read_answer,
    read_names,
)
from oarsman.engines.hosts.ssh.code.tree import Kind, Tree, TreeEntry, plan_copy
from oarsman.errors import UserError

LONG_AGO = 1_000_000_000


def write(folder: Path, *paths: str, text: str = "x") -> None:
    for path in paths:
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            file.mkdir()
        else:
            file.write_text(text)
            os.utime(file, (LONG_AGO, LONG_AGO))


def paths(tree: Tree) -> list[str]:
    return [entry.path for entry in tree.entries]


# -- what is in it -----------------------------------------------------------------------------------------------
def test_a_tree_says_of_each_path_what_a_copy_needs(tmp_path: Path) -> None:
    write(tmp_path, "a/train.py", "run.sh", "empty/", text="12")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "a" / "up").symlink_to("../run.sh")
    assert plan_copy(tmp_path).entries == (
        TreeEntry("a", Kind.FOLDER),
        TreeEntry("a/train.py", Kind.FILE, 2, LONG_AGO),
        TreeEntry("a/up", Kind.LINK, target="../run.sh"),
        TreeEntry("empty", Kind.FOLDER),
        TreeEntry("run.sh", Kind.FILE, 2, LONG_AGO, executable=True),
    )
    assert sum(entry.size for entry in plan_copy(tmp_path).entries) == 4


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "code/main.py", "secret/key")
    (tmp_path / "code" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "code" / "loop").symlink_to(".")
    assert paths(plan_copy(tmp_path / "code")) == ["loop", "main.py", "out"]


def test_sockets_and_pipes_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "main.py")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))  # its whole name may be too long
        assert paths(plan_copy(tmp_path)) == ["main.py"]


def test_what_no_job_needs_is_left_out_by_default(tmp_path: Path) -> None:
    write(
        tmp_path,
        "main.py",
        ".git/HEAD",
        "a/__pycache__/x.pyc",
        "a/x.pyc",
        ".venv/bin/python",
        "venv/bin/python",
        "node_modules/x/index.js",
        ".mypy_cache/x",
        ".pytest_cache/x",
    )
    assert paths(plan_copy(tmp_path)) == ["a", "main.py"]


SECRETS = """
.aws/credentials .azure/x .config/gcloud/x .docker/config.json .env .env.local .git-credentials .gnupg/x .htpasswd
.kube/config .netrc .pgpass .pypirc .ssh/id_x a/.env a/server.pem admin.kubeconfig id_ed25519 id_rsa kubeconfig
kubeconfig-prod.yaml me.p12 prod-kubeconfig.yml server.key store.jks vault.kdbx"""


def test_secrets_that_everybody_knows_are_left_out_and_named(tmp_path: Path) -> None:
    secrets = SECRETS.split()
    write(tmp_path, *secrets, ".env.example", "a/keys.py", "id_rsa.pub", "kubeconfig.py", "pem.py")
    tree = plan_copy(tmp_path)
    assert paths(tree) == [
        ".config",
        ".docker",
        ".env.example",
        "a",
        "a/keys.py",
        "id_rsa.pub",
        "kubeconfig.py",
        "pem.py",
    ]
    folders = {".aws", ".azure", ".config/gcloud", ".gnupg", ".kube", ".ssh"}
    files = {name for name in secrets if not any(name.startswith(f"{folder}/") for folder in folders)}
    assert set(tree.left_out) == folders | files


def test_a_secret_is_copied_when_it_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, ".env", "a/.env", "server.pem")
    write(tmp_path, ".oarsmanignore", text="!/.env\n")
    tree = plan_copy(tmp_path)
    assert paths(tree) == [".env", ".oarsmanignore", "a"]
    assert tree.left_out == ("a/.env", "server.pem")


def test_what_was_given_as_a_secret_is_never_copied_by_whatever_name(tmp_path: Path) -> None:
    write(tmp_path, "code/a/pass.txt", "code/main.py", "code/state/console.db", "elsewhere")
    write(tmp_path, "code/.oarsmanignore", text="!pass.txt\n!state\n")
    (tmp_path / "code" / "same").hardlink_to(tmp_path / "code" / "a" / "pass.txt")
    (tmp_path / "way").symlink_to("code")
    given = [str(tmp_path / name) for name in ("way/a/pass.txt", "code/state", "elsewhere", "gone")]
    tree = plan_copy(tmp_path / "code", secrets=given)
    assert paths(tree) == [".oarsmanignore", "a", "main.py"]
    assert tree.left_out == ("a/pass.txt", "same", "state")


def test_what_is_left_out_by_default_can_be_taken_back(tmp_path: Path) -> None:
    write(tmp_path, "venv/bin/python", "x.pyc")
    write(tmp_path, ".oarsmanignore", text="!venv\n")
    assert paths(plan_copy(tmp_path)) == [".oarsmanignore", "venv", "venv/bin", "venv/bin/python"]


def test_a_file_that_has_just_changed_is_young(tmp_path: Path) -> None:
    write(tmp_path, "new", "old")
    (tmp_path / "new").touch()
    assert [(entry.path, entry.young) for entry in plan_copy(tmp_path).entries] == [("new", True), ("old", False)]


@contextmanager
def nobody() -> Iterator[None]:
    """Root may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_cannot_be_read_is_named(tmp_path: Path, what: str) -> None:
    write(tmp_path, "code/folder/file")
    for above in (tmp_path, *list(tmp_path.parents)[:-2]):
        above.chmod(above.stat().st_mode | 0o055)
    locked = tmp_path / "code" / "folder" / ("file" if what == "file" else "")
    locked.chmod(0)
    try:
        with nobody(), pytest.raises(UserError, match=r"/folder(/file)?: Permission denied") as raised:
            plan_copy(tmp_path / "code")
    finally:
        locked.chmod(0o700)
    assert ".oarsmanignore" in str(raised.value.hint)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: No such file"):
        plan_copy(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "limit", "said"),
    [
        (
            "LIMIT_BYTES",
            3 << 20,
            "6.1 MiB; at most 3.0 MiB are copied. Largest: data/ (5.0 MiB), big (1.0 MiB), many/ (0.1 MiB)",
        ),
        ("LIMIT_FILES", 5, "14 files and folders; at most 5 are copied. Largest: many/ (11), data/ (2), big (1)"),
    ],
)
def test_of_a_folder_that_is_too_large_the_largest_parts_are_named_and_three_ways_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, said: str
) -> None:
    monkeypatch.setattr(f"oarsman.engines.hosts.ssh.code.tree.{name}", limit)
    write(tmp_path, "data/set", text="x" * (5 << 20))
    write(tmp_path, "big", text="x" * (1 << 20))
    write(tmp_path, *(f"many/{number}" for number in range(10)), text="x" * 10_000)
    with pytest.raises(UserError) as raised:
        plan_copy(tmp_path)
    assert said in raised.value.message
    for way in (".oarsmanignore", "oarsman.dev/code: none", "'shared' in the inventory"):
        assert way in str(raised.value.hint)


def test_a_huge_folder_is_not_looked_through_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oarsman.engines.hosts.ssh.code.tree.LIMIT_FILES", 2)
    write(tmp_path, *(f"{number:03}" for number in range(100)))
    with pytest.raises(UserError, match="11 files and folders or more; at most 2 are copied"):
        plan_copy(tmp_path)


# -- what a copy needs -------------------------------------------------------------------------------------------
def tree_of(*entries: TreeEntry) -> Tree:
    return Tree(Path("/nowhere"), entries)


FILE = TreeEntry("a", Kind.FILE, 3, LONG_AGO)


@pytest.mark.parametrize(
    ("here", "there", "sent"),
    [
        (FILE, None, True),
        (FILE, FILE, False),
        (FILE, TreeEntry("a", Kind.FILE, 4, LONG_AGO), True),
        (FILE, TreeEntry("a", Kind.FILE, 3, LONG_AGO + 1), True),
        (FILE, TreeEntry("a", Kind.FILE, 3, LONG_AGO - 1), True),
        (FILE, TreeEntry("a", Kind.FILE, 3, LONG_AGO, executable=True), True),
        (FILE, TreeEntry("a", Kind.LINK, target="b"), True),
        (FILE, TreeEntry("a", Kind.OTHER), True),
        (TreeEntry("a", Kind.FILE, 3, LONG_AGO, young=True), FILE, True),
        (TreeEntry("a", Kind.LINK, target="b"), TreeEntry("a", Kind.LINK, target="b"), False),
        (TreeEntry("a", Kind.LINK, target="b"), TreeEntry("a", Kind.LINK, target="c"), True),
        (TreeEntry("a", Kind.FOLDER), TreeEntry("a", Kind.FOLDER), False),
        (TreeEntry("a", Kind.FOLDER), None, True),
    ],
)
def test_only_what_differs_is_sent(here: TreeEntry, there: TreeEntry | None, sent: bool) -> None:
    needed = changes(tree_of(here), {"a": there} if there else {}, [])
    assert needed == TreeChanges(sent=(here,) if sent else ())
    assert needed.nothing is not sent


def test_a_folder_in_place_of_a_file_and_the_other_way_round_is_made_room_for() -> None:
    folder, inside, file = (
        TreeEntry("a", Kind.FOLDER),
        TreeEntry("a/x", Kind.FILE, 3, LONG_AGO),
        TreeEntry("b", Kind.FILE),
    )
    needed = changes(tree_of(folder, inside, file), {"a": FILE, "b": TreeEntry("b", Kind.FOLDER)}, [])
    assert needed == TreeChanges(sent=(folder, inside, file), in_the_way=(folder,), obstacles=(file,))


def test_what_is_seen_through_a_link_is_neither_taken_for_the_copy_nor_removed() -> None:
    folder, inside = TreeEntry("a", Kind.FOLDER), TreeEntry("a/x", Kind.FILE, 3, LONG_AGO)
    former = [TreeEntry("b", Kind.FOLDER), TreeEntry("b/y", Kind.FILE)]
    there = {
        "a": TreeEntry("a", Kind.LINK, target="/x"),
        "a/x": inside,
        "b": TreeEntry("b", Kind.LINK),
        "b/y": former[1],
    }
    assert changes(tree_of(folder, inside), there, former) == TreeChanges(sent=(folder, inside), in_the_way=(folder,))


def test_of_what_was_brought_and_is_gone_files_are_removed_and_folders_from_the_deepest() -> None:
    a, b = TreeEntry("a", Kind.FOLDER), TreeEntry("a/b", Kind.FOLDER)
    file, link = TreeEntry("a/b/f", Kind.FILE), TreeEntry("l", Kind.FILE)
    brought = [a, b, file, link, TreeEntry("missing", Kind.FILE)]
    tree = tree_of(TreeEntry("kept", Kind.FILE))
    former = gone([*brought, TreeEntry("kept", Kind.FILE)], tree)
    there = {entry.path: entry for entry in (a, b, file, TreeEntry("l", Kind.LINK, target="x"), *tree.entries)}
    needed = changes(tree, there, former)
    assert needed == TreeChanges(former_files=(file, link), former_folders=(b, a))


odd_name = st.binary(min_size=1, max_size=5).filter(lambda text: not set(b"/\0") & set(text) and text.strip(b"."))
odd_path = st.lists(odd_name, min_size=1, max_size=3).map(lambda parts: os.fsdecode(b"/".join(parts)))


@given(st.dictionaries(odd_path, st.sampled_from([Kind.FILE, Kind.FOLDER])))
def test_the_list_of_what_was_brought_is_read_as_it_was_written(entries: dict[str, Kind]) -> None:
    brought = [TreeEntry(path, kind) for path, kind in entries.items()]
    assert read_names(named(brought, folders_marked=True)) == brought


@pytest.mark.parametrize(
    "text", [b"", b"\0", b"x\0", b"./\0", b".//\0", b"./../x\0", b"./a/../../x\0", b"/etc/passwd\0"]
)
def test_a_list_that_is_not_ours_names_nothing_to_remove(text: bytes) -> None:
    assert read_names(text) == []


@given(st.lists(st.dictionaries(odd_path, st.binary(max_size=6).filter(lambda text: b"\0" not in text)), max_size=3))
def test_names_and_targets_of_any_bytes_are_told_apart(batches: list[dict[str, bytes]]) -> None:
    """A path with a target is a link, one with an empty target a file."""
    text, expected = b"", {}
    for batch in batches:
        links = {path: target for path, target in batch.items() if target}
        for path, target in batch.items():
            mode = b"a1ff" if target else b"81c0"
            text += mode + b" 7 1000 ./" + os.fsencode(path) + b"//\n"
            link = TreeEntry(path, Kind.LINK, target=os.fsdecode(target))
            expected[path] = link if target else TreeEntry(path, Kind.FILE, 7, 1000, executable=True)
        text += b"\0" + b"".join(b"./" + os.fsencode(path) + b"\0" + links[path] + b"\n\0" for path in links) + b"\0"
    assert read_answer(text + b"end\0") == expected


# -- the archive -------------------------------------------------------------------------------------------------
def unpacked(pieces: Iterator[bytes]) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(b"".join(pieces)), errors="surrogateescape")


def whole(tree: Tree) -> Iterator[bytes]:
    return archive(tree, TreeChanges(sent=tree.entries), [])


def test_an_archive_holds_what_is_sent_for_the_user_alone_and_ends_with_the_list(tmp_path: Path) -> None:
    write(tmp_path, "a/x" + "y" * 200, os.fsdecode(b"\xff\n"), "run", text="12")
    (tmp_path / "run").chmod(0o777)
    (tmp_path / "link").symlink_to("/" + "z" * 150)
    tree = plan_copy(tmp_path)
    with unpacked(whole(tree)) as tar:
        members = {member.name.removeprefix("tree/"): member for member in tar.getmembers()}
        assert tar.getnames()[0] == "before"
        assert tar.getnames()[-1] == "after"
        assert set(paths(tree)) <= set(members)
        assert members["link"].linkname == "/" + "z" * 150
        assert [oct(members[name].mode) for name in ("a", "run", os.fsdecode(b"\xff\n"))] == ["0o700", "0o700", "0o600"]
        assert members["run"].mtime == LONG_AGO
        assert tar.extractfile("after").read() == named(tree.entries, folders_marked=True)  # type: ignore[union-attr]


def test_pieces_stay_small_however_large_a_file_is(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(20 << 20)
    assert max(len(piece) for piece in whole(plan_copy(tmp_path))) <= 2 * PIECE


@pytest.mark.parametrize("size", [0, 10, 900_000])
def test_a_file_that_changes_while_it_is_read_is_sent_again_and_breaks_nothing(tmp_path: Path, size: int) -> None:
    write(tmp_path, "a", text="a" * 700_000)
    write(tmp_path, "b", text="b")
    pieces = whole(plan_copy(tmp_path))
    first = next(pieces)
    (tmp_path / "a").write_text("c" * size)
    with unpacked(iter([first, *pieces])) as tar:
        assert tar.getnames().count("tree/a") == 2
        assert tar.extractfile("tree/a").read() == b"c" * size  # type: ignore[union-attr]
        assert tar.extractfile("tree/b").read() == b"b"  # type: ignore[union-attr]


@pytest.mark.parametrize("instead", ["nothing", "link", "pipe", "folder"])
def test_a_file_that_became_something_else_meanwhile_is_passed_over(tmp_path: Path, instead: str) -> None:
    write(tmp_path, "a", "b")
    tree = plan_copy(tmp_path)
    file = tmp_path / "a"
    file.unlink()
    make = {
        "nothing": lambda: None,
        "link": lambda: file.symlink_to("/etc/passwd"),
        "pipe": lambda: os.mkfifo(file),
        "folder": file.mkdir,
    }
    make[instead]()
    with unpacked(whole(tree)) as tar:
        assert "tree/a" not in tar.getnames()
        assert "tree/b" in tar.getnames()
