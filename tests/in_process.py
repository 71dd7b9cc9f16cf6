"""The command in this process: another one takes longer to start than most of what it is asked for."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner, Result

from oarsman.cli.main import cli

_MOST_FILES = 200  # that this process may have open before it looks for those nobody needs


def oarsman(environment: Mapping[str, str], folder: Path, *words: str, code: int | None = 0) -> Result:
    if environment.get("OARSMAN_ON") == "ssh":  # which keeps files and connections until its process ends
        return _in_another(environment, folder, *words, code=code)
    only = {**dict.fromkeys(os.environ), **environment}  # None: it has none of these
    with chdir(folder):
        done = CliRunner().invoke(cli, words, env=only, catch_exceptions=False)
    if len(os.listdir("/proc/self/fd")) > _MOST_FILES:  # a command leaves its database open until its process ends
        gc.collect()
    assert code is None or done.exit_code == code, f"{words}: {done.exit_code}\n{done.output}"
    return done


def _in_another(environment: Mapping[str, str], folder: Path, *words: str, code: int | None) -> Result:
    command = [sys.executable, "-m", "oarsman.cli", *words]
    done = subprocess.run(
        command,
        env=dict(environment),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=200,
        check=False,
    )
    assert code is None or done.returncode == code, f"{words}: {done.returncode}\n{done.stdout!r}{done.stderr!r}"
    output = done.stdout + done.stderr
    return Result(CliRunner(), done.stdout, done.stderr, output, None, done.returncode, None)
