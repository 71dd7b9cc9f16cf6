"""The process that builds one environment: a virtual environment and what pip installs into it.

It is detached from whoever asked for it and holds the lock of the contents while it lives. Killed at any line it leaves
a tree that nobody takes for complete; the next build removes it. pip runs with the settings and variables of whoever
asked; what is built runs code of whoever wrote it, so for somebody with an account it is confined as a job is.
"""

from __future__ import annotations

import json
import os
import platform
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from oarsman.engines.hosts.core import confine, linux, process
from oarsman.engines.hosts.core.confinement import confinement
from oarsman.errors import UserError
from oarsman.job.confined import Confined, confined_by
from oarsman.job.environment import joined
from oarsman.store.environments import MPI, Contents, Result, last_error
from oarsman.text.secrets import MASK, masked, secrets_in
from oarsman.text.sentence import Text

_ASK = "import platform; print(platform.python_version())"
_NAME = re.compile(r"python3(\.\d+)?")


def find(wanted: str | None) -> str:
    """The program of that version ("3.11", "3.11.4"); None: ours. Raises UserError that tells which there are."""
    if wanted is None or _fits(platform.python_version(), wanted):
        return sys.executable
    found: dict[str, str] = {platform.python_version(): sys.executable}
    for program in _candidates(wanted):
        version = _version(program)
        if version is not None:
            found.setdefault(version, program)
            if _fits(version, wanted):
                return program
    here = ", ".join(sorted(found, key=lambda version: [int(number) for number in re.findall(r"\d+", version)]))
    hint = Text("there is {here}; put another on PATH", here=here)
    raise UserError(Text("there is no Python {wanted} on this machine", wanted=wanted), field="python", hint=hint)


def _candidates(wanted: str) -> Iterator[str]:
    """The likely ones first, because each is started to ask it."""
    minor = ".".join(wanted.split(".")[:2])
    if likely := shutil.which(f"python{minor}"):
        yield likely
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder) and os.path.isdir(folder):
            yield from (f"{folder}/{name}" for name in sorted(os.listdir(folder)) if _NAME.fullmatch(name))
    home = os.path.expanduser("~")  # where version managers keep theirs
    pyenv = os.environ.get("PYENV_ROOT", f"{home}/.pyenv")
    uv = os.environ.get("UV_PYTHON_INSTALL_DIR", f"{home}/.local/share/uv/python")
    for folder, pattern in ((f"{pyenv}/versions", ""), (uv, "cpython-")):
        yield from map(str, sorted(Path(folder).glob(f"{pattern}{minor}*/bin/python3")))


def _version(program: str) -> str | None:
    try:
        answer = subprocess.run([program, "-I", "-c", _ASK], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None


def _fits(version: str, wanted: str) -> bool:
    return version == wanted or version.startswith(f"{wanted}.")


_NOT_OURS = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
_LONGEST_VERSION = 40
_LONGEST_ANSWER = 256 << 10
_QUIET_PIP = ("--no-input", "--disable-pip-version-check")


class BuildError(Exception):
    """A command failed; its words are in the log."""


def start(
    contents: Contents,
    lock: int,
    *,
    python: str,
    requirements: str,
    mpi: str | None,
    confined: Confined | None = None,
) -> None:
    """Have it built. The lock goes with the builder, which is on its own when this returns."""
    contents.clear()
    with open(os.open(contents.requirements, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(requirements)
    more = [MPI[mpi]] if mpi else []
    with contents.log.open("ab") as log:
        subprocess.run(
            [sys.executable, "-m", "oarsman.control.environment_build", str(contents.folder), str(lock), python, *more],
            env=confined.kept(os.environ, {}) if confined is not None else None,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[lock],
            cwd="/",
            check=True,
        )


def main() -> None:
    folder, lock, python, *more = sys.argv[1:]
    if os.fork():
        os._exit(0)  # whoever started us does not wait for the build
    os.setsid()
    os.set_inheritable(int(lock), False)  # the lock is ours alone: it goes when we go
    contents = Contents(Path(folder))
    me = process.identify(os.getpid())
    contents.write_builder(os.getpid(), me.started if me else "")
    try:
        result = _build(contents, contents.tree(f"tree-{secrets.token_hex(3)}"), python, more)
    except (BuildError, OSError, ValueError, UserError) as error:
        said = last_error(contents.log.read_text(errors="replace"))
        result = Result(ready=False, message=said or str(error), built_at=datetime.now(UTC).isoformat())
    finally:
        contents.requirements.unlink(missing_ok=True)  # there may be credentials in it
    contents.write_result(result)


def _build(contents: Contents, tree: Path, python: str, more: Sequence[str]) -> Result:
    before = _before(tree, contents.requirements, python)
    _run([python, "-m", "venv", str(tree)], contents.folder, before)
    own = str(tree / "bin" / "python")
    wanted = contents.requirements.read_text()
    if wanted.strip() or more:
        words = [own, "-m", "pip", "install", *_QUIET_PIP, "-r", contents.requirements.name, *more]
        _run(words, contents.folder, before, secrets_in(joined(wanted)))
    version = _answer([own, "-c", _ASK], before).strip()[:_LONGEST_VERSION]
    listed = json.loads(_answer([own, "-m", "pip", "list", *_QUIET_PIP, "--format", "json"], before))
    if before and os.getuid() == 0:
        _own(tree)
    return Result(
        ready=True,
        tree=tree.name,
        built_at=datetime.now(UTC).isoformat(),
        python=version,
        size_bytes=sum(os.lstat(f"{folder}/{name}").st_size for folder, _, files in os.walk(tree) for name in files),
        packages=tuple(
            package
            for found in listed
            if found["name"] != "pip" and (package := f"{found['name']}=={found['version']}").isascii()
        ),
    )


def _before(tree: Path, requirements: Path, python: str) -> Sequence[str]:
    """What stands before each command: besides where jobs write it does so in the tree alone."""
    wanted = confined_by(os.environ)
    if wanted is None:
        return ()
    os.umask(0o022)  # jobs of other users may run in it
    view = confinement(wanted, shown=[os.path.dirname(os.path.dirname(os.path.realpath(python)))])
    tree.mkdir()
    if view.uid >= 0:
        for path in (tree, requirements):
            os.chown(path, view.uid, view.gid)
    return confine.words(
        view._replace(
            sealed=True,
            hidden=[*view.hidden, *confine.TEMPORARY],  # of its own
            writable=[*view.writable, str(tree)],
            shown=[*view.shown, str(requirements)],
        )
    )


def _own(tree: Path) -> None:
    """Whoever built it changes it no more: others run in it, too. Until then they can put links in the way of paths."""
    os.chown(tree, 0, 0)
    for _, folders, files, fd in os.fwalk(tree):
        for name in (*folders, *files):
            os.chown(name, 0, 0, dir_fd=fd, follow_symlinks=False)


def _run(words: Sequence[str], folder: Path, before: Sequence[str], secrets_given: Collection[str] = ()) -> None:
    """What it writes is the build log, which everybody may read. pip hides most credentials by itself; git does not."""
    shown = " ".join(words).replace(f"{folder}/", "")
    print("$", shown, flush=True)  # noqa: T201
    hide = re.compile("|".join(map(re.escape, sorted(secrets_given, key=len, reverse=True))) or "(?!)")
    with subprocess.Popen(
        [*before, *words],
        cwd=folder,
        env=_environment(),
        preexec_fn=_end_with_us,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process_:
        assert process_.stdout is not None
        for line in process_.stdout:
            print(hide.sub(MASK, masked(line)), end="", flush=True)  # noqa: T201
    code = process_.returncode
    if code != 0:
        raise BuildError(Text("{command} ended with {code}", command=" ".join(words[1:4]), code=code))


def _answer(words: Sequence[str], before: Sequence[str]) -> str:
    """Of a program that what was installed may have replaced; whoever looks at environments reads what it says."""
    with subprocess.Popen(
        [*before, *words],
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_environment(),
        preexec_fn=_end_with_us,
    ) as asked:
        assert asked.stdout is not None
        said = asked.stdout.read(_LONGEST_ANSWER)
        if asked.stdout.read(1):
            asked.kill()
    if asked.returncode != 0:
        raise BuildError(Text("{command} ended with {code}", command=" ".join(words[1:4]), code=asked.returncode))
    return said


def _end_with_us() -> None:
    """In the child: a build whose builder was killed ends too, where the system can do that."""
    if sys.platform == "linux":
        linux.end_with_parent(signal.SIGKILL)


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
    if confined_by(os.environ) is not None:
        kept["HOME"] = "/nonexistent"  # others get what the same requirements were built to: no settings of one user's
    return {**kept, "PIP_USER": "0"}  # a setting for the user's own Python, which this one is not


if __name__ == "__main__":
    main()
