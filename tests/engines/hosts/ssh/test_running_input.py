"""Standard input on SSH hosts: rank 0 has it, wherever it is; a script that launches has it itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from ssh_hosts import Rack

from ..machine import mpi_folder, mpijob
from ..test_standard_input import DIGESTS, NOTHING, SOMETHING, run
from .ssh_machine import SshMachine

pytestmark = [pytest.mark.mpi, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def submitter(shared_rack: Rack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshMachine]:
    with closing(SshMachine(tmp_path_factory.mktemp("input") / "state", shared_rack)) as machine:
        yield machine


def write_job(machine: SshMachine, mpi: str, name: str, command: list[str]) -> None:
    annotations = {"oarsman.dev/inventory": str(machine.inventory_with(mpi))}
    document = mpijob(name, command, annotations=annotations)
    (machine.folder / f"{name}.json").write_text(json.dumps(document))


def digesting(mpi: str) -> list[str]:
    return ["mpirun", "-n", "2", str(mpi_folder(mpi) / "bin/python3"), "-c", DIGESTS]


@pytest.mark.parametrize("mpi", ["openmpi5", "mpich"])
def test_rank_0_has_all_of_it_and_the_others_have_nothing(submitter: SshMachine, mpi: str) -> None:
    write_job(submitter, mpi, f"reads-{mpi}", digesting(mpi))
    done = run(submitter, f"reads-{mpi}.json", given=SOMETHING)
    assert done.returncode == 0, done.stderr
    wanted = [f"0 {hashlib.sha256(SOMETHING).hexdigest()}", f"1 {NOTHING}"]
    assert sorted(done.stdout.decode().splitlines()) == wanted


def test_in_the_background_everybody_reads_the_end_at_once(submitter: SshMachine) -> None:
    write_job(submitter, "openmpi5", "background", digesting("openmpi5"))
    submitter.ok("submit", "background.json")
    submitter.until_finished("default/background")
    assert sorted(submitter.rank_lines("default/background")) == [f"0 {NOTHING}", f"1 {NOTHING}"]


def test_a_script_reads_it_and_what_it_launches_reads_the_rest(submitter: SshMachine) -> None:
    reads = "read x; echo script $x; mpirun -n 1 cat"
    write_job(submitter, "openmpi4", "script", ["sh", "-c", reads])
    done = run(submitter, "script.json", given=b"one\ntwo\n")
    assert done.stdout.decode().splitlines() == ["script one", "two"], done.stderr
