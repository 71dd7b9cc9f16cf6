"""Which jobs are shown, as an address and back."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from oarsman.console.parts.job_rows import NEWEST_FIRST, JobsWanted, jobs_in
from oarsman.service.listing import Facets


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(JobsWanted(), id="everything"),
        pytest.param(
            JobsWanted(search="a & b=c", states=["Running", "Failed"]), id="words that mean something in addresses"
        ),
        pytest.param(JobsWanted(owner="<ada>", namespace="team-a", engine="kube", sort="-priority"), id="all filters"),
        pytest.param(JobsWanted(columns=("name", "namespace"), sort="cpus"), id="columns and order"),
    ],
)
def test_an_address_shows_what_it_was_made_from(wanted: JobsWanted) -> None:
    assert JobsWanted.read(QueryParams(wanted.address())) == wanted


def test_columns_that_say_the_same_for_every_job_are_left_out_unless_they_were_chosen() -> None:
    alike = Facets(["ada"], ["default"], ["local"], ["OpenMPI"], [], [0])
    assert JobsWanted().shown(alike) == ("name", "state", "workers", "resources", "created", "duration")
    differ = alike._replace(owners=["ada", "bob"], priorities=[0, 5])
    assert {*JobsWanted().shown(differ)} - {*JobsWanted().shown(alike)} == {"owner", "priority"}
    assert JobsWanted(columns=("name", "owner")).shown(alike) == ("name", "owner")


def test_nothing_special_makes_no_query() -> None:
    assert JobsWanted().address() == ""
    assert not JobsWanted().narrowed


@pytest.mark.parametrize(
    "query", ["sort=secret", "sort=--name", "state=Gone", "columns=,nothing", "view=old", "owner="]
)
def test_what_is_not_understood_is_passed_over(query: str) -> None:
    assert JobsWanted.read(QueryParams(query)) == JobsWanted()


def test_half_a_character_in_a_search_is_replaced() -> None:
    assert JobsWanted(search="\ud800x").address() == "search=%3Fx"


@pytest.mark.parametrize(
    ("column", "downwards", "sort"),
    [
        ("name", False, "name"),
        ("resources", True, "-cpus"),
        ("where", False, "engine"),
        ("duration", True, NEWEST_FIRST),
        ("nothing", False, NEWEST_FIRST),
        (None, True, NEWEST_FIRST),
        ({}, True, NEWEST_FIRST),
    ],
)
def test_a_column_is_sorted_by_its_field(column: object, downwards: bool, sort: str) -> None:
    wanted = JobsWanted(page=3)
    wanted.sort_by(column, downwards)
    assert (wanted.sort, wanted.page) == (sort, 1)


def test_a_tile_leads_to_the_jobs_in_its_state() -> None:
    wanted = JobsWanted.read(QueryParams(jobs_in("Failed").partition("?")[2]))
    assert (wanted.states, wanted.columns) == (["Failed"], ())
