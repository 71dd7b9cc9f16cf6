"""The command in this process: another one takes longer to start than most of what it is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner, Result

from oarsman.cli.main import cli


def oarsman(environment: Mapping[str, str], folder: Path, *words: str, code: int | None = 0) -> Result:
    only = {**dict.fromkeys(os.environ), **environment}  # None: it has none of these
    with chdir(folder):
        done = CliRunner().invoke(cli, words, env=only, catch_exceptions=False)
    assert code is None or done.exit_code == code, f"{words}: {done.exit_code}\n{done.output}"
    return done
