"""Who may do what, as one table. Whoever answers a request asks here; nobody else decides.

It lies beside the service, which enforces it for REST, pages and programs alike.
"""

from __future__ import annotations

from enum import Enum

from oarsman.errors import ForbiddenError
from oarsman.service.models import Identity, Role
from oarsman.text.sentence import Text


class Action(Enum):
    LOOK = Text("look around")  # hosts, capacity, templates, previews: what belongs to nobody
    SEE = Text("see")  # a job, its log, events and usage
    CREATE = Text("create jobs")  # which runs commands on the machine
    CHANGE = Text("change")  # scale, suspend, resume, stop, rerun, delete
    EXAMINE = Text("examine the place")  # which runs programs there, and logs in to hosts
    TOKENS = Text("manage tokens")  # make, list and revoke them
    ADMINISTER = Text("administer")  # accounts and the audit log


_ALWAYS = frozenset(Action)
_JOBS = frozenset({Action.LOOK, Action.SEE, Action.CREATE, Action.CHANGE, Action.EXAMINE})
_OF_ANYBODY = {
    Role.VIEWER: frozenset({Action.LOOK, Action.SEE}),
    Role.USER: frozenset({Action.LOOK}),
    Role.ADMIN: _ALWAYS,
    Role.CLUSTER: _JOBS,  # whose rules come after ours
}
_OF_ONESELF = {
    Role.VIEWER: frozenset({Action.TOKENS}),
    Role.USER: frozenset({Action.SEE, Action.CREATE, Action.CHANGE, Action.TOKENS}),
    Role.ADMIN: _ALWAYS,
    Role.CLUSTER: _JOBS,
}


def may(identity: Identity, action: Action, owner: str | None = None) -> bool:
    """`owner` is whose job or token it is about; to create is about oneself, unless another owner is named.

    Without an owner the answer is about everybody's: a job that nobody owns is not everybody's own.
    """
    if action in _OF_ANYBODY[identity.role]:
        return True
    if owner is None and action is Action.CREATE:
        owner = identity.name
    return owner == identity.name and action in _OF_ONESELF[identity.role]


def require(identity: Identity, action: Action, owner: str | None = None) -> None:
    if not may(identity, action, owner):
        name, what = identity.name, action.value
        raise ForbiddenError(
            Text("{name} may not {action}", name=name, action=what)
            if owner in (None, name)
            else Text("{name} may not {action} what belongs to {owner}", name=name, action=what, owner=owner),
            hint=Text("the role is {role}; an admin can change it", role=identity.role.value),
        )
