"""The launch line that is sent back to a launcher elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from oarsman.engines.hosts.core.job_spec import LaunchFacts
from oarsman.engines.hosts.ssh.scripts import Composed, compose

FACTS = LaunchFacts(
    family="Open MPI 4",
    rewrite=True,
    machines=["10.0.0.1", "10.0.0.2"],
    slots=[2, 2],
    members={},
    rank=["/bin/sh", "/tmp/x/rank.sh"],
    etc="/tmp/x/l/etc/mpi",
    names={"j-worker-1": "10.0.0.2"},
    output="/tmp/x/run/o",
)
RANK = ["/bin/sh", "/tmp/x/rank.sh", "1:w:0", "input=first", "10.0.0.1", "2222"]


def composed(*words: str, own: str = "oe", name: str = "mpirun", **facts: Any) -> Composed:
    return compose(name, words, FACTS._replace(**facts), attempt="1", world="w", port="2222", own=own)


def test_every_rank_is_started_by_our_script_and_its_lines_are_tagged() -> None:
    done = composed("-n", "4", "a.out", "x y", family="Open MPI 5", output="")
    assert done.words == ["--tag-output", "-n", "4", *RANK, "a.out", "x y"]


def test_open_mpi_4_writes_what_each_rank_says_into_a_file_on_its_machine() -> None:
    done = composed("-n", "4", "a.out", "x y")
    assert done.words == ["--output-filename", "/tmp/x/run/o/w:nocopy", "-n", "4", *RANK, "a.out", "x y"]


def test_where_each_rank_goes_is_known_beforehand() -> None:
    assert composed("-n", "4", "a.out").machines == ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2")
    assert composed("-n", "3", "--map-by", "node", "a.out").machines == ("10.0.0.1", "10.0.0.2", "10.0.0.1")
    assert composed("-n", "3", "--rankfile", "r", "a.out").machines == ()


@pytest.mark.parametrize("own", ["", "o", "e"])
def test_output_that_goes_elsewhere_is_left_as_it_is(own: str) -> None:
    assert composed("-n", "2", "a.out", own=own).words == ["-n", "2", *RANK, "a.out"]


@pytest.mark.parametrize("option", ["--tag-output", "--output-filename=x", "--timestamp-output"])
def test_a_user_who_shapes_the_output_decides_about_it(option: str) -> None:
    assert composed(option, "-n", "2", "a.out").words == [option, "-n", "2", *RANK, "a.out"]


def test_hydra_has_its_own_word_for_tags() -> None:
    done = composed("-n", "2", "a.out", family="MPICH", rewrite=False, output="")
    assert done.words[:2] == ["-prepend-pattern", "[1,%r]<stdout>: "]
    assert done.by_hydra
    assert not composed("-n", "2", "a.out").by_hydra


def test_hosts_may_be_named_as_the_workers_that_they_are() -> None:
    assert "10.0.0.2:2" in composed("--host", "j-worker-1:2", "-n", "2", "a.out").words


def test_the_master_is_where_rank_0_is() -> None:
    words = composed("--host", "10.0.0.2:2", "-n", "2", "a.out").words
    assert "10.0.0.2" in words[words.index("1:w:0") :]


def test_ranks_that_may_fail_say_so() -> None:
    words = composed("--enable-recovery", "-n", "2", "a.out").words
    assert "1:w:1" in words


def test_what_was_asked_for_is_kept_in_the_words_of_the_job() -> None:
    words = ("--hostfile", f"{FACTS.etc}/hostfile", "--host", "j-worker-1:2", "-n", "2")
    asked = ("mpirun", "--hostfile", "/etc/mpi/hostfile", "--host", "j-worker-1:2", "-n", "2")
    assert composed(*words, "a.out").asked == asked
    assert composed("-n", "1", "a.out", ":", "-n", "1", "b.out").asked == ()
