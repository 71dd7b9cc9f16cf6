"""Which jobs are shown, as an address and back."""

from __future__ import annotations

import pytest
from starlette.datastructures import QueryParams

from oarsman.console.parts.job_query import NEWEST_FIRST, USUAL_COLUMNS, Wanted, jobs_in


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(Wanted(), id="everything"),
        pytest.param(
            Wanted(search="a & b=c", states=["Running", "Failed"]), id="words that mean something in addresses"
        ),
        pytest.param(Wanted(owner="<ada>", namespace="team-a", engine="kube", sort="-priority"), id="all filters"),
        pytest.param(Wanted(columns=("name", "namespace"), sort="cpus"), id="columns and order"),
    ],
)
def test_an_address_shows_what_it_was_made_from(wanted: Wanted) -> None:
    assert Wanted.read(QueryParams(wanted.address())) == wanted


def test_nothing_special_makes_no_query() -> None:
    assert Wanted().address() == ""
    assert not Wanted().narrowed


@pytest.mark.parametrize(
    "query", ["sort=secret", "sort=--name", "state=Gone", "columns=,nothing", "view=old", "owner="]
)
def test_what_is_not_understood_is_passed_over(query: str) -> None:
    assert Wanted.read(QueryParams(query)) == Wanted()


def test_half_a_character_in_a_search_is_replaced() -> None:
    assert Wanted(search="\ud800x").address() == "search=%3Fx"


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
    wanted = Wanted(cursors=[None, "x"])
    wanted.sort_by(column, downwards)
    assert (wanted.sort, wanted.cursors) == (sort, [None])


def test_a_tile_leads_to_the_jobs_in_its_state() -> None:
    wanted = Wanted.read(QueryParams(jobs_in("Failed").partition("?")[2]))
    assert (wanted.states, wanted.columns) == (["Failed"], USUAL_COLUMNS)
