"""Break the pure core in small ways, one at a time, and see whether a test notices. `make mutation` runs this.

Each change (a mutant) is made in a copy of the source, never in the work tree, and is given to the tests that run its
lines, until one fails. Which tests those are is found out first, by tracing all of them once. Mutants are chosen with a
fixed seed; --every takes all. Those that change nothing anybody could observe are listed in mutation-equivalent.txt,
each with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from mutants import FOLDERS, PACKAGE, Mutant, chosen, every_mutant

ROOT = Path(__file__).resolve().parents[1]
EQUIVALENT = Path(__file__).with_name("mutation-equivalent.txt")
CHOSEN, ENOUGH, SEED = 400, 95, 1  # mutants, percent of them that tests have to notice, and which ones
PROCESSES = 2
CALLS = 50  # of a function in one test, or one row of a table: whatever it does later it has done by then
TABLE, ROW = "whole_table", "a row"  # what calls a test of tests/for_every.py once per row; the mark of such a test
NOT_THE_COPY = 98  # exit code: another oarsman was imported
MEMORY = 2 << 30  # bytes: a mutant that takes more is noticed


# -- tests --------------------------------------------------------------------------------------------
class Tracer:
    """A plugin that keeps, per test, which lines of the core it runs, and how long it takes.

    Lines that run before the first test, when modules are imported, belong to a test without a name.
    """

    def __init__(self) -> None:
        self.runs: dict[str, list[str]] = {}  # "file:line" -> tests
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self._lines: set[tuple[str, int]] = set()
        self._files: dict[CodeType, str] = {}
        self._calls: Counter[CodeType] = Counter()
        sys.settrace(self._trace)

    def _trace(self, frame: FrameType, event: str, _: object) -> Any:
        file = self._files.get(frame.f_code)
        if file is None:
            file = self._files[frame.f_code] = self._of(frame)
        if file == ROW:
            self._calls.clear()
        if file in ("", ROW):
            return None
        if event == "call":
            self._calls[frame.f_code] += 1
            if self._calls[frame.f_code] > CALLS:
                return None
        self._lines.add((file, frame.f_lineno))
        return self._trace

    def _of(self, frame: FrameType) -> str:
        """The file below the package, if it is of the core."""
        if frame.f_back is not None and frame.f_back.f_code.co_name == TABLE:
            return ROW
        name = frame.f_code.co_filename.rpartition("/oarsman/")[2]
        return name if name.startswith(FOLDERS) else ""

    def _forget(self) -> None:
        """What a function keeps in a cache it would do only in the first test that calls it."""
        core = tuple(f"oarsman.{folder}" for folder in FOLDERS)
        for module in [module for name, module in sys.modules.items() if name.startswith(core)]:
            for kept in vars(module).values():
                if hasattr(kept, "cache_clear"):
                    kept.cache_clear()

    def _keep(self, test: str) -> None:
        for file, line in self._lines:
            self.runs.setdefault(f"{file}:{line}", []).append(test)
        self._lines.clear()
        self._calls.clear()

    def pytest_collection_finish(self) -> None:
        self._keep("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.process_time()
        self._forget()
        sys.settrace(self._trace)  # a test may have set its own
        result = yield
        self.seconds[item.nodeid] = time.process_time() - began
        self._keep(item.nodeid)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


class Only:
    """A plugin that runs these tests alone, in this order."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self.order = {test: at for at, test in enumerate(wanted)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        missing = self.order.keys() - {item.nodeid for item in items}
        changed = {test.partition("::")[0] for test in missing}  # tests made from what the mutant changes: all of them
        items[:] = [i for i in items if i.nodeid in self.order or i.nodeid.partition("::")[0] in changed]
        items.sort(key=lambda item: self.order.get(item.nodeid, len(self.order)))


def in_a_copy(copy: Path, tests: Collection[str], plugin: object) -> int:
    """Runs the tests in this process, against the copy of the source."""
    sys.path[:0] = [str(copy), str(ROOT)]
    sys.dont_write_bytecode = True
    words = ["-x", "-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    code = int(pytest.main(words, plugins=[plugin]))
    used = sys.modules["oarsman"].__file__ or ""
    return code if used.startswith(str(copy)) else NOT_THE_COPY


def forked(work: Any) -> int:
    """Starts a process that does the work and exits with what it returns."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os._exit(work())
    except BaseException:
        traceback.print_exc()
        os._exit(99)


def traced(copy: Path) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Which tests run a line, and the seconds each test takes."""

    def work() -> int:
        tracer = Tracer()
        code = in_a_copy(copy, [f"tests/{folder}" for folder in FOLDERS], tracer)
        (copy / "traced.json").write_text(json.dumps([tracer.runs, tracer.seconds]))
        if code:
            print("without any change, these tests fail:", *tracer.failed, file=sys.stderr)
        return code

    if os.waitpid(forked(work), 0)[1]:
        sys.exit("the tests have to pass before it can be seen what they notice")
    runs, seconds = json.loads((copy / "traced.json").read_text())
    return runs, seconds


class Selection:
    """The tests that concern a mutant: those that run its lines, nearest and quickest first."""

    def __init__(self, runs: dict[str, list[str]], seconds: dict[str, float]) -> None:
        self._runs, self._seconds = runs, seconds
        self._of_file: dict[str, set[str]] = {}
        for line, tests in runs.items():
            self._of_file.setdefault(line.partition(":")[0], set()).update(test.partition("::")[0] for test in tests)

    def tests(self, mutant: Mutant) -> list[str]:
        first, last = mutant.lines
        wanted = {test for line in range(first, last + 1) for test in self._runs.get(f"{mutant.file}:{line}", ())}
        home = f"tests/{mutant.file.partition('/')[0]}/"
        if "" in wanted:  # it runs at import: whoever uses the module may notice
            near = self._of_file[mutant.file]
            wanted = {test for test in self._seconds if test.startswith(home) or test.partition("::")[0] in near}
        return sorted(wanted, key=lambda t: (not t.startswith(home), self._seconds[t], t))

    def limit(self, tests: Sequence[str]) -> int:
        """CPU seconds that are more than enough for them."""
        return 10 + 3 * round(sum(self._seconds[test] for test in tests))


# -- the run ------------------------------------------------------------------------------------------
def try_one(copy: Path, mutant: Mutant, tests: Sequence[str], limit: int) -> int:
    """Starts a process that exits with 0 if no test notices the mutant."""

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))  # one that loops for ever is noticed, too
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        path = copy / "oarsman" / mutant.file
        path.write_bytes(mutant.applied((PACKAGE / mutant.file).read_bytes()))
        return in_a_copy(copy, sorted({test.partition("::")[0] for test in tests}), Only(tests))

    return forked(work)


def survivors(mutants: Sequence[Mutant], selection: Selection, copies: list[Path]) -> Iterator[Mutant]:
    running: dict[int, tuple[Mutant, Path]] = {}
    waiting = list(reversed(mutants))
    while waiting or running:
        if waiting and copies:
            mutant = waiting.pop()
            tests = selection.tests(mutant)
            if tests:
                copy = copies.pop()
                running[try_one(copy, mutant, tests, selection.limit(tests))] = mutant, copy
            else:
                yield mutant
            continue
        pid, status = os.wait()
        mutant, copy = running.pop(pid)
        shutil.copyfile(PACKAGE / mutant.file, copy / "oarsman" / mutant.file)
        copies.append(copy)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 1, 2) and code >= 0:  # 2: it could not even be imported; below 0: it was ended
            sys.exit(f"the tests could not be run ({code}): {mutant.name}")
        if code == 0:
            yield mutant


def known_equivalents() -> dict[str, str]:
    """Name of a mutant -> why nobody could observe it. The reason stands in the lines above."""
    found: dict[str, str] = {}
    reason = ""
    for line in EQUIVALENT.read_text().splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
        elif line.strip():
            found[line.strip()] = reason
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="only those in these, such as job/launch.py or plan")
    parser.add_argument("--count", type=int, default=CHOSEN, help="how many mutants, about (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed chooses others (default %(default)s)")
    parser.add_argument("--every", action="store_true", help="all mutants there are")
    asked = parser.parse_args()
    began = time.monotonic()
    os.chdir(ROOT)
    # The same examples every time; the first that fails is enough, it need not be the simplest.
    settings.register_profile(
        "mutation",
        derandomize=True,
        deadline=None,
        database=None,
        max_examples=40,
        phases=(Phase.explicit, Phase.generate),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")
    equivalent = known_equivalents()
    all_ = every_mutant()
    stale = set(equivalent) - {mutant.name for found in all_.values() for mutant in found}
    total = sum(map(len, all_.values()))
    tried = chosen(all_, total if asked.every else asked.count, asked.seed)
    tried = [m for m in tried if m.name not in equivalent and m.file.startswith(tuple(asked.files) or "")]
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder) / str(number) for number in range(PROCESSES)]
        for copy in copies:
            shutil.copytree(PACKAGE, copy / "oarsman", ignore=shutil.ignore_patterns("__pycache__"))
        selection = Selection(*traced(copies[0]))
        print(f"{len(tried)} of {total} mutants; the tests were traced in {time.monotonic() - began:.0f} s", flush=True)
        survived = []
        for mutant in survivors(tried, selection, copies):
            survived.append(mutant)
            print(f"\n{mutant.name}\n{mutant.difference()}", flush=True)
    percent = 100 * (len(tried) - len(survived)) / len(tried)
    for name in stale:
        print(f"{EQUIVALENT.name} has a mutant that no longer exists: {name}")
    print(
        f"\n{len(tried)} mutants, {len(tried) - len(survived)} noticed, {len(survived)} survived: {percent:.1f} %"
        f" in {time.monotonic() - began:.0f} s"
    )
    return int(percent < ENOUGH or bool(stale))


if __name__ == "__main__":
    sys.exit(main())
