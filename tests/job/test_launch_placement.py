"""Every row was seen with real launchers: Open MPI 4.1 and 5.0 agree on all of theirs, Hydra is MPICH 5's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from oarsman.job.job import Implementation
from oarsman.job.launch import expected_placement, parse, words_that_place
from oarsman.job.mpi import discover_hosts, hostfile

HOSTS = ("w1", "w2", "w3")


Slots = int | Sequence[int] | Mapping[str, int]


def placed(text: str, *, slots: Slots = 2, hydra: bool | None = None, hosts: tuple[str, ...] = HOSTS) -> str | None:
    line = parse(text.split())
    assert line is not None
    found = expected_placement(line, hosts, slots, hydra=hydra)
    return None if found is None else " ".join(found)


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        ("", "w1 w1 w2 w2 w3 w3"),
        ("-n 4", "w1 w1 w2 w2"),
        ("-n 4 --map-by slot", "w1 w1 w2 w2"),
        ("--map-by slot:NOOVERSUBSCRIBE -n 3", "w1 w1 w2"),
        ("--map-by node", "w1 w2 w3 w1 w2 w3"),
        ("--map-by node -n 4", "w1 w2 w3 w1"),
        ("--bynode -n 4", "w1 w2 w3 w1"),
        ("--map-by node --rank-by slot -n 4", "w1 w1 w2 w3"),
        ("--rank-by node -n 4", "w1 w2 w1 w2"),
        ("--rank-by node -n 6", "w1 w2 w3 w1 w2 w3"),
        ("-npernode 1", "w1 w2 w3"),
        ("-npernode 1 -n 2", "w1 w2"),
        ("-npernode 1 --rank-by node", "w1 w2 w3"),
        ("--map-by ppr:1:node -n 2", "w1 w2"),
        ("-N 2", "w1 w1 w2 w2 w3 w3"),
        ("-N 2 -n 3", "w1 w1 w2"),
        ("--host w2:2,w3:1", "w2 w2 w3"),
        ("--host w2:2,w3 -n 3", "w2 w2 w3"),
        ("--host w3,w1 -n 2", "w3 w1"),
        ("--host w1,w1", "w1 w1"),
        ("--hostfile /etc/mpi/hostfile -n 2", "w1 w1"),
    ],
)
def test_open_mpi_places_ranks_by_its_documented_rules(options: str, ranks: str) -> None:
    assert placed(f"mpirun {options} ./a") == ranks


@pytest.mark.parametrize(
    "options",
    [
        "-n 7",
        "-n 0",
        "-npernode 3",
        "--host w2:4 -n 3",
        "--host w9 -n 1",
        "--host w2 -n 2",
        "--oversubscribe -n 7",
        "--map-by socket",
        "--map-by core:PE=2",
        "--map-by ppr:1:socket",
        "-npersocket 1",
        "--rankfile r",
        "-n 1 ./b : -n 1",
        "-n $(NP)",
        "--hostfile /mine",
        "--cpus-per-proc 2",
        "--rank-by socket",
        "-mca rmaps seq",
        "--nolocal",
    ],
)
def test_what_the_rules_do_not_settle_is_not_guessed(options: str) -> None:
    assert placed(f"mpirun {options} ./a") is None


@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        ("-n 4", "w1 w1 w2 w2"),
        ("-n 7", "w1 w1 w2 w2 w3 w3 w1"),
        ("", "w1 w1 w2 w2 w3 w3"),
        ("-ppn 1 -n 5", "w1 w2 w3 w1 w2"),
        ("-ppn 1", "w1 w2 w3"),
        ("-ppn 3 -n 5", "w1 w1 w1 w2 w2"),
        ("-hosts w2,w3 -n 3", "w2 w3 w2"),
        ("-hosts w3:2,w1 -n 4", "w3 w3 w1 w3"),
        ("-bind-to core -map-by socket -n 3", "w1 w1 w2"),
    ],
)
def test_hydra_fills_hosts_and_starts_over(options: str, ranks: str) -> None:
    assert placed(f"mpiexec.hydra {options} ./a") == ranks
    assert placed(f"mpirun {options} ./a", hydra=True) == ranks


@pytest.mark.parametrize("options", ["-n 0", "-n -1", "-ppn 0", "-ppn -1 -n 2", "-hosts w9 -n 1", "-hosts w1:0"])
def test_what_hydra_cannot_do_is_not_predicted(options: str) -> None:
    assert placed(f"mpiexec.hydra {options} ./a") is None


def test_a_launcher_of_one_family_is_placed_by_the_rules_of_the_other_where_that_is_known() -> None:
    assert placed("mpiexec.hydra -n 7 ./a", hydra=False) is None
    assert placed("mpirun -n 7 ./a", hydra=None) is None


def test_hosts_may_be_named_by_their_first_label() -> None:
    hosts = ("pi-worker-0.pi.ns.svc", "pi-worker-1.pi.ns.svc")
    assert placed("mpirun --host pi-worker-1 ./a", hosts=hosts) == "pi-worker-1.pi.ns.svc"


def test_a_world_too_large_to_write_down_is_not_predicted() -> None:
    assert placed("mpirun ./a", slots=2**31 - 1) is None
    assert placed("mpirun -ppn 999999999 ./a", hydra=True) is None
    assert placed("mpirun -n 100001 ./a", hydra=True) is None


@pytest.mark.parametrize("hydra", [False, True])
def test_a_hundred_thousand_ranks_are_the_most_that_are_placed(hydra: bool) -> None:
    assert placed("mpirun -n 2 ./a", hosts=("w1",), slots=100_000, hydra=hydra) == "w1 w1"
    assert placed("mpirun -n 2 ./a", hosts=("w1",), slots=100_001, hydra=hydra) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/opt/bin/mpirun -n 4 --map-by node ./a -v", ("mpirun", "-n", "4", "--map-by", "node")),
        ("mpirun ./a", ("mpirun",)),
        ("mpirun -n 1 ./a : -n 1 ./b", ()),
        ("./a", ()),
    ],
)
def test_of_a_line_that_starts_one_program_the_words_that_place_its_ranks_are_kept(
    text: str, words: tuple[str, ...]
) -> None:
    assert words_that_place(parse(text.split())) == words


def test_thousands_of_hosts_are_placed_at_once() -> None:
    hosts = tuple(f"w{i}" for i in range(5000))
    line = parse(["mpirun", "./a"])
    assert line is not None
    found = expected_placement(line, hosts, 8)
    assert found is not None
    assert (len(found), found[-1]) == (40_000, "w4999")


def test_horovod_and_jobs_without_hosts_are_not_predicted() -> None:
    assert placed("horovodrun -np 2 ./a") is None
    assert placed("mpirun -np 2 ./a", hosts=()) is None


@pytest.mark.parametrize("slots", [(1, 3, 2), {"w3": 2, "w2": 3, "w1": 1, "w9": 4}])
@pytest.mark.parametrize(
    ("options", "ranks"),
    [
        ("", "w1 w2 w2 w2 w3 w3"),
        ("-n 3", "w1 w2 w2"),
        ("--map-by node", "w1 w2 w3 w2 w3 w2"),
        ("--map-by node -n 4 --rank-by slot", "w1 w2 w2 w3"),
        ("-npernode 1", "w1 w2 w3"),
        ("-npernode 2", None),
        ("--host w2:3,w1", "w2 w2 w2 w1"),
        ("--host w1:2", None),
    ],
)
def test_hosts_may_have_different_slots(options: str, ranks: str | None, slots: Slots) -> None:
    assert placed(f"mpirun {options} ./a", slots=slots) == ranks


def test_hydra_starts_over_on_hosts_with_different_slots() -> None:
    assert placed("mpiexec.hydra -n 8 ./a", slots=(1, 3, 2)) == "w1 w2 w2 w2 w3 w3 w1 w2"
    assert placed("mpiexec.hydra -n 1 ./a", slots=(0, 0, 0)) is None


def test_one_number_of_slots_for_each_host() -> None:
    with pytest.raises(ValueError, match="shorter"):
        placed("mpirun ./a", slots=(1, 2))


@pytest.mark.parametrize("slots", [{"a": 4, "b": 2}, [("b", 2), ("a", 4)]])
def test_a_hostfile_says_the_slots_of_each_host(slots: Mapping[str, int] | list[tuple[str, int]]) -> None:
    assert hostfile(Implementation.OPENMPI, ["a", "b"], slots) == "a slots=4\nb slots=2\n"
    assert hostfile(Implementation.MPICH, ["a", "b"], slots) == "a:4\nb:2\n"
    assert discover_hosts(["b", "a"], slots) == "#!/bin/sh\necho b:2\necho a:4\n"


def test_a_hostfile_takes_one_number_for_all() -> None:
    assert hostfile(Implementation.INTEL, ["a", "b"], 3) == "a:3\nb:3\n"
