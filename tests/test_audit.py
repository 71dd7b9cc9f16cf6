"""`make audit`, with a registry on this machine that says what a test wants."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
HOLE = {"id": "PYSEC-2026-1", "aliases": ["CVE-2026-1"], "fixed_in": ["2.1"]}
Said = Mapping[str, Any] | None


@contextmanager
def registry(says: Callable[[str, str], Said]) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, _, name, version, _ = self.path.split("/")
            said = says(name, version)
            self.send_response(200 if said is not None else 404)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()
        thread.join()


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A project of three packages, with the scripts."""
    (tmp_path / "scripts").mkdir()
    for name in ("audit.py", "registry.py"):
        (tmp_path / "scripts" / name).write_text((SCRIPTS / name).read_text())
    (tmp_path / "pyproject.toml").write_text(
        "[project]\ndependencies = [\"oar>=1.0; python_version > '3'\"]\n"
        '[project.optional-dependencies]\nmore = ["Hull.Paint[gold]>=3"]\n'
    )
    (tmp_path / "constraints.txt").write_text("oar==2.0\nHull.Paint==3.1\nrope==1.0  # accepted: GHSA-1,CVE-9 unused\n")
    return tmp_path


def audited(house: Path, index: str) -> tuple[int, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [sys.executable, str(house / "scripts" / "audit.py")],
        env={**given, "PIP_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull, "no_proxy": "*"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_what_is_pinned_and_the_oldest_that_is_allowed_are_asked_about(house: Path) -> None:
    asked = []

    def says(name: str, version: str) -> Said:
        asked.append((name, version))
        return {"vulnerabilities": []} if (name, version) != ("hull-paint", "3") else None

    with registry(says) as index:
        code, said = audited(house, index)
    assert (code, "0 known holes in 5 versions" in said) == (0, True)
    wanted = [("hull-paint", "3"), ("hull-paint", "3.0"), ("hull-paint", "3.1"), ("oar", "1.0"), ("oar", "2.0")]
    assert sorted(asked) == [*wanted, ("rope", "1.0")]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_known_hole_is_named_and_ends_it(house: Path, version: str) -> None:
    with registry(lambda _, its: {"vulnerabilities": [HOLE] if its == version else []}) as index:
        code, said = audited(house, index)
    assert code == 1
    assert f"!!! oar {version}: CVE-2026-1 PYSEC-2026-1, fixed in 2.1" in said


def test_a_hole_that_is_accepted_or_was_withdrawn_is_none(house: Path) -> None:
    holes = {"rope": {"id": "GHSA-1"}, "oar": {**HOLE, "withdrawn": "2026-01-01"}}
    with registry(lambda name, _: {"vulnerabilities": [holes[name]] if name in holes else []}) as index:
        assert audited(house, index)[0] == 0


@pytest.mark.parametrize("said", [None, {"info": {}}], ids=["nothing", "no word about holes"])
def test_a_registry_without_such_data_is_said_plainly_and_no_failure(house: Path, said: Said) -> None:
    with registry(lambda *_: said) as index:
        code, shown = audited(house, index)
    assert (code, "NOT DONE: the package registry that is used here has no vulnerability data" in shown) == (0, True)


def test_no_network_is_said_plainly_and_no_failure(house: Path) -> None:
    code, shown = audited(house, "http://127.0.0.1:1/simple")
    assert (code, "NOT DONE: the package registry's vulnerability data cannot be had here" in shown) == (0, True)


def test_make_test_asks_for_known_holes_and_what_it_finds_ends_it() -> None:
    done = subprocess.run(["make", "-n", "test"], cwd=SCRIPTS.parent, capture_output=True, text=True, check=True)
    asked, tests = done.stdout.index("python scripts/audit.py\n"), done.stdout.index("-m pytest")
    assert asked < tests
