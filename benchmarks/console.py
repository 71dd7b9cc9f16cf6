"""Claims: the console stays quick with 10,000 jobs, a log of 1 GB and 50 who follow one log, in little memory: every
page shows its first content at most 0.5 s later than with 10 jobs and a short log, and a thousand more pages need no
more memory.

Rivals, all measured in the same run: the same pages with 10 jobs and a short log, reading every job out of SQLite,
`tail` of the same file, a server of uvicorn and NiceGUI with one empty page. `--quick` is for seeing that it works.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle, islice

import following
from measure import Oarsman, in_turn, oarsman
from playwright.sync_api import Browser, Page
from serving import Server, bare_memory, chromium, fill, job_name, log_of, places_of, serving, visitor, write_log

NEWEST = "this is the newest line"
LINES = 500  # that are asked for at once, as the page does


@dataclass(frozen=True)
class Sizes:
    jobs: int = 10_000
    few_jobs: int = 10
    log_bytes: int = 1 << 30
    browsers: int = 5
    readers: int = 45
    lines: int = 2_000
    pace: float = 200.0  # lines a second
    rounds: int = 5
    loads: int = 1_000  # of pages, one after the other, for the memory
    before: int = 1  # rounds that do not count: scripts and styles are fetched once


QUICK = Sizes(jobs=200, log_bytes=4 << 20, browsers=1, readers=4, lines=100, rounds=1, loads=8, before=0)


JOB = f"/jobs/default/{job_name(1)}"
# What each page shows first of what it is about. Jobs and logs have measurements of their own.
PAGES = {
    "/": ".oarsman-tile",
    "/create": ".cm-line",
    "/sweeps": ".oarsman-h1",
    "/sweeps/new": ".cm-line",
    "/hosts": ".oarsman-slots",
    "/environments": ".oarsman-h1",
    "/account": ".oarsman-h1",
    "/people": ".oarsman-card td",
    f"{JOB}?tab=Summary": ".oarsman-facts",
    f"{JOB}?tab=Ranks": ".oarsman-cell",
    f"{JOB}?tab=Events": ".oarsman-table",
    f"{JOB}?tab=YAML": ".cm-line",
}


@dataclass
class Table:
    """What was found, in the form of the table in README.md."""

    rows: list[str] = field(default_factory=list)
    later: dict[str, float] = field(default_factory=dict)  # page -> how much later than with few jobs and a short log

    def page(self, name: str, much: float, what: str, little: float, other: str) -> None:
        self.later[name] = much - little
        self.add(f"{name}, {what}: {_time(much)}", f"{other}: {_time(little)}", much / little)

    def add(self, ours: str, rival: str, ratio: float) -> None:
        shown = f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}"
        self.rows.append(f"| {ours} | {rival} | {shown} |")

    def __str__(self) -> str:
        return "\n".join(["| console.py | rival | ratio |", "|---|---|---|", *self.rows])


# -- (a) many jobs ------------------------------------------------------------------------------------
def many_jobs(table: Table, sizes: Sizes, big: Server, small: Server, ours: Oarsman, browser: Browser) -> None:
    looked_at = ((big, sizes.jobs), (small, sizes.few_jobs))
    pages = [(visitor(browser, server), server, count) for server, count in looked_at]
    shows = [partial(_first_rows, *one) for one in pages]
    for show in shows * sizes.before:
        show()
    many, few = in_turn(sizes.rounds, *shows)
    table.page(
        "jobs page", many, f"{sizes.jobs:,} jobs, first rows in Chromium", few, f"the same page, {sizes.few_jobs} jobs"
    )
    for path, first in PAGES.items():
        shows = [partial(_first_content, page, server, path, first) for page, server, _ in pages]
        for show in shows * sizes.before:
            show()
        many, few = in_turn(sizes.rounds, *shows)
        table.page(f"`{path}`", many, f"{sizes.jobs:,} jobs, first content", few, f"{sizes.few_jobs} jobs")
    listed, scanned = in_turn(sizes.rounds * 4, lambda: big.get("/jobs", limit=50), lambda: _everything_as_json(ours))
    table.add(
        f"`GET /jobs`, 50 of {sizes.jobs:,}: {_time(listed)}",
        f"all of them out of SQLite as JSON: {_time(scanned)}",
        listed / scanned,
    )
    for page, _, _ in pages:
        page.context.close()


def _first_rows(page: Page, server: Server, count: int) -> None:
    page.goto(f"{server.address}/jobs", wait_until="commit")
    page.get_by_text(job_name(count - 1), exact=True).first.wait_for()


def _first_content(page: Page, server: Server, path: str, first: str) -> None:
    page.goto(f"{server.address}{path}", wait_until="commit")
    page.locator(first).first.wait_for()


def _everything_as_json(ours: Oarsman) -> str:
    """What a client gets that has to be told everything: each document and status, read and written again."""
    database = sqlite3.connect(places_of(ours).database)
    try:
        rows = database.execute("SELECT document, status FROM jobs ORDER BY created_at DESC")
        return json.dumps({"items": [{**json.loads(one), "status": json.loads(two)} for one, two in rows]})
    finally:
        database.close()


# -- (b) a long log -----------------------------------------------------------------------------------
def long_log(table: Table, sizes: Sizes, server: Server, ours: Oarsman, browser: Browser) -> None:
    long, short = job_name(0), job_name(1)
    path = log_of(ours, long)
    write_log(path, sizes.log_bytes, NEWEST)
    write_log(log_of(ours, short), LINES * 60, NEWEST)
    words = ["tail", "-n", str(LINES), str(path)]
    opened, tailed = in_turn(
        sizes.rounds * 4,
        lambda: server.get(f"/jobs/default/{long}/log", limit=LINES),
        lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True),
    )
    size = f"{path.stat().st_size / 2**30:.2g} GiB"
    table.add(
        f"the last {LINES} lines of a log of {size} over REST: {_time(opened)}",
        f"`tail -n {LINES}` of it: {_time(tailed)}",
        opened / tailed,
    )
    page = visitor(browser, server)
    shows = [partial(_newest_line, page, server, name) for name in (long, short)]
    for show in shows * sizes.before:
        show()
    far, near = in_turn(sizes.rounds, *shows)
    table.page("its page", far, "until the newest line is shown", near, f"the same page, a log of {LINES} lines")
    page.context.close()
    path.unlink()


def _newest_line(page: Page, server: Server, name: str) -> None:
    page.goto(f"{server.address}/jobs/default/{name}?tab=Logs", wait_until="commit")
    page.get_by_role("log").get_by_text(NEWEST).wait_for()


# -- (c) many who follow one log ----------------------------------------------------------------------
def many_readers(table: Table, sizes: Sizes, server: Server, ours: Oarsman, browser: Browser) -> None:
    def talk(name: str) -> following.Talker:
        return following.talker(ours, name, sizes.pace, sizes.lines)

    alone = following.through_console(server, browser, talk("alone"), browsers=0, others=1)
    crowd = following.through_console(server, browser, talk("crowd"), browsers=sizes.browsers, others=sizes.readers)
    count = sizes.browsers + sizes.readers
    tails = following.with_tail(ours, talk("tails"), count)
    thousands = sizes.lines / 1000
    table.add(
        f"{count} follow one log ({sizes.browsers} in Chromium, {sizes.readers} over HTTP), {sizes.pace:.0f} lines/s:"
        f" {crowd.processor_seconds / thousands:.2f} s of the server's processor time per 1,000 lines",
        f"one who follows it, {count} times: {count} x {alone.processor_seconds / thousands:.2f} s",
        crowd.processor_seconds / max(alone.processor_seconds * count, 0.01),
    )
    table.add(
        "the same",
        f"{count} `tail -F`: {tails.processor_seconds / thousands:.2f} s",
        crowd.processor_seconds / max(tails.processor_seconds, 0.01),
    )
    table.add(
        f"how late lines come over HTTP: median {_time(crowd.median)}, at most {_time(crowd.most)};"
        f" the last on a screen in Chromium: {_time(max(crowd.shown))}",
        f"`tail -F`: median {_time(tails.median)}, at most {_time(tails.most)}",
        crowd.median / tails.median,
    )


# -- (d) many pages -----------------------------------------------------------------------------------
def many_pages(sizes: Sizes, server: Server, browser: Browser) -> None:
    """One after the other; each is there, with its connection, before the next one is opened."""
    page = visitor(browser, server)
    for path in islice(cycle(("/jobs", f"{JOB}?tab=Logs", *PAGES)), sizes.loads):
        page.goto(f"{server.address}{path}")
        page.wait_for_function("window.did_handshake")
    page.context.close()


# -- (e) memory ---------------------------------------------------------------------------------------
def memory(table: Table, sizes: Sizes, seen: dict[str, int]) -> None:
    rival = bare_memory()
    for what, amount in seen.items():
        table.add(
            f"the server's memory {what}: {_mebibytes(amount)}",
            f"uvicorn and NiceGUI with an empty page: {_mebibytes(rival)}",
            amount / rival,
        )


def _time(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2g} ms"


def _mebibytes(amount: int) -> str:
    return f"{amount / 2**20:.0f} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it works, not to claim anything")
    sizes = QUICK if parser.parse_args().quick else Sizes()
    before, table = os.getloadavg()[0], Table()
    with oarsman() as ours, oarsman() as others, chromium() as browser:
        fill(others, sizes.few_jobs)
        fill(ours, sizes.jobs)
        with serving(others) as small:
            started = small.knows(sizes.few_jobs)
            with serving(ours) as big:
                ready = big.knows(sizes.jobs)
                seen = {f"at the start, {sizes.few_jobs} jobs": small.memory, f"with {sizes.jobs:,} jobs": big.memory}
                many_jobs(table, sizes, big, small, ours, browser)
                seen["after each page was opened a few times"] = big.memory
                long_log(table, sizes, big, ours, browser)
                seen["after the long log"] = big.memory
                for share in ("half of", "all"):
                    many_pages(replace(sizes, loads=sizes.loads // 2), big, browser)
                    seen[f"after {share} {sizes.loads:,} pages"] = big.memory
                many_readers(table, sizes, big, ours, browser)
                seen["after all who followed"] = big.memory
    table.add(
        f"from the start of the server until it lists {sizes.jobs:,} jobs: {_time(ready)}",
        f"{sizes.few_jobs} jobs: {_time(started)}",
        ready / started,
    )
    memory(table, sizes, seen)
    latest = max(table.later, key=lambda name: table.later[name])
    sys.stdout.write(f"{table}\n\nmost that any page came later: {table.later[latest]:.2f} s ({latest})\n")
    sys.stdout.write(f"load of the machine before: {before:.1f}, afterwards: {os.getloadavg()[0]:.1f}\n")


if __name__ == "__main__":
    main()
