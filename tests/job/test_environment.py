"""Named sets of packages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from oarsman.job.environment import EnvironmentWanted, digest_of

WANTED = EnvironmentWanted(name="torch", requirements="torch\nnumpy\n", python="3.11", mpi="openmpi", image="cuda")


@pytest.mark.parametrize(
    "same", [{"name": "other"}, {"description": "for all"}, {"requirements": "torch  \n\nnumpy"}], ids=str
)
def test_what_would_be_built_alike_is_built_once(same: dict[str, Any]) -> None:
    assert digest_of(replace(WANTED, **same)) == digest_of(WANTED)


def test_whatever_would_be_built_otherwise_has_a_digest_of_its_own() -> None:
    other: list[dict[str, Any]] = [{"requirements": "torch"}, {"python": "3.12"}, {"mpi": "mpich"}, {"image": "rocm"}]
    digests = {digest_of(replace(WANTED, **change)) for change in ({}, *other)}
    assert len(digests) == 5
    assert {len(digest) for digest in digests} == {32}  # it is the name of a folder: the same for everybody, always
