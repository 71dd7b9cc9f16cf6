"""A place like a container for the scripts of a job: /run, /etc, /opt and /dev of its own, and shims on PATH."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from oarsman.engines.kube.objects.config_map import script

SCRIPTS = Path(__file__).parents[3] / "src" / "oarsman" / "engines" / "kube" / "scripts"
PATIENCE = 180
_SETUP = """\
set -e
mount --bind {place}/run /run
mount --bind {place}/etc /etc
mount --bind {place}/opt /opt
touch {place}/dev/null
mount --bind /dev/null {place}/dev/null
[ ! -e /usr/sbin/sshd ] || mount --bind /dev/null /usr/sbin/sshd
mount --rbind {place}/dev /dev
cd /
exec env -i PATH={place}/bin:/usr/bin:/bin {environment} {command}
"""
# What a shim does for a host is a script called after it. Every call is written down.
_SSH = """\
#!/bin/sh
line=$(echo "$*" | tr "\\n" " ")
echo "${{line% }}" >>{place}/calls
for word in "$@"; do
    case $word in -F | -o | -p) skip=yes; continue ;; -*) continue ;; esac
    if [ -n "$skip" ]; then skip=; continue; fi
    host=${{word%%.*}}
    break
done
for last in "$@"; do :; done
export last
if [ -e "{place}/hosts/$host" ]; then . "{place}/hosts/$host"; else
    echo "ssh: Could not resolve hostname $host: Name or service not known" >&2
    exit 255
fi
"""
_KUBECTL = """\
#!/bin/sh
line=$(echo "$*" | tr "\\n" " ")
echo "${{line% }}" >>{place}/calls
shift
host=$1
for last in "$@"; do :; done
export last
if [ -e "{place}/hosts/$host" ]; then . "{place}/hosts/$host"; else
    echo "Error from server (NotFound): pods \\"$host\\" not found" >&2
    exit 1
fi
"""


class Sandbox:
    def __init__(self, place: Path) -> None:
        self.place = place
        for folder in ("run/oarsman", "etc/mpi", "etc/oarsman", "opt/kube", "dev", "bin", "hosts"):
            (place / folder).mkdir(parents=True)
        for file in SCRIPTS.iterdir():
            if file.suffix == ".sh":
                copy = place / "etc/mpi" / file.name
                copy.write_text(script(file.name))
                copy.chmod(0o555)
        (place / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (place / "etc/group").write_text("root:x:0:\n")
        (place / "calls").touch()
        self.program("bin/ssh", _SSH.format(place=place))
        self.program("opt/kube/kubectl", _KUBECTL.format(place=place))
        for folder in (place, place / "run", place / "run/oarsman"):
            folder.chmod(0o777)

    def program(self, path: str, text: str) -> None:
        (self.place / path).write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        (self.place / path).chmod(0o755)

    def host(self, name: str, does: str) -> None:
        """What happens when somebody logs in there."""
        (self.place / "hosts" / name).write_text(does + "\n")

    def file(self, path: str, text: str) -> None:
        (self.place / path).parent.mkdir(parents=True, exist_ok=True)
        (self.place / path).write_text(text)

    def read(self, path: str) -> str:
        found = self.place / path
        return found.read_text() if found.exists() else ""

    @property
    def calls(self) -> list[str]:
        return self.read("calls").splitlines()

    def command(self, script: str, *words: str, user: int = 0, **environment: str) -> list[str]:
        given = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        become = f"setpriv --reuid={user} --regid=0 --clear-groups " if user else ""
        line = become + shlex.join(["/bin/sh", f"/etc/mpi/{script}", *words])
        setup = _SETUP.format(place=self.place, environment=given, command=line)
        root = [] if os.geteuid() == 0 else ["--map-root-user"]
        return ["unshare", *root, "--mount", "--pid", "--fork", "--mount-proc", "sh", "-c", setup]

    def run(self, script: str, *words: str, user: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(script, *words, user=user, **environment),
            text=True,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            stdin=subprocess.DEVNULL,
        )
