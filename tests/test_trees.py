"""What is removed although others wrote into it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from oarsman.store.environments import Contents

DEEP = 3000  # folders, one in the other: more than Python can call itself, and longer than a path may be


def make_deep(folder: Path) -> None:
    at = os.open(folder, os.O_PATH)
    for _ in range(DEEP):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_PATH, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_what_a_build_left_goes_however_deep_it_is(tmp_path: Path) -> None:
    """Else nobody could make or delete an environment any more: each time all that is not used is removed."""
    contents = Contents(tmp_path / "contents")
    contents.folder.mkdir()
    try:
        make_deep(contents.folder)
        contents.remove()
        assert not contents.folder.exists()
    finally:  # pytest cannot remove it, and would end with an error ever after
        subprocess.run(["rm", "-rf", contents.folder], check=True)
