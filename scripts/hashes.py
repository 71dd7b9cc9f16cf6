"""Hashes of the Python packages that our images install, into deploy/images/*/requirements*.txt: `make hashes`.

The versions are those of constraints.txt, the files those that pip may choose on Linux, on amd64 and arm64. Where they
are fetched from is in no file: the registry that pip is told to use has to have the same ones.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from registry import ROOT, canonical, fetched, index, pinned

IMAGES = ROOT / "deploy" / "images"
PYTHON = "3.12"  # of the operator's image; tests compare
FILES = {  # file -> what has to be there
    "operator/requirements.txt": ["oarsman[kube,console]"],
    "operator/requirements-build.txt": ["hatchling"],
    "intel/requirements.txt": ["impi-rt"],
}
_LINK = re.compile(r'href="[^"]*?/([^/"#]+)#sha256=([0-9a-f]{64})"')
_HEAD = "# Made by `make hashes` from constraints.txt. pip refuses any file that is not one of these.\n"


def closure(wanted: Iterable[str]) -> list[str]:
    """Names of all that these need, in the image; ours is not among them."""
    place = {**default_environment(), "python_version": PYTHON, "python_full_version": f"{PYTHON}.0"}
    found: dict[str, set[str]] = {}
    left = [Requirement(line) for line in wanted]
    while left:
        one = left.pop()
        name = canonical(one.name)
        extras = {"", *one.extras}
        if extras <= found.get(name, set()):
            continue
        found[name] = found.get(name, set()) | extras
        if name == "impi-rt":  # an MPI of its own, which is not installed beside ours
            continue
        for line in distribution(name).requires or ():
            need = Requirement(line)
            if need.marker is None or any(need.marker.evaluate({**place, "extra": each}) for each in found[name]):
                left.append(need)
    return sorted(found.keys() - {"oarsman"})


def fits(file: str, version: str) -> bool:
    """Whether it is a wheel of that version for the images' machines."""
    try:
        _, its, _, tags = parse_wheel_filename(file)
    except InvalidWheelFilename:
        return False
    own = f"cp{PYTHON.replace('.', '')}"
    machines = re.compile(r"any|(many)?linux.*_(x86_64|aarch64)")
    return str(its) == version and any(
        (tag.interpreter in (own, "py3") or tag.abi == "abi3") and machines.fullmatch(tag.platform) for tag in tags
    )


def lines(where: str, name: str, version: str) -> str:
    page = (fetched(f"{where}/{name}/") or b"").decode()
    hashes = sorted({sum_ for file, sum_ in _LINK.findall(page) if fits(file.replace("%2B", "+"), version)})
    if not hashes:
        sys.exit(f"hashes: the registry has no wheel of {name} {version} for Linux and Python {PYTHON}")
    return " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{each}" for each in hashes)]) + "\n"


def main(files: Sequence[str] = tuple(FILES)) -> None:
    where, versions = index(), pinned()
    for file in files:
        with ThreadPoolExecutor(8) as pool:
            found = pool.map(lambda name: lines(where, name, versions[name]), closure(FILES[file]))
            (IMAGES / file).write_text(_HEAD + "".join(found))


if __name__ == "__main__":
    main()
