"""Who may do what: the whole table."""

from __future__ import annotations

import pytest

from oarsman.errors import ForbiddenError
from oarsman.service.models import Identity, Role
from oarsman.service.rights import Action, may, require

OWN, OTHERS, NOBODYS = "ann", "ben", None

TABLE = {
    #                       viewer               user                 admin
    #                       own others nobody's  own others nobody's  own others nobody's
    Action.LOOK: ((1, 1, 1), (1, 1, 1), (1, 1, 1)),
    Action.SEE: ((1, 1, 1), (1, 0, 0), (1, 1, 1)),
    Action.CREATE: ((0, 0, 0), (1, 0, 1), (1, 1, 1)),
    Action.CHANGE: ((0, 0, 0), (1, 0, 0), (1, 1, 1)),
    Action.EXAMINE: ((0, 0, 0), (0, 0, 0), (1, 1, 1)),
    Action.TOKENS: ((1, 0, 0), (1, 0, 0), (1, 1, 1)),
    Action.ADMINISTER: ((0, 0, 0), (0, 0, 0), (1, 1, 1)),
}


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize(("column", "role"), list(enumerate([Role.VIEWER, Role.USER, Role.ADMIN])))
def test_the_table(action: Action, column: int, role: Role) -> None:
    ann = Identity(name="ann", role=role)
    found = tuple(int(may(ann, action, owner)) for owner in (OWN, OTHERS, NOBODYS))
    assert found == TABLE[action][column]


@pytest.mark.parametrize("owner", ["", "Ann", "ann ", "an"])
def test_a_name_that_is_nearly_ones_own_is_somebody_else(owner: str) -> None:
    assert not may(Identity(name="ann", role=Role.USER), Action.CHANGE, owner)


def test_a_job_without_an_owner_is_not_of_somebody_without_a_name() -> None:
    assert not may(Identity(name="ann", role=Role.USER), Action.SEE, "")


def test_a_refusal_says_who_may_not_do_what() -> None:
    with pytest.raises(ForbiddenError, match="ann may not change what belongs to ben") as caught:
        require(Identity(name="ann", role=Role.USER), Action.CHANGE, "ben")
    assert caught.value.exit_code == 3
    require(Identity(name="ann", role=Role.USER), Action.CHANGE, "ann")
