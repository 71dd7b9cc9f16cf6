"""Whatever ranks on SSH hosts write is in the log, byte for byte, however they end. Open MPI 4 needs help with that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from ssh_hosts import Rack

from oarsman.backends.base import LogQuery

from ..machine import mpi_folder, mpijob
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]

OPEN_MPI_4 = ("debian", "openmpi4")
SHORT = b"".join(b"%d\n" % number for number in range(5000))
# Each is what one rank writes to its stdout, in as few pieces as the system takes.
WRITTEN = {
    "short lines": SHORT,
    "empty lines": b"\n" * 10_000,
    "no new line at the end": SHORT + b"last words",
    "one byte": b"x",
    "carriage returns": b"".join(b"%d%%\r" % number for number in range(5000)) + b"\n",
    "long lines": (b"x" * 100_000 + b"\n") * 3,
    "no lines": b"y" * 300_000,
    "all bytes": bytes(range(256)) * 100,
    "five megabytes": b"".join(b"line %d of a program that has much to say\n" % number for number in range(115_000)),
}
COMPLAINTS = [f"complaint of {rank}".encode() for rank in range(len(WRITTEN))]  # to its stderr
# Kept in the copied folder by the name of its rank.
WRITES = """\
import os, sys
def write(fd, data):
    while data:
        data = data[os.write(fd, data):]
write(2, b"complaint of " + os.environ["RANK"].encode())
with open(os.environ["RANK"], "rb") as file:
    write(1, file.read())
"""
# The last rank dies when all have written; the others would wait for ever.
DIES = (
    WRITES
    + """\
import signal
from mpi4py import MPI
world = MPI.COMM_WORLD
world.Barrier()
if world.rank == world.size - 1:
    os.kill(os.getpid(), signal.SIGKILL)
signal.pause()
"""
)
WAITS = (
    WRITES
    + """\
import signal
write(1, b"\\nnow\\n")
signal.pause()
"""
)


@pytest.fixture(scope="module")
def submitter(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    with closing(SshMachine(tmp_path_factory.mktemp("output") / "state", shared_rack)) as machine:
        for rank, data in enumerate(WRITTEN.values()):
            (machine.folder / str(rank)).write_bytes(data)
        for name, program in (("writes", WRITES), ("dies", DIES), ("waits", WAITS)):
            (machine.folder / f"{name}.py").write_text(program)
        for mpi in OPEN_MPI_4:
            machine.submit(job(machine, "writes", mpi))
        machine.submit(job(machine, "dies", "debian"))
        yield machine


def job(machine: SshMachine, program: str, mpi: str) -> dict[str, Any]:
    """As many ranks as there are things to write, on all hosts."""
    count = len(WRITTEN)
    python = str(mpi_folder(mpi) / "bin/python3")
    words = ["mpirun", "--oversubscribe", "-n", str(count), python, f"{program}.py"]
    annotations = {"oarsman.dev/inventory": str(machine.inventory_with(mpi))}
    return mpijob(f"{program}-{mpi}", words, workers=4, slots=2, annotations=annotations)


def kept(submitter: SshMachine, name: str, stream: str = "out") -> dict[str, bytes]:
    logs = submitter.paths.job(submitter.uid(f"default/{name}")) / "logs/attempt-1"
    return {what: (logs / f"rank-{rank}.{stream}").read_bytes() for rank, what in enumerate(WRITTEN)}


@pytest.mark.parametrize("what", WRITTEN)
@pytest.mark.parametrize("mpi", OPEN_MPI_4)
def test_what_a_rank_writes_is_kept_byte_for_byte(mpi: str, what: str, submitter: SshMachine) -> None:
    submitter.until_finished(f"default/writes-{mpi}")
    found = kept(submitter, f"writes-{mpi}")[what]
    assert len(found) == len(WRITTEN[what])
    assert found == WRITTEN[what]


@pytest.mark.parametrize("mpi", OPEN_MPI_4)
def test_streams_are_kept_apart(mpi: str, submitter: SshMachine) -> None:
    submitter.until_finished(f"default/writes-{mpi}")
    assert list(kept(submitter, f"writes-{mpi}", "err").values()) == COMPLAINTS


@pytest.mark.parametrize("mpi", OPEN_MPI_4)
def test_every_line_is_that_of_its_rank_and_worker(mpi: str, submitter: SshMachine) -> None:
    record = submitter.until_finished(f"default/writes-{mpi}")
    lines = list(submitter.jobs.logs(record.job.key, LogQuery(ranks=(0,))))
    assert [line.text for line in lines if line.stream == "out"] == SHORT.decode().splitlines()
    assert {line.host for line in lines} == {record.status.placement[0]}


def test_what_ranks_wrote_before_one_was_killed_is_kept(submitter: SshMachine) -> None:
    status = submitter.until_finished("default/dies-debian").status
    assert status.cause is not None
    assert f"rank {len(WRITTEN) - 1} " in status.cause.summary
    assert {what: len(data) for what, data in kept(submitter, "dies-debian").items()} == {
        what: len(data) for what, data in WRITTEN.items()
    }
    assert kept(submitter, "dies-debian") == WRITTEN
    assert list(kept(submitter, "dies-debian", "err").values()) == COMPLAINTS  # no shell adds its own


def test_what_ranks_write_is_there_while_they_run(submitter: SshMachine) -> None:
    key = submitter.submit(job(submitter, "waits", "debian"))
    submitter.until(key, lambda status: bool(status.attempts) or status.finished)
    heard: set[int | None] = set()
    for line in submitter.jobs.logs(key, LogQuery(follow=True)):
        heard |= {line.rank} if line.text == "now" else set()
        if len(heard) == len(WRITTEN):
            break
    assert kept(submitter, "waits-debian") == {what: data + b"\nnow\n" for what, data in WRITTEN.items()}
    submitter.jobs.stop(key)
    submitter.until_finished(key)


# Whoever starts this rank, and reads what it writes, makes no step until the rank has long ended.
FAILS_UNREAD = """
[ "$RANK" = "$1" ] || exec sleep 600
read -r _ _ _ starter _ </proc/$PPID/stat
setsid sh -c "sleep 3; kill -CONT $starter" </dev/null >/dev/null 2>&1 &
kill -STOP "$starter"
echo "loss: 3.1"
exit 3
"""


@pytest.mark.parametrize("rank", [0, 1], ids=["beside mpirun", "elsewhere"])
def test_what_a_rank_wrote_before_it_failed_is_kept_on_a_busy_host(rank: int, submitter: SshMachine) -> None:
    mpi = OPEN_MPI_4[0]
    words = ["mpirun", "-n", "4", "sh", "-c", FAILS_UNREAD, "fails", str(2 * rank)]
    annotations = {"oarsman.dev/inventory": str(submitter.inventory_with(mpi)), "oarsman.dev/code": "none"}
    key = submitter.submit(mpijob(f"unread-{rank}", words, slots=2, annotations=annotations))
    status = submitter.until_finished(key).status
    assert status.cause is not None
    assert f"rank {2 * rank} " in status.cause.summary
    assert submitter.rank_lines(key) == ["loss: 3.1"], submitter.log_of(key)


def test_nothing_stays_on_any_host(submitter: SshMachine) -> None:
    submitter.until_all_finished()
    submitter.nothing_left()
