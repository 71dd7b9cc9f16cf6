"""Saved views: of one person, gone with the account, and never too many."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from oarsman.console.security.store import ConsoleStore, Person, SavedView
from oarsman.errors import ConflictError, UsageError
from oarsman.service.models import Role

from .console import Console

OWNER = Person(None, "root")
FAILED = SavedView("failed <b>", "state=Failed")


def test_a_view_is_seen_by_its_person_only(console: Console) -> None:
    console.account("root")
    views = console.store.views
    views.save(OWNER, FAILED)
    assert views.all(OWNER) == [FAILED]
    assert views.all(Person("root", "root")) == []  # the account of that name is somebody else
    assert views.all(Person(None, "cluster:root")) == []


def test_the_same_name_again_takes_its_place_and_another_comes_in_order(console: Console) -> None:
    views = console.store.views
    for view in (FAILED, SavedView("busy", "state=Running"), SavedView(FAILED.name, "owner=ada")):
        views.save(OWNER, view)
    assert views.all(OWNER) == [SavedView("busy", "state=Running"), SavedView(FAILED.name, "owner=ada")]
    views.remove(OWNER, "busy")
    assert [view.name for view in views.all(OWNER)] == [FAILED.name]


def test_views_go_with_the_account(console: Console) -> None:
    console.account("ann", Role.ADMIN)
    console.account("ben")
    ben = Person("ben", "ben")
    console.store.views.save(ben, FAILED)
    console.store.accounts.remove("ben")
    assert console.store.views.all(ben) == []


@pytest.mark.parametrize("name", ["", "  ", "x" * 61, "a\nb", "\ud800", "\u202eabc"])
def test_a_name_that_cannot_be_read_is_refused(console: Console, name: str) -> None:
    with pytest.raises(UsageError, match="characters"):
        console.store.views.save(OWNER, SavedView(name, ""))


def test_there_is_an_end_to_them(console: Console) -> None:
    for number in range(100):
        console.store.views.save(OWNER, SavedView(f"{number}", ""))
    console.store.views.save(OWNER, SavedView("7", "state=Failed"))
    with pytest.raises(ConflictError, match="100"):
        console.store.views.save(OWNER, SavedView("one more", ""))
    assert len(console.store.views.all(OWNER)) == 100
    with pytest.raises(UsageError, match="too much"):
        console.store.views.save(OWNER, SavedView("7", "search=" + "x" * 5000))


def test_a_file_from_before_there_were_views_gets_a_place_for_them(tmp_path: Path) -> None:
    path = tmp_path / "console.db"
    store = ConsoleStore(path)
    store.audit.note("root", "here", "submit", "default/pi")
    store.close()
    db = sqlite3.connect(path)
    for (later,) in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('views', 'cluster_sessions')"
    ).fetchall():
        db.execute(f"DROP TABLE {later}")
    db.execute("PRAGMA user_version = 1")
    db.close()
    store = ConsoleStore(path)
    store.views.save(OWNER, FAILED)
    assert store.views.all(OWNER) == [FAILED]
    assert [entry.about for entry in store.audit.page().items] == ["default/pi"]
    store.close()
