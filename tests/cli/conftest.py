"""Every test of the command speaks English, whatever the machine's locale, and starts in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarsman.cli.text import t

from .fakes import MANIFEST, FakeJobs


@pytest.fixture(autouse=True)
def _english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(t, "language", "en")
    for name in ("NO_COLOR", "OARSMAN_ON", "OARSMAN_LANG", "OARSMAN_SERVER", "OARSMAN_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def jobs() -> FakeJobs:
    return FakeJobs()


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "pi.yaml"
    path.write_text(MANIFEST, "utf-8")
    return str(path)
