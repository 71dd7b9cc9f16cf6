"""Claims: a job on SSH hosts starts little later than by mpirun, its lines cost little, many hosts are checked as one.

Rivals, measured in turn on the same hosts: `ssh node1 mpirun --hostfile ...` among hosts that trust each other, for
each MPI, told which network to use; and, for `hosts check`, the same with a quarter of the hosts. The hosts are
namespaces of this machine, each with an sshd, and share its cores. `--quick` is for seeing that it works.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count, pairwise
from pathlib import Path
from typing import TypeVar

import yaml
from measure import ROOT, Oarsman, in_turn, oarsman, seconds

sys.path.append(str(ROOT / "tests"))
from ssh_hosts import Rack, rack

from oarsman import names

T = TypeVar("T")
MPIS = {  # how each is told, by its own words, what Oarsman finds out by itself: hosts, and the network between them
    "openmpi4": "--hostfile hosts --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0",
    "openmpi5": "--hostfile hosts --prtemca prte_if_include eth0",
    "mpich": "-f machines",
}
TITLES = {"openmpi4": "Open MPI 4", "openmpi5": "Open MPI 5", "mpich": "MPICH"}
SLOTS = 2
PATIENCE_SECONDS = 60


@dataclass(frozen=True)
class Sizes:
    rounds: int = 5
    cold_rounds: int = 3
    lines: int = 100_000
    hosts: int = 16
    run_on: int = 4  # of these hosts, in each job


QUICK = Sizes(rounds=1, cold_rounds=1, lines=800, hosts=4, run_on=2)


@dataclass
class Table:
    """What was found, in the form of the table in README.md."""

    rows: list[str] = field(default_factory=list)

    def add(self, ours: str, rival: str, ratio: float) -> None:
        self.rows.append(f"| {ours} | {rival} | {ratio:.2g} |")

    def __str__(self) -> str:
        return "\n".join(["| ssh.py | rival | ratio |", "|---|---|---|", *self.rows])


@dataclass
class Racked:
    """Jobs on the first hosts of an inventory, and the same commands by mpirun alone."""

    ours: Oarsman
    hosts: Rack
    mpi: str
    run_on: int
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.ours.environment |= {"HOME": str(self.hosts.home)}

    @property
    def ranks(self) -> int:
        return self.run_on * SLOTS

    def job(self, command: Sequence[str]) -> tuple[str, str]:
        """Its name and its file."""
        name = f"{self.mpi}-{next(self.numbers)}"
        line = ["mpirun", "-n", str(self.ranks), *command]
        file = Path(self.ours.manifest(name, command=line, workers=self.run_on, slots=SLOTS))
        document = yaml.safe_load(file.read_text())
        document["metadata"]["annotations"] = {"oarsman.dev/code": "none"}
        for role in document["spec"]["mpiReplicaSpecs"].values():  # as many slots as it has ranks
            role["template"]["spec"]["containers"][0].pop("resources", None)
        file.write_text(json.dumps(document))
        return name, str(file)

    def oarsman(self, *words: str) -> list[str]:
        return ["oarsman", "--on", "ssh", "--hosts", str(self.inventory), *words]

    @property
    def inventory(self) -> Path:
        return inventory_of(self.ours, self.hosts, self.run_on, self.mpi)

    def clear(self, name: str) -> None:
        """Its hosts are free for the next one, which would wait for that otherwise."""
        self.ours("delete", "--yes", "--wait", name)

    def mpirun(self, command: Sequence[str]) -> list[str]:
        line = f"{ROOT}/.mpi/{self.mpi}/bin/mpirun {MPIS[self.mpi]} -n {self.ranks} {' '.join(command)}"
        return ["ssh", "-F", str(self.hosts.ssh_config), "-o", "BatchMode=yes", "node1", line]

    def steps_of(self, name: str) -> dict[str, datetime]:
        listed = subprocess.run(
            self.oarsman("get", name, "-o", "json"), env=self.ours.environment, capture_output=True, check=True
        )
        found = json.loads(listed.stdout)["status"]["timeline"]
        return {step: datetime.fromisoformat(at) for step, at in found.items()}


def inventory_of(ours: Oarsman, hosts: Rack, number: int, mpi: str) -> Path:
    """Written once: a file that changed has the hosts asked again."""
    file = ours.folder / f"{mpi}-{number}.json"
    if file.exists():
        return file
    names = [{"name": host.name, "slots": SLOTS} for host in hosts[:number]]
    folder = str(ROOT / ".mpi" / mpi)
    file.write_text(json.dumps({"sshConfig": str(hosts.ssh_config), "defaults": {"mpi": folder}, "hosts": names}))
    return file


def trust(hosts: Rack, run_on: int) -> None:
    """What mpirun needs: hosts that let each other in, and lists of them in its own form."""
    hosts.trust()
    for name, form in (("hosts", "{} slots={}\n"), ("machines", "{}:{}\n")):
        text = "".join(form.format(host.name, SLOTS) for host in hosts[:run_on])
        hosts[0].write(f"/home/rower/{name}", text, "rower")


# -- starting -----------------------------------------------------------------------------------------
def until_all_spoke(command: Sequence[str], environment: dict[str, str], ranks: int) -> float:
    """Seconds until a line of every rank is here; the end is waited for as well."""
    start = time.perf_counter()
    with subprocess.Popen(
        ["timeout", str(PATIENCE_SECONDS), *command],
        env=environment,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = [time.perf_counter() for line in process.stdout if line.rstrip().endswith("begun")]
        _, complaints = process.communicate()
    if process.returncode != 0 or len(said) != ranks:
        raise Unfinished(f"{' '.join(command)}: {process.returncode} after {len(said)} lines:\n{complaints}")
    return said[-1] - start


class Unfinished(Exception):
    """A run that came to nothing."""


def once_more(action: Callable[[], T]) -> T:
    """For the rival, which now and then hangs at its own start or end: what one that did not says, and a note."""
    try:
        return action()
    except Unfinished as unfinished:
        print(f"not counted: {unfinished}")
        return action()


def starting(table: Table, sizes: Sizes, racked: Racked) -> None:
    say = ["echo", "begun"]
    environment = racked.ours.environment
    taken: list[dict[str, datetime]] = []

    def run() -> float:
        name, file = racked.job(say)
        spoke = until_all_spoke(racked.oarsman("run", file), environment, racked.ranks)
        taken.append(racked.steps_of(name))
        racked.clear(name)
        return spoke

    def cold() -> float:
        racked.ours("supervisor", "stop")
        racked.inventory.touch()
        return run()

    def asking() -> float:
        racked.inventory.touch()
        return run()

    def mpirun() -> float:
        return once_more(lambda: until_all_spoke(racked.mpirun(say), environment, racked.ranks))

    first = medians(sizes.cold_rounds, cold, mpirun)
    asked = medians(sizes.cold_rounds, asking, mpirun)
    taken.clear()
    warm = medians(sizes.rounds, run, mpirun)
    title = TITLES[racked.mpi]
    theirs = f"`mpirun --hostfile` on node1, {title}: {{:.2f}} s"
    what = f"{racked.ranks} ranks on {racked.run_on} hosts until the last one spoke, {title}"
    table.add(f"{what}: {warm[0]:.2f} s", theirs.format(warm[1]), warm[0] / warm[1])
    for whose, (ours, rival) in (("hosts to ask", asked), ("a supervisor to start and hosts to ask", first)):
        table.add(f"the same, with {whose} first: {ours:.2f} s", theirs.format(rival), ours / rival)
    launch = statistics.median(between(steps, names.STEP_ADMITTED, names.STEP_FIRST_OUTPUT) for steps in taken)
    table.add(f"of it from admission to the first line: {launch:.2f} s", theirs.format(warm[1]), launch / warm[1])
    print(f"{title}, warm, median of each step: {where_time_goes(taken)}")


def where_time_goes(steps: Sequence[dict[str, datetime]]) -> str:
    return ", ".join(
        f"{after} +{statistics.median(between(one, before, after) for one in steps):.2f} s"
        for before, after in pairwise(names.STEPS)
    )


def between(steps: dict[str, datetime], before: str, after: str) -> float:
    return (steps[after] - steps[before]).total_seconds()


def medians(rounds: int, *actions: Callable[[], float]) -> list[float]:
    """Of what the actions say that they took, in turn, so that a busy moment hits all of them."""
    taken = [[action() for action in actions] for _ in range(rounds)]
    return [statistics.median(mine) for mine in zip(*taken, strict=True)]


# -- lines --------------------------------------------------------------------------------------------
def talking(table: Table, sizes: Sizes, racked: Racked) -> None:
    """A start costs the same whatever is said: it is taken off."""
    stored, rival = racked.ours.folder / "stored", racked.ours.folder / "rival"
    kept: list[str] = []

    def engine(lines: int) -> None:
        name, file = racked.job(["seq", str(lines // racked.ranks)])
        kept.append(name)
        subprocess.run(
            racked.oarsman("submit", "--wait", file), env=racked.ours.environment, check=True, capture_output=True
        )

    def mpirun(lines: int) -> float:
        command = racked.mpirun(["seq", str(lines // racked.ranks)])
        with rival.open("w") as out:
            began = time.perf_counter()
            done = subprocess.run(["timeout", str(PATIENCE_SECONDS), *command], check=False, stdout=out)
            took = time.perf_counter() - began
        if done.returncode != 0:
            raise Unfinished(f"{' '.join(command)}: {done.returncode}")
        return took

    much, little = sizes.lines, racked.ranks
    mine, theirs, start, their_start = medians(
        sizes.rounds,
        lambda: seconds(lambda: engine(much)),
        lambda: once_more(lambda: mpirun(much)),
        lambda: seconds(lambda: engine(little)),
        lambda: once_more(lambda: mpirun(little)),
    )
    with stored.open("w") as out:
        subprocess.run(racked.oarsman("logs", kept[-2]), env=racked.ours.environment, check=True, stdout=out)
    arrived = sum(1 for line in stored.read_text().splitlines() if line.rsplit(None, 1)[-1].isdigit())
    ours_each, theirs_each = ((all_ - none) / much * 1e6 for all_, none in ((mine, start), (theirs, their_start)))
    table.add(
        f"{much:,} lines of {racked.ranks} ranks, {arrived:,} arrived: {mine:.2f} s, of which {start:.2f} s to start",
        f"`mpirun > file`: {theirs:.2f} s, of which {their_start:.2f} s",
        mine / theirs,
    )
    table.add(
        f"one line, the start taken off: {ours_each:.1f} µs",
        f"the same by mpirun: {theirs_each:.1f} µs",
        ours_each / theirs_each,
    )


# -- checking -----------------------------------------------------------------------------------------
def checking(table: Table, sizes: Sizes, ours: Oarsman, hosts: Rack) -> None:
    def check(number: int) -> None:
        inventory = inventory_of(ours, hosts, number, "openmpi5")
        done = subprocess.run(
            ["oarsman", "hosts", "check", "--hosts", inventory],
            env=ours.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(f"hosts check of {number} ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    few = sizes.hosts // 4
    many_took, few_took = in_turn(sizes.cold_rounds, lambda: check(sizes.hosts), lambda: check(few))
    table.add(
        f"`hosts check` of {sizes.hosts} hosts: {many_took:.1f} s",
        f"of {few} hosts: {few_took:.1f} s",
        many_took / few_took,
    )


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--quick", action="store_true")
    sizes = QUICK if asked.parse_args().quick else Sizes()
    table = Table()
    made = count()
    with rack(sizes.hosts) as hosts, oarsman() as ours:
        trust(hosts, sizes.run_on)
        for mpi in MPIS:
            starting(table, sizes, Racked(ours, hosts, mpi, sizes.run_on, made))
        talking(table, sizes, Racked(ours, hosts, "openmpi5", sizes.run_on, made))
        checking(table, sizes, ours, hosts)
    print(f"\n{table}\n\nload of the machine at the end: {os.getloadavg()[0]:.0f}")


if __name__ == "__main__":
    main()
