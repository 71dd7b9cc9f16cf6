"""Known holes in what we pin, and in the oldest that we say works: the package registry's own vulnerability data.

`make test` runs this. Where the data cannot be had (no network, or a registry without them) it says so and is content;
nothing else is asked. A hole that is no hole for us is named behind the pin: `name==1.0  # accepted: PYSEC-2026-1 why`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from packaging.requirements import Requirement
from registry import ROOT, canonical, fetched, index, pinned

_AT_ONCE = 8
Asked = tuple[str, str]  # name and version


def floors() -> set[Asked]:
    """The oldest versions that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    wanted = [Requirement(line) for line in (*project["dependencies"], *extras)]
    return {(canonical(each.name), said.version) for each in wanted for said in each.specifier if said.operator == ">="}


def accepted() -> dict[str, set[str]]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    found = [re.match(r"([\w.-]+)==\S+\s+# accepted: (\S+)", line) for line in lines]
    return {canonical(each[1]): set(each[2].split(",")) for each in found if each}


def holes(where: str, asked: Asked) -> list[Mapping[str, object]] | None:
    """None: the registry does not say. A floor may have been written shorter than its version."""
    name, version = asked
    for spelled in (version, f"{version}.0"):
        if (said := fetched(f"{where}/pypi/{name}/{spelled}/json")) is not None:
            found = json.loads(said).get("vulnerabilities")
            return None if found is None else [one for one in found if not one.get("withdrawn")]
    return None


def main() -> int:
    where = index().removesuffix("/simple")
    wanted = sorted({*pinned().items(), *floors()})
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            first = list(pool.map(lambda asked: holes(where, asked), wanted[:_AT_ONCE]))
            rest = wanted[_AT_ONCE:] if any(found is not None for found in first) else []  # none has any, then
            answers = dict(zip(wanted, [*first, *pool.map(lambda asked: holes(where, asked), rest)], strict=False))
    except (OSError, ValueError) as error:
        print(f"==> audit: NOT DONE: the package registry's vulnerability data cannot be had here ({error})")
        return 0
    known = {asked: found for asked, found in answers.items() if found is not None}
    if not known:
        print("==> audit: NOT DONE: the package registry that is used here has no vulnerability data")
        return 0
    bad = 0
    for (name, version), found in known.items():
        for one in found:
            names = {str(one.get("id")), *map(str, one.get("aliases") or ())}
            if not names & accepted().get(name, set()):
                bad += 1
                fixed = ", ".join(map(str, one.get("fixed_in") or ())) or "nothing yet"
                print(f"!!! {name} {version}: {' '.join(sorted(names))}, fixed in {fixed}")
    unsaid = len(answers) - len(known)
    print(f"==> audit: {bad} known holes in {len(known)} versions; of {unsaid} others the registry says nothing")
    return 1 if bad else 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a registry that does not answer is not waited for
