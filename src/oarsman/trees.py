"""Folders that others wrote into."""

from __future__ import annotations

import os


def remove(folder: str | os.PathLike[str]) -> None:
    """However deep it is: Python calls itself for each folder within another. What cannot be removed stays."""
    import shutil  # it brings much along that nobody needs before a job's end

    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:
        import subprocess

        subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL)
