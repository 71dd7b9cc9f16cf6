"""What a host sees: folders of its own over the machine's, which it sees read-only."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

KEPT = ("/home", "/root", "/var/tmp")
FORGOTTEN = {"/tmp": "1777", "/dev/shm": "1777", "/run": "755"}  # these lie in memory, and are empty after each start
OWN = tuple(Path(folder) for folder in (*KEPT, *FORGOTTEN))


def boot_script(work: Path, visible: Sequence[Path], shared: Path) -> str:
    """For sh in the host's new world. work: where its kept files are. Only `shared` of the machine's can be written."""
    hidden = [folder for folder in (*visible, shared) if _covered_from(folder)]
    return "\n".join(
        [
            "mount --make-rprivate /",
            "mount -t tmpfs -o mode=755 tmpfs /run",
            *(
                f"mkdir -p /run/seen/{n}; mount --rbind {quote(str(path))} /run/seen/{n}"
                for n, path in enumerate(hidden)
            ),
            f"mount -t overlay -o lowerdir=/etc,upperdir={work}/etc,workdir={work}/work etc /etc",
            *(f"mount --bind {work}{folder} {folder}" for folder in KEPT),
            *(
                f"mount -t tmpfs -o mode={mode} tmpfs {folder}"
                for folder, mode in FORGOTTEN.items()
                if folder != "/run"
            ),
            "mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts /dev/pts",
            "mount -t sysfs sysfs /sys",  # the interfaces in it are those of the network it was mounted in
            *_shown_again(hidden),
            *(f"mount -o remount,bind,ro {quote(str(folder))}" for folder in (*hidden, Path("/")) if folder != shared),
            "mkdir -p /run/sshd /run/lock",
        ]
    )


def _shown_again(hidden: Sequence[Path]) -> list[str]:
    """Each at its own path, because environments name their path, and open to everybody on the way there."""
    lines: list[str] = []
    covers: list[Path] = list(OWN)
    for number, folder in enumerate(hidden):
        if not any(folder.is_relative_to(cover) for cover in covers):
            covers.append(_covered_from(folder) or folder)
            lines.append(f"mount -t tmpfs -o mode=755 tmpfs {quote(str(covers[-1]))}")
        cover = next(cover for cover in covers if folder.is_relative_to(cover))
        steps = [step for step in (*reversed(folder.parents), folder) if step != cover and step.is_relative_to(cover)]
        lines += [f"mkdir -p -m 755 {quote(str(step))}" for step in steps]
        lines.append(f"mount --rbind /run/seen/{number} {quote(str(folder))}")
        lines.append(f"umount -l /run/seen/{number}")
    return lines


def _covered_from(folder: Path) -> Path | None:
    """The first folder on the way that is the host's own or that not everybody may pass; None if it is seen anyway."""
    for step in (*reversed(folder.parents), folder):
        if step in OWN or not step.stat().st_mode & stat.S_IXOTH:
            return step
    return None
