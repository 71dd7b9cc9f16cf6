"""What a server refused, as the user's mistake that it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from oarsman import names
from oarsman.engines.kube.client import (
    Access,
    AlreadyExists,
    Forbidden,
    Invalid,
    NotFound,
    Unauthorized,
    Unavailable,
)
from oarsman.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OarsmanError,
    UnauthenticatedError,
    UnsupportedError,
    UserError,
)
from oarsman.text.sentence import Text

_OURS = f"{names.PLURAL}.{names.GROUP}"


@contextmanager
def in_plain_words(access: Access) -> Iterator[None]:
    try:
        yield
    except AlreadyExists as error:
        hint = Text("delete it first, or give this one another name")
        raise ConflictError(Text("there is a job of this name already: {why}", why=error.message), hint=hint) from error
    except NotFound as error:
        raise _not_found(error) from error
    except Invalid as error:
        raise UserError(
            Text("the cluster refused it: {why}", why=error.message), field=error.field, hint=error.hint
        ) from error
    except Forbidden as error:
        raise ForbiddenError(
            Text("this user may not do that: {why}", why=error.message),
            hint=Text("`oarsman doctor --on kube` shows what this user may do"),
        ) from error
    except Unauthorized as error:
        raise UnauthenticatedError(
            Text("the cluster does not know this user: {why}", why=error.message),
            hint=Text("the credentials are those of {source}", source=access.source),
        ) from error
    except Unavailable as error:
        error.hint = error.hint or Text(
            "the server is {server}, from {source}", server=access.server, source=access.source
        )
        raise


def not_installed() -> OarsmanError:
    return UnsupportedError(Text("the cluster has no MPIJobs"), hint=Text("run `oarsman install --image IMAGE`"))


def no_namespace(place: str) -> OarsmanError:
    hint = Text("make it: {command}", command=f"kubectl create namespace {place}")
    return NotFoundError(Text("there is no namespace {space} on this cluster", space=place), hint=hint)


def _not_found(error: NotFound) -> OarsmanError:
    if error.message.startswith("namespaces "):
        place = error.message.split('"')[1] if '"' in error.message else "NAME"
        return no_namespace(place)
    if _OURS in error.message:
        return NotFoundError(Text("there is no such job: {why}", why=error.message))
    return not_installed()
